"""One game before somebody: who sits there, what is told of it, and the games of a run told again."""
