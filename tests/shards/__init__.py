"""Tests of runs that are played in parts, or by other executors."""
