"""Frozen behaviour: digests, and users' files that must stay readable."""
