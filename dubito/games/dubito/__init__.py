"""The game Dubito: the engine, its sentences, and the facts for prompts and people."""
