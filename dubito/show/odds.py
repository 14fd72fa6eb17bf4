"""How a game of a run stood: how often each seat wins it from each of its turns, found by playing on from there.

Everybody plays on as it is, with the cards where they lie and with draws of its own; where a model sits, a bot does. So
it is what somebody who sees all cards could say of these players, and no forecast of what a seat can know.
"""

import json
import pickle
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from math import log2
from time import monotonic
from typing import Any, Final

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.play import lineups
from dubito.experiment.replay import moves_again
from dubito.experiment.stored import Run
from dubito.files import read_text, write_whole
from dubito.game import Results
from dubito.game.record import Forfeit
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.game.words import words_of
from dubito.show.story import winners
from dubito.stats.tally import outcome_of

PLAYOUTS: Final = 40  # from each turn: a share is known to about 15 points
_FEWEST_PLAYOUTS: Final = 5  # with fewer a share says nothing
_MAX_MOVES: Final = 200_000  # of usual bots, that the playouts of a game may be expected to take: a few seconds
_COPY_COST: Final = 20  # moves that take as long as copying a table
_MAX_EXCESS: Final = 2  # times as many moves, of playouts that are longer than the game was
_USUAL_CALLS: Final = 36  # function calls that a move of a usual bot takes
_TRIAL_MOVES: Final = 200  # of which the calls are counted
_MAX_TRIAL_SECONDS: Final = 5.0  # for these: usual bots take a thousandth, so a slow machine changes no result
_FOLDER: Final = "odds"  # in the run's


@dataclass(frozen=True, slots=True)
class Playouts:
    """By turn, the one before the first move first: of the seats, how many of the playouts each has won."""

    playouts: int
    stand_in: str | None  # who played in the models' places, if there are any
    won: list[list[int]]


def told_odds(run: Run, number: int) -> dict[str, Any]:
    """As the viewer has them, or why there are none."""
    try:
        return asdict(odds_of(run, number))
    except UsageError as error:
        return {"why": str(error)}


def odds_of(run: Run, number: int) -> Playouts:
    """Those of a game, kept in the run's folder if that can be written; raises UsageError if they cannot be known."""
    path = run.folder / _FOLDER / f"{number}.json"
    ((row,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (number,))
    of = {"playouts": PLAYOUTS, "game": row.hex(), "bots": sorted(one.source for one in run.experiment.players)}
    kept = _kept_odds(path)
    if kept is not None and kept.get("of") == of:
        return Playouts(kept["playouts"], kept["stand_in"], kept["won"])
    try:
        moves = [output for _, output in moves_again(run, number)]
        table, stand_in = _table_at_start(run, number)
        work = _work_a_move(table) if len(moves) < _MAX_MOVES else 1
        playouts = playouts_for(len(moves), work)
        left = _MAX_MOVES * _MAX_EXCESS // work
        found = Playouts(playouts, stand_in, [*_PlayedOn(run.game.results, number, table, playouts, left)(moves)])
    except (DubitoError, TypeError, ValueError, RecursionError) as error:  # such as a bot that cannot be copied
        raise UsageError(f"game {number} cannot be played on from its turns ({one_line(str(error))})") from None
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, json.dumps({"of": of, **asdict(found)}))
    except (OSError, DubitoError):  # a run of which nothing can be written is shown all the same
        pass
    return found


def _kept_odds(path: Any) -> dict[str, Any] | None:
    """What stands in a file of ours; None where there is none, or it is not one."""
    try:
        kept = json.loads(read_text(path))
        return kept if {"of", "playouts", "stand_in", "won"} <= kept.keys() else None
    except (DubitoError, ValueError, AttributeError):
        return None


def _table_at_start(run: Run, number: int) -> tuple[Table, str | None]:
    """The table of a game before its first move, with a bot in each model's place, and which."""
    experiment, registry = run.experiment, run.registry
    deal, place = divmod(number, experiment.games_per_deal)
    streams = DealStreams(experiment.seed, deal)
    lineup = lineups(experiment, deal, streams)[place]
    specs = [experiment.players[player] for player in lineup.seats]
    asks = {spec.name for spec in specs if registry.find(spec.bot).cls.is_model}
    usual = next(iter(words_of(run.game).BOTS), run.game.fallback)
    entrants = [
        Entrant(spec.name, registry.find(usual).cls)
        if spec.name in asks
        else Entrant(spec.name, registry.find(spec.bot).cls, spec.settings)
        for spec in specs
    ]
    state = run.game.deal(run.game.rules_of_run(experiment.rules), len(specs), streams.deck())
    return Table(state, entrants, streams, deal=deal, number=number), usual if asks else None


