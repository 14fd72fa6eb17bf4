"""R13, R27: with `on_bot_error: fallback`, failed turns are played by RandomBoi's rules from a separate stream."""

from functools import partial

import pytest

from bots.manual.random_boi import RandomBoi
from dubito.errors import BotError
from dubito.game import Seating, make_player
from dubito.game.events import AnswerEvent
from dubito.game.streams import DealStreams, SeatStreams
from dubito.game.table import Entrant, Table, play_game, step
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, deal_table
from dubito.games.dubito.events import Event
from tests.engine.helpers import position, script, scripted, snapshot, table
from tests.engine.test_hostile import Exiting, Quiet, Recursing, Telling


class Failing(PlayerAI):
    """Raises an exception in the given methods and turns."""

    def __init__(self, id: int, *, methods: tuple[str, ...], first: int = 0, last: int = 1000) -> None:
        super().__init__(id)
        self.methods, self.turns = methods, range(first, last)
        if "__init__" in methods:
            raise ValueError("no")

    def play(self, p: TurnData) -> TurnOutput:
        if "play" in self.methods and p.me.turns in self.turns:
            raise ValueError("no")
        return self.bluff(p, maximize=True)

    def observe(self, event: Event) -> None:
        if "observe" in self.methods:
            raise ValueError("no")


def failing(*methods: str, **settings: int) -> Entrant:
    return Entrant("Failing", Failing, {"methods": methods, **settings})


def watch(at: Table) -> list[TurnOutput]:
    outputs = []
    while not at.state.over:
        outputs.append(step(at)[0])
    return outputs


def deal_with_fallback(*entrants: Entrant, seed: int = 3, max_turns: int = 60) -> Table[State]:
    rules = Rules(max_turns=max_turns)
    return deal_table(entrants, rules, DealStreams(seed, 0), deal=4, number=9, fallback=RandomBoi)


@pytest.mark.parametrize(
    "bad",
    [
        failing("play"),
        failing("__init__"),
        Entrant("Exiting", Exiting),
        Entrant("Recursing", Recursing),
        Entrant("Telling", Telling, {"answer": None}),
        Entrant("Telling", Telling, {"answer": TurnOutput(True, None, [1])}),
    ],
)
def test_r13_game_continues_and_failed_turns_are_counted(bad: Entrant) -> None:
    """R13: the bot always fails, so the fallback plays all of its turns and no others."""
    at = deal_with_fallback(Entrant("Quiet", Quiet), bad, Entrant("Quiet", Quiet), Entrant("Quiet", Quiet))
    game = play_game(at)
    turns = game.counts[1].turns
    assert at.fallback_turns == [0, turns, 0, 0]
    assert turns > 3
    errors = 1 if bad.settings.get("methods") == ("__init__",) else turns
    assert len(at.errors) == errors
    assert {(error.seat, error.game, error.deal) for error in at.errors} == {(1, 9, 4)}


def test_r13_errors_are_recorded_with_their_turns() -> None:
    """R13: errors are in order, and the bot plays again as soon as it can."""
    at = deal_with_fallback(Entrant("Quiet", Quiet), failing("play", first=1, last=3), *[Entrant("Quiet", Quiet)] * 2)
    turns = []
    while not at.state.over:
        known, turn = len(at.errors), at.state.turns + at.state.free_turns + 1
        step(at)
        turns += [turn] * (len(at.errors) - known)
    assert [error.turn for error in at.errors] == turns
    assert at.fallback_turns == [0, 2, 0, 0]
    assert all("play raised ValueError: no" in error.reason for error in at.errors)
    assert at.state.counts[1].turns > 4


def same_as_random_boi(seat: int, seed: int) -> list[TurnOutput]:
    """Play with a real RandomBoi in that seat that draws from the fallback's stream."""
    at = deal_with_fallback(*[Entrant("Quiet", Quiet)] * 4, seed=seed)
    stream = DealStreams(seed, 0).seat(seat).fallback
    streams = SeatStreams(bytes(24), stream, stream)
    at.players[seat] = make_player(RandomBoi, Seating(seat, 9, 4, streams, partial(HandView, at.state.hands[seat])), {})
    return watch(at)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("methods", ["play", "__init__"])
def test_r13_the_fallback_is_random_boi_on_its_own_stream(methods: str, seed: int) -> None:
    entrants = [Entrant("Quiet", Quiet)] * 4
    entrants[2] = failing(methods)
    assert watch(deal_with_fallback(*entrants, seed=seed)) == same_as_random_boi(2, seed)


def test_r27_failure_of_a_bot_does_not_change_the_deal() -> None:
    """R27: even the bot's own later draws are the same as without the failure."""
    drawn = []
    for first in (0, 99):  # fail in the first turn, or never
        at = table(position("23456789T/A/A/A"), failing("play", first=first, last=1), fallback=RandomBoi)
        if first == 0:
            step(at)
        player = at.players[0]
        assert player is not None
        drawn.append([player._seating.streams.framework.random() for _ in range(5)])
    assert drawn[0] == drawn[1]
    assert drawn[0] == [stream.random() for stream in [DealStreams(0, 5).seat(0).framework] for _ in range(5)]


def test_r13_a_bot_that_fails_to_observe_still_plays() -> None:
    """R13: the fallback has no turn to play, but each error is recorded."""
    at = table(position("A2345/34/56"), failing("observe"), scripted("3"), fallback=RandomBoi)
    step(at)
    step(at)
    assert at.fallback_turns == [0, 0, 0]
    assert [error.seat for error in at.errors] == [0] * 3
    assert len(script(at, 1).observed) == 3


def test_r13_the_table_observes_a_fallback_turn_too() -> None:
    at = table(position("A2/34/56"), failing("play"), fallback=RandomBoi)
    output, events = step(at)
    assert len(events) == 1
    assert script(at, 1).observed[1:] == events
    assert output.cards == at.state.board


def test_r13_the_log_contains_the_answers_of_a_fallback_turn() -> None:
    """A fallback that reads the log finds its answers there, and so does whoever reads the game later."""

    class Reading(RandomBoi):
        reads_log = True

    at = table(position("A2/34/56"), failing("play"), fallback=Reading)
    assert at.log is not None
    step(at)
    assert [event.node for event in at.log.of(0) if isinstance(event, AnswerEvent)] == ["A", "B"]
    assert not [event for event in at.log.of(1) if isinstance(event, AnswerEvent)]


def test_r13_a_failed_turn_before_the_fallback_changes_nothing() -> None:
    """R13: the fallback sees the same game as the failed bot."""
    game = position("A2/34/56")
    seen = []

    class Looking(RandomBoi):
        def play(self, p: TurnData) -> TurnOutput:
            seen.append((snapshot(game), p))
            return super().play(p)

    at = table(game, Entrant("Liar", Telling, {"answer": TurnOutput(False, 1, [1, 1])}), fallback=Looking)
    before = snapshot(game), game.view()
    step(at)
    assert seen == [before]


@pytest.mark.parametrize("methods", ["__init__", "observe", "play"])
def test_r13_stop_is_the_default(methods: str) -> None:
    """R13: without a fallback the first error is raised."""
    game: State = position("A2/34/56")
    with pytest.raises(BotError, match=f"{methods} raised ValueError: no"):
        play_game(table(game, failing(methods)))
    assert game.turns == 0
