"""How a game of a run stood: how often each seat wins it from each of its turns, found by playing on from there.

Everybody plays on as it is, with the cards where they lie and with draws of its own; where a model sits, a bot does. So
it is what somebody who sees all cards could say of these players, and no forecast of what a seat can know.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Final

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.play import lineups
from dubito.experiment.replay import moves_again
from dubito.experiment.stored import Run
from dubito.files import read_text, write_whole
from dubito.game.record import Forfeit
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, play_game
from dubito.game.words import words_of
from dubito.show.story import winners
from dubito.stats.tally import outcome_of

PLAYOUTS: Final = 40  # from each turn: a share is known to about 15 points
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
        return Playouts(PLAYOUTS, kept["stand_in"], kept["won"])
    try:
        table, stand_in = _table_at_start(run, number)
        found = Playouts(PLAYOUTS, stand_in, [*_played_on(run, number, table)])
    except (DubitoError, TypeError, ValueError, RecursionError) as error:  # such as a bot that cannot be copied
        raise UsageError(f"game {number} cannot be played on from its turns ({one_line(str(error))})") from None
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, json.dumps({"of": of, "stand_in": found.stand_in, "won": found.won}))
    except (OSError, DubitoError):  # a run of which nothing can be written is shown all the same
        pass
    return found


def _kept_odds(path: Any) -> dict[str, Any] | None:
    """What stands in a file of ours; None where there is none, or it is not one."""
    try:
        kept = json.loads(read_text(path))
        return kept if {"of", "stand_in", "won"} <= kept.keys() else None
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


def _played_on(run: Run, number: int, table: Table) -> Iterator[list[int]]:
    """Of every moment of the game, the last one included, how many playouts each seat wins."""
    yield _won(run, table, f"{number}/0")
    for moment, (_, output) in enumerate(moves_again(run, number), 1):
        _make(table, output)
        yield _won(run, table, f"{number}/{moment}")


def _make(table: Table, output: Any) -> None:
    """Make the move that was made; its seat decides on it too, and so remembers what it would."""
    state, player = table.state, table.players[table.state.seat]
    if output is None or isinstance(output, Forfeit):
        raise UsageError("it was forfeited")
    assert player is not None
    player.play(state.view())
    table.tell(state.apply(output, True), state.turns_played)


def _won(run: Run, table: Table, seed: str) -> list[int]:
    seats, results = range(len(table.entrants)), run.game.results
    won = [0 for _ in seats]
    for playout in range(1 if table.state.over else PLAYOUTS):
        end = play_game(_anew(table, f"{seed}/{playout}"))
        came = outcome_of(end, [*seats], None, [0] * len(seats))
        for seat in winners(results, came.buckets(results), came.counts):
            won[seat] += PLAYOUTS if table.state.over else 1
    return won


def _anew(table: Table, seed: str) -> Table:
    """The same table, which draws anew from here."""
    copied = deepcopy(table)
    for seat, player in enumerate(copied.players):
        assert player is not None
        streams = player._seating.streams
        for name, stream in (("bot", streams.bot), ("framework", streams.framework)):
            stream.seed(f"odds/{seed}/{seat}/{name}")
    return copied
