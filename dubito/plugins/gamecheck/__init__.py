"""Checks of games: `dubito games check`, `dubito games audit` and `dubito prompts audit`."""
