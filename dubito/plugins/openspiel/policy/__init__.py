"""Measure a complete strategy for a small OpenSpiel game, without luck.

A strategy is a table with the probabilities of actions in each state. `tree` enumerates a game, `solver` computes an
equilibrium, `values` computes what a table is worth, how exploitable it is and what unknown rows could change, and
`stated` asks a player for its table. `luck` corrects played games for luck; `contenders` does so for a run.
"""
