"""Each seat's chance of winning after each turn of a game, estimated by playing on.

All players keep their cards and bots, but draw new random numbers. Models are replaced by a bot. These are the odds for
an observer who sees all cards; no seat could compute them.
"""

import json
import pickle
import sys
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from math import log2
from pathlib import Path
from time import monotonic
from typing import Any, Final

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.lies import replay_moves
from dubito.experiment.play import draw_lineup
from dubito.experiment.stored import Run
from dubito.files import read_text, write_whole
from dubito.game import Results
from dubito.game.moves import repeat_move
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.show.story import winners
from dubito.stats.tally import build_outcome

PLAYOUTS: Final = 40  # playouts per turn; shares are accurate to about 15 points
_FEWEST_PLAYOUTS: Final = 5  # with fewer playouts, shares are meaningless
# Maximum number of moves in all playouts of a game with bots of typical speed, which take a few seconds.
_MAX_MOVES: Final = 200_000
_COPY_COST: Final = 20  # copying a table takes the time of this many moves
_MAX_EXCESS: Final = 2  # playouts may exceed that total by this factor
_USUAL_CALLS: Final = 36  # function calls per move of a typical bot
_TRIAL_MOVES: Final = 200  # number of moves for which calls are counted
# Games with bots that make more calls during these moves get no odds. Typical bots make 7,200.
_MAX_TRIAL_CALLS: Final = 2_000_000
# Seconds for these moves, since bots may wait or compute in a few long calls.
_MAX_TRIAL_SECONDS: Final = 5.0
_FOLDER: Final = "odds"  # inside the run's folder


@dataclass(frozen=True, slots=True)
class Playouts:
    """The number of playouts won, by turn (starting before the first move) and by seat."""

    playouts: int
    substitute: str | None  # name of the bot that played for the models; None if there are no models
    won: list[list[int]]


def odds_or_reason(run: Run, number: int) -> dict[str, object]:
    """Return the odds for the viewer, or the reason why there are none."""
    try:
        return asdict(load_odds(run, number))
    except UsageError as error:
        return {"why": str(error)}


def load_odds(run: Run, number: int) -> Playouts:
    """Return a game's odds. Raises UsageError if they cannot be computed.

    They are cached in the run's folder if it is writable.
    """
    path = run.folder / _FOLDER / f"{number}.json"
    ((row,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (number,))
    of = {"playouts": PLAYOUTS, "game": row.hex(), "bots": sorted(one.source for one in run.experiment.players)}
    kept = _read_cached(path)
    if kept is not None and kept.get("of") == of:
        return Playouts(kept["playouts"], kept["substitute"], kept["won"])
    try:
        moves = [output for _, output in replay_moves(run, number)]
        table, substitute = _table_at_start(run, number)
        work = _measure_work(table) if len(moves) < _MAX_MOVES else 1
        playouts = choose_playouts(len(moves), work)
        left = _MAX_MOVES * _MAX_EXCESS // work
        found = Playouts(
            playouts, substitute, [*_PlayoutRunner(run.game.results, number, table, playouts, left)(moves)]
        )
    except (DubitoError, TypeError, ValueError, RecursionError) as error:  # for example, if a bot cannot be copied
        raise UsageError(f"game {number} cannot be played on from its turns: {one_line(str(error))}") from None
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, json.dumps({"of": of, **asdict(found)}))
    except (OSError, DubitoError):  # the odds of a read-only run can still be shown
        pass
    return found


def _read_cached(path: Path) -> dict[str, Any] | None:
    """Return the content of a cache file, or None if the file is missing or invalid."""
    try:
        kept = json.loads(read_text(path))
        return kept if {"of", "playouts", "substitute", "won"} <= kept.keys() else None
    except (DubitoError, ValueError, AttributeError):
        return None


def _table_at_start(run: Run, number: int) -> tuple[Table, str | None]:
    """Return the table before the first move, and the bot that plays for models, programs and agents."""
    experiment = run.experiment
    deal, place = divmod(number, experiment.games_per_deal)
    streams = DealStreams(experiment.seed, deal)
    lineup = draw_lineup(experiment, deal, place, streams)
    players = [run.resolved.players[player] for player in lineup.seats]
    asks = {player.name for player in players if player.needs_calls}
    usual = next(iter(run.game.words.BOTS), run.game.fallback)
    entrants = [
        Entrant(player.name, run.registry.find(usual).cls)
        if player.name in asks
        else Entrant(player.name, player.bot.cls, player.spec.settings)
        for player in players
    ]
    state = run.game.deal(run.resolved.rules, len(players), streams.deck())
    return Table(state, entrants, streams, deal=deal, number=number), usual if asks else None


