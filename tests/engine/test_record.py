"""Records: their text, saving and loading, and errors for other files."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.table import step
from dubito.game.words import seat_label
from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.engine import Rules, State
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.record import (
    FORMAT,
    GameRecord,
    RecordedOutput,
    Recorder,
    card_name,
    describe_cards,
    dump,
    ending,
    load,
    replay,
    sentence,
)
from tests.engine.helpers import cards, output, position, run, scripted, table

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
    assert sentence(event, ("Bo", "Cy", "Di").__getitem__) == words


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


def recorded(game: State, *moves: str) -> GameRecord:
    """Return the record of a short game of scripted players."""
    recorder = Recorder(game)
    at = table(game, *[scripted(*moves[seat :: len(game.hands)]) for seat in range(len(game.hands))])
    for turn, _ in enumerate(moves, start=1):
        recorder.add(turn, *step(at, announce=True))
    return recorder.record(game, ["Bo", "Cy", "Di\x1b"], seed=4, deal=9)


def short() -> GameRecord:
    return recorded(position("A2/34/*6"), "A as A", "3", "*", "2")


def test_recorder_stores_deal_outputs_and_story() -> None:
    assert short() == GameRecord(
        format=FORMAT,
        players=["Bo", "Cy", "Di\x1b"],
        hands=[[1, 2], [3, 4], [0, 6]],
        outputs=[
            RecordedOutput(False, 1, [1]),
            RecordedOutput(False, None, [3]),
            RecordedOutput(False, None, [0]),
            RecordedOutput(False, None, [2]),
        ],
        story=[
            "turn 1: seat 0 plays 1 card as aces.",
            "turn 2: seat 1 plays 1 card as aces.",
            "turn 3: seat 2 plays 1 card as aces.",
            "turn 4: seat 0 plays 1 card as aces.",
            "turn 4: seat 0 is out of cards: place 1, a hard win.",
            "The game is over; seat 1 and seat 2 lose.",
            "Deal and outputs: 54ccb1e81f0d041b",
        ],
        rules=Rules(),
        seed=4,
        deal=9,
    )


def test_recorder_copies_outputs() -> None:
    """The record's hands and outputs do not change with the game."""
    game = position("A2/34/56")
    recorder, laid = Recorder(game), [1]
    move = TurnOutput(False, 1, laid)
    recorder.add(1, move, game.apply(move))
    laid.append(13)
    assert (recorder.hands[0], recorder.outputs[0].cards) == ([1, 2], [1])
    recorder.add(2, output("doubt"), [])
    assert recorder.outputs[1] == RecordedOutput(True, None, None)


def test_dump_and_load_are_inverse() -> None:
    """Names can contain control characters, and seed and deal can be missing. Each output is on its own line."""
    record = short()
    text = dump(record)
    assert load(text) == record
    assert json.loads(text)["players"][2] == "Di\x1b"
    assert '\n  {"doubt": false, "number": null, "cards": [0]},\n' in text
    assert text.isascii()
    bare = GameRecord(["Bo", "Çy", "Di"], [[1], [2], [3]], [], [], format=FORMAT)
    assert load(dump(bare)) == bare
    assert (bare.seed, bare.deal) == (None, None)


def test_record_has_a_number_only_with_models() -> None:
    """Records of games without models keep their format, and old ones can be read."""
    assert "number" not in json.loads(dump(short()))
    assert load(dump(short())).number is None
    game = position("A2/34/*6")
    run(game, "A as A", "3", "*", "2")
    record = Recorder(game).record(game, ["Bo", "Cy", "Di"], 4, 9, 2**63 - 1)
    assert json.loads(dump(record))["number"] == 2**63 - 1
    assert load(dump(replace(short(), number=0))) == replace(short(), number=0)


def test_replay_of_a_record_is_its_story() -> None:
    """A changed record has a different story."""
    record = short()
    assert list(replay(record)) == record.story
    record.outputs[1] = RecordedOutput(True, None, None)
    assert list(replay(record))[1] == "turn 2: seat 1 doubts seat 0, who shows ace: honest. seat 1 picks up 1 card."
    record.outputs[2] = RecordedOutput(False, 14, [0])
    assert list(replay(record))[2:] == ["turn 3: refused: an opening must declare a number from 1 to 13, not 14"]


