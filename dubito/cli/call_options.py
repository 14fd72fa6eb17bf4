"""The flags of commands that call a model without playing games."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.file_limit import limit_in_flight
from dubito.cli.options import SPENDING, config_options, flags, setting_options
from dubito.cli.output import GamesProgress, note
from dubito.commands import repeat_command
from dubito.errors import RunStopped, UsageError, describe_signal, format_error, one_line, signal_number, suggestion
from dubito.experiment.call_options import CallOptions, call_options
from dubito.experiment.config import SETTINGS, Config, parse_config
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import providers
from dubito.experiment.servers import identify_weights
from dubito.game import Game
from dubito.game.find import find_bots
from dubito.llm.settings import check_settings
from dubito.model_settings import SHORT_FORM_SETTINGS, ModelSettings
from dubito.settings import Setting

_OF_MODEL: Final = [Setting(key, ModelSettings.model_fields[key]) for key in ("parameters", "reasks")]
# Flags for the server and account, and the request.
model_options = flags(config_options(*SHORT_FORM_SETTINGS), setting_options(_OF_MODEL))
# The other settings of a model that a test of prompts can have, so that a cassette can be recorded again.
ANSWER_SETTINGS: Final = [
    Setting(key, field)
    for key, field in ModelSettings.model_fields.items()
    if key not in ("model", "prompt", "fallback", "adviser", "wait", "parameters", "reasks", *SHORT_FORM_SETTINGS)
]
# The same as `model_options`, and flags for the budget and the cache.
asking_options = flags(
    model_options,
    config_options("in_flight", *SPENDING),
    click.option("--quiet", is_flag=True, help="Hide the progress line."),
)


def _build_config(given: Mapping[str, Any]) -> Config:
    """Build a config from a command's flags, ignoring flags that are not config settings."""
    return parse_config({}, "the command", {key: value for key, value in given.items() if key in SETTINGS})


def limited_call_options(given: Mapping[str, Any]) -> CallOptions:
    calls = call_options(_build_config(given), Path.cwd())
    return replace(calls, in_flight=limit_in_flight(calls.in_flight))


def settings_of_model(model: str, given: Mapping[str, Any], game: Game) -> ModelSettings:
    """Return the settings of `provider:MODEL`, overridden by the flags; raises UsageError."""
    provider, colon, model_name = model.partition(":")
    if not colon or provider not in providers():
        hint = f"write it like openai:MODEL; {suggestion(provider, providers())}"
        raise UsageError(f"--model {one_line(model)!r} does not start with a provider", hint=hint)
    entry = dict(providers()[provider])
    provider_bot: Any = find_bots(Path.cwd(), game.name).find(entry.pop("bot")).cls
    settings: dict[str, Any] = {"model": model_name, **provider_bot.defaults, **entry}
    settings |= {
        key: value for key, value in _build_config(given).server.items() if key != "base_url" or key not in entry
    }
    settings |= {
        one.key: one.parse(given[one.key]) for one in (*_OF_MODEL, *ANSWER_SETTINGS) if given.get(one.key) is not None
    }
    try:
        return identify_weights(model, check_settings("--model", settings))
    except UsageError as error:
        raise UsageError(format_error(error, as_flags=True)) from None


@contextmanager
def suggest_resume(folder: Path, flags: bool = False) -> Iterator[None]:
    """Tell the user how to resume if the calls are stopped by an error or Ctrl-C.

    If `flags` is true, error messages name settings by their flags.
    """
    how_to_resume = f"the answers so far are saved in {folder}; `{repeat_command()}` resumes"
    try:
        yield
    except RunStopped as error:
        raise RunStopped(f"{format_error(error, as_flags=flags)}; {how_to_resume}") from None
    except KeyboardInterrupt as error:
        number = signal_number(error)
        note(f"dubito: stopped by {describe_signal(number)}; {how_to_resume}")
        raise click.exceptions.Exit(128 + number) from None


def model_progress(quiet: bool) -> ModelProgress:
    return ModelProgress() if quiet else ModelProgress(log=_note_event)


def _note_event(event: str, **facts: object) -> None:
    note(f"{event} {one_line(str(facts.get('why', '')))}")


@contextmanager
def question_progress(questions: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    with GamesProgress(questions, quiet, time.monotonic, unit="questions") as progress:
        progress(0)
        yield progress
