"""Tests of the tournament's referee."""
