"""Where chance stands: what a player that decides at random reaches in the contenders' seats of a run.

It plays the deals of the run against the same opponents, without a call. Its games are not part of the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from dubito.experiment.experiment import Experiment
from dubito.experiment.play import ChunkPlayer
from dubito.experiment.resolve import default_player
from dubito.experiment.resolved import ResolvedPlayer, ResolvedRun
from dubito.stats.ranking import Contender, contender_ranking
from dubito.stats.rates import Rate
from dubito.stats.relation import MIN_DEALS
from dubito.stats.tally import unpack_outcome

MAX_CHANCE_DEALS: Final = 1_000  # enough for an interval of about 3 points
_TRIAL_DEALS: Final = 80  # at a table before a run; the slowest bots need seconds for them
_FLOOR: Final = 0.05  # with a lower chance level, hardly any player is worse than chance
_SCALE: Final = (0.2, 0.45)  # chance levels from which a player can differ in both directions
_MAX_UNFINISHED: Final = 0.5  # share of games


@dataclass(frozen=True, slots=True)
class ChanceLine:
    """The results of the game's random player in the contenders' seats."""

    bot: str
    deals: int
    rates: Mapping[str, Rate]  # by measure
    unfinished: float  # share of its games that ended at the limit of turns

    def level(self, measure: str) -> float:
        return self.rates[measure].value or 0.0


def find_chance(run: ResolvedRun, deals: int) -> ChanceLine | None:
    """Return the results of random play on the first deals of a run with models or programs, if not a contender."""
    if not run.has_records or not deals or run.game.chance_bot in [spec.bot for spec in run.experiment.contenders]:
        return None
    return measure_chance(run, run.experiment.deal_numbers[: min(deals, MAX_CHANCE_DEALS)])


def measure_chance(run: ResolvedRun, deals: range) -> ChanceLine | None:
    """Play these deals with the game's random player as the only contender.

    Return None if the run has no contenders, if opponents need calls, or if the game has no such player.
    """
    opponents = run.opponents
    if run.game.chance_bot not in run.registry.bots or not run.experiment.contenders:
        return None
    if any(player.needs_calls for player in opponents):
        return None
    return _play_chance(run, opponents, deals)


def _play_chance(run: ResolvedRun, opponents: Sequence[ResolvedPlayer], deals: range) -> ChanceLine | None:
    """Play deals of the run's seed and rules against these opponents. Return None if one of them fails."""
    chance = default_player(run.registry.find(run.game.chance_bot))
    experiment = replace(
        run.experiment,
        games=len(deals),
        bots=tuple(player.spec for player in opponents),
        contenders=(chance.spec,),
        bot_deadline=None,
        shard=None,
        stop=None,
    )
    by_name = {player.name: player for player in [chance, *opponents]}
    players = [by_name[name] for name in experiment.names]
    played = ChunkPlayer(replace(run, experiment=experiment, players=players)).play(deals, lambda: False)
    if played.error is not None:  # of a bot that plays differently against this contender
        return None
    results = run.game.results
    contender = Contender(chance.name, seats=experiment.contender_seats)
    (row,) = contender_ranking(played.tally, [contender], results)
    capped = [unpack_outcome(outcome, results).capped for outcome in played.outcomes]
    return ChanceLine(chance.name, row.deals, row.rates, sum(capped) / len(capped))


def propose_table(run: ResolvedRun) -> str | None:
    """Return a note if a weak player cannot be told from chance at the run's table, with a better table if any.

    Return None for measures that are not shares of games, and for runs with too few deals for a comparison.
    """
    first = run.game.results.measures[0]
    if first.span is not None or run.experiment.deals < MIN_DEALS:
        return None
    line = measure_chance(run, range(_TRIAL_DEALS))
    if line is None or (line.level(first.key) >= _FLOOR and line.unfinished <= _MAX_UNFINISHED):
        return None
    unfinished = (
        f", and {100 * line.unfinished:.0f} % of its games end unfinished" if line.unfinished > _MAX_UNFINISHED else ""
    )
    why = (
        f"note: {line.bot}, which decides at random, has a {first.name} of {100 * line.level(first.key):.1f} % at this "
        f"table{unfinished}. A weak model cannot be told from chance here"
    )
    for flags, table, opponents in _list_tables(run):
        other = _play_chance(replace(run, experiment=table), opponents, range(_TRIAL_DEALS))
        if other and _SCALE[0] <= other.level(first.key) <= _SCALE[1] and other.unfinished <= _MAX_UNFINISHED:
            return f"{why}; it would have {100 * other.level(first.key):.0f} % with {' '.join(flags)}"
    return why


def _list_tables(run: ResolvedRun) -> Iterator[tuple[list[str], Experiment, Sequence[ResolvedPlayer]]]:
    """Yield other tables with the flags that set them, starting with the fewest changes."""
    experiment, capped, limit = run.experiment, run.experiment.rules, run.game.turn_limit
    usual = run.game.rules().model_dump()
    uncapped = {**capped, limit: max(capped[limit], usual[limit])} if limit else capped
    smallest = (run.game.seat_range(run.rules)[0],)
    own = run.opponents
    # The game's usual bots, starting with those against which random play does best.
    key, usual_bots = run.game.results.measures[0].key, map(default_player, run.registry.hand_written())
    small_run = replace(run, experiment=replace(experiment, table_sizes=smallest, rules=uncapped))
    lines = [
        (line.level(key), one) for one in usual_bots if (line := _play_chance(small_run, [one], range(_TRIAL_DEALS)))
    ]
    weakest = [one for _, one in sorted(lines, key=lambda each: (-each[0], each[1].name))]
    sizes = [experiment.table_sizes, *([smallest] if experiment.table_sizes != smallest else [])]
    groups = [own, weakest[:3], weakest[1:4], weakest[:2], weakest[:1]]
    for size, opponents, rules in product(sizes, groups, [capped, *([uncapped] if uncapped != capped else [])]):
        flags = ["--bots", ",".join(player.name for player in opponents)] if opponents is not own else []
        flags += ["--table-sizes", ",".join(map(str, size))] if size != experiment.table_sizes else []
        flags += [f"--{limit.replace('_', '-')}", str(rules[limit])] if rules is not capped else []
        if flags:
            yield flags, replace(experiment, table_sizes=size, rules=rules), opponents
