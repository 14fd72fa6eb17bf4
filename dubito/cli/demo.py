"""`dubito demo`: models against bots, the whole way through, with no key and no network."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final

import click

from dubito.cli.options import game_option
from dubito.cli.output import note, say
from dubito.cli.run import play_and_keep
from dubito.cli.summary import command_called, exit_code, print_end, print_tables, say_report
from dubito.errors import UsageError
from dubito.experiment import run as runner
from dubito.experiment.config import parse_config
from dubito.experiment.resolve import PROVIDERS, call_options, check_models, resolve
from dubito.experiment.run import RunResult
from dubito.game import Game
from dubito.game.find import DUBITO, Registry, find_bots
from dubito.stats.ranking import ranking

_LOCAL: Final = "local:smollm2"


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for both runs; resumes a demo that was stopped. [default: runs/demo-N]",
)
@game_option
@click.option("--local", is_flag=True, help="Play a real model on this machine instead, for about two minutes.")
@click.option("--tables", is_flag=True, help="Print all tables of both runs, and write the second's report too.")
def demo(output: Path | None, game: Game, local: bool, tables: bool) -> int:
    """Play fake models against bots over HTTP, then from the cache.

    Two model players ask the built-in server, which answers in place of a provider. The second run is offline and has
    the same results. With --local, a small language model plays two games against three bots; it is downloaded
    once.
    """
    here = Path.cwd()
    folder = output or _free(here / "runs")
    registry = find_bots(here, game.name)
    of_game = "" if game.name == DUBITO else f" --game {quote(game.name)}"
    again = f"{command_called()} demo{of_game}{' --local' * local} --output {quote(str(folder))}"
    if local:
        return _play_local(registry, here, folder, again, tables)
    said = _config(registry)
    say("Stand-ins, no language models: the embedded house answers over HTTP, nothing\nleaves this machine.")
    first, new = _run(registry, here, folder / "live", folder / "cache", said, offline=False)
    if code := exit_code(first, f"`{again}`"):
        return code
    print_tables(first, sizes=False) if tables else print_end(first)
    say_report(first.folder, new)
    say("\nThen offline: every reply comes from the cache, no call is made.")
    second, new = _run(registry, here, folder / "offline", folder / "cache", said, offline=True)
    if code := exit_code(second, f"`{again}`"):
        return code
    if tables:
        print_tables(second, sizes=False)
        say_report(second.folder, new)
    if first.results_digest != second.results_digest:
        note("dubito: the two results digests differ")
        return 1
    say("Identical: both runs have the same results digest.")
    say(f"calls: {_calls(first):,} in the first, {_calls(second):,} in the second")
    if not tables:
        say(f"results digest: {second.results_digest}\n")
        say(f"all tables:  {again} --tables")
    say(f"the replies: {command_called()} cache stats --cache {quote(str(folder / 'cache'))}")
    say(_next(first))
    return 0


def _play_local(registry: Registry, here: Path, folder: Path, again: str, tables: bool) -> int:
    if _LOCAL.partition(":")[0] not in PROVIDERS:
        raise UsageError("--local needs the plugin local, which is not in dubito/plugins")
    said = {**_config(registry), "games": 2, "contenders": []}
    bots = said.get("bots") or [bot.name for bot in registry.hand_written()]
    said["bots"] = [*bots[:3], _LOCAL]
    run, new = _run(registry, here, folder / "local", folder / "cache", said, offline=False)
    if code := exit_code(run, f"`{again}`"):
        return code
    print_tables(run, sizes=False) if tables else print_end(run)
    say_report(run.folder, new)
    return 0


def _next(run: RunResult) -> str:
    best = next(
        row.name for row in ranking(run.tally, run.experiment.names, run.game.results) if row.name not in run.models
    )
    of_game = "" if run.game.name == DUBITO else f" --game {run.game.name}"
    said = f"""
With a key of your own (or ANTHROPIC_API_KEY and anthropic:MODEL), try
  OPENAI_API_KEY=... {command_called()} run{of_game} --contenders openai:MODEL,{quote(best)} --games 20"""
    if run.game.name != DUBITO or not Path("examples/models.yaml").is_file():
        return said
    return f"{said}\nor change a line of examples/models.yaml and `{command_called()} run examples/models.yaml`."


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


def _run(
    registry: Registry, here: Path, folder: Path, cache: Path, said: Mapping[str, Any], offline: bool
) -> tuple[RunResult, bool]:
    config = parse_config({**said, "cache": str(cache), "offline": offline, "output": str(folder)}, "the demo")
    calls = call_options(config, here)
    experiment = check_models(resolve(config, registry), registry, calls)
    kept = runner.find_finished_run(experiment, registry, folder)
    return kept or play_and_keep(experiment, registry, folder, calls, workers=1, quiet=False), kept is None


def _calls(run: RunResult) -> int:
    return sum(log.calls for log in run.models.values())
