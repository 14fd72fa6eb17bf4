"""A changed game needs a new `rules_version`: a digest of random games detects changes."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import pytest

from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.stats.tally import build_outcome
from tests.cli.kit import REPO

DEALS: Final = 8
RULES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "dubito": [
        *({"win_rule": rule, "jokers": jokers} for rule in ("immediate", "contested") for jokers in (0, 2)),
        {"max_turns": 20},
        {"duel": True},
        {"ranks": 6, "copies": 3},
    ],
    "bs": [{}, {"max_rounds": 3}],
}
# Each game's `rules_version` with the digest of its games.
PLAYED: Final = {
    "dubito": (2, "966b45db6bd94baf"),
    "bs": (1, "0677b651c9a20ccf"),
    "defuse": (1, "0fc28732cd9aa1fe"),
}


def play_digest(name: str) -> tuple[int, str]:
    """Return a game's `rules_version` and a digest of its deals, outputs and results, played by the fallback bot."""
    registry, played = find_bots(REPO, name), list[object]()
    game = registry.game
    bot = Entrant(game.fallback, registry.find(game.fallback).cls)
    for text in RULES.get(name, [{}]):
        rules = game.rules(**text)
        least, most = game.seat_range(rules)
        for deal in range(DEALS):
            seats, streams = least + deal % (most - least + 1), DealStreams(7, deal)
            state = game.deal(rules, seats, streams.deck())
            dealt = game.deal_to_json(state)
            table = Table(state, [bot] * seats, streams, deal=deal, number=deal)
            outputs = []
            while not state.over:
                outputs.append(game.output_to_json(step(table, announce=True)[0]))
            played.append([dealt, outputs, build_outcome(state, [*range(seats)], 0, [0] * seats).pack().hex()])
    return game.rules_version, sha256(json.dumps(played, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", PLAYED)
def test_changed_play_raises_rules_version(name: str) -> None:
    found = play_digest(name)
    assert found == PLAYED[name], f"{name} is played otherwise: raise its rules_version, and record the digest here"
