"""`dubito replay FILE`: play a saved game again from its deal and outputs, and prove it the same."""

from itertools import zip_longest
from pathlib import Path

import click

from dubito.cli.output import say
from dubito.errors import UsageError
from dubito.record import load
from dubito.record import replay as told_again


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def replay(file: Path) -> int:
    """Play the game recorded in FILE again. Exit code 1 if anything differs, with the first difference."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"cannot read {file}: {reason}") from None
    record = load(text)
    for recorded, replayed in zip_longest(record.story, told_again(record)):
        if recorded != replayed:
            say("differs")
            say(f"recorded: {recorded or '(nothing more)'}")
            say(f"replayed: {replayed or '(nothing more)'}")
            return 1
    say(f"identical: {len(record.outputs)} turns, {len(record.story)} lines of story")
    return 0
