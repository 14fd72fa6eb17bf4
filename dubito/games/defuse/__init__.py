"""Draw and defuse: two seats and one bomb. The player who draws the bomb without a defuse card loses.

The rules follow the notebook that defined the game, with the rulings D1-D7 in docs/defuse.md.
"""
