"""Play one moment on many times, with the same or other players in the seat to move."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial

from dubito.game import Results
from dubito.game.events import EVERYTHING
from dubito.game.moves import output_of, repeat_move
from dubito.game.table import GameCode, Table, play_game, step
from dubito.show.moment import RunMoment, describe_move
from dubito.show.odds import reseed
from dubito.show.opponents import Opponents
from dubito.show.person import Setup
from dubito.stats.rates import Rate, clustered_rate, paired_difference
from dubito.stats.tally import build_outcome


@dataclass(frozen=True)
class Ending:
    """How one fork ended for the seat that moved first."""

    move: str  # the first move
    bucket: int
    value: int  # of the game's first measure


@dataclass(frozen=True)
class PlayerForks:
    """The forks of one player."""

    name: str
    endings: Sequence[Ending]
    results: Results

    @cached_property
    def buckets(self) -> dict[str, int]:
        counts = Counter(ending.bucket for ending in self.endings)
        return {name: counts[bucket] for bucket, name in enumerate(self.results.buckets)}

    @cached_property
    def moves(self) -> dict[str, int]:
        """How often each first move was made, most frequent first."""
        return dict(Counter(ending.move for ending in self.endings).most_common())

    @property
    def score(self) -> Rate:
        """The mean of the game's first measure."""
        values, n, measure = [ending.value for ending in self.endings], len(self.endings), self.results.measures[0]
        total = sum(values)
        squares = sum(value * value for value in values)
        return clustered_rate(n, n, n, total, squares, total, measure.scale).on_span(measure.span)

    def minus(self, other: "PlayerForks") -> Rate:
        """Return the paired difference of the scores, fork by fork."""
        measure = self.results.measures[0]
        pairs = zip(self.endings, other.endings, strict=True)
        differences = [here.value - there.value for here, there in pairs]
        squares = sum(value * value for value in differences)
        width = 1.0 if measure.span is None else measure.span[1] - measure.span[0]
        return paired_difference(len(differences), sum(differences), squares, measure.scale).rescale(width)


@dataclass(frozen=True)
class Forks:
    """Plays forks of a moment. Fork K has the same cards and random streams for every player."""

    moment: RunMoment
    opponents: Opponents
    setups: Sequence[Setup]  # of each fork
    seed: int
    threads: int

    def play(self, name: str, first: int, on_end: Callable[[], None]) -> PlayerForks:
        """Play all forks of a player. Raises RunStopped if a model cannot be called.

        `first` is the number of the first fork's game in the database of model calls.
        """
        play_fork, numbers = partial(self._play_fork, name, first, on_end), range(len(self.setups))
        with ThreadPoolExecutor(self.threads) as pool:
            endings = [*(pool.map if self.threads > 1 else map)(play_fork, numbers)]
        return PlayerForks(name, endings, self.moment.game.results)

    def _play_fork(self, name: str, first: int, on_end: Callable[[], None], number: int) -> Ending:
        game, setup, seed = self.moment.game, self.setups[number], f"fork/{self.seed}/{number}"
        seat = setup.seat
        names = [*setup.bots[:seat], name, *setup.bots[seat:]]
        entrants, services = self.opponents.seat_bots(names, seed, self.moment.run.resolved.rules)
        code = GameCode(game, self.moment.number, setup.deal)
        with code:
            state, streams = setup.deal_game(game)
            table = Table(
                state,
                entrants,
                streams,
                deal=setup.deal,
                number=first + number,
                fallback=self.opponents.fallback,
                services=services,
            )
            code.state = table.state
            for kept in setup.begun:
                repeat_move(table, output_of(game, kept))
            reseed(table, seed)
            before = deepcopy(table.state)
            output, _ = step(table, EVERYTHING)
            move = describe_move(game, before, output)
            state = play_game(table)
        seats = [*range(len(names))]
        on_end()
        outcome, results = build_outcome(state, seats, None, table.fallback_turns), game.results
        bucket = outcome.buckets(results)[seat]
        return Ending(move, bucket, results.measure_values(bucket, outcome.counts[seat])[0])
