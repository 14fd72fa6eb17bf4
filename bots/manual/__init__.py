"""Hand-written bots. Each file defines a class with the file's name."""
