"""Bots that ask a model. Each file defines a class with the file's name."""
