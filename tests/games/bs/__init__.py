"""Tests of BS: its engine, and its players against the reference."""
