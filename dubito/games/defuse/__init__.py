"""Draw and defuse: two seats, one bomb in the pile; whoever draws it without a defuse card loses.

The rules are those of the notebook that set the game, as it plays them, with the rulings D1-D7 of docs/defuse.md.
"""
