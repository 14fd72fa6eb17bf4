"""Records: their text, saving and loading, and errors for other files."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from dubito.errors import UsageError
from dubito.game.events import EVERYTHING
from dubito.game.reader import Reader, seat_label
from dubito.game.record import FORMAT, GameRecord, Recorder
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.game import GAME
from dubito.games.dubito.sentences import card_name, describe_cards, ending, sentence
from tests.engine.golden import GAMES, RECORDS, play
from tests.engine.helpers import output, position, run

SENTENCES: list[tuple[Event, str]] = [
    (
        GameStartEvent(CardList([0, 1, 2]), CardList([18, 18, 17])),
        "The cards are dealt: Bo holds 18, Cy holds 18, Di holds 17.",
    ),
    (CardsPlayedEvent(0, 6, 1), "Bo plays 1 card as 6s."),
    (CardsPlayedEvent(1, 1, 2), "Cy plays 2 cards as aces."),
    (CardsPlayedEvent(2, 12, 3), "Di plays 3 cards as queens."),
    (
        DoubtResolvedEvent(1, 0, True, CardList([13, 0, 7]), CardList([1, 13, 0, 7]), 7, 0),
        "Cy doubts Bo, who shows 7 king joker: a bluff. Bo picks up 4 cards.",
    ),
    (
        DoubtResolvedEvent(1, 0, False, CardList([7, 0]), CardList([7]), 7, 1),
        "Cy doubts Bo, who shows 7 joker: honest. 1 joker leaves the game. Cy picks up 1 card.",
    ),
    (
        DoubtResolvedEvent(1, 0, False, CardList([0, 0]), CardList([]), 7, 2),
        "Cy doubts Bo, who shows joker joker: honest. 2 jokers leave the game. Cy picks up 0 cards.",
    ),
    (DiscardEvent(2, 11), "Di discards the four jacks."),
    (PlayerWonEvent(0, 1), "Bo is out of cards: place 1, a hard win."),
    (PlayerWonEvent(1, 2), "Cy is out of cards: place 2, a soft win."),
    (PlayerWonEvent(1, 3), "Cy is out of cards: place 3, a soft win."),
]


@pytest.mark.parametrize(("event", "words"), SENTENCES)
def test_r26_every_event_is_described(event: Event, words: str) -> None:
    assert sentence(event, Reader(("Bo", "Cy", "Di").__getitem__)) == words


def test_a_story_names_seats() -> None:
    assert seat_label(2) == "seat 2"
    assert sentence(PlayerWonEvent(2, 1)) == "seat 2 is out of cards: place 1, a hard win."


def test_r1_the_names_of_the_cards() -> None:
    names = ["joker", "ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king"]
    assert [card_name(card) for card in range(14)] == names
    assert [card_name(card, plural=True) for card in range(14)] == [name + "s" for name in names]


def test_described_cards_are_sorted_with_jokers_last() -> None:
    assert describe_cards([0, 13, 1, 7, 0, 7]) == "ace 7 7 king joker joker"
    assert describe_cards([]) == ""


def test_ending_is_described() -> None:
    """R10, R12: the losers, or the players who were unfinished."""
    game = position("A/23/45")
    run(game, "A as A")
    assert ending(game) == "The game is over; seat 1 and seat 2 lose."
    game = position("A/23/45/67", max_turns=2)
    run(game, "A as A", "2")
    assert ending(game) == "The game stops after 2 turns, unfinished for seat 1 and seat 2 and seat 3."


def short() -> GameRecord:
    return play(GAMES[0])


def test_recorder_stores_deal_outputs_and_story() -> None:
    game = position("A2/34/*6")
    recorder = Recorder(GAME, game, {})
    for turn, move in enumerate(map(output, ("A as A", "3", "*", "2")), start=1):
        recorder.add(turn, move, game.apply(move, EVERYTHING))
    assert recorder.record(game, ["Bo", "Cy", "Di"], 4, 9) == GameRecord(
        format=FORMAT,
        game="dubito",
        players=["Bo", "Cy", "Di"],
        rules={},
        seed=4,
        deal=9,
        dealt={"hands": [[1, 2], [3, 4], [0, 6]]},
        outputs=[[False, 1, [1]], [False, None, [3]], [False, None, [0]], [False, None, [2]]],
        story=[
            "turn 1: seat 0 plays 1 card as aces. [really ace: honest]",
            "turn 2: seat 1 plays 1 card as aces. [really 3: a bluff]",
            "turn 3: seat 2 plays 1 card as aces. [really joker: honest]",
            "turn 4: seat 0 plays 1 card as aces. [really 2: a bluff]",
            "turn 4: seat 0 is out of cards: place 1, a hard win.",
            "The game is over; seat 1 and seat 2 lose.",
            "1. seat 0",
            "4 turns and 0 free ones",
            "Deal and outputs: 621681a17098ac8f",
        ],
    )


def test_dump_and_load_are_inverse() -> None:
    """Names can contain control characters, and the seed can be missing. Each output is on its own line."""
    record = replace(short(), players=["Bo", "Çy", "Di\x1b"], seed=None)
    text = RECORDS.dump(record)
    assert RECORDS.load(text) == record
    assert json.loads(text)["players"][2] == "Di\x1b"
    assert "\n  [true, null, null],\n" in text
    assert "\x1b" not in text


def test_record_has_a_number_only_with_models() -> None:
    assert "number" not in json.loads(RECORDS.dump(short()))
    for number in (0, 2**63 - 1):
        record = replace(short(), number=number)
        assert RECORDS.load(RECORDS.dump(record)) == record


def plain() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(RECORDS.dump(short()))
    return read


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"format": "dubito position 1"}, "format"),
    ({"format": None}, "format"),
    ({"players": None}, "players"),
    ({"dealt": []}, "dealt"),
    ({"outputs": {}}, "outputs"),
    ({"story": [1]}, "story.0"),
    ({"seed": "4"}, "seed"),
    ({"number": -1}, "number"),
    ({"number": 2**63}, "number"),
    ({"notes": ""}, "notes"),
    ({"rules": {"jokers": 3}}, "jokers"),
    ({"rules": {"max_turns": 0}}, "max_turns"),
    ({"rules": {"jokrs": 0}}, "jokrs"),
    ({"game": "bs"}, "this is a game of bs, not of dubito"),
]


def complaint(text: str) -> str:
    """Return the one-line error message for a file that is not a record."""
    with pytest.raises(UsageError) as caught:
        RECORDS.load(text)
    words = str(caught.value)
    assert words.isprintable()
    assert 0 < len(words) < 300
    return words


def test_a_malformed_record_is_a_usage_error(subtests: pytest.Subtests) -> None:
    for change, words in MALFORMED:
        with subtests.test(change=change, words=words):
            message = complaint(json.dumps({**plain(), **change}))
            assert message == words or message.startswith(f"this is not a game record: {words}: ")


_OTHER_CARDS: Final = "the record's cards do not match its seed, so it was modified or is damaged"
UNPLAYABLE: list[tuple[dict[str, Any], str]] = [
    ({"players": ["Bo", "Cy"]}, "Dubito needs 3 to 8 players, not 2; two players need the `duel` variant"),
    ({"players": ["Bo"] * 9}, "Dubito needs 3 to 8 players, not 9"),
    (
        {"dealt": {"hands": [[1], [2], [3]]}},
        _OTHER_CARDS,
    ),
    ({"seed": None}, "the record has no seed, so its cards cannot be verified"),
    ({"outputs": [[True, None, None, None]]}, "this is not an output of dubito: [true, null, null, null]"),
]


def test_a_record_of_an_impossible_game_is_a_usage_error(subtests: pytest.Subtests) -> None:
    for change, words in UNPLAYABLE:
        with subtests.test(change=change):
            with pytest.raises(UsageError) as caught:
                list(RECORDS.replay(RECORDS.load(json.dumps({**plain(), **change}))))
            assert str(caught.value) == words


def test_outputs_of_other_types_are_refused(subtests: pytest.Subtests) -> None:
    """R13: the rules refuse what a file may contain instead of a number or cards."""
    answers = [1, None, None], [True, None, 3], [False, "1", [1]], [False, 1, [True]], [False, 1, {"1": 1}]
    for wrong in (*answers, "ab", {"doubt": True}):
        with subtests.test(output=wrong):
            lines = list(RECORDS.replay(RECORDS.load(json.dumps({**plain(), "outputs": [wrong]}))))
            assert [line.partition("refused")[0] for line in lines] == ["turn 1: "]


@pytest.mark.parametrize("field", ["game", "players", "dealt", "outputs", "story", "format"])
def test_a_missing_field_is_a_usage_error(field: str) -> None:
    read = plain()
    del read[field]
    assert complaint(json.dumps(read)) == f"this is not a game record: {field}: Field required"


@pytest.mark.parametrize("format", ["dubito game 1", "dubito game 3", 1, True, ["x"], {}])
def test_a_record_of_another_version_is_refused(format: object) -> None:
    begin = f"this game was written by another version of Dubito (format {format}; this one reads dubito game 2): "
    assert complaint(json.dumps({**plain(), "format": format})).startswith(begin)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "\x00", "\ud800", "[" * 100_000, "{'a': 1}"])
def test_record_must_be_a_json_object(text: str) -> None:
    assert complaint(text).startswith("this is not a game record: the file: ")


def test_control_characters_of_a_record_are_escaped() -> None:
    complaint(json.dumps({**plain(), "\x1b[2J\n": 1}))
