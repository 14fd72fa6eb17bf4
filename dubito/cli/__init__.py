"""The command line, with one module per command. Only this package wires the others together."""
