"""The `dubito` command: its subcommands, and what each error means to the shell.

Exit codes: 0 done (warnings too); 1 a comparison differs; 2 the user's mistake, found before anything
started; 3 stopped after the start; 128 and the number of the signal that ended it: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.

Groups of commands whose help says of each what it does in a whole sentence; a command is loaded when it is used.
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
from dubito.errors import (
    OUT_OF_MEMORY,
    BotError,
    GameError,
    RunStopped,
    StopSignal,
    UsageError,
    one_line,
    signal_in_words,
    signal_of,
)
from dubito.game.native import engine_in_words
from dubito.game.packages import HOME, set_games_path
from dubito.hooks import GROUPS, Command, import_place, load_installed, missing_plugin

_SENTENCE: Final = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)


class Listing(click.Group):
    """Lists its commands with the first sentence of their help, wrapped where click would cut it."""

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
    """A path that is not empty: Python would take an unset variable of the shell for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty: name a file or a folder.", param, ctx)
        return super().convert(value, param, ctx)


class LateListing(Listing):
    """A listing that loads a command's module when the command is used, and none for its own help."""

    def __init__(self, *rest: Any, places: Mapping[str, str], **more: Any) -> None:
        """`places` has each command's place by its name: "package.module:function"."""
        super().__init__(*rest, **more)
        self._places = places

    def places(self) -> Mapping[str, str]:
        return self._places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.places())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, loaded now; None if there is no such command."""
        place = self.places().get(name)
        if place is None:
            return None
        found: click.Command = import_place(place)
        for parameter in found.params:
            if type(parameter.type) is click.Path:
                parameter.type = _NamedPath(path_type=Path)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click; for an unknown name the nearest of these is suggested."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            if error.command_name == "rank":
                meant = "`dubito run` ranks players; `dubito rate` rates one"
                raise UsageError(f"No such command 'rank': {meant}") from None
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def summary_of(self, ctx: click.Context, name: str) -> str:
        """The same, read in the command's source: nothing is loaded."""
        module, _, function = self.places()[name].partition(":")
        file = HOME.parent / f"{module.replace('.', '/')}.py"
        if not file.is_file():  # of an installed package
            return super().summary_of(ctx, name)
        text = re.search(rf'^def {function}\(.*?"""(.*?)"""', file.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        return _first_sentence(text[1] if text else "")


class Program(LateListing):
    """`dubito` itself: the commands of the core and of plugins, in groups."""

    def __init__(self, *rest: Any, **more: Any) -> None:
        super().__init__(*rest, places={}, **more)

    def commands_by_name(self) -> Mapping[str, Command]:
        added = {name: command for name, command in hooks.commands().items() if name not in _COMMANDS}
        return {**_COMMANDS, **added}

    def places(self) -> Mapping[str, str]:
        return {name: command.place for name, command in self.commands_by_name().items()}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command; only for an unknown name are installed plugins looked for."""
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
    **_core("Run", merge="merge:merge"),
    **_core("Results", report="report:report", compare="merge:compare", replay="replay:replay", export="export:export"),
    **_core("Write", bots="lists:bots", games="lists:games", prompts="prompts:prompts"),
    **_core("Models", cache="cache:cache", house="lists:house"),
    **_core("Plugins", plugins="plugins:plugins"),
}

_PARAMETERS: Final = (  # of models, as people know them
    *("temperature", "top_p", "top_k", "reasoning", "reasoning_effort", "thinking", "effort", "verbosity"),
    *("max_tokens", "max_output_tokens", "max_completion_tokens", "service_tier", "stop"),
)
_A_LIST: Final = "; the names in a list are parted by commas, without spaces"
_ECHO: Final = 0.3  # seconds within which another such signal is the same one: `timeout` and shells send theirs twice


@click.group(
    cls=Program,
    epilog="\b\nExamples:\n  dubito demo\n  dubito run --bots ClaudeBot,Sherlock,StefaBot --games 1000",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(f"{__version__} ({engine_in_words()})", prog_name="dubito", message="%(prog)s %(version)s")
def cli() -> None:
    """Pit language models, hand-written bots and people against each other at games of hidden information."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, by default the process's own, and exit with its code."""
    _open_streams()
    with _other_signals_as_ctrl_c():
        try:
            sys.exit(_code(arguments))
        finally:
            set_games_path(())


def _open_streams() -> None:
    """Make both outputs usable: closed by a shell, or in an encoding that lacks some characters.

    A stream that a shell closed (`>&-`) leads nowhere: else the first file that is opened would take its place.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8"))  # noqa: SIM115, stays open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _other_signals_as_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP do here what Ctrl-C does wherever this process is; one that is ignored (`nohup`) stays so."""
    heard = float("-inf")

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        now, before = time.monotonic(), heard
        heard = now
        if now - before < _ECHO:
            return
        handler = signal.getsignal(signal.SIGINT)
        if handler is signal.default_int_handler or not callable(handler):
            raise StopSignal(number)
        handler(number, frame)

    found = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        found = []
    before = {number: signal.getsignal(number) for number in found if signal.getsignal(number) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, answer)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _code(arguments: Sequence[str] | None) -> int:
    out = sys.stdout
    try:
        code = cli.main(arguments, prog_name="dubito", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        said = _setting_of_a_player(error) or one_line(error.format_message())
        return _ended(f"{said}{_A_LIST * said.startswith('Got unexpected extra argument')}", 2)
    except UsageError as error:
        return _ended(str(error), 2)
    except ModuleNotFoundError as error:  # a plugin may use another one that was deleted
        if (plugin := missing_plugin(error)) is None:
            raise
        return _ended(f"this command needs the plugin {plugin}, which is not in dubito/plugins", 2)
    except (BotError, GameError, RunStopped) as error:
        return _ended(str(error), 3)
    except (KeyboardInterrupt, click.Abort) as error:
        number = signal_of(error.__cause__ if isinstance(error, click.Abort) else error)
        return _ended(f"stopped by {signal_in_words(number)}", 128 + number)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stdout = None
        return 0
    except SystemExit:
        if sys.stdout is not out:  # so does click say the same; its 1 would be a comparison that differs
            return 0
        raise
    except (OSError, MemoryError, RuntimeError) as error:
        return _system_fault(error)
    return code if isinstance(code, int) else 0


def _setting_of_a_player(error: click.ClickException) -> str | None:
    """Where a setting of a model player belongs, if it was given as a flag."""
    if not isinstance(error, click.NoSuchOption):
        return None
    from dubito.llm.settings import ModelSettings  # late: it takes a while to load

    name = error.option_name.lstrip("-")
    key, dashed = name.replace("-", "_"), f"--{name.replace('_', '-')}"
    if dashed in (error.possibilities or ()):
        return f"there is no {error.option_name}: it is {dashed}"
    if key in ModelSettings.model_fields:
        return f"{error.option_name} is no flag, but a setting of one player: say `{key}` in its entry of a config"
    if key in _PARAMETERS:
        said = f"`parameters: {{{key}: ...}}`"
        return f"{error.option_name} is no flag, but a parameter of one model: say {said} in its entry of a config"
    return None


def _system_fault(error: OSError | MemoryError | RuntimeError) -> int:
    """Report what the system refuses: a file's name, room on a disk, memory, threads. Raise every other error again."""
    if isinstance(error, MemoryError):
        return _ended(OUT_OF_MEMORY, 3)
    if isinstance(error, RuntimeError):
        if "start new thread" not in str(error):
            raise error
        return _ended("cannot start a thread: raise the limits of memory and threads, or lower in_flight", 3)
    if error.errno == errno.ENAMETOOLONG:
        return _ended(f"{one_line(str(error.filename), 60)} is too long for the name of a file", 2)
    if error.errno == errno.ENOSPC and error.filename is None:
        sys.stdout = None  # or Python would try to write the rest of it
        return _ended("the output cannot be written: the disk is full", 3)
    raise error


def _ended(text: str, code: int) -> int:
    note(f"dubito: {text}")
    return code
