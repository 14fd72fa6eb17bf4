"""`dubito prompts test`: prompts put to a model at recorded positions, before games are paid for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from dubito.cli.options import game_option
from dubito.cli.output import note
from dubito.cli.prompts.options import game_of
from dubito.cli.prompts.trial_report import print_trial
from dubito.cli.run import call_options, caps_of
from dubito.errors import RunStopped, UsageError, one_line, suggestion
from dubito.experiment.config import check
from dubito.experiment.model_checks import CallOptions, check_house, check_surcharges, price_of_model
from dubito.experiment.resolve import PROVIDERS
from dubito.experiment.watch import Watch
from dubito.game import Spec
from dubito.llm.prompts import load_prompt
from dubito.llm.settings import ModelSettings, account_of, check_settings, key_of
from dubito.registry import find_bots
from dubito.workshop.recorded import read_folder, shipped
from dubito.workshop.trial import TrialEntry, TrialMeans, ask, default_folder
from dubito.yaml_file import from_yaml


@click.command()
@click.argument("name")
@click.option("--model", required=True, metavar="M", help="openai:MODEL, anthropic:MODEL or house:MODEL.")
@click.option("--against", metavar="OTHER", help="A second prompt; the same one shows what chance alone changes.")
@click.option("--positions", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: the project's own]")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/prompts-NAME-DIGEST]")
@click.option("--api", metavar="API", help="responses, chat or messages. [default: the provider's]")
@click.option("--base-url", metavar="URL", help="Another server, as in a config; `env`: as the variable says.")
@click.option("--api-key-env", metavar="NAME", help="Environment variable of its key.")
@click.option("--parameters", metavar="YAML", help="Sent as they are, such as '{reasoning: {effort: low}}'.")
@click.option("--max-output", type=int, metavar="N", help="Most tokens of a reply. [default: 8192]")
@click.option("--reasks", type=int, metavar="N", help="Times an unusable reply is asked for again. [default: 1]")
@click.option("--in-flight", type=int, metavar="N", help="Questions at once. [default: 32]")
@click.option("--budget", metavar="usd=N,calls=N,tokens=N", help="Most it may use up. [default: no cap]")
@click.option("--prices", metavar="FILE", help="Prices of models, over the list prices. [default: none]")
@click.option("--preflight/--no-preflight", default=None, help="Ask the model once first. [default: preflight]")
@click.option("--cache", metavar="FOLDER", help="Replies of models, shared with runs. [default: cache]")
@click.option("--offline/--no-offline", default=None, help="Make no call: every reply must be in the cache.")
@click.option("--quiet", is_flag=True, help="No progress.")
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
) -> int:
    """Put prompt NAME to a model at recorded positions, and say what it answers, how well, and at what cost.

    No game is played and no fallback answers. The same command again costs nothing.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    calls = calls_of(given)
    spec = game_of(game)
    settings = settings_of_model(model, given, spec)
    entries = _entries([name] if against is None else [name, against], settings, spec)
    found = read_folder(_folder(spec) if positions is None else positions, spec)
    check_model(model, settings, calls, spec)
    folder = output or default_folder(entries, found)
    means = TrialMeans(calls, watch_of(quiet), progress_of(len(found) * len(entries), quiet))
    kept = f"what was answered is kept in {folder}, and the same command goes on"
    try:
        done = ask(entries, found, folder, means)
    except RunStopped as error:
        raise RunStopped(f"{error}; {kept}") from None
    except KeyboardInterrupt:
        note(f"dubito: stopped by Ctrl-C; {kept}")
        return 130
    print_trial(entries, list(found), done, price_of_model(settings, calls))
    return 0


def _folder(game: Spec) -> Path:
    """The project's own positions of a game."""
    folder = shipped(game)
    if not folder.is_dir():
        raise UsageError(
            f"there are no positions of {game.name} in {folder}: take some with `dubito prompts record`, and name "
            "their folder with --positions"
        )
    return folder


def calls_of(given: dict[str, Any]) -> CallOptions:
    """What the flags say of calls, checked as a config's keys are."""
    keys = ("in_flight", "prices", "preflight", "cache", "offline")
    said = {key: given[key] for key in keys if key in given}
    if "budget" in given:
        said["budget"] = caps_of(given["budget"])
    return call_options(check({}, "the command", said), Path.cwd())


def _value(text: str) -> object:
    """What a flag's text is in YAML: a number, a mapping; the text itself where it is nothing else."""
    try:
        value = from_yaml(text, "the flag")
    except UsageError:
        return text
    return text if value is None else value


def settings_of_model(model: str, given: dict[str, Any], game: Spec) -> ModelSettings:
    """The settings of `provider:MODEL` with the flags' over them; raises UsageError."""
    provider, colon, named = model.partition(":")
    if not colon or provider not in PROVIDERS:
        hint = suggestion(provider, PROVIDERS)
        raise UsageError(f"--model {one_line(model)!r} names no provider: say it as in openai:MODEL; {hint}")
    entry = dict(PROVIDERS[provider])
    face: Any = find_bots(Path.cwd(), game.name).find(entry.pop("bot")).cls
    settings: dict[str, Any] = {"model": named, **face.defaults, **entry}
    keys = ("api", "base_url", "api_key_env", "max_output", "reasks")
    settings |= {key: given[key] for key in keys if key in given}
    if "parameters" in given:
        settings["parameters"] = _value(given["parameters"])
    return check_settings("--model", settings)


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


def check_model(model: str, settings: ModelSettings, calls: CallOptions, game: Spec) -> None:
    """Refuse what would stop the trial at its first call."""
    check_house("--model", settings, game)
    if not calls.offline:
        key_of(account_of(settings), model)
    if calls.caps.usd is not None and price_of_model(settings, calls) is None:
        raise UsageError(f"--budget usd needs a price of {one_line(settings.model)!r}, and there is none: see --prices")
    if calls.caps.usd is not None:
        check_surcharges(model, settings, calls)


def watch_of(quiet: bool) -> Watch:
    watch = Watch()
    if not quiet:
        watch.log = lambda event, **facts: note(f"{event} {one_line(str(facts.get('why', '')))}")
    return watch


def progress_of(questions: int, quiet: bool) -> Callable[[int], None]:
    def progress(done: int) -> None:
        if not quiet and done * 10 // questions > (done - 1) * 10 // questions:
            note(f"{done:,} of {questions:,} questions")

    return progress
