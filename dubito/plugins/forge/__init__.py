"""`dubito forge`: a model writes a bot, and improves it from what its games tell."""
