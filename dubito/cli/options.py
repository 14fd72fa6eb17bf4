"""Flags that several commands share, including the rules of the chosen game.

`open_run_folder` finds a command's RUN: a folder, an exported file, or by default the latest run.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from dubito.cli.output import note
from dubito.commands import build_command
from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.game.find import DUBITO, find_game, game_names
from dubito.game.seeds import SEED_FORMAT, parse_seed
from dubito.packages import games_path_words, set_games_path
from dubito.sandbox.consent import Permits

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dubito.settings import Setting


class _GameName(click.ParamType):  # type: ignore[type-arg]  # not generic at run time before click 8.3
    """Converts a name to its game; raises UsageError."""

    name = "game"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Game:
        return find_game(value, Path.cwd()) if isinstance(value, str) else value


class _SeedText(click.ParamType):  # type: ignore[type-arg]
    """Converts a seed to a number, or to the text of a revealed seed."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        try:
            seed = parse_seed(str(value))
        except ValueError:
            seed = -1
        if isinstance(seed, int) and seed < 0:
            self.fail(f"{value!r} is not {SEED_FORMAT}.", param, ctx)
        return seed


GAME: Final = _GameName()
SEED: Final = _SeedText()
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead (docs/json.md).")

_Function = Callable[..., Any]


