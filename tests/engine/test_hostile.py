"""R13: bots that break rules, raise, exit, recurse or lie, and the error with `on_bot_error: stop`."""

import pickle
import sys
from typing import Any, NoReturn

import pytest

from bots.base import BotBase
from dubito.errors import BotError, RunStopped
from dubito.game.record import Recorder
from dubito.game.table import Entrant, step
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.events import CardsPlayedEvent, Event
from dubito.games.dubito.game import GAME
from tests.engine.helpers import position, run, script, scripted, snapshot, table

HANDS = "A2/34/56"


class Quiet(BotBase):
    """Plays one card, honestly if possible, and never doubts."""

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        return False

    def should_doubt(self, p: TurnData) -> bool:
        return False

    def bluff_regular(self, p: TurnData) -> bool:
        return False

    def maximize_regular(self, p: TurnData) -> bool:
        return False


class Raising(Quiet):
    """Raises an exception in the method with the given name."""

    def __init__(self, id: int, *, method: str, error: BaseException) -> None:
        self.method, self.error = method, error
        self._maybe("__init__")
        super().__init__(id)

    def _maybe(self, method: str) -> None:
        if method == self.method:
            raise self.error

    def play(self, p: TurnData) -> TurnOutput:
        self._maybe("play")
        return super().play(p)

    def observe(self, event: Event) -> None:
        self._maybe("observe")


class Answering(Quiet):
    """Gives this answer at one node."""

    def __init__(self, id: int, *, node: str, answer: Any) -> None:
        super().__init__(id)
        setattr(self, node, lambda p: answer)


class Exiting(Quiet):
    """Tries to end the process."""

    def play(self, p: TurnData) -> NoReturn:
        sys.exit(3)


class Recursing(Quiet):
    """Recurses forever in its turn."""

    def play(self, p: TurnData) -> TurnOutput:
        return self.play(p)


class RecursingInInit(Quiet):
    """Recurses forever in `__init__`."""

    def __init__(self, id: int) -> None:
        self.__init__(id)  # type: ignore[misc]


class Telling(PlayerAI):
    """Returns the same object in every turn."""

    def __init__(self, id: int, *, answer: Any) -> None:
        super().__init__(id)
        self.answer = answer

    def play(self, p: TurnData) -> Any:
        return self.answer


def raising(method: str, error: BaseException) -> Entrant:
    return Entrant("Bad Bot", Raising, {"method": method, "error": error})


def blamed(entrant: Entrant | type[PlayerAI], moves: tuple[str, ...] = (), seat: int = 0) -> BotError:
    """Return the error of this bot's turn after some moves of others. Its play must change nothing."""
    game = position(HANDS)
    run(game, *moves)
    before = snapshot(game)
    with pytest.raises(BotError) as caught:
        step(table(game, *[scripted()] * seat, entrant))
    assert snapshot(game) == before
    return caught.value


def test_r13_the_error_names_bot_game_deal_turn_and_reason() -> None:
    error = blamed(Entrant("Bad Bot", Telling, {"answer": None}), ("A as 9", "doubt", "3 as 3"), seat=2)
    assert (error.bot, error.seat, error.game, error.deal, error.turn) == ("Bad Bot", 2, 7, 5, 4)
    assert error.reason == "the output must be a TurnOutput, not None"
    assert str(error) == "Bad Bot (seat 2) failed in game 7, deal 5, turn 4: the output must be a TurnOutput, not None"


def test_r13_error_can_be_pickled() -> None:
    error = blamed(raising("play", ValueError("no idea")))
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize(
    ("node", "name", "moves"),
    [
        ("A", "bluff_first_hand", ()),
        ("B", "maximize_first_hand", ()),
        ("C", "should_doubt", ("A as 3",)),
        ("D", "bluff_regular", ("A as 3",)),
        ("E", "maximize_regular", ("A as 3",)),
    ],
)
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, "None"),
        (0, "a value of type int"),
        (1, "a value of type int"),
        (0.5, "a value of type float"),
        ("yes", "a value of type str"),
        ([], "a value of type list"),
    ],
)
def test_r13_an_answer_must_be_a_bool(node: str, name: str, moves: tuple[str, ...], answer: Any, kind: str) -> None:
    error = blamed(Entrant("Shrug", Answering, {"node": name, "answer": answer}), moves, seat=len(moves))
    assert error.reason == f"node {node} ({name}) answered {kind}, not True or False"


def test_r13_a_player_without_play_is_refused() -> None:
    assert (
        "play raised NotImplementedError: Dumb does not implement play()"
        in blamed(type("Dumb", (PlayerAI,), {})).reason
    )


