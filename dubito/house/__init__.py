"""The house: a model server on loopback that speaks the providers' wire protocols. A stand-in, not a language model.

`server` holds the socket, `core` answers a request without I/O, `responses_wire`, `chat_wire` and
`anthropic_wire` are the three protocols, `opinions` is what plays.
"""
