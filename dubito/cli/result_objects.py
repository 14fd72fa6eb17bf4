"""Results as `--json` has them: intervals, players, contenders, what models took."""

from collections.abc import Mapping, Sequence

from dubito.cli import documents
from dubito.experiment.replay import LieCounts
from dubito.game import PlayerKind, Results
from dubito.llm.prices import PICO
from dubito.stats.ranking import Contender, contender_pairs, contender_ranking, order_of, order_of_contenders, ranking
from dubito.stats.rates import Rate
from dubito.stats.tally import Tally
from dubito.store.model_log import PlayerLog


def players(
    tally: Tally,
    kinds: Mapping[str, PlayerKind],
    compared: Sequence[Contender],
    results: Results,
    lies: LieCounts | None = None,
) -> list[documents.PlayerResult]:
    """All players of a run, the best first; `kinds` are theirs, by name."""
    names = [*kinds]
    order = order_of(tally, names, compared, results)
    return [
        documents.PlayerResult(
            name=row.name,
            kind=kinds[row.name],
            rank=order.rank(row.name),
            games=row.games,
            buckets=row.buckets,
            rates=_intervals(row.rates),
            fallback_turns=row.fallback_turns,
            forfeits=row.forfeits,
            lies=None if lies is None else _lies(lies, names.index(row.name)),
        )
        for row in ranking(tally, names, results)
    ]


def _lies(lies: LieCounts, player: int) -> documents.LieResult:
    chosen, forced = lies.count(player, "chosen"), lies.count(player, "forced")
    return documents.LieResult(games=lies.games, plays=lies.plays(player), chosen=chosen, forced=forced)


def _intervals(rates: Mapping[str, Rate]) -> dict[str, documents.Interval]:
    return {key: documents.Interval.model_validate(rate) for key, rate in rates.items()}


def contenders(
    tally: Tally, compared: Sequence[Contender], results: Results, runs: Sequence[str]
) -> list[documents.ContenderResult]:
    """The contenders in their seat, the best first; `runs` are the folders that they played in."""
    order = order_of_contenders(tally, compared, results)
    return [
        documents.ContenderResult(
            name=row.contender.name,
            kind=row.contender.kind,
            rank=order.rank(row.contender.name) if order else None,
            run=runs[row.contender.run],
            deals=row.deals,
            rates=_intervals(row.rates),
            fallback_share=row.contender.fallback_share,
        )
        for row in contender_ranking(tally, compared, results)
    ]


def pairs(tally: Tally, compared: Sequence[Contender], results: Results) -> list[documents.PairResult]:
    """Every pair of contenders, those of the best first."""
    return [
        documents.PairResult(
            one=row.one.name,
            other=row.other.name,
            differences={
                key: documents.Difference.model_validate({"difference": found.rate, "more_games": found.more_games})
                for key, found in row.differences.items()
            },
        )
        for row in contender_pairs(tally, compared, results)
    ]


def models(logs: Mapping[str, PlayerLog], kinds: Mapping[str, PlayerKind]) -> list[documents.ModelUse]:
    """What each model player's decisions took."""
    used = documents.ModelUse.model_fields.keys() - {"name", "kind", "usd", "usd_billed", "usd_assumed"}
    return [
        documents.ModelUse(
            name=name,
            kind=kinds.get(name, "model"),
            usd=None if log.picodollars is None else log.picodollars / PICO,
            usd_billed=None if log.billed is None else log.billed / PICO,
            usd_assumed=None if log.billed is None else log.likely / PICO,
            **{key: getattr(log, key) for key in used},
        )
        for name, log in logs.items()
    ]
