"""Sentences about every game read well for each of its seats, and for other readers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dubito.game import Game, GameEvent
from dubito.game.events import EVERYTHING
from dubito.game.find import find_bots, find_game
from dubito.game.reader import THE_PERSON, Reader, second_person
from dubito.game.table import step
from dubito.game.words import describe_forfeit, describe_start
from tests.cli.kit import REPO
from tests.games.kit import EVERY_GAME, GAMES, table_of

EXAMPLES = {name: REPO / "examples" / "games" / name for name in ("kuhn", "outsider")}
# "you plays", "you was", "you's", or a sentence that begins with "you" or "the person".
WRONG = re.compile(rf"\b[Yy]ou (?!as\b)\w*[^\Ws]s\b|\b[Yy]ou's|(^|[.!?] |\n)(you|{THE_PERSON})\b|\0")
DEALS = 3


def readers(size: int) -> Iterator[Reader]:
    yield Reader()
    for seat in range(size):
        yield Reader("Bot{}".format, seat)
        yield Reader("Bot{}".format, seat, THE_PERSON)


def texts_of_game(game: Game, folder: Path, deal: int, seen: set[type[GameEvent]]) -> Iterator[str]:
    """Yield all texts about a game, for all its readers."""
    size = game.seats[deal % 2]
    outputs, table = [], table_of(find_bots(folder, game.name), deal, size)
    while not table.state.over:
        outputs.append(step(table, EVERYTHING)[0])
    for reader in readers(size):
        state = table_of(find_bots(folder, game.name), deal, size).state
        teller = game.words.teller(state, reader)
        seen.update(map(type, state.start))
        yield describe_start(game.words, state, reader)
        for output in outputs:
            seat = state.seat
            if reader.is_you(seat):
                yield from game.words.describe_view(state, seat, reader)
                question = game.words.question(state, seat, reader)
                yield from (question.wanted, *question.tips.values()) if question else ()
            events = state.apply(output, EVERYTHING)
            seen.update(map(type, events))
            yield from (game.words.sentence(event, reader) for event in events)
            for line in teller.describe_move(seat, output, events):
                yield from (line.sentence, line.truth)
            for panel in teller.panels():
                yield from (panel.public, panel.truth, panel.title if panel.seat is None else "")
        yield from (*teller.ending(), describe_forfeit(0, reader, game))


@pytest.mark.parametrize("name", [*EVERY_GAME, *EXAMPLES])
def test_sentences_address_the_reader(name: str) -> None:
    folder = EXAMPLES.get(name, REPO)
    game, seen = GAMES.get(name) or find_game(name, folder), set[type[GameEvent]]()
    for deal in range(DEALS):
        for text in texts_of_game(game, folder, deal, seen):
            assert not WRONG.search(text), text
    assert seen >= {*game.events}


@pytest.mark.parametrize(
    ("verb", "yours"),
    [
        *[("plays", "play"), ("is", "are"), ("was", "were"), ("has", "have"), ("does", "do"), ("goes", "go")],
        *[("says", "say"), ("passes", "pass"), ("tries", "try"), ("lies", "lie"), ("loses", "lose"), ("lied", "lied")],
    ],
)
def test_verbs_agree_with_you(verb: str, yours: str) -> None:
    assert second_person(verb) == yours
    reader = Reader("Bot{}".format, 0)
    assert (reader.starts(0, verb), reader.does(0, verb)) == (f"You {yours}", f"you {yours}")
    assert reader.starts(1, verb) == reader.does(1, verb) == f"Bot1 {verb}"


def test_the_person_is_named_for_other_readers() -> None:
    reader = Reader("bot{}".format, 1, THE_PERSON)
    assert (reader.starts(1, "plays"), reader.does(1, "plays")) == ("The person plays", "the person plays")
    assert (reader.starts(0, "plays"), reader.names(2)) == ("bot0 plays", ["bot0", "the person"])
