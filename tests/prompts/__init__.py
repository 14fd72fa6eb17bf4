"""Tests of facts, positions, prompts, and the house's answers from them."""
