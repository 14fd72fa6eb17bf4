"""`dubito demo`: models against bots, the whole way through, with no key and no network."""

from collections import Counter
from pathlib import Path
from shlex import quote
from textwrap import fill
from typing import Any

import click

from dubito.cli.calls import call_options
from dubito.cli.options import game_option
from dubito.cli.output import note, say, table
from dubito.cli.run import play_and_keep
from dubito.cli.summary import exit_code, print_summary, say_report
from dubito.experiment import run as runner
from dubito.experiment.config import check
from dubito.experiment.experiment import labelled_by
from dubito.experiment.resolve import checked_models, resolve
from dubito.experiment.run import Played
from dubito.game import FALLBACK_OUTCOME, Game
from dubito.game.find import DUBITO, Registry, find_bots
from dubito.report.overview import comparison_in_words
from dubito.report.run_tables import kind_of
from dubito.report.tables import cell_text
from dubito.stats.ranking import order_of, ranking


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for both runs; resumes a demo that was stopped. [default: runs/demo-N]",
)
@game_option
@click.option("--tables", is_flag=True, help="Print all tables of both runs, and write the second's report too.")
def demo(output: Path | None, game: Game, tables: bool) -> int:
    """Play two model players against hand-written bots over HTTP, with the embedded house server in place of
    a provider (a stand-in, not a language model); then the same again offline, from the cache."""
    here = Path.cwd()
    folder = output or _free(here / "runs")
    registry = find_bots(here, game.name)
    of_game = "" if game.name == DUBITO else f" --game {quote(game.name)}"
    again = f"dubito demo{of_game} --output {quote(str(folder))}"
    say("Stand-ins, no language models: the embedded house answers over HTTP, nothing\nleaves this machine.")
    first, new = _run(registry, here, folder / "live", folder / "cache", offline=False)
    if code := exit_code(first, f"`{again}`"):
        return code
    _tell(first, tables)
    say_report(first.folder, new)
    say("\nThen offline: every reply comes from the cache, no call is made.")
    second, new = _run(registry, here, folder / "offline", folder / "cache", offline=True)
    if code := exit_code(second, f"`{again}`"):
        return code
    if tables:
        _tell(second, tables)
        say_report(second.folder, new)
    if first.results_digest != second.results_digest:
        note("dubito: the two results digests differ")
        return 1
    say("Identical: both runs have the same results digest.")
    say(f"calls: {_calls(first):,} in the first, {_calls(second):,} in the second")
    if not tables:
        say(f"results digest: {second.results_digest}\n")
        say(f"all tables:  {again} --tables")
    say(f"the replies: dubito cache stats --cache {quote(str(folder / 'cache'))}")
    say(_next(first))
    return 0


def _next(run: Played) -> str:
    best = next(
        row.name for row in ranking(run.tally, run.experiment.names, run.game.results) if row.name not in run.models
    )
    of_game = "" if run.game.name == DUBITO else f" --game {run.game.name}"
    said = f"""
With a key of your own (or ANTHROPIC_API_KEY and anthropic:MODEL), try
  OPENAI_API_KEY=... dubito run{of_game} --contenders openai:MODEL,{quote(best)} --games 20"""
    if run.game.name != DUBITO:
        return said
    return f"{said}\nor change a line of examples/models.yaml and `dubito run examples/models.yaml`."


def _free(runs: Path) -> Path:
    number = 1
    while (runs / f"demo-{number}").exists():
        number += 1
    return (runs / f"demo-{number}").relative_to(Path.cwd())


def _config(registry: Registry) -> dict[str, Any]:
    """The game's own demo; of a game without one, all its bots, and two model players that answer by chance."""
    if registry.game.demo:
        return {"game": registry.game.name, **registry.game.demo}
    bots = {"by OpenAI's protocol": "OpenAIBot", "by Anthropic's": "AnthropicBot"}
    contenders = [
        {"bot": bot, "name": f"chance {name}", "model": "house-random", "base_url": "house"}
        for name, bot in bots.items()
    ]
    return {"game": registry.game.name, "games": 40, "contenders": contenders}


def _run(registry: Registry, here: Path, folder: Path, cache: Path, offline: bool) -> tuple[Played, bool]:
    config = check({**_config(registry), "cache": str(cache), "offline": offline, "output": str(folder)}, "the demo")
    calls = call_options(config, here)
    experiment = checked_models(resolve(config, registry), registry, calls)
    kept = runner.finished_run(experiment, registry, folder)
    return kept or play_and_keep(experiment, registry, folder, calls, workers=1, quiet=False), kept is None


def _tell(run: Played, tables: bool) -> None:
    """Who came to what, who is told apart from whom, and what fallbacks had a part in it."""
    if tables:
        print_summary(run, sizes=False)
        return
    results = run.game.results
    rows, first = ranking(run.tally, run.experiment.names, results), results.measures[0]
    order = order_of(run.tally, run.experiment.names, run.compared, results)
    cells = [
        [
            row.name,
            run.experiment.kinds[row.name],
            cell_text(order.rank(row.name), "count"),
            f"{row.games}",
            cell_text(row.rates[first.key], kind_of(first)),
        ]
        for row in rows
    ]
    rated = first.name if first.span else f"{first.name} %"
    table(f"{run.tally.games} games", ["player", "kind", "rank", "games", f"{rated} [95 % interval]"], cells)
    say(fill(results.meaning, 79))
    say(fill(comparison_in_words(order, labelled_by(run.experiment.kinds)), 79))
    say(_fallbacks(run))


def _fallbacks(run: Played) -> str:
    outcomes = Counter[str]()
    for log in run.models.values():
        outcomes.update(log.outcomes)
    causes = {
        outcome.removeprefix(FALLBACK_OUTCOME): count
        for outcome, count in sorted(outcomes.items())
        if outcome.startswith(FALLBACK_OUTCOME)
    }
    said = f" ({', '.join(f'{cause} {count}' for cause, count in causes.items())})" if causes else ""
    return f"fallbacks: {sum(causes.values())} of {outcomes.total():,} decisions of the stand-ins{said}"


def _calls(run: Played) -> int:
    return sum(log.calls for log in run.models.values())
