"""The deception sheet: how each player of a run lies, detects lies and rates plays."""

from dubito.plugins.deception.read import read_sheet as read_sheet
