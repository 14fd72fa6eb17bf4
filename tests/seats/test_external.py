"""A seat that is controlled from outside, in the guide's Kuhn poker."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import BotError, UsageError
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, play_game
from dubito.seats.external import ChatAnswer, ChatQuestion, ExternalGame, ExternalSeat, set_up_seat
from tests.cli.kit import Shell
from tests.games.kit import write_kuhn

BET = ChatAnswer('{"answer": "bet"}')
BOLD = """from games.kuhn.game import KuhnBot


class Bold(KuhnBot):
    def act(self, view):
        return "bet"
"""


@pytest.fixture(autouse=True)
def kuhn(shell: Shell) -> None:
    write_kuhn(Path.cwd())
    Path("bots/manual/kuhn/bold.py").write_text(BOLD)


def seat_of(**how: Any) -> ExternalSeat:
    config = {
        "game": "kuhn",
        "seat": 0,
        "opponents": ["Careful"],
        "rules": {},
        "seed": 3,
        "prompt": "plain",
        "reasks": 1,
    }
    return set_up_seat(**{**config, **how})


def ask_all(game: ExternalGame, reply: Callable[[ChatQuestion], ChatAnswer]) -> Iterator[ChatQuestion]:
    """Return every question of a game in which this is the answer."""
    question = game.begin()
    while question is not None:
        yield question
        question = game.answer(reply(question))


def test_it_is_the_same_game_as_a_bots_that_answers_so() -> None:
    """Both games have the same cards and the same draws of the opponent, in either seat."""
    registry, scores = find_bots(Path.cwd(), "kuhn"), set()
    for deal in range(12):
        names = ["Bold", "Coin"] if deal % 2 else ["Coin", "Bold"]
        asked = ExternalGame(seat_of(seat=names.index("Bold"), opponents=["Coin"]), deal)
        list(ask_all(asked, lambda question: BET))
        streams = DealStreams(3, deal)
        entrants = [Entrant(name, registry.find(name).cls) for name in names]
        ended = play_game(Table(registry.game.deal(None, 2, streams.deck()), entrants, streams, deal=deal))
        assert asked.score == ended.ending().marks[names.index("Bold")] / 4
        scores.add(asked.score)
    assert len(scores) > 2


def test_question_equals_the_sent_request_and_repeats() -> None:
    first, again = ([*ask_all(ExternalGame(seat_of(), 5), lambda question: BET)] for _ in range(2))
    assert first == again
    system, user = first[0].messages
    assert system["content"].startswith("You play Kuhn poker. There are three cards")
    assert user["content"].endswith("What do you do?\nlegal: pass | bet\n")
    assert first[0].response_format is not None
    assert ExternalGame(seat_of(response_format="text"), 5).begin().response_format is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("reply", "message", "cause"),
    [
        (ChatAnswer("I bet."), "could not be read: it is not JSON", "malformed"),
        (ChatAnswer('{"answer": "fold"}'), 'could not be read: `answer` is not one of "pass"', "malformed"),
        (ChatAnswer('{"answer": "b', cut_off=True), "was cut off before the answer", "truncated"),
        (ChatAnswer(None), "could not be read: it has no text", "malformed"),
    ],
)
def test_a_reply_that_cannot_be_used_is_asked_again_and_then_the_fallback_plays(
    reply: ChatAnswer, message: str, cause: str
) -> None:
    game = ExternalGame(seat_of(), 0)
    first, again, *_ = ask_all(game, lambda question: reply)
    assert list(again.messages[: len(first.messages)]) == list(first.messages)
    assert message in again.messages[-1]["content"]
    assert set(game.outcomes) == {f"fallback:{cause}"}
    assert game.score is not None
    mended = ExternalGame(seat_of(), 0)
    list(ask_all(mended, lambda question: BET if len(question.messages) > 2 else reply))
    assert set(mended.outcomes) == {"model_after_reask"}


def test_an_opponent_that_fails_ends_the_game_with_its_name() -> None:
    Path("bots/manual/kuhn/bold.py").write_text(BOLD.replace('return "bet"', "return 1 / 0"))
    game = ExternalGame(seat_of(seat=1, opponents=["Bold"]), 4)
    with pytest.raises(BotError, match=r"^Bold \(seat 0\) failed in game 4, deal 4, turn 1: .*ZeroDivisionError"):
        game.begin()
    assert game.score is None


def test_abandoned_game_does_not_block_others() -> None:
    game = ExternalGame(seat_of(), 0)
    game.begin()
    game.leave()
    game._thread.join(timeout=5)
    assert not game._thread.is_alive()
    assert (game.score, game.outcomes) == (None, {})


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"game": "kuhm"}, "unknown game 'kuhm': did you mean 'kuhn'"),
        ({"seat": 2}, "seat 2: must be from 0 to 1"),
        ({"opponents": ["Carefull"]}, "no bot is named 'Carefull': did you mean 'Careful'"),
        ({"opponents": ["Coin", "Coin"]}, "kuhn needs 2 players, not 3"),
        (
            {"opponents": ["OpenAIBot"]},
            "OpenAIBot asks a model, but opponents must be hand-written; choose another bot",
        ),
        ({"prompt": "plane"}, "no prompt of kuhn is named 'plane': did you mean 'plain'"),
        ({"rules": {"ante": 2}}, "ante: "),
        ({"reasks": -1}, "LLMBot: reasks: "),
        ({"adviser": "Careful"}, "adviser: a seat that is controlled from outside cannot have one; leave it out"),
    ],
)
def test_missing_thing_is_reported_in_one_sentence(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        seat_of(**how)
    assert str(refused.value).startswith(sentence)


def test_it_needs_no_openspiel() -> None:
    """OpenSpiel's own plugin reports that it needs the library."""
    code = (
        "import sys; sys.modules['pyspiel'] = None\n"
        "from dubito.seats.external import set_up_seat\n"
        "from dubito.plugins.openspiel.spiel import load_game"
    )
    completed = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=False)
    last = completed.stderr.splitlines()[-1]
    assert "line 3, in <module>" in completed.stderr
    assert last == "ModuleNotFoundError: OpenSpiel is not installed: pip install 'dubito[openspiel]'"
