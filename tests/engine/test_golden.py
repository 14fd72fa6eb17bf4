"""Golden games: the same bots must reproduce frozen records and their stories.

After an intended change, `python -m tests.engine.golden` rewrites the files; review the difference.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.record import GameRecord
from tests.conftest import in_gate
from tests.engine import golden
from tests.engine.golden import RECORDS, Golden

Output = list[Any]  # doubt, number, cards
EVERY_GAME = pytest.mark.parametrize("game", golden.GAMES, ids=lambda game: game.name)
# The gate changes every output of the shortest games.
A_CHANGED_GAME = pytest.mark.parametrize(
    "game",
    in_gate(golden.GAMES, [game for game in golden.GAMES if game.name in ("three_immediate", "five_contested")]),
    ids=lambda game: game.name,
)


def load_golden(game: Golden) -> GameRecord:
    return RECORDS.load(game.file.read_text(encoding="utf-8"))


@EVERY_GAME
def test_r27_the_bots_play_the_same_game_again(game: Golden) -> None:
    assert RECORDS.dump(golden.play(game)) == game.file.read_text(encoding="utf-8")


@EVERY_GAME
def test_a_record_replays_to_its_story(game: Golden) -> None:
    record = load_golden(game)
    assert list(RECORDS.replay(record)) == record.story
    assert len(record.outputs) > 20


def test_folder_has_exactly_the_golden_games() -> None:
    assert sorted(golden.FOLDER.iterdir()) == sorted(game.file for game in golden.GAMES)


def test_golden_games_cover_every_kind_of_event() -> None:
    """R6, R8, R9, R12: the games cover both win rules and 3, 5 and 8 players."""
    text = "\n".join(line for game in golden.GAMES for line in load_golden(game).story)
    for words in ("plays", ": a bluff.", ": honest.", "the game. ", "discards", "a hard win", "a soft win"):
        assert words in text
    assert "unfinished" in text
    assert {(len(game.bots), game.rules.win_rule) for game in golden.GAMES} >= {
        *((3, "immediate"), (3, "contested"), (5, "contested"), (5, "immediate"), (8, "immediate")),
    }


def tampered(record: GameRecord, turn: int, output: Output | None) -> GameRecord:
    outputs = list(record.outputs)
    outputs[turn - 1 : turn] = [] if output is None else [output]
    return replace(record, outputs=outputs)


def first_difference(record: GameRecord) -> int:
    """Return the first line number of the story that a replay does not reproduce."""
    for number, (line, known) in enumerate(zip([*RECORDS.replay(record), ""], [*record.story, ""], strict=False)):
        if line != known:
            return number
    return -1


def changes(record: GameRecord) -> Iterator[tuple[int, Output | None]]:
    """Yield changed outputs for every turn that players at the table would have noticed."""
    for turn, output in enumerate(record.outputs, start=1):
        yield turn, None
        doubt, number, cards = output
        if doubt:
            yield turn, [False, None, [0]]
            continue
        yield turn, [True, None, None]
        yield turn, [False, number, [*cards, *cards, *cards, 13]]
        yield turn, [False, number, cards[1:]]
        yield turn, [False, (number or 0) % 13 + 1 if number else 14, cards]


@A_CHANGED_GAME
def test_a_changed_output_is_noticed(game: Golden) -> None:
    """A change is reported at its turn, and a missing output at the end at the latest."""
    record = load_golden(game)
    starts = {line.split(":")[0]: number for number, line in reversed(list(enumerate(record.story)))}
    for turn, output in changes(record):
        wrong = tampered(record, turn, output)
        difference = first_difference(wrong)
        assert difference != -1, f"turn {turn}"
        assert difference >= starts[f"turn {turn}"], f"turn {turn}"
        if output is not None:
            assert record.story[difference].startswith(f"turn {turn}: "), f"turn {turn}"


@A_CHANGED_GAME
def test_changed_hidden_card_is_noticed(game: Golden) -> None:
    """Replace each played card by each other value. The last line is a digest of all cards."""
    record = load_golden(game)
    for turn, (doubt, number, cards) in enumerate(record.outputs, start=1):
        for value in () if doubt else {value for value in range(14) if value != cards[0]}:
            exchanged = [doubt, number, [value, *cards[1:]]]
            assert first_difference(tampered(record, turn, exchanged)) != -1, f"turn {turn}, {value}"


@EVERY_GAME
def test_a_changed_hand_is_noticed(game: Golden) -> None:
    record = load_golden(game)
    record.dealt["hands"][0][0] = record.dealt["hands"][0][0] % 13 + 1
    with pytest.raises(UsageError, match="cards do not match its seed"):
        list(RECORDS.replay(record))


def test_the_end_of_a_record_is_compared() -> None:
    record = load_golden(golden.GAMES[0])
    short = replace(record, outputs=record.outputs[:-1])
    assert list(RECORDS.replay(short))[-1] == "The outputs end before the game is over."
    long = replace(record, outputs=[*record.outputs, [True, None, None]])
    assert list(RECORDS.replay(long))[-1] == f"turn {len(long.outputs)}: refused: the game is over"
    assert -1 not in (first_difference(short), first_difference(long))


def test_changed_rules_are_noticed() -> None:
    record = load_golden(golden.GAMES[0])
    for rule in ({"win_rule": "contested"}, {"max_turns": 5}):
        assert first_difference(replace(record, rules={**record.rules, **rule})) != -1
