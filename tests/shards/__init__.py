"""Tests of runs in parts or with other executors."""
