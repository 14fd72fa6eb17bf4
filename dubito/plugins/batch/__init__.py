"""Batches with providers: players with `wait: batch` cost half."""
