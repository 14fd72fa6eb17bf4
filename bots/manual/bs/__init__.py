"""The hand-written bots of BS, one a file."""
