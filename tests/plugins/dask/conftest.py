"""Fixtures shared with the shards' tests."""

from tests.shards.conftest import short_chunks

__all__ = ["short_chunks"]
