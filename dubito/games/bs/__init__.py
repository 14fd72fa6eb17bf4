"""BS, king of the hill: four players with thirteen cards each. The first player without cards wins.

The rules follow the controller in prakol16/bs, with rulings B1-B10 in docs/bs.md.
"""
