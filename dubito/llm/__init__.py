"""Asking a model: request to reply through one pipeline, and a strict answer out of it."""
