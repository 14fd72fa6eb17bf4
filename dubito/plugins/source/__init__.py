"""Bots of the source project's 2026 version (github.com/isBre/Dubito) as bots of Dubito."""
