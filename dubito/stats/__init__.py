"""Sums over games, and statistics derived from them: rates with intervals, ranks, bounds.

This package does no I/O and calls no models.
"""
