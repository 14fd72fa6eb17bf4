"""BS, king of the hill: four players with thirteen cards each. The first player without cards wins.

The rules follow the controller of prakol16/bs, with the rulings B1-B10 in docs/bs.md.
"""
