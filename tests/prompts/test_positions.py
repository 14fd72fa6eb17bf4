"""Position files can be read back, and impossible ones are rejected with one sentence."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.position_file import dump_position, load_position
from dubito.games.dubito.bot import NODES
from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.games.dubito.game import GAME

Damage = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("node", NODES)
def test_an_example_asks_its_node_and_is_always_the_same(node: str) -> None:
    position = example_position(node)
    assert position.node == node
    example_position.cache_clear()
    assert example_position(node) == position == load_position(GAME, dump_position(GAME, position))


def test_the_hidden_truth_changes_no_fact() -> None:
    position = example_position("C")
    file = json.loads(dump_position(GAME, position)) | {"hidden": {"hands": [[1, 2], [3]], "anything": None}}
    assert DubitoFacts().facts(load_position(GAME, json.dumps(file))) == DubitoFacts().facts(position)


DAMAGES: list[tuple[Damage, str]] = [
    (lambda file: file.pop("log"), "log: Field required"),
    (lambda file: file.update(format="bs position 2"), "format: it is 'bs position 2', not 'dubito position 2'"),
    (lambda file: file["log"][0].update(initial_card_counts=["x"]), "log.0.initial_card_counts.0: Input should be a"),
    (lambda file: file["log"].pop(0), "log: no game has this log"),
    (lambda file: file["log"][2].update(player_id=11), "log: no game has this log (KeyError: 11)"),
    (lambda file: file["log"][2].update(event="CardsShown"), "log.2: event: 'CardsShown' is not an event of dubito"),
    (lambda file: file.update(seat=1), "log: it contains an event that seat 1 does not see"),
    (lambda file: file.update(seat=8), "seat: seats are 0 to 7"),
    (lambda file: file.update(node="F"), "dubito has no node 'F'"),
    (lambda file: file["rules"].update(jokers=9), "jokers: Input should be less than or equal to 2"),
]


def test_a_malformed_position_is_refused(subtests: pytest.Subtests) -> None:
    for damage, words in DAMAGES:
        with subtests.test(damage=damage, words=words):
            file = json.loads(dump_position(GAME, example_position("C")))
            damage(file)
            with pytest.raises(UsageError) as caught:
                load_position(GAME, json.dumps(file))
            assert words in str(caught.value)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["dubito position 1", "dubito position 9", 1, []])
def test_position_of_another_version_is_refused(format: object) -> None:
    file = json.loads(dump_position(GAME, example_position("C")))
    words = (
        f"this position was written by another version of Dubito (format {format}; this one reads dubito position 2)"
    )
    with pytest.raises(UsageError, match=re.escape(words)):
        load_position(GAME, json.dumps(file | {"format": format}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "dubito position 2"}', "\x00"])
def test_file_that_is_not_a_position_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="this is not a position: "):
        load_position(GAME, text)
