"""Prompts for OpenSpiel's games reveal nothing hidden, and are the same from a file."""

from itertools import islice

import pytest

from dubito.errors import UsageError
from dubito.game.find import find_bots, find_game
from dubito.game.log import Position
from dubito.game.position_file import dump_position, load_position
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.plugins.openspiel.facts import build_position
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
    one, other = (find_game(f"openspiel:{name}", REPO) for name in ("kuhn_poker", "leduc_poker"))
    text = dump_position(one, one.facts.example_position("act"))
    with pytest.raises(UsageError, match="it is 'openspiel:kuhn_poker position 2', not 'openspiel:leduc_poker pos"):
        load_position(other, text)
    with pytest.raises(UsageError, match="seat: seats are 0 to 1"):
        load_position(one, text.replace('"seat": 1', '"seat": 2'))


@pytest.mark.parametrize("name", GAMES)
def test_a_position_is_read_as_it_was_written(name: str) -> None:
    game = find_game(f"openspiel:{name}", REPO)
    position = game.facts.example_position("act")
    read = load_position(game, dump_position(game, position))
    assert read == position
    assert game.facts.facts(read) == game.facts.facts(position)


@pytest.mark.parametrize("name", ["leduc_poker", "phantom_ttt", "dark_chess"])
def test_history_only_grows(name: str) -> None:
    """A seat's history only grows, so providers can cache its beginning."""
    registry = find_bots(REPO, f"openspiel:{name}")
    game, prompt = registry.game, load_prompt("plain", REPO, registry.game)
    bot = registry.find("UniformRandom").cls
    streams = DealStreams(5, 0)
    table = Table(game.deal(game.rules(), 2, streams.deck()), [Entrant("one", bot), Entrant("two", bot)], streams)
    log = table.keep_log()
    histories: dict[int, tuple[str, ...]] = {}
    while not table.state.over and table.state.turns_played < 40:
        seat, view = table.state.seat, table.state.view()
        position = Position(game.rules(), view.node, log.of(seat))
        assert game.facts.facts(position) == game.facts.facts(build_position(view))
        rendered = prompt.render(position)
        before = histories.get(seat, ())
        assert rendered.history[: len(before)] == before
        histories[seat] = rendered.history
        step(table)
    assert any(len(history) > 1 for history in histories.values())


def test_each_prompt_states_rules_and_legal_answers() -> None:
    game = find_game("openspiel:leduc_poker", REPO)
    assert prompt_names(REPO, game) == ["plain", "policy", "reasoned"]
    rendered = load_prompt("plain", REPO, game).render(game.facts.example_position("act"))
    assert "You are playing Leduc poker, a game for 2 players." in rendered.system
    assert rendered.user.splitlines()[-1].startswith("legal: ")
    other = load_prompt("plain", REPO, find_game("openspiel:phantom_ttt", REPO))
    words = other.render(other.game.facts.example_position("act"))
    assert "as OpenSpiel implements it under the name phantom_ttt" in words.system
    assert "state:" in words.user


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", GOLDEN)
def test_requests_are_unchanged(name: str, prompt: str) -> None:
    assert rendered(name, prompt) == golden(name, prompt).read_text()
