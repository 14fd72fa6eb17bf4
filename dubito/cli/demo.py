"""`dubito demo`: a complete run of fake models against bots, without a key or a network."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.options import game_option, game_words
from dubito.cli.output import note, say
from dubito.cli.run import play_with_progress
from dubito.cli.summary import exit_code, print_end, print_report_path, print_tables
from dubito.commands import build_command
from dubito.errors import UsageError
from dubito.experiment import run as runner
from dubito.experiment.call_options import call_options
from dubito.experiment.config import parse_config
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import providers, resolve
from dubito.experiment.run import RunResult
from dubito.experiment.saved_config import config_to_store
from dubito.game import Game
from dubito.game.find import DUBITO, Registry, find_bots
from dubito.stats.ranking import ranking

_LOCAL: Final = "local:smollm2"


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for both runs. An interrupted demo resumes. [default: runs/demo-N]",
)
@game_option
@click.option("--local", is_flag=True, help="Run a real model on this machine instead (takes a few minutes).")
@click.option("--tables", is_flag=True, help="Print all tables of both runs, and write both reports.")
def demo(output: Path | None, game: Game, local: bool, tables: bool) -> int:
    """Play fake models against bots over HTTP, then from the cache.

    Two model players call the built-in server instead of a provider. The second run is offline and has the same
    results. With --local, a small language model is downloaded once and plays two games against three bots.
    """
    here = Path.cwd()
    number = next(number for number in count(1) if not Path(f"runs/demo-{number}").exists())
    folder = output or Path(f"runs/demo-{number}")
    registry = find_bots(here, game.name)
    flags = [*game_words(game), *["--local"] * local, "--output", folder]
    same_command = build_command("demo", *flags)
    if local:
        return _play_local(registry, here, folder, same_command, tables)
    config = _config(registry)
    say("These are fake models: a built-in server on this machine answers over HTTP.")
    first, new = _run(registry, here, folder / "live", folder / "cache", config, offline=False)
    if code := exit_code(first, same_command):
        return code
    print_tables(first, sizes=False) if tables else print_end(first)
    print_report_path(first.folder, new)
    say("\nThe same run again, offline: every reply comes from the cache.")
    second, new = _run(registry, here, folder / "offline", folder / "cache", config, offline=True)
    if code := exit_code(second, same_command):
        return code
    if tables:
        print_tables(second, sizes=False)
        print_report_path(second.folder, new)
    if first.results_digest != second.results_digest:
        note("dubito: the results digests of the two runs differ")
        return 1
    say("Identical: both runs have the same results digest.")
    calls, more_calls = (sum(log.calls for log in run.models.values()) for run in (first, second))
    say(f"model calls: {calls:,} in the first run, {more_calls:,} in the second")
    if not tables:
        say(f"results digest: {second.results_digest}\n")
        say(f"all tables: {build_command('demo', *flags, '--tables')}")
    say(f"the cache: {build_command('cache', 'stats', '--cache', folder / 'cache')}")
    names = [row.name for row in ranking(first.tally, first.experiment.names, first.game.results)]
    best_bot = next(name for name in names if name not in first.models)
    with_model = ["--contenders", f"openai:MODEL,{best_bot}", "--games", 20]
    say("\nTo play a real model with your key (or ANTHROPIC_API_KEY and anthropic:MODEL):")
    say(f"  OPENAI_API_KEY=... {build_command('run', *game_words(game), *with_model)}")
    if game.name == DUBITO and Path("examples/models.yaml").is_file():
        say(f"or edit examples/models.yaml and run\n  {build_command('run', 'examples/models.yaml')}")
    return 0


def _play_local(registry: Registry, here: Path, folder: Path, same_command: str, tables: bool) -> int:
    if _LOCAL.partition(":")[0] not in providers():
        raise UsageError("--local needs the `local` plugin, which is not in dubito/plugins")
    config = {**_config(registry), "games": 2, "contenders": []}
    bots = config.get("bots") or [bot.name for bot in registry.hand_written()]
    config["bots"] = [*bots[:3], _LOCAL]
    run, new = _run(registry, here, folder / "local", folder / "cache", config, offline=False)
    if code := exit_code(run, same_command):
        return code
    print_tables(run, sizes=False) if tables else print_end(run)
    print_report_path(run.folder, new)
    return 0


def _config(registry: Registry) -> dict[str, Any]:
    """Return the game's demo config, or a default one with all bots and two fake models that answer at random."""
    if registry.game.demo:
        return {"game": registry.game.name, **registry.game.demo}
    bots = {"OpenAI protocol": "OpenAIBot", "Anthropic protocol": "AnthropicBot"}
    contenders = [
        {"bot": bot, "name": f"random ({name})", "model": "house-random", "base_url": "house"}
        for name, bot in bots.items()
    ]
    return {"game": registry.game.name, "games": 40, "contenders": contenders}


def _run(
    registry: Registry, here: Path, folder: Path, cache: Path, settings: Mapping[str, Any], offline: bool
) -> tuple[RunResult, bool]:
    config = parse_config({**settings, "cache": str(cache), "offline": offline, "output": str(folder)}, "the demo")
    calls = call_options(config, here)
    run = check_models(resolve(config, registry), calls)
    finished = runner.find_finished_run(run, folder)
    if finished:
        return finished, False
    stored = config_to_store(config, run.experiment)
    return play_with_progress(run, folder, calls, stored, workers=1, quiet=False), True
