"""Frozen behaviour: digests, and files of users that must stay readable."""