def _work_a_move(table: Table) -> int:
    """Return how many times the work of a usual bot's move a move takes: a power of two.

    Function calls are counted, since seconds would make the odds depend on the machine. They are counted at the second
    of two equal playouts, which finds what the first one has cached. Raises UsageError if the bots take too long.
    """
    copy, calls = Copies(table), _CallCounter()
    until, moves = monotonic() + _MAX_TRIAL_SECONDS, 0
    for profile in (None, calls):
        played, moves, before = _drawing_anew(copy(), "work"), 0, sys.getprofile()
        if profile is not None:
            sys.setprofile(profile)
        try:
            while not played.state.over and moves < _TRIAL_MOVES:
                step(played)
                moves += 1
                if profile is None and monotonic() > until:
                    raise UsageError("its bots take too long to play on")
        finally:
            sys.setprofile(before)
    return int(max(1, 2 ** round(log2(max(1, calls.count) / max(1, moves) / _USUAL_CALLS))))


class _CallCounter:
    """A profile function that counts the calls of functions."""

    count = 0

    def __call__(self, frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1


def playouts_for(moves: int, work: int) -> int:
    """Return how often a game of that many moves is played on from each.

    `work` is that of a move, in moves of usual bots. Raises UsageError if it takes too long.
    """
    cost = (moves + 1) * (moves / 2 * work + _COPY_COST)
    playouts = min(PLAYOUTS, int(_MAX_MOVES / cost))
    if playouts < min(_FEWEST_PLAYOUTS, PLAYOUTS):
        raise UsageError(f"it has {moves:,} moves, which takes too long")
    return playouts


@dataclass(slots=True)
class _PlayedOn:
    """The playouts of one game."""

    results: Results
    number: int
    table: Table
    playouts: int
    left: int  # moves

    def __call__(self, moves: Sequence[Any]) -> Iterator[list[int]]:
        """How many playouts each seat wins, of every moment of the game, the last one included."""
        yield self._won(f"{self.number}/0")
        for moment, output in enumerate(moves, 1):
            _make(self.table, output)
            yield self._won(f"{self.number}/{moment}")

    def _won(self, seed: str) -> list[int]:
        seats, is_over = range(len(self.table.entrants)), self.table.state.over
        won, copy = [0 for _ in seats], Copies(self.table)
        for playout in range(1 if is_over else self.playouts):
            end = self._end_of(_drawing_anew(copy(), f"{seed}/{playout}"))
            came = outcome_of(end, [*seats], None, [0] * len(seats))
            for seat in winners(self.results, came.buckets(self.results), came.counts):
                won[seat] += self.playouts if is_over else 1
        return won

    def _end_of(self, table: Table) -> Any:
        while not table.state.over:
            self.left -= 1
            if self.left < 0:
                raise UsageError("playing on takes too long")
            step(table)
        return table.state


class Copies:
    """Copies of one table: unpickled where it can be pickled, which takes a fifth of the time."""

    def __init__(self, table: Table) -> None:
        self._table, self._packed = table, b""
        try:
            self._packed = pickle.dumps(table, pickle.HIGHEST_PROTOCOL)
            pickle.loads(self._packed)  # noqa: S301, packed just now
        except Exception:  # a bot may hold anything
            self._packed = b""

    def __call__(self) -> Table:
        copied = pickle.loads(self._packed) if self._packed else deepcopy(self._table)  # noqa: S301
        assert isinstance(copied, Table)
        return copied


def _make(table: Table, output: Any) -> None:
    """Make the move that was made; its seat decides on it too, and so remembers what it would."""
    state, player = table.state, table.players[table.state.seat]
    if output is None or isinstance(output, Forfeit):
        raise UsageError("it was forfeited")
    assert player is not None
    player.play(state.view())
    table.tell(state.apply(output, True), state.turns_played)


def _drawing_anew(copied: Table, seed: str) -> Table:
    """Let the copy of a table draw anew from here."""
    for seat, player in enumerate(copied.players):
        assert player is not None
        streams = player._seating.streams
        for name, stream in (("bot", streams.bot), ("framework", streams.framework)):
            stream.seed(f"odds/{seed}/{seat}/{name}")
    return copied
