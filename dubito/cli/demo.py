"""`dubito demo`: models against bots, the whole way through, with no key and no network."""

from pathlib import Path
from shlex import quote
from typing import Any

import click

from dubito.cli.output import note, say
from dubito.cli.run import call_options, play, say_report, verdict
from dubito.cli.summary import print_summary
from dubito.experiment import runner
from dubito.experiment.config import check, resolve
from dubito.experiment.models import checked_models
from dubito.experiment.runner import Run
from dubito.registry import Registry, find_bots

_CONFIG: dict[str, Any] = {
    "games": 80,
    "table_sizes": [4],
    "bots": ["StefaBot", "UsualBot", "RandomBoi"],
    "contenders": [
        {"bot": "OpenAIBot", "name": "sharp by OpenAI's protocol", "model": "house-sharp", "base_url": "house"},
        {"bot": "AnthropicBot", "name": "honest by Anthropic's", "model": "house-honest", "base_url": "house"},
    ],
}

_NEXT = """
With a key of your own, the next line would be one of these:
  OPENAI_API_KEY=... dubito run --bots StefaBot,UsualBot,ClaudeBot --contenders openai:MODEL,ClaudeBot --games 20
  ANTHROPIC_API_KEY=... dubito run --bots StefaBot,UsualBot,ClaudeBot --contenders anthropic:MODEL,ClaudeBot --games 20
or change a line of examples/models.yaml and `dubito run examples/models.yaml`."""


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for both runs; goes on where a demo was stopped. [default: runs/demo-N]",
)
def demo(output: Path | None) -> int:
    """Two model players against three hand-written bots, asked over HTTP of the embedded house server, which is
    no language model but a stand-in; then the same again offline, from the cache."""
    here = Path.cwd()
    folder = output or _free(here / "runs")
    registry, goes_on = find_bots(here), f"`dubito demo --output {quote(str(folder))}`"
    say("First over HTTP: the house server answers, nothing leaves this machine.")
    first = _run(registry, here, folder, "live", offline=False)
    if code := verdict(first, goes_on):
        return code
    say("\nThen offline: every reply comes from the cache, no call is made.")
    second = _run(registry, here, folder, "offline", offline=True)
    if code := verdict(second, goes_on):
        return code
    if first.results_digest != second.results_digest:
        note("dubito: the two results digests differ")
        return 1
    say(f"Both runs have the same results digest; the second made {_calls(second)} calls, the first {_calls(first)}.")
    say(_NEXT)
    return 0


def _free(runs: Path) -> Path:
    """The first demo folder that is not there yet."""
    number = 1
    while (runs / f"demo-{number}").exists():
        number += 1
    return (runs / f"demo-{number}").relative_to(Path.cwd())


def _run(registry: Registry, here: Path, folder: Path, name: str, offline: bool) -> Run:
    config = check(_CONFIG | {"cache": str(folder / "cache"), "offline": offline}, "the demo")
    calls = call_options(config, here)
    experiment = checked_models(resolve(config, registry), registry, calls)
    kept = runner.finished(experiment, registry, folder / name)
    run = kept or play(experiment, registry, folder / name, calls, workers=1, quiet=False)
    print_summary(run, sizes=False)
    if run.tally.games:
        say_report(folder / name, registry, new=kept is None)
    return run


def _calls(run: Run) -> int:
    return sum(log.calls for log in run.models.values())
