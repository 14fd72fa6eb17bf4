"""BS, king of the hill: four players with thirteen cards each. The first player without cards wins.

The rules are those that the controller of prakol16/bs follows, with the rulings B1-B10 of docs/bs.md.
"""