def _measure_work(table: Table) -> int:
    """Return the cost of a move relative to a typical bot's move, as a power of two.

    The cost is measured in function calls, because measuring seconds would make the odds depend on the machine. Only
    the second of two equal playouts is measured, when caches are warm. Raises UsageError if the bots take too long.
    """
    copy, until = Copies(table), monotonic() + _MAX_TRIAL_SECONDS
    for _ in ("cold", "warm"):
        played, moves, calls, before = reseed(copy(), "odds/work"), 0, _CallCounter(), sys.getprofile()
        sys.setprofile(calls)
        try:
            while not played.state.over and moves < _TRIAL_MOVES:
                step(played)
                moves += 1
                if calls.count > _MAX_TRIAL_CALLS or monotonic() > until:
                    raise UsageError("the bots are too slow")
        finally:
            sys.setprofile(before)
    return int(max(1, 2 ** round(log2(max(1, calls.count) / max(1, moves) / _USUAL_CALLS))))


class _CallCounter:
    """A profile function that counts function calls."""

    count = 0

    def __call__(self, frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1


def choose_playouts(moves: int, work: int) -> int:
    """Return the number of playouts from each move of a game of this length.

    `work` is the cost of a move, in moves of typical bots. Raises UsageError if the playouts would take too long.
    """
    cost = (moves + 1) * (moves / 2 * work + _COPY_COST)
    playouts = min(PLAYOUTS, int(_MAX_MOVES / cost))
    if playouts < min(_FEWEST_PLAYOUTS, PLAYOUTS):
        raise UsageError(f"the game is too long ({moves:,} moves)")
    return playouts


@dataclass(slots=True)
class _PlayoutRunner:
    """Plays on from every moment of a game."""

    results: Results
    number: int
    table: Table
    playouts: int
    left: int  # remaining moves for the playouts

    def __call__(self, moves: Sequence[object]) -> Iterator[list[int]]:
        """Yield the number of playouts won by each seat, at every moment from the deal to the end."""
        yield self._count_wins(f"{self.number}/0")
        for moment, output in enumerate(moves, 1):
            repeat_move(self.table, output)
            yield self._count_wins(f"{self.number}/{moment}")

    def _count_wins(self, seed: str) -> list[int]:
        seats, is_over = range(len(self.table.entrants)), self.table.state.over
        won, copy = [0 for _ in seats], Copies(self.table)
        for playout in range(1 if is_over else self.playouts):
            table = reseed(copy(), f"odds/{seed}/{playout}")
            while not table.state.over:
                self.left -= 1
                if self.left < 0:
                    raise UsageError("the playouts would take too long")
                step(table)
            outcome = build_outcome(table.state, [*seats], None, [0] * len(seats))
            for seat in winners(self.results, outcome.buckets(self.results), outcome.counts):
                won[seat] += self.playouts if is_over else 1
        return won


class Copies:
    """Makes copies of a table.

    Uses pickle if possible, because it takes a fifth of the time of deepcopy.
    """

    def __init__(self, table: Table) -> None:
        self._table, self._packed = table, b""
        try:
            self._packed = pickle.dumps(table, pickle.HIGHEST_PROTOCOL)
            pickle.loads(self._packed)  # noqa: S301, packed just now
        except Exception:  # a bot can contain any kind of object
            self._packed = b""

    def __call__(self) -> Table:
        copied = pickle.loads(self._packed) if self._packed else deepcopy(self._table)  # noqa: S301
        assert isinstance(copied, Table)
        return copied


def reseed(table: Table, seed: str) -> Table:
    """Seed the random streams of all players of a table."""
    for seat, player in enumerate(table.players):
        assert player is not None
        streams = player._seating.streams
        for name, stream in (("bot", streams.bot), ("framework", streams.framework)):
            stream.seed(f"{seed}/{seat}/{name}")
    return table
