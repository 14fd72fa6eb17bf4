"""How good a strategy for a small game is, without luck: a table of probabilities a state, measured.

`tree` writes a game out and has the tables, `solver` finds one that loses nothing, `values` says what a table is worth,
what can be won of it and what unknown rows could change, `stated` asks a player for one. `luck` takes chance out of
games that were played, `contenders` those of a run. Games are OpenSpiel's.
"""
