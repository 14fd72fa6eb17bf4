"""Tests of the prompt workshop: recorded positions, what prompts say at them, and what models answer."""
