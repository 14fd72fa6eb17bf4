"""The command line: one module a command; the only place that wires the packages together."""
