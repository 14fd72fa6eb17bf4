"""`dubito estimate`: the calls, tokens, cost and time of a run with models, before anything is spent."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from dubito.cli.options import config_options, games_path_option, json_option
from dubito.cli.output import note, print_document, say, table
from dubito.errors import UsageError
from dubito.experiment.config import parse_config, read_config
from dubito.experiment.estimate import Estimate as PlayerRanges
from dubito.experiment.estimate import Range, estimate_duration
from dubito.experiment.estimate import estimate as ranges_of
from dubito.experiment.experiment import describe_fake_models
from dubito.experiment.resolve import (
    call_options,
    check_models,
    end_of_model_warnings,
    model_specs,
    old_price_warnings,
    resolve,
)
from dubito.game.find import find_bots
from dubito.llm.limiter import format_duration
from dubito.llm.prices import PICO, dollars
from dubito.llm.settings import SHORT_FORM_SETTINGS
from dubito.report.documents import EstimateObject, PlayerEstimate


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--from", "runs", multiple=True, type=click.Path(path_type=Path), metavar="RUN",
              help="Use the figures of this run with the same models. Can be repeated.")  # fmt: skip
@click.option("--thoughts", default=500, show_default=True, type=click.IntRange(0),
              help="Reasoning tokens per answer, at most, if no run has figures.")  # fmt: skip
@games_path_option
@config_options("games", *SHORT_FORM_SETTINGS)
@json_option
def estimate(config: Path, runs: tuple[Path, ...], thoughts: int, as_json: bool, **flags: str | None) -> None:
    """Estimate the calls, tokens, cost and time of an experiment.

    No real model is called: a few games are played with fake models, or the figures are read from runs.
    """
    here = Path.cwd()
    checked = parse_config(read_config(config), str(config), flags)
    registry = find_bots(here, checked.game)
    options = call_options(checked.model_copy(update={"offline": True}), here)
    experiment = check_models(resolve(checked, registry), registry, options)
    if not model_specs(experiment, registry):
        raise UsageError(f"{config} has no model players, so it costs nothing")
    found = ranges_of(experiment, registry, options, runs, thoughts)
    today = datetime.now(UTC).date()
    for sentence in (
        *end_of_model_warnings(experiment, registry, today),
        *old_price_warnings(experiment, registry, options, today),
    ):
        note(sentence)
    if stand_ins := describe_fake_models({one.player: one.kind for one in found}):
        note(stand_ins)
    if as_json:
        print_document(_document(experiment.games, found, checked.in_flight))
    else:
        at_most = "at most " if experiment.stop else ""
        _print(f"{at_most}{experiment.games:,} games", found, checked.in_flight)
    note("The ranges cover the least and the most reasoning, caching and pricing. No model was called.")


def _print(games: str, found: Sequence[PlayerRanges], in_flight: int) -> None:
    headers = ["model player", "kind", "calls", "tokens in", "tokens out", "cost", "based on"]
    rows = []
    for one in found:
        cost = "no price" if one.picodollars is None else _range(one.picodollars, money=True)
        ranges = [_range(values) for values in (one.calls, one.tokens_in, one.tokens_out)]
        rows.append([one.player, one.kind, *ranges, cost, one.source])
    table(f"{games}; ranges are 95 % intervals", headers, rows)
    if in_all := _in_all(found):
        say(f"total: {_range(in_all, money=True)}")
    low, high = estimate_duration(found, in_flight)
    seconds = sorted({one.seconds for one in found})
    per_call = ", ".join(f"{a:g} to {b:g}" if a != b else f"{a:.2g}" for a, b in seconds)
    say(f"time: {format_duration(low)} to {format_duration(high)}, at {per_call} s per call, {in_flight} in flight")


def _in_all(found: Sequence[PlayerRanges]) -> Range | None:
    priced = [one.picodollars for one in found if one.picodollars is not None]
    return (sum(low for low, _ in priced), sum(high for _, high in priced)) if priced else None


def _document(games: int, found: Sequence[PlayerRanges], in_flight: int) -> EstimateObject:
    players = [
        PlayerEstimate(
            name=one.player,
            kind=one.kind,
            calls=one.calls,
            tokens_in=one.tokens_in,
            tokens_out=one.tokens_out,
            usd=_usd(one.picodollars),
            learned_from=one.source,
        )
        for one in found
    ]
    return EstimateObject(
        games=games, players=players, usd=_usd(_in_all(found)), seconds=estimate_duration(found, in_flight)
    )


def _usd(picodollars: Range | None) -> Range | None:
    return None if picodollars is None else (picodollars[0] / PICO, picodollars[1] / PICO)


def _range(values: Range, money: bool = False) -> str:
    low, high = (dollars(round(value)) if money else f"{value:,.0f}" for value in values)
    return f"{low} to {high}"
