"""`dubito models`: check what a model's server supports."""

from pathlib import Path
from typing import Any, Final

import click
import yaml

from dubito.cli.call_options import model_options, settings_of_model
from dubito.cli.main import LazyListing
from dubito.cli.options import game_option, json_option
from dubito.cli.output import note, note_if_slow, print_document, say, table
from dubito.errors import UsageError, one_line
from dubito.experiment.call_options import CallOptions
from dubito.experiment.model_players import check_model_calls
from dubito.experiment.resolve import providers
from dubito.game import Game
from dubito.llm.prompts import load_prompt
from dubito.llm.protocols import find_protocol
from dubito.report.documents import CheckedFeature, ServerObject
from dubito.workshop.server_check import ServerCheck, list_models

_MAX_LISTED: Final = 20  # names of models


@click.group(cls=LazyListing, places={"check": "dubito.cli.models:check"})
def models() -> None:
    """Check a model's server, or manage models on this machine."""


@click.command()
@click.argument("model", required=False)
@click.option("--prompt", default="plain", show_default=True, help="The prompt whose longest question is asked.")
@model_options
@game_option
@json_option
def check(model: str | None, prompt: str, game: Game, as_json: bool, **flags: Any) -> int:
    """Check what a model's server supports, with about 15 calls.

    MODEL is openai:NAME, anthropic:NAME, local:NAME or house:NAME. Without MODEL, the server at --base-url is asked for
    its models, and checked if it has only one. Checks the schema, reasoning, system role, token
    counts, output limit, streaming, log-probabilities, parallel calls and errors. Prints the config entry with the
    settings that work. The exit code is 1 if a check fails.
    """
    if not model:
        if flags["base_url"] is None:
            raise UsageError("give MODEL, such as openai:NAME, or --base-url")
        provider = find_protocol(flags["api"] or "responses").provider
        names = list_models(provider, settings_of_model(f"{provider}:any", flags, game), game, note)
        if len(names) != 1:
            listed = ", ".join(f"{provider}:{one_line(name, 80)}" for name in names[:_MAX_LISTED])
            raise UsageError(f"the server has {len(names)} models; give one of them: {listed or 'it lists no names'}")
        model = f"{provider}:{names[0]}"
    settings = settings_of_model(model, flags, game).model_copy(update={"prompt": prompt})
    if not find_protocol(settings.api).writes_text:
        raise UsageError(f"`dubito models check` needs an API whose replies are texts, not --api {settings.api}")
    check_model_calls(model, settings, game, CallOptions(in_flight=1, cache=Path("cache"), offline=False))
    checks = ServerCheck(model, settings, load_prompt(prompt, Path.cwd(), game), game, note)
    with note_if_slow(f"for {settings.model}'s replies"):
        report = checks.run()
    bot, given = providers()[model.partition(":")[0]]["bot"], report.settings
    stated = given.model_dump(exclude_defaults=True, exclude={"fallback", "model", "reasks"})
    entry = {"bot": bot, "name": given.model, "model": given.model, **stated}
    if as_json:
        document = ServerObject(
            checks=[
                CheckedFeature(check=one.check, status=one.status, finding=one.finding, advice=one.advice)
                for one in report.findings
            ],
            usable=report.is_usable,
            model=report.model,
            entry=entry,
            calls=report.calls,
            seconds=round(report.seconds, 3),
        )
        print_document(document)
    else:
        cells = [
            [one.check, one.status, f"{one.finding}; {one.advice}" if one.advice else one.finding]
            for one in report.findings
        ]
        answered = f"{report.model} answered" if report.model else "the model answered"
        table(f"{answered}: {report.calls} calls in {report.seconds:.1f} s", ["check", "result", "finding"], cells)
        say("An entry for `contenders` or `bots` in a config:")
        say(f"- {yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=10_000).strip()}")
    return 0 if report.is_usable else 1
