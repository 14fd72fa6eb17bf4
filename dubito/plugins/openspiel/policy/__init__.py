"""Measure a complete strategy for a small OpenSpiel game, without luck.

A strategy is a table with the probabilities of actions in each state. `tree` enumerates a game, and `solver` computes
an equilibrium. `values` computes what a table is worth, how exploitable it is and what unknown rows could change.
`stated_policy` asks a player for its table. `luck` corrects games for luck, and `contenders` applies this to a run.
"""
