"""The JSON objects that commands print with `--json`.

Keys are never removed, but new ones may be added (docs/json.md). Every rate is a share from 0 to 1, unless its measure
has its own scale. Money is in dollars.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import models_json_schema

from dubito.game import Lie, PlayerKind, Results
from dubito.game.seeds import SeedSecrecy
from dubito.stats.ranking import (
    Contender,
    contender_pairs,
    contender_ranking,
    ranking,
    relate_contenders,
)
from dubito.stats.rates import Rate
from dubito.stats.relation import PRELIMINARY, PairOutcome, Relation, WithheldReason
from dubito.stats.stopping import PairVerdict
from dubito.stats.tally import Tally
from dubito.store.spend import PICO, PlayerLog

if TYPE_CHECKING:
    from dubito.experiment.compare import Arm
    from dubito.experiment.lies import LieCounts
    from dubito.experiment.stop import PairStanding

RunState = Literal["playing", "stopped", "finished"]


class DocumentPart(BaseModel):
    # Models are built late, since most commands print no document. Values can be read from attributes of the same name.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, from_attributes=True, defer_build=True)


P = TypeVar("P", bound=DocumentPart)


class Document(DocumentPart):
    """An object printed by a command."""


class Interval(DocumentPart):
    """An estimate with its 95 % confidence interval."""

    value: float | None = Field(description="null without data")
    low: float | None = Field(description="null without a value")
    high: float | None = Field(description="null without a value")

    @model_validator(mode="before")
    @classmethod
    def _leave_out_ends(cls, rate: Any) -> Any:
        is_withheld = isinstance(rate, Rate) and rate.value is None
        return {"value": None, "low": None, "high": None} if is_withheld else rate


class LieResult(DocumentPart):
    """A player's lies: voluntary ones, which it could have avoided, and forced ones."""

    games: int = Field(description="number of games covered, from the start of the run")
    plays: int = Field(description="number of moves that could have been lies")
    chosen: int
    forced: int


class PlayerResult(DocumentPart):
    """A player's results in all seats."""

    name: str
    kind: PlayerKind
    rank: int | None = Field(description="null if not ranked")
    games: int = Field(description="number of games; a game in which the bot has two seats counts twice")
    buckets: dict[str, int] = Field(description="number of games by result")
    rates: dict[str, Interval] = Field(description="keyed by the game's measures")
    fallback_turns: int = Field(description="number of turns played by the fallback after a bot error")
    forfeits: int = Field(description="number of games forfeited after a bot error")
    lies: LieResult | None = Field(description="null if the game has no lies or its games cannot be replayed here")


class ChanceLevel(DocumentPart):
    """The results of the game's random player in the contenders' seats, outside the run."""

    bot: str
    deals: int
    rates: dict[str, Interval]
    unfinished: float = Field(description="share of its games that ended at the limit of turns")


class ContenderResult(DocumentPart):
    """A contender's results in the contenders' seats."""

    name: str
    kind: PlayerKind
    rank: int | None = Field(description="null if there are no other contenders")
    run: str = Field(description="the run folder")
    deals: int
    rates: dict[str, Interval]
    fallback_share: float = Field(description="share of its games with a fallback or forfeit")


class Difference(DocumentPart):
    """The first contender's value minus the other's, on the same deals."""

    difference: Interval
    relation: PairOutcome = Field(description="of the first contender to the other")
    withheld: WithheldReason | None = Field(description="why the relation is withheld, or null")
    winner: str | None = Field(
        description="null if the difference is not significant, or if fallbacks could explain it"
    )
    worst: float = Field(
        description=(
            "the difference if the first contender had lost all its games with a fallback and the other had won "
            "all its games with one"
        )
    )
    best: float = Field(description="the difference in the opposite case")
    more_games: int | None = Field(description="games needed to find a winner: 0 if there is one, null if unknown")
    interval: Literal["fixed", "anytime"] = Field(description="`anytime` in a run with `stop`")
    verdict: PairVerdict | None = Field(
        description="in a run with `stop`; null until the pair is decided, and for other measures"
    )


