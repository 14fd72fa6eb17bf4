"""A bot in an endless loop is interrupted and named. These tests use real loops and the system's clock."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from bots.manual.random_boi import RandomBoi
from dubito.errors import BotError, UsageError
from dubito.game.bot_deadline import limit_bot_time
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, play_game
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, deal_table
from dubito.games.dubito.events import Event
from dubito.games.dubito.game import GAME
from tests.bots.kit import NODES_A_TO_E, entrants, story_of
from tests.engine.test_hostile import Quiet

DEADLINE = 0.25  # seconds: much longer than a turn, even on a busy machine


def forever() -> None:
    while True:
        signal.pause()  # wait without using CPU time


def looping() -> None:
    while True:
        pass


def catching() -> None:
    while True:
        with suppress(BaseException):
            looping()


def failing() -> None:
    error = RuntimeError("release unlocked lock")  # an interrupted wait can fail like this
    try:
        looping()
    except BaseException:
        raise error from None  # created above, so that no alarm can interrupt its construction


def waiting() -> None:
    threading.Event().wait()


class Looping(Quiet):
    """Loops forever in one of its methods."""

    def __init__(self, id: int, *, method: str = "", how: str = "forever") -> None:
        super().__init__(id)
        self.method, self.how = method, how
        self.at("__init__")

    def at(self, method: str) -> None:
        if method == self.method:
            globals()[self.how]()

    def play(self, p: TurnData) -> TurnOutput:
        self.at("play")
        return super().play(p)

    def observe(self, event: Event) -> None:
        self.at("observe")

    def bluff_first_hand(self, p: TurnData) -> bool:
        self.at("bluff_first_hand")
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        self.at("maximize_first_hand")
        return False  # keep cards of the number, so that D is asked

    def should_doubt(self, p: TurnData) -> bool:
        self.at("should_doubt")
        return False

    def bluff_regular(self, p: TurnData) -> bool:
        self.at("bluff_regular")
        return False

    def maximize_regular(self, p: TurnData) -> bool:
        self.at("maximize_regular")
        return True


def seated(bot: type[PlayerAI], fallback: type[PlayerAI] | None = None, **settings: object) -> Table[State]:
    table = [Entrant("mine", bot, settings), *[Entrant("quiet", Quiet)] * 2]
    return deal_table(table, Rules(max_turns=60), DealStreams(3, 0), deal=7, number=9, fallback=fallback)


def late(method: str, how: str = "forever") -> BotError:
    with pytest.raises(BotError) as caught:
        play_game(seated(limit_bot_time(Looping, DEADLINE, GAME.nodes), method=method, how=how))
    return caught.value


@pytest.mark.parametrize("node", NODES_A_TO_E)
def test_a_node_that_never_answers_is_named(node: str) -> None:
    error = late(NODES_A_TO_E[node])
    assert (error.bot, error.seat, error.game, error.deal) == ("mine", 0, 9, 7)
    assert error.reason.startswith(
        f"node {node} ({NODES_A_TO_E[node]}) took longer than 0.25 s (test_bot_deadline.py, "
    )
    assert error.turn == 1 if node in "AB" else error.turn > 1


@pytest.mark.parametrize("method", ["__init__", "play", "observe"])
def test_a_method_that_never_returns_is_named(method: str) -> None:
    error = late(method)
    assert error.reason.startswith(f"{method} took longer than 0.25 s (test_bot_deadline.py, line ")
    assert error.turn == 1


@pytest.mark.parametrize("how", ["looping", "catching", "failing", "waiting"])
def test_bot_that_loops_or_waits_or_catches_everything_is_named(how: str) -> None:
    assert late("should_doubt", how).reason.startswith("node C (should_doubt) took longer than 0.25 s (")


class Late(Quiet):
    """Catches the interruption and returns as if it were in time."""

    def observe(self, event: Event) -> None:
        try:  # noqa: SIM105, the shortest way back
            forever()
        except BaseException:  # noqa: S110
            pass


def test_late_answer_does_not_count() -> None:
    with pytest.raises(BotError, match=r"observe took longer than 0\.25 s"):
        seated(limit_bot_time(Late, DEADLINE, GAME.nodes))


class Once(Looping):
    """Loops or fails, but only in its third turn."""

    def play(self, p: TurnData) -> TurnOutput:
        if p.me.turns == 2:
            if self.how == "failing":
                raise ValueError("no")
            forever()
        return super().play(p)


def test_fallback_plays_a_late_turn() -> None:
    looping = seated(limit_bot_time(Once, DEADLINE, GAME.nodes), RandomBoi)
    failing = seated(Once, RandomBoi, how="failing")
    assert play_game(looping).places == play_game(failing).places
    assert looping.fallback_turns == failing.fallback_turns == [1, 0, 0]
    assert looping.state.turns_played == failing.state.turns_played
    (error,) = looping.errors
    assert error.reason.startswith("play took longer than 0.25 s (test_bot_deadline.py, line ")
    assert error.turn == failing.errors[0].turn


def test_a_bot_that_fails_in_time_is_named_by_its_failure() -> None:
    with pytest.raises(BotError, match=r"play raised ValueError: no \(test_bot_deadline\.py, line "):
        play_game(seated(limit_bot_time(Once, DEADLINE, GAME.nodes), how="failing"))


def test_a_bot_in_time_plays_the_same_games() -> None:
    bots = entrants("ClaudeBot", "AdaptyBoi", "RandomBoi")
    timed = [Entrant(bot.name, limit_bot_time(bot.bot, 3600, GAME.nodes)) for bot in bots]
    for deal in range(10):
        assert story_of(timed, Rules(), 2, deal) == story_of(bots, Rules(), 2, deal)


def test_alarm_handler_is_restored() -> None:
    def on_alarm(*_: object) -> None: ...

    handler, timer = signal.signal(signal.SIGALRM, on_alarm), signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        late("should_doubt")
        assert signal.getsignal(signal.SIGALRM) is on_alarm
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def test_deadline_is_refused_without_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(UsageError, match="only the main thread of a process"):
        pool.submit(limit_bot_time, Quiet, 1.0, GAME.nodes).result()
    monkeypatch.delattr(signal, "setitimer")
    with pytest.raises(UsageError, match="this system has no timer"):
        limit_bot_time(Quiet, 1.0, GAME.nodes)
