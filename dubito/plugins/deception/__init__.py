"""The deception sheet: how each player of a run lies, detects lies and rates plays."""
