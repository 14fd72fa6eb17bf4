"""Position files can be read back, and impossible ones are rejected with one sentence."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.games.dubito.bot import NODES
from dubito.games.dubito.facts import example_position, facts, from_json, to_json

Damage = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("node", NODES)
def test_an_example_asks_its_node_and_is_always_the_same(node: str) -> None:
    position = example_position(node)
    assert position.node == node
    example_position.cache_clear()
    assert example_position(node) == position == from_json(to_json(position))


def test_the_hidden_truth_changes_no_fact() -> None:
    position = example_position("C")
    file = json.loads(to_json(position)) | {"hidden": {"hands": [[1, 2], [3]], "anything": None}}
    assert facts(from_json(json.dumps(file))) == facts(position)


def play_of_eleven(file: dict[str, Any]) -> None:
    file["events"][1]["player_id"] = 11


DAMAGES: list[tuple[Damage, str]] = [
    (lambda file: file.pop("hand"), "hand: Field required"),
    (lambda file: file.update(format="bs position 1"), "format: Input should be 'dubito position 1'"),
    (lambda file: file["hand"].append(14), "a card is not between 0 and 13"),
    (lambda file: file["hand"].append(7), "me, prev, next or the hand does not match the events"),
    (lambda file: file["events"].pop(0), "events: the first event"),
    (lambda file: file["events"].append(file["events"][0]), "events: the first event"),
    (lambda file: file["events"][0].update(initial_card_counts=[14]), "differ in length"),
    (lambda file: file["events"][1].update(declared_number=-1), "a number is not between 1 and 13"),
    (play_of_eleven, "a player is not at the table"),
    (lambda file: file["events"].pop(), "me, prev, next or the hand does not match the events"),
    (lambda file: file["own_plays"].pop(), "own_plays: does not match the plays of seat 3"),
    (lambda file: file.update(seat=1), "own_plays: does not match the plays of seat 1"),
    (lambda file: file.update(node="F"), "node F is not asked here"),
    (lambda file: file.update(answers={"A": True}), "node C is not asked here, or not after these answers"),
    (lambda file: file["turn"].update(can_doubt=False), "node C is not asked here"),
    (lambda file: file["turn"]["prev"].update(doubts=7), "does not match the events"),
    (lambda file: file["turn"]["next"].update(id=2), "prev and next do not match"),
    (lambda file: file["turn"].update(board_cards=99), "the board does not match the events"),
    (lambda file: file["rules"].update(jokers=9), "jokers: 9 is not between 0 and 2"),
]


def test_a_malformed_position_is_refused(subtests: pytest.Subtests) -> None:
    for damage, words in DAMAGES:
        with subtests.test(damage=damage, words=words):
            file = json.loads(to_json(example_position("C")))
            damage(file)
            with pytest.raises(UsageError) as caught:
                from_json(json.dumps(file))
            assert words in str(caught.value)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["dubito position 0", "dubito position 9", 1, []])
def test_position_of_another_version_is_refused(format: object) -> None:
    file = json.loads(to_json(example_position("C")))
    words = (
        f"this position was written by another version of Dubito (format {format}; this one reads dubito position 1)"
    )
    with pytest.raises(UsageError, match=re.escape(words)):
        from_json(json.dumps(file | {"format": format}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "dubito position 1"}', "\x00"])
def test_file_that_is_not_a_position_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="this is not a position: "):
        from_json(text)
