"""Walls around a process of somebody else's program: what it can reach, use and leave behind."""
