"""`dubito prompts test`: prompts put to a model at recorded positions, before games are paid for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dubito.cli.asking import asking_options, calls_of, progress_of, resumable, settings_of_model, watch_of
from dubito.cli.options import game_option
from dubito.cli.prompts.trial_report import print_trial
from dubito.errors import UsageError
from dubito.experiment.resolve import check_asking, price_of_model
from dubito.game import Spec
from dubito.game.find import find_game
from dubito.llm.prompts import load_prompt
from dubito.llm.settings import ModelSettings
from dubito.workshop.recordings import read_folder, shipped
from dubito.workshop.trial import TrialEntry, TrialMeans, ask, default_folder


@click.command()
@click.argument("name")
@click.option("--model", required=True, metavar="M", help="openai:MODEL, anthropic:MODEL or house:MODEL.")
@click.option("--against", metavar="OTHER", help="A second prompt; the same one shows what chance alone changes.")
@click.option("--positions", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: the project's own]")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/prompts-NAME-DIGEST]")
@asking_options
@game_option
def test(
    name: str,
    model: str,
    against: str | None,
    positions: Path | None,
    output: Path | None,
    quiet: bool,
    game: str,
    **flags: Any,
) -> None:
    """Put prompt NAME to a model at recorded positions, and say what it answers, how well, and at what cost.

    No game is played and no fallback answers. The same command again costs nothing.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    calls = calls_of(given)
    spec = find_game(game, Path.cwd())
    settings = settings_of_model(model, given, spec)
    entries = _entries([name] if against is None else [name, against], settings, spec)
    found = read_folder(_folder(spec) if positions is None else positions, spec)
    check_asking(model, settings, spec, calls)
    folder = output or default_folder(entries, found)
    means = TrialMeans(calls, watch_of(quiet), progress_of(len(found) * len(entries), quiet))
    with resumable(folder):
        done = ask(entries, found, folder, means)
    print_trial(entries, list(found), done, price_of_model(settings, calls))


def _folder(game: Spec) -> Path:
    """The project's own positions of a game."""
    folder = shipped(game)
    if not folder.is_dir():
        raise UsageError(
            f"there are no positions of {game.name} in {folder}: take some with `dubito prompts record`, and name "
            "their folder with --positions"
        )
    return folder


def _entries(names: Sequence[str], settings: ModelSettings, game: Spec) -> list[TrialEntry]:
    """The prompts to be asked. Of one given twice the second is a twin: it gets answers of its own."""
    entries: list[TrialEntry] = []
    for name in names:
        prompt = load_prompt(name, Path.cwd(), game)
        own = settings
        if any(prompt.digest == entry.prompt.digest for entry in entries):
            own = settings.model_copy(update={"sample": 1})
        shown = name if all(name != entry.name for entry in entries) else f"{name} again"
        entries.append(TrialEntry(shown, prompt, own))
    return entries
