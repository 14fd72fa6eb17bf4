"""Seats whose player is controlled from outside, for reinforcement learning."""
