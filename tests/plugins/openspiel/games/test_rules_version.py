"""A digest of random games guards the `rules_version` of OpenSpiel's games."""

from typing import Final

import pytest

from tests.games.test_rules_version import play_digest

PLAYED: Final = {
    "openspiel:kuhn_poker": (1, "8d54a580c3d0725e"),
    "openspiel:leduc_poker": (1, "aff81f918761dbbf"),
    "openspiel:goofspiel(imp_info=True)": (1, "a1474ae7fc3db4b7"),
}


@pytest.mark.parametrize("name", PLAYED)
def test_changed_play_raises_rules_version(name: str) -> None:
    found = play_digest(name)
    assert found == PLAYED[name], f"{name} is played otherwise: raise its rules_version, and record the digest here"