class PairResult(DocumentPart):
    """A comparison of two contenders."""

    one: str
    other: str
    differences: dict[str, Difference] = Field(description="keyed by the game's headline measures")


class PairStatus(DocumentPart):
    """Two contenders' progress towards a decision, in a run with `stop`."""

    one: str
    other: str
    deals: int
    verdict: PairVerdict | None = Field(description="null until the pair is decided")
    goal: PairVerdict = Field(description="the more likely verdict")
    way: float = Field(description="progress towards `goal`, from 0 to 1")


class ArmResult(DocumentPart):
    """A model contender and its prompt, if the contenders have different prompts."""

    name: str
    prompt: str
    title: str = Field(description="the prompt's title")
    paragraph: str = Field(description="the text that it or the condition adds to a prompt")
    condition: str = Field(description="the condition, or `silent`")
    against: str | None = Field(description="the first contender that differs from it only in the condition")
    games: int | None = Field(description="number of games in which lies were counted; null if they cannot be counted")
    plays: int | None = Field(description="number of moves that could have been lies")
    chosen: Interval | None = Field(description="share of plays that were voluntary lies")
    violations: Interval | None = Field(
        description="under must-not-lie: share of voluntary lies among plays that could be honest"
    )


class ModelUse(DocumentPart):
    """The decisions of a model player and their cost."""

    name: str
    kind: PlayerKind
    decisions: int
    games: int
    outcomes: dict[str, int] = Field(
        description=(
            "number of decisions by outcome: model, model_after_reask (either may end in :last_object or :reasoning) "
            "or fallback:CAUSE"
        )
    )
    reasks: int
    calls: int
    attempts: int
    cached: int = Field(description="number of attempts answered from the cache")
    tokens: dict[str, int]
    usd: float | None = Field(description="billed plus assumed; null if no price is known")
    usd_billed: float | None = Field(description="the cost reported in replies")
    usd_assumed: float | None = Field(description="the probable cost of calls that reported none")
    assumed: int = Field(description="number of calls that reported no cost")
    ids: dict[str, int] = Field(description="number of replies by the model named in them")


class ComparedResult(DocumentPart):
    """How strongly the comparison of a run's contenders depends on a few deals."""

    preliminary: bool = Field(description=f"true if a run without `stop` has fewer than {PRELIMINARY} deals")
    fragility: int | None = Field(description="number of deals whose removal would cost the leader its lead")


class RunObject(Document):
    """The settings, results and model costs of a run."""

    format: Literal["dubito run 1"] = "dubito run 1"
    folder: str
    game: str
    seed: int | str | None = Field(description="null while it is secret; text of 32 hex digits if it was secret")
    seed_was: SeedSecrecy = Field(description="before the first game and during play")
    games: int = Field(description="planned number of games, or the maximum with `stop`")
    kept: int = Field(description="number of games counted in the results")
    finished: int = Field(description="number of finished games; results count them in deal order")
    state: RunState
    stopped: str | None = Field(description="why the run stopped early")
    resume: str | None = Field(description="the command that continues a stopped run")
    results_digest: str | None = Field(description="null if no game is counted")
    verdict: str | None = Field(description="the result in words; null if no game is counted")
    ranking: list[PlayerResult] = Field(description="all seats included, best player first")
    contenders: list[ContenderResult] = Field(description="best first")
    pairs: list[PairResult]
    comparison: ComparedResult | None = Field(description="null if there are fewer than two contenders")
    chance: ChanceLevel | None = Field(description="null without models, or if it was not measured")
    models: list[ModelUse]
    claimed: dict[str, list[str]] = Field(description="by player: what a replay cannot prove, such as `dollars`")
    not_enforced: list[str] = Field(description="what programs could do, since this machine cannot prevent it")
    report: str | None = Field(description="the report's first page")


