"""Draw and defuse: two seats and one bomb. The player who draws it without a defuse card loses.

The rules follow the notebook that defined the game, with the rulings D1-D7 of docs/defuse.md.
"""
