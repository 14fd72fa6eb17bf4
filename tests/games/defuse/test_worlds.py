"""Second worlds of draw and defuse look the same to the seat, differ in truth, and give equal prompts."""

from functools import cache
from operator import ne
from random import Random
from typing import Any

import pytest

from dubito.games.defuse import engine
from dubito.games.defuse.events import TakeEvent
from dubito.games.defuse.facts import Position, facts
from dubito.games.defuse.game import GAME
from dubito.games.defuse.workshop import world_pairs
from dubito.games.defuse.worlds import World, sample_world
from dubito.llm.prompts import OWN_PROMPTS
from dubito.workshop.checks import CheckFailed, prompt_checks
from tests.conftest import in_gate

PROMPTS = ("plain", "reasoned")


@cache
def pairs() -> list[tuple[Position, Position]]:
    return [*world_pairs()]


def test_seat_sees_the_same_in_sampled_worlds() -> None:
    assert len(pairs()) > 60
    assert {position.node for position, _ in pairs()} == {"turn", "place"}
    for here, there in pairs():
        assert here == there
        assert facts(here) == facts(there)


def truth(world: World) -> Any:
    return sorted(world.hand), world.orders, world.places


def test_sampled_worlds_differ() -> None:
    some = [position for position, _ in pairs()[::4]]
    one, two = ([truth(sample_world(position, Random(seed))) for position in some] for seed in (0, 1))
    assert sum(map(ne, one, two)) > 0.9 * len(some) > 15


@pytest.mark.parametrize("name", in_gate(PROMPTS, 1))
def test_shipped_prompt_reveals_nothing_hidden(name: str) -> None:
    dict(prompt_checks(OWN_PROMPTS / "defuse" / name, GAME))["tells_nothing_hidden"]()


@pytest.mark.parametrize("name", PROMPTS)
def test_card_drawn_by_the_other_seat_can_be_derived(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TakeEvent", lambda card, only: TakeEvent(card))
    with pytest.raises(CheckFailed, match="reveals information hidden from seat"):
        dict(prompt_checks(OWN_PROMPTS / "defuse" / name, GAME))["tells_nothing_hidden"]()
