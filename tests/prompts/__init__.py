"""Tests of facts, positions, prompts, and the fake models' answers to them."""
