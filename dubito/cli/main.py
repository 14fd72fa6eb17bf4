"""The `dubito` command: its subcommands and exit codes.

Exit codes: 0 success (also with warnings); 1 a comparison found a difference; 2 a user error, found before anything
started; 3 an error after the start; 128 + N ended by signal N: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.

A command's module is imported when the command is used, so that `dubito --help` is fast.
"""

import errno
import io
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

from dubito import __version__, hooks
from dubito.cli.output import note
from dubito.commands import remember_command
from dubito.errors import (
    OUT_OF_MEMORY,
    BotError,
    GameError,
    RunStopped,
    StopSignal,
    UsageError,
    describe_signal,
    one_line,
    signal_number,
)
from dubito.game.native import describe_engine
from dubito.hooks import GROUPS, Command, import_place, load_installed
from dubito.packages import HOME, set_games_path

_SENTENCE: Final = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)


class Listing(click.Group):
    """A group that lists each command with the first sentence of its help, wrapped rather than truncated."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary_of(ctx, name)) for name in self.list_commands(ctx)])

    def summary_of(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return _first_sentence((command and command.help) or "")


def _first_sentence(text: str) -> str:
    words = " ".join(text.split("\n\n")[0].split())
    first = _SENTENCE.match(words)
    return first[0] if first else words


class _NamedPath(click.Path):
    """A non-empty path. Otherwise an unset shell variable would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty. Name a file or a folder.", param, ctx)
        return super().convert(value, param, ctx)


