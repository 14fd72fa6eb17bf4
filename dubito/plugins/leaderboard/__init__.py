"""Ratings by a book, and leaderboards of exported runs that were proved."""
