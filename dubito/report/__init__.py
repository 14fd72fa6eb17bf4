"""A run as a static site.

It is built from the run store, opens from disk and loads nothing from the network.
"""
