"""Tests of BS: the engine, and a comparison of the players with a reference."""