def flags(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def saved_games_folder() -> Path:
    """Return the default folder for saved games: `games`, or `saved` if `games` has game packages instead."""
    folder = Path("games")
    has_packages = any(folder.glob("*/game.py"))
    has_saved_games = (folder / "run.db").exists() or any(folder.glob("*.json"))
    return Path("saved") if has_packages and not has_saved_games else folder


# `dubito.serve.DEFAULT_PORT`, which is imported late.
PORT_DEFAULT: Final = "8765, or a free one if that is taken"
SAVED_GAMES_DEFAULT: Final = "games, or saved if games contains your own game packages"


def _set_games_path_option(ctx: click.Context, param: click.Parameter | None, folders: Sequence[Path]) -> None:
    if folders:
        set_games_path(folders)


games_path_option = click.option(
    "--games-path",
    type=click.Path(path_type=Path),
    multiple=True,
    # Must be parsed first because games are looked up by name in these folders.
    is_eager=True,
    expose_value=False,
    callback=_set_games_path_option,
    metavar="FOLDER",
    help="Also load games, bots and prompts from FOLDER. Can be repeated.",
)


def _check_url(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """Return the address unchanged; raises UsageError unless it can be linked to."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise UsageError(
            f"{parameter.opts[0]}: not a web address: {one_line(url, 80)}",
            hint="use one like https://me.github.io/games/",
        )
    return url


_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_URL: Final[dict[str, Any]] = {
    "default": "",
    "metavar": "ADDRESS",
    "help": "The page's public address, such as https://me.github.io/games/. Gives links a preview picture.",
}
page_url_option = click.option("--url", callback=_check_url, **_URL)


def _check_site_url(context: click.Context, parameter: click.Parameter, url: str) -> str:
    return _check_url(context, parameter, url) and f"{url.rstrip('/')}/"


site_url_option = click.option("--url", callback=_check_site_url, **_URL)
Worlds = Literal["same", "sampled"]
# What can be changed at a moment of a run.
moment_options = flags(
    click.option(
        "--worlds",
        type=click.Choice(["same", "sampled"]),
        default="same",
        show_default=True,
        help="Hidden cards: the same, or sampled so that the seat cannot tell.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change what the seat has, such as hand=2,2,7. Can be repeated.",
    ),
)
play_url_option = click.option(
    "--play-url",
    callback=_check_site_url,
    default="",
    metavar="ADDRESS",
    help="The address of a site that plays without Python, which *Play these cards* then opens.",
)


def _host_names(context: click.Context, parameter: click.Parameter, names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            raise click.BadParameter(f"{name!r} is not a host name. Leave out https:// and the port.")
    return names


allow_host_option = click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    callback=_host_names,
    help="Also accept requests for host NAME, for example behind a reverse proxy. Can be repeated.",
)
game_option = flags(
    click.option(
        "--game",
        type=GAME,
        default=DUBITO,
        show_default=True,
        metavar="NAME",
        help="The game; `dubito games` lists them.",
    ),
    games_path_option,
)


def game_words(game: Game) -> list[str]:
    """Return the words of a command that choose this game and the same folders."""
    return [*([] if game.name == DUBITO else ["--game", game.name]), *games_path_words()]


# Players besides the bot files, and where the models' requests are saved.
company_options = flags(
    click.option("--config", type=click.Path(path_type=Path), help="Config file with more players that can be named."),
    click.option(
        "--games",
        type=click.Path(path_type=Path),
        default=saved_games_folder,
        show_default=SAVED_GAMES_DEFAULT,
        help="Folder for model players' requests.",
    ),
)


def _store_permit(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[f"{_PERMIT}{param.name}"] = value


# What the user allows programs; `given_permits` returns it.
allow_unsandboxed_option = click.option(
    "--allow-unsandboxed",
    is_flag=True,
    expose_value=False,
    callback=_store_permit,
    help="Also start programs if this machine cannot keep them away from your files and other processes.",
)
program_options = flags(
    click.option(
        "--trust",
        is_flag=True,
        expose_value=False,
        callback=_store_permit,
        help="Start the programs that files name without asking (docs/trust.md).",
    ),
    allow_unsandboxed_option,
)


def given_permits() -> Permits:
    """Return what the flags of the current command allow programs."""
    context = click.get_current_context(silent=True)
    given = {} if context is None else context.meta
    trust, unsandboxed = (bool(given.get(f"{_PERMIT}{name}")) for name in ("trust", "allow_unsandboxed"))
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Permits(trust, unsandboxed, _ask_for_trust if is_terminal else None)


def _ask_for_trust(text: str) -> bool:
    note(f"{text}.")
    return click.confirm("Do you trust it?", default=False, err=True)


# The settings that limit what models can cost.
SPENDING: Final = ("budget", "prices", "preflight", "cache", "offline")


def config_options(*keys: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds flags for these config settings, by default all of them."""
    # Imported late because it is slow to import.
    from dubito.experiment.config import FILE_ONLY, SETTINGS

    return setting_options(SETTINGS[key] for key in keys or SETTINGS if key not in FILE_ONLY)


def setting_options(settings: Iterable["Setting"]) -> Callable[[_Function], _Function]:
    declared = map(_option_declaration, settings)
    return flags(*(click.option(*names, **attributes) for names, attributes in declared))


def _option_declaration(setting: "Setting") -> tuple[list[str], dict[str, Any]]:
    """Return the names and attributes of a setting's option. The value is None if the option is not given."""
    about = f"{setting.about} [default: {setting.usual}]"
    if setting.kind is bool:
        return [setting.key, f"{setting.flag}/--no-{setting.flag[2:]}"], {"default": None, "help": about}
    return [setting.key, setting.flag], {"metavar": setting.metavar, "help": about}


# The beginning of the keys in a click context for what programs may do.
_PERMIT: Final = "dubito.permit."
# The key in a click context for the options that are a game's rules.
_RULES: Final = "dubito.rules"


class GameCommand(click.Command):
    """A command with an option for each rule of the game in --game or CONFIG. It receives them as `rules`.

    A rule that shares its name with another option or setting can only be set under `rules` in a config.
    """

    def __init__(self, *rest: Any, headings: Mapping[str, str] | None = None, **more: Any) -> None:
        """`headings` maps option names to headings in `--help`, in display order."""
        super().__init__(*rest, **more)
        self.headings = headings or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; raises UsageError if a rule belongs to another game."""
        # The flags that do not depend on the game are parsed first, since they name the game.
        options = [each for each in self.params if isinstance(each, click.Option)]
        parser = click.Command(self.name, params=[*options]).make_parser(ctx)
        parser.ignore_unknown_options = True
        try:
            known, rest, _ = parser.parse_args(list(args))
        except click.UsageError:
            # The real parser reports it.
            known, rest = {}, []
        _set_games_path_option(ctx, None, [Path(folder) for folder in known.get("games_path") or ()])
        is_asked = any(word.startswith("--") for word in rest) or not {*args}.isdisjoint(ctx.help_option_names)
        rules: list[click.Parameter] = []
        if is_asked:
            # Imported late because they are slow to import.
            from dubito.experiment.config import SETTINGS
            from dubito.settings import Setting

            fields = type(self._game(known, rest).rules()).model_fields
            used_names = {*SETTINGS, *(param.name for param in self.params)}
            settings = [Setting(key, field) for key, field in fields.items() if key not in used_names]
            rules = [click.Option(names, **attributes) for names, attributes in map(_option_declaration, settings)]
        ctx.meta[_RULES] = rules
        try:
            remaining = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            key = error.option_name.lstrip("-").replace("-", "_")
            if _is_rule_option(key):
                # Raises an error that suggests the most similar rule.
                parse_rules({key: ""}, self._game(known, rest))
            raise
        given = {str(rule.name): ctx.params.pop(str(rule.name)) for rule in rules}
        ctx.params["rules"] = {key: value for key, value in given.items() if value is not None}
        return remaining

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params, rules = super().get_params(ctx), ctx.meta.get(_RULES, [])
        place = 1 + next(place for place, param in enumerate(params) if param.name == "game")
        return [*params[:place], *rules, *params[place:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings. Options without a heading come last."""
        headings = {**self.headings}
        headings |= {str(rule.name): headings.get("game", "Options") for rule in ctx.meta.get(_RULES, [])}
        records: dict[str, list[tuple[str, str]]] = {heading: [] for heading in [*headings.values(), "Options"]}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                records[headings.get(str(param.name), "Options")].append(record)
        for heading, listed in records.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed)

    def _game(self, known: Mapping[str, Any], rest: Sequence[str]) -> Game:
        """Return the game that --game or the config names; raises UsageError."""
        name = known.get("game")
        if name is None and any(each.name == "config" for each in self.params if isinstance(each, click.Argument)):
            # Imported late because it is slow to import.
            from dubito.experiment.config import read_config
            from dubito.store.folder import CONFIG

            paths = [Path(word) for word in rest if not word.startswith("-")]
            paths = [path / CONFIG if path.is_dir() else path for path in map(_find_run, paths)]
            file = next((path for path in paths if path.suffix in (".yaml", ".yml") or path.is_file()), None)
            name = read_config(file).get("game") if file else None
        return find_game(DUBITO if name is None else str(name), Path.cwd())


def _is_rule_option(key: str) -> bool:
    for name in game_names(Path.cwd()):
        # A family of games has no rules. Errors in other games do not matter here.
        with suppress(UsageError):
            if key in type(find_game(name, Path.cwd()).rules()).model_fields:
                return True
    return False


def parse_rules(rules: Mapping[str, Any], game: Game) -> "BaseModel":
    """Return the rules of a game that were set by flags; raises UsageError."""
    # Imported late: most commands need neither.
    from dubito.experiment.config import parse_config
    from dubito.experiment.resolve import rules_of_config

    return rules_of_config(parse_config({"game": game.name}, "the command", rules), game)


def _find_run(path: Path) -> Path:
    """Return the path, or if it does not exist the run of this name in the default folder of runs."""
    from dubito.store.folder import MANIFEST, RUNS

    named = Path(RUNS) / path
    return named if not path.exists() and (named / MANIFEST).is_file() else path


def find_started_run(path: Path | None) -> Path | None:
    """Return the run folder that an argument names, or None if it names a config. Raises UsageError."""
    from dubito.store.folder import is_export

    if path is None or (not path.is_dir() and path.suffix in (".yaml", ".yml")):
        return None
    if not path.exists() or path.is_dir():
        with open_run_folder(path) as folder:
            return folder
    if path.is_file() and is_export(path):
        raise UsageError(
            f"{one_line(str(path))} is an exported run, which cannot be continued", hint=build_command("replay", path)
        )
    return None


def refuse_flags(flags: Sequence[str], why: str) -> None:
    context = click.get_current_context()
    for name in flags:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def refuse_other_settings(run: Path, *allowed: str) -> None:
    """Raise UsageError if the command line sets something that a started run cannot change."""
    from dubito.experiment.saved_config import FREE_SETTINGS

    context = click.get_current_context()
    for param in context.command.get_params(context):
        if (
            isinstance(param, click.Option)
            and param.name not in (*allowed, *FREE_SETTINGS, "games_path", "trust", "allow_unsandboxed")
            and context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        ):
            raise UsageError(
                f"{param.opts[0]} cannot change {one_line(str(run))}, which has started with its own settings",
                hint="leave it out, or start a new run from a config",
            )


@contextmanager
def open_run_folder(run: Path | None) -> Iterator[Path]:
    """Yield the folder of a run, by default the latest. An exported file is unpacked into a temporary folder.

    Raises UsageError if it is not a run. The error suggests the most similar run names.
    """
    # Imported late: most commands read no run.
    from dubito.store.folder import RUNS, is_export, latest_run, missing_run_error, runs_inside, unpack

    if run is None:
        run = latest_run(Path(RUNS))
        note(f"the latest run: {run}")
    run = _find_run(run)
    if not run.exists():
        raise missing_run_error(run, Path(RUNS))
    if run.is_dir():
        if runs := runs_inside(run):
            raise UsageError(f"{one_line(str(run))} is a folder of runs", hint=f"name one of them, such as {runs[0]}")
        yield run
        return
    if not is_export(run):
        raise UsageError(f"{one_line(str(run))} is not a run", hint="give a run folder or an exported run")
    with unpack(run) as folder:
        yield folder
