"""The referee of the Hidden Information Games tournament: programs at a table, strikes, clocks, instant run-off.

A bot is a process in any language that reads observations from standard input and writes actions to standard output.
Games are used only through OpenSpiel's engine, so any registered game can be played.

The rules follow the announcement of the 2021 competition (dialect `v1`). docs/tournament.md lists what was decided here
because the announcement left it open.
"""
