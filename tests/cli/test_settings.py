"""Flags, documentation and schema are generated from the settings' fields."""

import json
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from dubito.cli.main import cli
from dubito.cli.options import SPENDING
from dubito.cli.run import run
from dubito.experiment.config import FILE_ONLY, SETTINGS, Config
from dubito.model_settings import SHORT_FORM_SETTINGS, ModelSettings
from tests.cli import settings_docs
from tests.cli.kit import REPO, Shell


def list_options(command: click.Command) -> dict[str, click.Option]:
    return {str(option.name): option for option in command.params if isinstance(option, click.Option)}


def all_commands(group: click.Group, name: str = "dubito") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        yield f"{name} {each}", command
        if isinstance(command, click.Group):
            yield from all_commands(command, f"{name} {each}")


def test_every_setting_has_a_flag_or_a_reason() -> None:
    assert SETTINGS.keys() - list_options(run).keys() == FILE_ONLY.keys()
    assert all(FILE_ONLY.values())


def test_every_setting_is_described() -> None:
    fields = [*Config.model_fields.items(), *ModelSettings.model_fields.items()]
    assert [key for key, field in fields if not field.description] == []


def test_every_flag_of_a_run_has_help_and_a_heading(subtests: pytest.Subtests) -> None:
    for name, option in list_options(run).items():
        with subtests.test(name):
            assert option.help
            assert option.help[0].isupper()
            assert name in run.headings


def test_commands_describe_settings_consistently() -> None:
    of_run = list_options(run)
    found = set()
    for name, command in all_commands(cli):
        for key in list_options(command).keys() & {*SHORT_FORM_SETTINGS, *SPENDING, "in_flight", "bot_deadline"}:
            if not name.startswith("dubito cache"):  # there, --cache is a folder to inspect
                assert list_options(command)[key].help == of_run[key].help, f"{name}: {key}"
                found.add(name)
    assert {"dubito play", "dubito watch", "dubito estimate", "dubito prompts test"} < found


def test_the_page_of_settings_is_current() -> None:
    assert settings_docs.FILE.read_text(encoding="utf-8") == settings_docs.text(), "python -m tests.cli.settings_docs"


def test_the_schema_describes_every_setting() -> None:
    words = [sys.executable, "-m", "dubito.experiment.config"]
    printed = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=True)
    assert printed.stderr == ""
    schema = json.loads(printed.stdout)
    assert schema["additionalProperties"] is False
    assert schema["properties"].keys() == SETTINGS.keys()
    assert all(setting["description"] for setting in schema["properties"].values())


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_script_names_its_shell(shell: Shell, name: str) -> None:
    printed = shell("completion", name)
    assert (printed.code, printed.err) == (0, "")
    assert f"_DUBITO_COMPLETE={name}_complete" in printed.out
    assert shell("completion", "tcsh").code == 2
