"""BS, king of the hill: four players, thirteen cards each, all played face down; whoever is rid of its hand wins.

The rules are those of the controller of prakol16/bs as it plays, with the rulings B1-B10 of docs/bs.md.
"""
