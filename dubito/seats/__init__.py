"""Seats controlled from outside: by programs, agents or a reinforcement learning harness."""