ERRORS = [ValueError("no idea"), SystemExit(3), GeneratorExit(), MemoryError(), BaseException("anything")]


@pytest.mark.parametrize("error", ERRORS)
def test_r13_an_exception_in_play_is_blamed(error: BaseException) -> None:
    reason = blamed(raising("play", error)).reason
    assert reason.startswith(f"play raised {type(error).__name__}: {error}")
    assert "(test_hostile.py, line " in reason


@pytest.mark.parametrize("error", ERRORS)
def test_r13_an_exception_in_init_is_blamed(error: BaseException) -> None:
    with pytest.raises(BotError) as caught:
        table(position(HANDS), scripted(), raising("__init__", error))
    assert caught.value.reason.startswith(f"__init__ raised {type(error).__name__}: {error}")
    assert (caught.value.bot, caught.value.seat, caught.value.turn) == ("Bad Bot", 1, 1)


@pytest.mark.parametrize("error", ERRORS)
def test_r13_an_exception_in_observe_is_blamed(error: BaseException) -> None:
    with pytest.raises(BotError) as caught:
        table(position(HANDS), scripted(), raising("observe", error))
    assert caught.value.reason.startswith(f"observe raised {type(error).__name__}: {error}")
    assert (caught.value.bot, caught.value.seat, caught.value.turn) == ("Bad Bot", 1, 1)


def test_r13_unknown_settings_are_a_bot_error() -> None:
    with pytest.raises(BotError, match=r"__init__ raised TypeError: .*(unexpected keyword|at most 1) argument"):
        table(position(HANDS), Entrant("Quiet", Quiet, {"risk": 1}))


def test_r13_endless_recursion_is_blamed() -> None:
    assert "play raised RecursionError" in blamed(Recursing).reason
    with pytest.raises(BotError, match="__init__ raised RecursionError"):
        table(position(HANDS), RecursingInInit)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RunStopped("the disk is full")])
def test_interrupts_are_not_blamed_on_the_bot(error: BaseException) -> None:
    """Ctrl-C and the exception that stops a run are passed on."""
    game = position(HANDS)
    with pytest.raises(type(error)):
        step(table(game, raising("play", error)))
    assert game.board == []


def test_r13_control_characters_are_escaped_in_messages() -> None:
    """R13: names and texts can come from anyone, so the message is one short printable line."""
    wild = "\x1b[2J\r\n\ud800\u202e" + "x" * 10_000
    error = blamed(Entrant(wild, Raising, {"method": "play", "error": ValueError(wild)}))
    assert str(error).isprintable()
    assert len(str(error)) < 1000
    assert (
        "play raised ValueError: no idea at all (" in blamed(raising("play", ValueError("no\n idea\t at all "))).reason
    )
    kind = type("\x1b[31mRed\n", (), {})
    assert str(blamed(Entrant(wild, Telling, {"answer": kind()}))).isprintable()
    assert str(blamed(Entrant(wild, Telling, {"answer": TurnOutput(False, 1, [kind()])}))).isprintable()


class Meddling(Quiet):
    """Changes everything it receives, and later its own output."""

    def play(self, p: TurnData) -> TurnOutput:
        answer = super().play(p)
        for person in (p.me, p.prev, p.next):
            person.n_cards = person.turns = person.id = 99
        p.board_cards = p.current_number = p.n_players = p.my_n_cards = 0
        p.playing_cards, p.can_doubt, p.last_player_id = (), False, None
        self.answer = answer
        return answer

    def observe(self, event: Event) -> None:
        if isinstance(event, CardsPlayedEvent) and hasattr(self, "answer"):
            assert isinstance(self.answer.cards, list)
            self.answer.cards[:] = [13, 13, 13]


def test_r13_bot_cannot_change_the_game_through_its_view() -> None:
    """R13, R26: the game does not share the turn data or the output's list with the bot."""
    games = [position("A2/34/56"), position("A2/34/56")]
    for game, cls in zip(games, (Quiet, Meddling), strict=True):
        at = table(game, cls, scripted("3"))
        for _ in range(2):
            step(at, announce=True)
        assert script(at, 1).seen[0].prev.n_cards == 1
    assert snapshot(games[0]) == snapshot(games[1])


def test_r13_a_bot_that_changes_its_output_leaves_the_record() -> None:
    game = position("A2/34/56")
    recorder = Recorder(GAME, game, game.rules.stored_form())
    played, events = step(table(game, Meddling), announce=True)
    recorder.add(1, played, events)
    assert recorder.outputs[0][2] == game.board
