"""Its games."""
