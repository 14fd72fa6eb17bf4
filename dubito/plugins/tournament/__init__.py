"""The referee of the Hidden Information Games tournament: programs at a table, strikes, clocks, instant run-off.

Bots are processes in any language that read observations from standard input and write actions to standard output.
Games are only used through OpenSpiel's engine, so any registered game can be played.

The rules follow the announcement of the 2021 competition (dialect `v1`). docs/tournament.md lists our decisions on what
the announcement left open.
"""
