"""How good a strategy for a small game is, without luck: a table of probabilities a state, measured.

`tree` writes a game out, `policy_table` has the ways to play it, `solver` finds one that loses nothing, `values` says
what a table is worth and what can be won of it, `bounds` what unknown rows could change. Games are OpenSpiel's; what is
asked of whom, and at which price, is not known here.
"""
