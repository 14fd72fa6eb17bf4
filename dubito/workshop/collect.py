"""Collecting positions from a run that was played, or from the games that a config describes."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from dubito.errors import UsageError
from dubito.experiment.experiment import Experiment
from dubito.experiment.models import Models
from dubito.experiment.play import ChunkPlayer, Lineup
from dubito.experiment.replay import RunToReplay
from dubito.experiment.resolve import model_specs
from dubito.game.find import Registry
from dubito.game.table import Table
from dubito.llm.decide import Journal
from dubito.llm.tape import ReplayTape
from dubito.stats.tally import outcome_of
from dubito.store.model_log import ModelLog
from dubito.workshop.recorder import Origin, recorded_positions
from dubito.workshop.recordings import RecordedPosition


def from_run(kept: RunToReplay, nodes: Collection[str], count: int) -> list[RecordedPosition]:
    """Positions of a run's games, played again: hand-written bots from the seed, models through the tape.

    Raises UsageError if the run keeps no game, or a bot now plays differently; Differs if a model would be asked
    something else now.
    """
    experiment = kept.experiment
    if not experiment.games:
        raise UsageError(f"{kept.folder} keeps no finished game: there is nothing to record from")
    return _collected(experiment.game_numbers, watched_games(kept), nodes, count)


def watched_games(kept: RunToReplay) -> Callable[[int], list[RecordedPosition]]:
    """Plays a game of the run again, by its number, and gives all its positions, in their order.

    Raises UsageError if a bot now plays differently; Differs if a model would be asked something else now.
    """
    models = kept.models(ReplayTape(ModelLog(kept.db)), as_kept=True)
    return _Games(kept.experiment, kept.registry, kept.experiment.digest(), models, partial(_check, kept)).play


def from_config(
    experiment: Experiment, registry: Registry, nodes: Collection[str], count: int
) -> list[RecordedPosition]:
    """Positions of an experiment's games; raises UsageError if a model would have to be asked for them."""
    if model_specs(experiment, registry):
        raise UsageError(
            "this config has model players, which have to be asked first: `dubito run` it, then record from the run"
        )
    return _collected(experiment.game_numbers, _Games(experiment, registry).play, nodes, count)


@dataclass(frozen=True, slots=True)
class _Games:
    """The games of an experiment, each to be played by its number."""

    experiment: Experiment
    registry: Registry
    run: str | None = None
    models: Models | None = None
    ended: Callable[[int, Lineup, Table], None] = lambda game, lineup, table: None

    def play(self, game: int) -> list[RecordedPosition]:
        """All positions of a game."""
        table, lineup = ChunkPlayer(self.experiment, self.registry).table_of(game, self.models, Journal())
        origin = Origin(self.run, self.experiment.seed, table.deal, game)
        game_played = self.registry.game
        found = recorded_positions(table, origin, game_played, game_played.rules(**self.experiment.rules))
        self.ended(game, lineup, table)
        return found


def _check(kept: RunToReplay, game: int, lineup: Lineup, table: Table) -> None:
    """Refuse a game that is not the one that the run keeps."""
    ended = outcome_of(table.game, lineup.seats, lineup.contender_seat, table.fallback_turns).pack()
    ((outcome,),) = kept.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
    if ended != outcome:
        changed = "; ".join(kept.mismatches) or "something was changed since"
        raise UsageError(f"game {game} of {kept.folder} is now played differently: {changed}")


def _collected(
    games: range, play: Callable[[int], list[RecordedPosition]], nodes: Collection[str], count: int
) -> list[RecordedPosition]:
    """So many positions of these nodes, from as many games as may be; fewer if there are no more."""
    chosen = [games[place] for place in evenly_spaced(len(games), min(len(games), count))]
    most = -(-count // len(chosen))  # of one node in one game: more than its share is needed where others lack it
    found: list[RecordedPosition] = []
    for game in chosen:
        piles = _piles(one for one in play(game) if one.position.node in nodes)
        found += [one for pile in piles.values() for one in pile[:most]]
    return spread(found, count)


def evenly_spaced(games: int, n: int) -> list[int]:
    """n of the games, evenly over all of them; the step varies, so that it is not one contender's games."""
    width = games // n
    return [place * games // n + place % width for place in range(n)]


def spread(found: Sequence[RecordedPosition], count: int) -> list[RecordedPosition]:
    """The first so many of an order in which nodes take turns, and for each node the games: always the same ones.

    Each node begins with another game, so that few positions too come from many games.
    """
    piles = _piles(found)
    games = sorted({game for _, game in piles})
    nodes = (
        [node.name for node in found[0].game.nodes if any(node.name == other for other, _ in piles)] if found else []
    )
    turns: dict[str, list[RecordedPosition]] = {}
    for number, node in enumerate(nodes):
        first = number * len(games) // len(nodes)
        own = [piles.get((node, game), []) for game in games[first:] + games[:first]]
        rounds = range(max(map(len, own)))
        turns[node] = [pile[place] for place in rounds for pile in own if place < len(pile)]
    longest = max(map(len, turns.values()), default=0)
    order = [turns[node][place] for place in range(longest) for node in nodes if place < len(turns[node])]
    return order[:count]


def _piles(found: Iterable[RecordedPosition]) -> dict[tuple[str, int], list[RecordedPosition]]:
    """By node and game, each pile in an order that follows neither seats nor turns."""
    piles = defaultdict(list)
    for one in found:
        assert one.source is not None  # it comes from a game
        piles[one.position.node, one.source.game].append(one)
    for pile in piles.values():
        pile.sort(key=_lot)
    return piles


def _lot(one: RecordedPosition) -> bytes:
    source = one.source
    assert source is not None
    return sha256(f"{source.seed} {source.game} {source.seat} {source.decision}".encode()).digest()


def files(found: Iterable[RecordedPosition], folder: Path) -> dict[Path, str]:
    """The file of each position."""
    return {folder / one.file_name: one.text for one in found}
