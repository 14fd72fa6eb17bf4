"""`dubito forge`: let a model write a bot, and improve it over several rounds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dubito.cli.call_options import (
    asking_options,
    limited_call_options,
    model_progress,
    settings_of_model,
    suggest_resume,
)
from dubito.cli.options import allow_unsandboxed_option, game_option, given_permits, json_option
from dubito.cli.output import note, print_document, say, show
from dubito.errors import UsageError, one_line
from dubito.experiment.model_players import check_model_calls
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots
from dubito.llm.protocols import find_protocol
from dubito.plugins.forge.compare import compare
from dubito.plugins.forge.documents import build_document
from dubito.plugins.forge.forge import Forged, Order
from dubito.plugins.forge.forge import forge as run_forge
from dubito.plugins.forge.pages import contestants_table, growth_table, rounds_table, write_forge_pages
from dubito.plugins.forge.play import Bench
from dubito.report.tables import cell_text, difference_kind
from dubito.store.spend import dollars


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--rounds", type=click.IntRange(1, 50), default=3, show_default=True, help="Number of files it writes.")
@click.option("--training", type=click.IntRange(2), default=100, show_default=True, metavar="DEALS",
              help="Deals that each file plays, and the model learns from.")  # fmt: skip
@click.option("--held-out", type=click.IntRange(2), default=200, show_default=True, metavar="DEALS",
              help="Other deals, on which the best round is chosen.")  # fmt: skip
@click.option("--compare", "compared", type=click.IntRange(2), metavar="DEALS",
              help="Then play these deals with the model itself, its bots, and its bots as its advisers.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/forge-DIGEST]")
@click.option("--workers", type=click.IntRange(1), help="Number of games at the same time. [default: one per core]")
@json_option
@asking_options
@allow_unsandboxed_option
@game_option
def forge(
    model: str,
    rounds: int,
    training: int,
    held_out: int,
    compared: int | None,
    output: Path | None,
    workers: int | None,
    as_json: bool,
    quiet: bool,
    game: Game,
    **flags: Any,
) -> int:
    """Let MODEL write a bot as a Python file, and improve it.

    MODEL is such as openai:MODEL. Each file runs as a program in the sandbox. The same command resumes, and costs
    nothing when it is repeated. See the guide forge.md.
    """
    calls = limited_call_options(flags)
    calls = replace(calls, permits=replace(given_permits(), trust=True))
    settings = settings_of_model(model, flags, game)
    if not find_protocol(settings.api).writes_text:
        raise UsageError(
            f"{one_line(model)}: this API returns decisions, but a bot is a text", hint="choose another api"
        )
    check_model_calls(model, settings, game, calls)
    order = Order(model, settings, rounds, training, held_out)
    bench = Bench(find_bots(Path.cwd(), game.name), calls, workers, quiet)
    folder = output or order.folder(game.name)
    with suggest_resume(folder, flags=True):
        forged = run_forge(order, bench, folder, model_progress(quiet), note)
        comparison = None if compared is None else compare(order, bench, forged, compared)
    if as_json:
        measure = game.results.measures[0].name
        print_document(build_document(order, forged, comparison, game.name, bench.reference, measure))
    else:
        _print_forged(forged, bench, order)
        if comparison is not None:
            show(contestants_table(comparison, bench), growth_table(comparison, bench))
            say(f"run: {comparison.run}")
    index = write_forge_pages(forged, comparison, bench, order)
    if not as_json:
        say(f"pages: {index}")
    return 0 if forged.scores else 1


def _print_forged(forged: Forged, bench: Bench, order: Order) -> None:
    difference = difference_kind(bench.game.results.measures[0])
    show(rounds_table(forged, bench, order))
    for score in filter(lambda one: one.is_overfitted, forged.scores):
        excess = cell_text(score.excess, difference)
        say(f"overfitted: round {score.round.number} gains {excess} more in training than on held-out deals")
    spent = forged.spent
    say(f"calls: {spent.calls:,}, tokens: {spent.tokens:,}, cost {dollars(spent.usd)}")
    if (best := forged.chosen) is None:
        say("no round wrote a bot that can play")
        return
    lead = "" if forged.lead is None else f", {cell_text(forged.lead, difference)} over the second"
    say(f"chosen: round {best.number}, the best on {order.held_out} held-out deals that no round saw{lead}")
    place = "/".join(["bots/manual", *([] if bench.game.name == DUBITO else [bench.game.folder]), "NAME"])
    say(f"its file: {forged.folder / best.name / 'bot.py'}; copy its folder to {place} to play with it as NAME")