def plain() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(dump(short()))
    return read


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"format": "dubito position 1"}, "format"),
    ({"format": None}, "format"),
    ({"players": None}, "players"),
    ({"players": ["Bo", "Cy"]}, "the record names 2 players but contains 3 hands"),
    ({"hands": [[1], [2]]}, "Dubito needs 3 to 8 players, not 2; two players need the `duel` variant"),
    ({"hands": [[1]] * 9, "players": ["Bo"] * 9}, "Dubito needs 3 to 8 players, not 9"),
    ({"hands": [[14], [2], [3]]}, "hands.0.0"),
    ({"hands": [[1], [2], [True]]}, "hands.2.0"),
    ({"hands": [[1, 1], [1, 1], [1]]}, "the record deals more cards of a value than a deck has"),
    ({"hands": [[0], [2], [3]], "rules": {"jokers": 0}}, "the record deals more cards of a value than a deck has"),
    ({"outputs": [{"doubt": 1, "number": None, "cards": None}]}, "outputs.0.doubt"),
    ({"outputs": [{"doubt": True, "number": None, "cards": 3}]}, "outputs.0.cards"),
    ({"outputs": [{"doubt": True, "number": None}]}, "outputs.0.cards"),
    ({"outputs": {}}, "outputs"),
    ({"story": [1]}, "story.0"),
    ({"seed": "4"}, "seed"),
    ({"number": -1}, "number"),
    ({"number": 2**63}, "number"),
    ({"notes": ""}, "notes"),
    ({"rules": {"jokers": 3}}, "jokers: 3 is not between 0 and 2"),
    ({"rules": {"max_turns": 0}}, "max_turns: 0 is less than 1"),
    ({"rules": {"jokrs": 0}}, "rules.jokrs"),
]


def complaint(text: str) -> str:
    """Return the one-line error message for a file that is not a record."""
    with pytest.raises(UsageError) as caught:
        load(text)
    words = str(caught.value)
    assert words.isprintable()
    assert 0 < len(words) < 300
    return words


def test_a_malformed_record_is_a_usage_error(subtests: pytest.Subtests) -> None:
    for change, words in MALFORMED:
        with subtests.test(change=change, words=words):
            said = complaint(json.dumps({**plain(), **change}))
            assert said == words or said.startswith(f"this is not a game record: {words}: ")


@pytest.mark.parametrize("field", ["players", "hands", "outputs", "story", "format"])
def test_a_missing_field_is_a_usage_error(field: str) -> None:
    read = plain()
    del read[field]
    assert complaint(json.dumps(read)) == f"this is not a game record: {field}: Field required"


@pytest.mark.parametrize("format", ["dubito game 0", "dubito game 2", 1, True, ["x"], {}])
def test_a_record_of_another_version_is_refused(format: object) -> None:
    begin = f"this game was written by another version of Dubito (format {format}; this one reads dubito game 1): "
    assert complaint(json.dumps({**plain(), "format": format})).startswith(begin)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "\x00", "\ud800", "[" * 100_000, "{'a': 1}"])
def test_record_must_be_a_json_object(text: str) -> None:
    assert complaint(text).startswith("this is not a game record: the file: ")


def test_short_deck_is_accepted() -> None:
    assert load(dump(GameRecord(["Bo"] * 3, [cards("A*"), cards("A*"), cards("AA2")], [], [], format=FORMAT))).hands[
        2
    ] == [1, 1, 2]


def test_control_characters_of_a_record_are_escaped() -> None:
    complaint(json.dumps({**plain(), "\x1b[2J\n": 1}))


@pytest.mark.parametrize("hands", [[[1, 1, 1, 1], [2], [3]], [[], [2], [3]]])
def test_r2_impossible_hands_are_a_usage_error(hands: list[list[int]]) -> None:
    complaint(json.dumps({**plain(), "hands": hands}))
