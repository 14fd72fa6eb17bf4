"""Prompts for OpenSpiel's games reveal nothing hidden, and are the same from a file."""

from itertools import islice
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.find import find_bots, find_game
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.llm.prompts import load_prompt, prompt_names
from tests.cli.kit import REPO
from tests.games.kit import OPENSPIEL
from tests.plugins.openspiel.games.golden import GOLDEN, PROMPTS, golden, rendered

pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

GAMES = (*OPENSPIEL, "rbc", "go_fish")


@pytest.mark.parametrize("name", GAMES)
def test_indistinguishable_worlds_give_the_same_prompt(name: str) -> None:
    game = find_game(f"openspiel:{name}", REPO)
    prompts = [load_prompt(prompt, REPO, game) for prompt in ("plain", "reasoned")]
    pairs = 0
    for one, other in islice(game.workshop.world_pairs() or (), 4):
        pairs += 1
        for prompt in prompts:
            assert prompt.render(one) == prompt.render(other)
    assert pairs == 4


def test_a_position_of_another_game_is_refused() -> None:
    one: Any
    other: Any
    one, other = (find_game(f"openspiel:{name}", REPO).facts for name in ("kuhn_poker", "leduc_poker"))
    with pytest.raises(UsageError, match="it is openspiel:kuhn_poker, not openspiel:leduc_poker"):
        other.from_json(one.to_json(one.example_position("act")))
    text = one.to_json(one.example_position("act"))
    with pytest.raises(UsageError, match="seat: openspiel:kuhn_poker has 2"):
        one.from_json(text.replace('"seat": 1', '"seat": 2'))


@pytest.mark.parametrize("name", ["leduc_poker", "phantom_ttt", "dark_chess"])
def test_history_only_grows(name: str) -> None:
    """A seat's history only grows, so providers can cache its beginning."""
    registry = find_bots(REPO, f"openspiel:{name}")
    game, prompt = registry.game, load_prompt("plain", REPO, registry.game)
    bot = registry.find("UniformRandom").cls
    streams = DealStreams(5, 0)
    table = Table(game.deal(game.rules(), 2, streams.deck()), [Entrant("one", bot), Entrant("two", bot)], streams)
    facts: Any = game.facts
    notebooks = [facts.Notebook(seat, game.rules()) for seat in (0, 1)]
    told: dict[int, tuple[str, ...]] = {}
    while not table.state.over and table.state.turns_played < 40:
        seat, view = table.state.seat, table.state.view()
        said = prompt.render(notebooks[seat].position(view.node, view, table.state.cards(seat, streams.seat(seat))))
        before = told.get(seat, ())
        assert said.history[: len(before)] == before
        told[seat] = said.history
        step(table)
    assert any(len(history) > 1 for history in told.values())


def test_each_prompt_states_rules_and_legal_answers() -> None:
    game = find_game("openspiel:leduc_poker", REPO)
    assert prompt_names(REPO, game) == ["plain", "policy", "reasoned"]
    said = load_prompt("plain", REPO, game).render(game.facts.example_position("act"))
    assert "You are playing Leduc poker, a game for 2 players." in said.system
    assert said.user.splitlines()[-1].startswith("legal: ")
    other = load_prompt("plain", REPO, find_game("openspiel:phantom_ttt", REPO))
    words = other.render(other.game.facts.example_position("act"))
    assert "as OpenSpiel implements it under the name phantom_ttt" in words.system
    assert "state:" in words.user


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", GOLDEN)
def test_requests_are_unchanged(name: str, prompt: str) -> None:
    assert rendered(name, prompt) == golden(name, prompt).read_text()
