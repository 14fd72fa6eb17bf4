"""Requests to models and learners' observations do not change, in every game."""

import json

import pytest

from tests.freeze.games import DIGESTS, digests


@pytest.mark.at_length
def test_requests_and_observations_are_unchanged() -> None:
    frozen = json.loads(DIGESTS.read_text(encoding="utf-8"))
    found = digests()
    # Without OpenSpiel, fewer games are checked.
    assert found
    assert found == {name: frozen[name] for name in found}
