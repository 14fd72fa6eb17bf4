"""Tests of the games, a room each."""
