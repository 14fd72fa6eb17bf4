"""Seats that are controlled from outside: by programs, by agents or by a reinforcement learning harness."""
