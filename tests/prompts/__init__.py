"""Tests of what a model is told: facts, positions, prompts, and the house that answers from them."""
