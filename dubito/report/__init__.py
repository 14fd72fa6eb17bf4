"""Write a run as a static site.

The site is built from the run store, opens from disk and loads nothing from the network.
"""
