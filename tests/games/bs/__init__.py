"""Tests of BS: the engine, and the players against a reference."""
