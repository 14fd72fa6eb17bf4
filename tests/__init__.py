"""The tests of Dubito."""
