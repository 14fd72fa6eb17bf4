"""The house: a built-in model server on this machine that follows the providers' wire protocols, with fake models.

`server` has the socket, `core` answers a request without I/O, `wires` and `decisions` are the protocols, `batches`
their batch APIs, and `faults` makes calls fail on purpose.
"""
