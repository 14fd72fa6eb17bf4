"""Bots that ask a model."""
