"""Fixtures shared with the tests of shards."""

from tests.shards.conftest import short_chunks

__all__ = ["short_chunks"]