class LazyListing(Listing):
    """A group that imports a command's module only when the command is used, so that `--help` is fast."""

    def __init__(self, *rest: Any, places: Mapping[str, str], **more: Any) -> None:
        """`places` maps command names to "package.module:function"."""
        super().__init__(*rest, **more)
        self._places = places

    def places(self) -> Mapping[str, str]:
        """Return the places of the group's own commands and of those that plugins add to it."""
        prefix = f"{self.name} "
        added = {name: command.place for name, command in hooks.commands().items() if name.startswith(prefix)}
        return {name.removeprefix(prefix): place for name, place in added.items()} | {**self._places}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.places())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import and return the command, or None if the name is unknown."""
        place = self.places().get(name)
        if place is None:
            return None
        command = import_place(place)
        if not isinstance(command, click.Command):
            raise UsageError(f"{place} of a plugin is not a click command", hint="reinstall or remove its package")
        for parameter in command.params:
            if type(parameter.type) is click.Path:
                parameter.type = _NamedPath(path_type=Path)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the most similar command for an unknown name."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            if error.command_name == "rank":
                raise UsageError(
                    "No such command 'rank'", hint="`dubito run` ranks players; `dubito rate` rates one"
                ) from None
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def summary_of(self, ctx: click.Context, name: str) -> str:
        """Read the first sentence from the command's source file, without importing it."""
        module, _, function = self.places()[name].partition(":")
        file = HOME.parent / f"{module.replace('.', '/')}.py"
        # A command of an installed package has no file here.
        if not file.is_file():
            return super().summary_of(ctx, name)
        text = re.search(rf'^def {function}\(.*?"""(.*?)"""', file.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        return _first_sentence(text[1] if text else "")


class Program(LazyListing):
    """The top-level group: the commands of the core and of plugins, under headings."""

    def commands_by_name(self) -> Mapping[str, Command]:
        added = {
            name: command for name, command in hooks.commands().items() if name not in _COMMANDS and " " not in name
        }
        return {**_COMMANDS, **added}

    def places(self) -> Mapping[str, str]:
        return {name: command.place for name, command in self.commands_by_name().items()}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command. Installed plugins are only loaded for an unknown name."""
        if name not in _COMMANDS and name not in self.places():
            for fault in load_installed():
                note(f"note: {fault}")
        return super().get_command(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = self.commands_by_name()
        for group in GROUPS:
            names = [name for name, command in commands.items() if command.group == group]
            if names:
                with formatter.section(group):
                    formatter.write_dl([(name, self.summary_of(ctx, name)) for name in names])


def _core(group: str, **places: str) -> dict[str, Command]:
    return {name: Command(group, f"dubito.cli.{place}") for name, place in places.items()}


_COMMANDS: Final[Mapping[str, Command]] = {
    **_core("Play", play="play:play", web="play:web", watch="watch:watch", share="share:share"),
    **_core("Run", demo="demo:demo", run="run:run", estimate="estimate:estimate", status="status:status"),
    **_core("Run", merge="merge:merge", seat="seat:seat"),
    **_core("Results", report="report:report", compare="merge:compare", replay="replay:replay", export="export:export"),
    **_core("Write", bots="lists:bots", games="lists:games", prompts="prompts:prompts"),
    **_core("Write", new="new:new", examples="examples:examples"),
    **_core("Models", cache="cache:cache", house="lists:house", models="models:models"),
    **_core("Plugins", plugins="plugins:plugins", completion="completion:completion"),
}

# Common model parameters that a user may try as flags.
_MODEL_PARAMETERS: Final = (
    *("temperature", "top_p", "top_k", "reasoning", "reasoning_effort", "thinking", "effort", "verbosity"),
    *("max_tokens", "max_output_tokens", "max_completion_tokens", "service_tier", "stop"),
)
_LIST_HINT: Final = "; separate the names in a list with commas, without spaces"
# `timeout` and shells send signals twice. A second one within this many seconds is ignored.
_REPEAT_SECONDS: Final = 0.3


@click.group(
    cls=Program,
    places={},
    epilog="\b\nExamples:\n  dubito demo\n  dubito run --bots ClaudeBot,Sherlock,StefaBot --games 1000",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(f"{__version__} ({describe_engine()})", prog_name="dubito", message="%(prog)s %(version)s")
def cli() -> None:
    """Pit language models, hand-written bots and people against each other at games of hidden information."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line, by default the arguments of this process, and exit with its code."""
    # Make the standard streams usable if the shell closed them or their encoding lacks characters. A closed stream
    # (`>&-`) is reopened on the null device. Otherwise the next file opened would get its number.
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    for number, (name, opened) in enumerate(streams.items()):
        if opened is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115, stays open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    with _signals_as_ctrl_c():
        try:
            sys.exit(_run_command(arguments))
        finally:
            set_games_path(())


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C. A signal that is ignored (`nohup`) stays ignored."""
    last_signal = float("-inf")

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal last_signal
        now, previous = time.monotonic(), last_signal
        last_signal = now
        if now - previous < _REPEAT_SECONDS:
            return
        handler = signal.getsignal(signal.SIGINT)
        if handler is signal.default_int_handler or not callable(handler):
            raise StopSignal(number)
        handler(number, frame)

    signals = [each for each in signal.Signals if each.name in ("SIGTERM", "SIGHUP")]
    # Only the main thread may set signal handlers.
    if threading.current_thread() is not threading.main_thread():
        signals = []
    previous_handlers = {
        number: signal.getsignal(number) for number in signals if signal.getsignal(number) is not signal.SIG_IGN
    }
    for number in previous_handlers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _run_command(arguments: Sequence[str] | None) -> int:
    """Run the command and return its exit code. Errors are printed to standard error."""
    out = sys.stdout
    try:
        remember_command(sys.argv[1:] if arguments is None else arguments)
        code = cli.main(arguments, prog_name="dubito", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        return _report_error(_describe_misuse(error), 2)
    except UsageError as error:
        return _report_error(str(error), 2)
    except ModuleNotFoundError as error:
        # A plugin may need another plugin that was deleted.
        names = (error.name or "").split(".")
        if names[:2] != ["dubito", "plugins"] or len(names) < 3:
            raise
        return _report_error(f"this command needs the `{names[2]}` plugin, which is not in dubito/plugins", 2)
    except (BotError, GameError, RunStopped) as error:
        return _report_error(str(error), 3)
    except (KeyboardInterrupt, click.Abort) as error:
        number = signal_number(error.__cause__ if isinstance(error, click.Abort) else error)
        return _report_error(f"stopped by {describe_signal(number)}", 128 + number)
    except BrokenPipeError:
        # The process that read the output has ended.
        sys.stdout = None
        return 0
    except SystemExit:
        # Click replaces stdout and exits with 1 for a broken pipe, but 1 means that a comparison found a difference.
        if sys.stdout is not out:
            return 0
        raise
    except (OSError, MemoryError, RuntimeError) as error:
        return _report_system_error(error)
    return code if isinstance(code, int) else 0


def _describe_misuse(error: click.ClickException) -> str:
    """Describe a wrong command line, and explain lists of names and settings of model players given as flags."""
    message = one_line(error.format_message())
    if isinstance(error, click.UsageError) and error.message.startswith("Got unexpected extra argument"):
        takes_list = error.ctx is not None and any("--bots" in option.opts for option in error.ctx.command.params)
        return f"{message}{_LIST_HINT * takes_list}"
    if not isinstance(error, click.NoSuchOption):
        return message
    # Imported late because it is slow to import.
    from dubito.model_settings import ModelSettings

    name = error.option_name.lstrip("-")
    key, dashed = name.replace("-", "_"), f"--{name.replace('_', '-')}"
    if dashed in (error.possibilities or ()):
        return f"No such option: {error.option_name}. Did you mean {dashed}?"
    setting = f"`{key}`" if key in ModelSettings.model_fields else f"`parameters: {{{key}: ...}}`"
    if key in ModelSettings.model_fields or key in _MODEL_PARAMETERS:
        return f"{error.option_name} is not a flag; set {setting} on the player in the config file"
    return message


def _report_system_error(error: OSError | MemoryError | RuntimeError) -> int:
    """Report that a system limit was hit: file name length, disk space, memory, threads. Re-raise other errors."""
    if isinstance(error, MemoryError):
        return _report_error(OUT_OF_MEMORY, 3)
    if isinstance(error, RuntimeError):
        if "start new thread" not in str(error):
            raise error
        return _report_error("cannot start a thread; raise the limits on memory and threads, or lower in_flight", 3)
    if error.errno == errno.ENAMETOOLONG:
        return _report_error(f"the file name is too long: {one_line(str(error.filename), 60)}", 2)
    if error.errno == errno.ENOSPC and error.filename is None:
        # Otherwise Python would try to flush the remaining output at exit.
        sys.stdout = None
        return _report_error("cannot write the output: the disk is full", 3)
    raise error


def _report_error(text: str, code: int) -> int:
    note(f"dubito: {text}")
    return code
