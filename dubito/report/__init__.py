"""A run as pages: a static site made from the run store, opened from disk, that loads nothing from elsewhere."""
