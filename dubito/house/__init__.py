"""The house, a built-in local model server with fake models that follows the providers' wire protocols.

`server` handles the socket, `core` answers requests without I/O, `wires` and `decisions` implement the protocols,
`batches` implements their batch APIs, and `faults` makes calls fail on purpose.
"""
