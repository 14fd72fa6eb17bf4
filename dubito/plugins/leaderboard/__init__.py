"""Ratings by a book, and leaderboards of verified exported runs."""
