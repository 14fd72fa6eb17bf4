"""Tests of the prompt workshop: recorded positions, rendered prompts, and models' answers."""
