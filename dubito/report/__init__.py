"""Write a run as a static site.

The site is built from the run store, works when opened from disk, and loads nothing from the network.
"""
