"""`dubito examples`: the example configs, bots and games that come with Dubito."""

import re
import shutil
from pathlib import Path

import click

from dubito.cli.output import say, table
from dubito.errors import RunStopped, UsageError, one_line, suggestion
from dubito.files import describe_os_error
from dubito.packages import own_folder


@click.group(invoke_without_command=True)
@click.pass_context
def examples(context: click.Context) -> None:
    """List the examples, or copy one."""
    if context.invoked_subcommand is not None:
        return
    rows = []
    for path in _all_examples():
        text = (path / "README.md" if path.is_dir() else path).read_text("utf-8")
        # The first sentence of a config's comment, or the title of a folder or notebook, where it is a JSON string.
        title = re.search(r'^ *"?# (.*?)(\\n",|\.?$|\. )', text, re.MULTILINE)
        rows.append([path.name, title[1] if title else ""])
    table(f"{len(rows)} examples; copy one with `dubito examples copy NAME`", ["example", "about"], rows)


@examples.command()
@click.argument("name")
@click.argument("target", required=False, type=click.Path(path_type=Path))
def copy(name: str, target: Path | None) -> None:
    """Copy an example to TARGET, by default the current folder.

    Existing files are not overwritten.
    """
    found = {path.name: path for path in _all_examples()}
    if name not in found:
        raise UsageError(f"unknown example {one_line(repr(name), 60)}", hint=suggestion(name, list(found)))
    target = target or Path(name)
    if target.is_dir() and not found[name].is_dir():
        target /= name
    if target.exists():
        raise UsageError(f"{one_line(str(target))} exists already", hint="give another target")
    try:
        if found[name].is_dir():
            shutil.copytree(found[name], target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(found[name], target)
    except OSError as error:
        raise RunStopped(f"cannot write {one_line(str(target))}: {describe_os_error(error)}") from None
    say(f"copied to {target}")


def _all_examples() -> list[Path]:
    return sorted(path for path in own_folder("examples").iterdir() if not path.name.startswith(("_", ".")))
