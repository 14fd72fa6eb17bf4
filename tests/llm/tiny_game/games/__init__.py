"""Games of this folder."""