class MergeObject(Document):
    """A run that was merged from shards."""

    format: Literal["dubito merge 1"] = "dubito merge 1"
    shards: list[str] = Field(description="folders of the shards, in game order")
    run: RunObject = Field(description="the whole run")


class AwaitedBatch(DocumentPart):
    """A batch that a run with `wait` has sent and that has not been answered yet."""

    account: str
    id: str | None = Field(description="the server's id; null if the server has not confirmed the batch")
    requests: int
    since: str = Field(description="when the batch was sent, in UTC")
    expires: str | None = Field(description="when the batch expires and its requests are sent again, in UTC")


class StatusObject(Document):
    """The progress and model calls of a run or a test of prompts."""

    format: Literal["dubito status 1"] = "dubito status 1"
    folder: str
    trial: bool = Field(default=False, description="true for a test of prompts, which has no games")
    games: int | None = None
    kept: int | None = Field(default=None, description="number of games counted in the results")
    finished: int | None = Field(default=None, description="number of finished games")
    state: RunState | None = None
    replies: int | None = Field(default=None, description="number of replies in games, in a run with models")
    results_digest: str | None = None
    models: list[ModelUse]
    failed_calls: dict[str, int] = Field(description="number of failed calls by kind")
    awaited: list[AwaitedBatch] = []
    pairs: list[PairStatus] = []
    to_be_sent: int = Field(default=0, description="number of requests in the next batch")
    resume: str | None = Field(default=None, description="the command that continues a stopped run")


class ComparisonObject(Document, extra="allow"):
    """The contenders of several runs on the same deals. Plugins may add keys."""

    format: Literal["dubito comparison 1"] = "dubito comparison 1"
    runs: list[str]
    notes: list[str] = Field(description="caveats")
    contenders: list[ContenderResult]
    pairs: list[PairResult]
    verdict: str | None = Field(description="the result in words; null if there are fewer than two contenders")
    arms: list[ArmResult] = Field(description="empty if all models use the same prompt")
    comparison: ComparedResult | None = Field(description="null if there are fewer than two contenders")
    claimed: dict[str, list[str]] = Field(description="by player: what a replay cannot prove, such as `dollars`")


class ListedBot(DocumentPart):
    """The summary of a bot."""

    name: str
    strategy: str
    origin: str
    file: str
    usual: bool = Field(description="false if the bot plays only when named")
    repeatable: bool
    missing: list[str] = Field(description="nodes that are not written yet")


class BrokenFile(DocumentPart):
    """A file that cannot be used, and the reason."""

    file: str
    reason: str


class BotsObject(Document):
    """The bots of a game, including broken files."""

    format: Literal["dubito bots 1"] = "dubito bots 1"
    game: str
    bots: list[ListedBot]
    broken: list[BrokenFile]


class ListedGame(DocumentPart):
    """The summary of a game or a family of games."""

    name: str
    seats: tuple[int, int] | None = Field(description="minimum and maximum number; null for a family")
    summary: str
    why_not: str | None = Field(default=None, description="why the game cannot be played")
    origin: str | None = Field(
        default=None,
        description="the game's folder or installed package; null if it comes with Dubito",
    )


class GamesObject(Document):
    """The list of games, or of OpenSpiel's games."""

    format: Literal["dubito games 1"] = "dubito games 1"
    games: list[ListedGame]


class ListedRun(DocumentPart):
    """The summary of a run folder."""

    folder: str
    game: str | None = Field(default=None, description="null for a test of prompts, or if unreadable")
    state: RunState | None = Field(default=None, description="null if the folder is not a run")
    games: int | None = None
    kept: int | None = None
    models: list[str] = []
    kinds: dict[str, PlayerKind] = Field(default={}, description="kinds of the models, by name")
    usd: float | None = Field(default=None, description="null if no model with a price was called")
    date: str = Field(description="date of the last modification, in UTC")
    fault: str | None = Field(default=None, description="why the folder cannot be read")


