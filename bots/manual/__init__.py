"""Hand-written bots, one file each: the class has the name of its file."""
