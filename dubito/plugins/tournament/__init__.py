"""The referee of the Hidden Information Games tournament: programs at a table, strikes, clocks, instant run-off.

A bot is a process in any language that reads observations from standard input and writes actions to standard
output. This wing knows games through OpenSpiel's engine only, so that any game registered there can be played.

The rules are those of the competition of 2021, as its announcement has them (dialect `v1`); what it left open is
decided here and said where it is decided (docs/tournament.md has all of it in one place).
"""
