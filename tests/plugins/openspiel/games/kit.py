"""Helpers that drive OpenSpiel's games: named actions, tested sentences, whole trees."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import pytest

from dubito.plugins.openspiel.known_games import OwnWords, find_words

pyspiel = pytest.importorskip("pyspiel", reason="plays games of OpenSpiel: pip install 'dubito[openspiel]'")

Test = TypeVar("Test", bound=Callable[..., None])


def load(name: str) -> Any:
    return pyspiel.load_game(name)


def load_words(game: Any) -> OwnWords:
    found = find_words(game)
    assert found is not None
    return found


def after(game: Any, chance: Iterable[int], *acts: str) -> Any:
    """Return the state after these actions, which must be legal. Chance takes the given outcomes in turn."""
    state, outcomes = game.new_initial_state(), iter(chance)
    skip_chance(state, outcomes)
    for act in acts:
        do(state, act)
        skip_chance(state, outcomes)
    return state


def do(state: Any, act: str) -> None:
    assert act in legal(state), f"{act}: {legal(state)}"
    state.apply_action(load_words(state.get_game()).names.index(act))


def skip_chance(state: Any, outcomes: Iterator[int]) -> None:
    while state.is_chance_node():
        outcome = next(outcomes, None)
        if outcome is None:
            return
        state.apply_action(outcome)


def legal(state: Any) -> list[str]:
    names = load_words(state.get_game()).names
    return [names[action] for action in state.legal_actions()]


def tree(state: Any) -> Iterator[Any]:
    yield state
    for action in state.legal_actions():
        yield from tree(state.child(action))


class Claims:
    """The sentences of a game's rules, each with the test that verifies it."""

    def __init__(self) -> None:
        self.quotes: list[str] = []

    def __call__(self, *quotes: str) -> Callable[[Test], Test]:
        self.quotes += quotes
        return lambda test: test

    def left(self, rules: Iterable[str]) -> str:
        """Return the parts of the rules that no test quotes. Fail if a quotation is not in the rules."""
        text = " ".join(rules)
        for quote in sorted(self.quotes, key=len, reverse=True):
            assert quote in text, f"not in the rules, or quoted twice: {quote}"
            text = text.replace(quote, "|", 1)
        return re.sub(r"[|;:,. ]+", " ", text).strip()