class RunsObject(Document):
    """The runs in a folder."""

    format: Literal["dubito runs 1"] = "dubito runs 1"
    runs: list[ListedRun] = Field(description="last modified first")


class TypicalUse(DocumentPart):
    """The typical values of an estimate."""

    calls: float
    tokens_in: float
    tokens_out: float
    usd: float | None = Field(description="null if no price is known")


class PlayerEstimate(DocumentPart):
    """The estimated use of a model player. Pairs are 95 % intervals."""

    name: str
    kind: PlayerKind
    calls: tuple[float, float]
    tokens_in: tuple[float, float]
    tokens_out: tuple[float, float]
    usd: tuple[float, float] | None = Field(description="null if no price is known")
    learned_from: str
    typical: TypicalUse


class DealsNeededResult(DocumentPart):
    """The deals that are needed to detect a difference between two contenders."""

    difference: float = Field(description="in points, or in the measure's units")
    power: float = Field(description="probability that a true difference of this size is significant")
    pair: tuple[str, str] = Field(description="the pair whose difference varied most in the pilot run")
    pairs: int = Field(description="number of pairs, for Holm's method")
    effects: int = Field(description="number of pairs that differ only in a condition; `pair` is one of them, if any")
    deals: float = Field(description="the estimate on which everything else is based")
    range: tuple[float, float] = Field(description="95 % range of `deals`")
    pilot_deals: int


class EstimateObject(Document):
    """An estimate for a run with models."""

    format: Literal["dubito estimate 1"] = "dubito estimate 1"
    games: int
    players: list[PlayerEstimate]
    usd: tuple[float, float] | None = Field(description="total of all players with a price")
    seconds: tuple[float, float]
    typical_usd: float | None
    typical_seconds: float
    batches: int = Field(description="batches in a row, each of which waits for the one before it; 0 without batches")
    reach: str | None = Field(description="what the budget buys, and whether that is enough for a result")
    needed: DealsNeededResult | None = Field(description="with --detect, the deals to play")


class CachedModel(DocumentPart):
    """The cached replies of a model."""

    server: str
    model: str
    replies: int


class CacheObject(Document):
    """The content of a reply cache."""

    format: Literal["dubito cache 1"] = "dubito cache 1"
    folder: str
    replies: int
    bytes: int
    older: int = Field(description="number of unused replies from other versions of Dubito")
    damaged: int = Field(description="number of unreadable entries")
    models: list[CachedModel]


class CheckedFeature(DocumentPart):
    """The result of one check of a server."""

    check: str
    status: Literal["ok", "note", "failed"]
    finding: str
    advice: str


class ServerObject(Document):
    """What a model's server supports."""

    format: Literal["dubito server 1"] = "dubito server 1"
    checks: list[CheckedFeature]
    usable: bool = Field(description="whether no check failed")
    model: str | None = Field(description="the model that the replies name")
    entry: dict[str, Any] = Field(description="the config entry of a player with the settings that work")
    calls: int
    seconds: float


class PromptResult(DocumentPart):
    """The results of a prompt in a test."""

    prompt: str
    positions: int
    yes: Interval
    right: Interval = Field(description="share of right answers, among those whose truth is known")
    invalid: Interval = Field(description="share of positions without a valid answer")
    causes: dict[str, int] = Field(description="number of missing answers by cause")
    tokens_in: float | None = Field(description="tokens per decision; null if no reply reports them")
    tokens_out: float | None


class TrialObject(Document):
    """The results of a test of prompts."""

    format: Literal["dubito prompt test 1"] = "dubito prompt test 1"
    model: str
    prompts: list[PromptResult]
    same_answers: int | None = Field(
        description="number of positions at which the two prompts agree; null if there is only one prompt"
    )
    right_difference: Interval | None = Field(
        description="difference between the two prompts, paired by position; null if unknown"
    )
    verdict: str
    unmet: list[str] = Field(description="the --expect conditions that were not met")


