"""Dubito: the engine, its words, what prompts and people are told of it."""
