"""Bots that ask a model, one file each: the class has the name of its file."""
