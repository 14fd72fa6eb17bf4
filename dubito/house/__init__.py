"""The house: a model server on loopback that speaks two providers' wire protocols. A stand-in, no language model.

`server` holds the socket, `core` answers a request without I/O, `openai_wire` and `anthropic_wire` are the
two protocols, `policy` is what plays.
"""
