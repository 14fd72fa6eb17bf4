"""`dubito estimate`: the calls, tokens, cost and time of a run with models, before anything is spent."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from dubito.cli.options import config_options, games_path_option, given_permits, json_option, program_options
from dubito.cli.output import note, print_document, say, table
from dubito.errors import UsageError, one_line
from dubito.experiment.call_options import call_options
from dubito.experiment.config import parse_config, read_config
from dubito.experiment.estimate import (
    NOTHING,
    Figure,
    describe_reach,
    estimate_duration,
    sum_figures,
    useful_in_flight,
)
from dubito.experiment.estimate import Estimate as PlayerFigures
from dubito.experiment.estimate import estimate as estimate_players
from dubito.experiment.experiment import describe_fake_models
from dubito.experiment.model_players import announced_ends, check_models, limit_paid_games, old_price_warnings
from dubito.experiment.power import POWER, DealsNeeded, estimate_deals
from dubito.experiment.resolve import resolve
from dubito.experiment.stored import open_recorded_run
from dubito.game import Results
from dubito.game.find import find_bots
from dubito.llm.limiter import format_duration
from dubito.model_settings import SHORT_FORM_SETTINGS
from dubito.report.documents import DealsNeededResult, EstimateObject, PlayerEstimate, TypicalUse
from dubito.store.spend import PICO, dollars


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--from", "runs", multiple=True, type=click.Path(path_type=Path), metavar="RUN",
              help="Base the estimate on this run with the same models. Can be repeated.")  # fmt: skip
@click.option("--thoughts", default=500, show_default=True, type=click.IntRange(0),
              help="Maximum reasoning tokens per answer, if not known from a run.")  # fmt: skip
@click.option("--detect", type=click.FloatRange(0, min_open=True), metavar="POINTS",
              help="Use as many deals as detect this difference, going by the pilot run in --from.")  # fmt: skip
@games_path_option
@program_options
@config_options("bots", "contenders", "games", *SHORT_FORM_SETTINGS)
@json_option
def estimate(
    config: Path, runs: tuple[Path, ...], thoughts: int, detect: float | None, as_json: bool, **flags: str | None
) -> None:
    """Estimate the calls, tokens, cost and time of an experiment.

    No real model is called: a few games are played with fake models, or the figures are read from runs. With --detect,
    the number of games is the one that detects a difference between any two contenders with a probability of 0.8.
    """
    here = Path.cwd()
    checked = parse_config(read_config(config), str(config), flags)
    if checked.sources.translation:
        note(f"note: {checked.sources.translation}")
    registry = find_bots(here, checked.game)
    options = call_options(checked.model_copy(update={"offline": True}), here, given_permits())
    run = limit_paid_games(check_models(resolve(checked, registry), options), checked, options)
    needed = None
    if detect is not None:
        if not runs:
            raise UsageError("--detect needs a pilot run of the same contenders", hint="add --from RUN")
        with open_recorded_run(runs[0]) as pilot:
            needed = estimate_deals(detect, run.experiment, pilot)
        games = round(needed.deals.typical) * run.experiment.games_per_deal
        run = replace(run, experiment=replace(run.experiment, games=games))
        if not as_json:
            say(_describe_needed(needed, games, runs[0], run.game.results))
    if not run.models:
        if needed is None:
            raise UsageError(f"{config} has no model players, so it costs nothing")
        if as_json:
            print_document(_document(run.experiment.games, [], checked.in_flight, None, needed))
        return
    found = estimate_players(run, options, runs, thoughts)
    experiment, today = run.experiment, datetime.now(UTC).date()
    fake_models = describe_fake_models({one.player: one.kind for one in found})
    notes = [*announced_ends(run, today), *old_price_warnings(run, options, today), fake_models]
    for sentence in filter(None, notes):
        note(sentence)
    reach = describe_reach(found, experiment, options.caps)
    if as_json:
        print_document(_document(experiment.games, found, checked.in_flight, reach, needed))
    else:
        at_most = "at most " if experiment.stop else ""
        _print(f"{at_most}{experiment.games:,} games", found, checked.in_flight)
    if reach and not as_json:
        note(reach)
    if (useful := useful_in_flight(found)) < checked.in_flight:
        note(f"One process can use about {useful} calls in flight at most, so a higher in_flight does not help.")
    note("The ranges cover best and worst cases of reasoning, caching and pricing. No model was called.")


def _describe_needed(needed: DealsNeeded, games: int, pilot: Path, results: Results) -> str:
    measure, deals = results.measures[0], needed.deals
    points = f"{needed.difference:g}{'' if measure.span else ' points'} of {measure.title}"
    holm = "" if needed.pairs == 1 else f", with Holm's method for {needed.pairs} pairs"
    which = ", the most variable effect of a condition" if needed.effects else ""
    return (
        f"To detect a difference of {points} with a probability of {POWER}{holm}: {deals.typical:,.0f} deals "
        f"({games:,} games; 95 % range {deals.low:,.0f} to {deals.high:,.0f} deals). This is for "
        f"{' and '.join(map(one_line, needed.pair))}{which}, from {needed.pilot_deals:,} deals of "
        f"{one_line(str(pilot))}."
    )


def _print(games: str, found: Sequence[PlayerFigures], in_flight: int) -> None:
    headers = ["model player", "kind", "calls", "tokens in", "tokens out", "cost", "based on"]
    rows = []
    for one in found:
        cost = "no price" if one.picodollars is None else _format_figure(one.picodollars, _money)
        counts = [_format_figure(figure, "{:,.0f}".format) for figure in (one.calls, one.tokens_in, one.tokens_out)]
        rows.append([one.player, one.kind, *counts, cost, one.source])
    table(f"{games}; typical values, with 95 % ranges in brackets", headers, rows)
    if total := _total_cost(found):
        say(f"total: {_format_figure(total, _money)}")
    per_call = ", ".join(_format_figure(figure, "{:.2g}".format) for figure in sorted({one.seconds for one in found}))
    duration = _format_figure(estimate_duration(found, in_flight), format_duration)
    if batches := max(one.batches for one in found):
        say(f"time: {duration}, for about {batches} batches, each of which waits for the one before it")
    else:
        local = "; servers on this machine answer one call after another" if any(one.is_local for one in found) else ""
        say(f"time: {duration}, at {per_call} s per call, {in_flight} in flight{local}")


def _total_cost(found: Sequence[PlayerFigures]) -> Figure | None:
    priced = [one.picodollars for one in found if one.picodollars is not None]
    return sum_figures(priced) if priced else None


def _document(
    games: int, found: Sequence[PlayerFigures], in_flight: int, reach: str | None, needed: DealsNeeded | None
) -> EstimateObject:
    players = []
    for one in found:
        usd = one.picodollars and one.picodollars.rescale(1 / PICO)
        typical = TypicalUse(
            calls=one.calls.typical,
            tokens_in=one.tokens_in.typical,
            tokens_out=one.tokens_out.typical,
            usd=usd and usd.typical,
        )
        players.append(
            PlayerEstimate(
                name=one.player,
                kind=one.kind,
                calls=one.calls.range,
                tokens_in=one.tokens_in.range,
                tokens_out=one.tokens_out.range,
                usd=usd and usd.range,
                learned_from=one.source,
                typical=typical,
            )
        )
    total = _total_cost(found)
    usd, duration = total and total.rescale(1 / PICO), estimate_duration(found, in_flight) if found else NOTHING
    detected = (
        None
        if needed is None
        else DealsNeededResult(
            **asdict(needed) | {"deals": needed.deals.typical}, range=(needed.deals.low, needed.deals.high), power=POWER
        )
    )
    return EstimateObject(
        games=games,
        players=players,
        usd=usd and usd.range,
        seconds=duration.range,
        typical_usd=usd and usd.typical,
        typical_seconds=duration.typical,
        batches=max((one.batches for one in found), default=0),
        reach=reach,
        needed=detected,
    )


def _money(picodollars: float) -> str:
    return dollars(round(picodollars))


def _format_figure(figure: Figure, write: Callable[[float], str]) -> str:
    """Return the typical value, followed by the range unless it is a single value."""
    low, typical, high = map(write, figure)
    return typical if low == high else f"{typical} ({low} to {high})"
