"""Ratings against a book, and leaderboards of verified exported runs."""
