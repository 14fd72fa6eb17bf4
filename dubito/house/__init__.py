"""The house, a built-in local model server with fake models that follows the providers' wire protocols.

`server` handles the socket, `core` answers requests without I/O, `wires` and `decisions` implement the protocols, and
`faults` makes calls fail on purpose. The providers' batch APIs come from the plugin `batch`.
"""