def players(
    tally: Tally,
    kinds: Mapping[str, PlayerKind],
    relation: Relation,
    results: Results,
    lies: "LieCounts | None" = None,
) -> list[PlayerResult]:
    """Return all players of a run, best first. `kinds` maps their names to their kinds."""
    names = [*kinds]
    listed = []
    for row in ranking(tally, names, results):
        lie_result = None
        if lies is not None:
            player = names.index(row.name)
            counts = {lie: lies.count(player, lie) for lie in get_args(Lie)}
            lie_result = LieResult(games=lies.games, plays=lies.plays(player), **counts)
        rank = relation.rank(row.name)
        listed.append(part_of(PlayerResult, row, kind=kinds[row.name], rank=rank, lies=lie_result))
    return listed


def part_of(part: type[P], value: object, /, **more: Any) -> P:
    return part(**{key: getattr(value, key) for key in part.model_fields if key not in more}, **more)


def contenders(
    tally: Tally, compared: Sequence[Contender], results: Results, runs: Sequence[str]
) -> list[ContenderResult]:
    """Return the contenders, best first. `runs` lists the run folders in which they played."""
    relation = relate_contenders(tally, compared, results)
    return [
        part_of(
            ContenderResult,
            row.contender,
            rank=relation.rank(row.contender.name) if relation else None,
            fallback_share=row.bounds.share,
            run=runs[row.contender.run],
            deals=row.deals,
            rates=row.rates,
        )
        for row in contender_ranking(tally, compared, results)
    ]


def pairs(tally: Tally, compared: Sequence[Contender], results: Results) -> list[PairResult]:
    """Return all pairs of contenders, best first."""
    listed = []
    for row in contender_pairs(tally, compared, results):
        winners = {"better": row.one.name, "worse": row.other.name}
        differences = {
            key: part_of(
                Difference, pair, relation=pair.outcome, winner=winners.get(pair.outcome), verdict=pair.stop_test
            )
            for key, pair in row.differences.items()
        }
        listed.append(PairResult(one=row.one.name, other=row.other.name, differences=differences))
    return listed


def comparison(tally: Tally, compared: Sequence[Contender], results: Results) -> ComparedResult | None:
    relation = relate_contenders(tally, compared, results)
    if relation is None:
        return None
    return ComparedResult(preliminary=relation.is_preliminary, fragility=relation.fragility)


def pair_statuses(standings: "Sequence[PairStanding]") -> list[PairStatus]:
    return [part_of(PairStatus, pair.test, one=pair.one, other=pair.other, verdict=pair.verdict) for pair in standings]


def arms(compared: "Sequence[Arm]") -> list[ArmResult]:
    return [part_of(ArmResult, arm) for arm in compared]


def model_uses(logs: Mapping[str, PlayerLog], kinds: Mapping[str, PlayerKind]) -> list[ModelUse]:
    """Return the calls, tokens and time of each model player's decisions."""
    return [
        part_of(
            ModelUse,
            log,
            name=name,
            kind=kinds.get(name, "model"),
            usd=None if log.picodollars is None else log.picodollars / PICO,
            usd_billed=None if log.billed is None else log.billed / PICO,
            usd_assumed=None if log.billed is None else log.likely / PICO,
        )
        for name, log in logs.items()
    ]


def output_schema() -> dict[str, Any]:
    """Return the JSON Schema of the objects that core commands print with `--json`."""
    documents = [each for each in Document.__subclasses__() if each.__module__ == __name__]
    _, schema = models_json_schema([(document, "serialization") for document in documents], title="dubito --json")
    return {**schema, "anyOf": [{"$ref": f"#/$defs/{document.__name__}"} for document in documents]}


if __name__ == "__main__":
    print(json.dumps(output_schema(), indent=2))
