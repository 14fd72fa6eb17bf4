"""Flags that several commands have, the rules of the game that is named among them.

The RUN that a command is given: a folder, a file that `dubito export` made, or nothing, which means the latest.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from dubito.cli.output import note
from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.game.find import DUBITO, find_game, game_names
from dubito.game.packages import set_games_path

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dubito.settings import Setting


class _GameName(click.ParamType):  # type: ignore[type-arg]  # not generic at run time before click 8.3
    """Stands for the game of that name; raises UsageError."""

    name = "game"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Game:
        return find_game(value, Path.cwd()) if isinstance(value, str) else value


GAME: Final = _GameName()
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead (docs/json.md).")

_Function = Callable[..., Any]


def flags(*options: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def kept_games() -> Path:
    """The folder that keeps games where none is named: `games`, unless that holds the code of games, and kept none."""
    folder = Path("games")
    code = any(folder.glob("*/game.py"))
    kept = (folder / "run.db").exists() or any(folder.glob("*.json"))
    return Path("saved") if code and not kept else folder


KEPT: Final = "games, or saved where games holds games of your own"


def _use(ctx: click.Context, param: click.Parameter | None, folders: Sequence[Path]) -> None:
    if folders:
        set_games_path(folders)


games_path_option = click.option(
    "--games-path",
    type=click.Path(path_type=Path),
    multiple=True,
    is_eager=True,  # before a game is named
    expose_value=False,
    callback=_use,
    metavar="FOLDER",
    help="Use what FOLDER has in games, bots and prompts as if it lay here; may be given several times.",
)


def _public(context: click.Context, parameter: click.Parameter, url: str) -> str:
    """The address as it is; raises UsageError if no link can lead there."""
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment):
        raise UsageError(f"--url {one_line(url, 80)} is no address of a page, such as https://me.github.io/games/")
    return url


_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_URL: Final[dict[str, Any]] = {
    "default": "",
    "metavar": "ADDRESS",
    "help": "Where it will stand, as in https://me.github.io/games/: chats and feeds show a link's picture only then.",
}
page_url_option = click.option("--url", callback=_public, **_URL)
site_url_option = click.option(
    "--url", callback=lambda *given: (url := _public(*given)) and f"{url.rstrip('/')}/", **_URL
)


def _host_names(context: click.Context, parameter: click.Parameter, names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            raise click.BadParameter(f"{name!r} is not a host name: leave out https:// and the port.")
    return names


allow_host_option = click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    callback=_host_names,
    help="Answer requests to NAME too, as a reverse proxy or a Codespace sends them; may be given several times.",
)
game_option = flags(
    click.option(
        "--game", type=GAME, default=DUBITO, show_default=True, metavar="NAME", help="A game of `dubito games`."
    ),
    games_path_option,
)

# Who may sit at a table besides the bots, and where their questions are kept.
company_options = flags(
    click.option("--config", type=click.Path(path_type=Path), help="Experiment whose players may be named as well."),
    click.option(
        "--games",
        type=click.Path(path_type=Path),
        default=kept_games,
        show_default=KEPT,
        help="Folder that keeps what model players are asked.",
    ),
)

SPENDING: Final = ("budget", "prices", "preflight", "cache", "offline")  # settings of what models may cost


def config_options(*keys: str) -> Callable[[_Function], _Function]:
    """Return a decorator that gives a command the flags of these settings of a config, by default of all."""
    from dubito.experiment.config import FILE_ONLY, SETTINGS  # late: it takes a while to load

    return setting_options(SETTINGS[key] for key in keys or SETTINGS if key not in FILE_ONLY)


def setting_options(settings: Iterable["Setting"]) -> Callable[[_Function], _Function]:
    declared = map(_declare, settings)
    return flags(*(click.option(*names, **attributes) for names, attributes in declared))


def _declare(setting: "Setting") -> tuple[list[str], dict[str, Any]]:
    """Return the names and the attributes of a setting's option, whose value is None where it is not given."""
    about = f"{setting.about} [default: {setting.usual}]"
    if setting.kind is bool:
        return [setting.key, f"{setting.flag}/--no-{setting.flag[2:]}"], {"default": None, "help": about}
    return [setting.key, setting.flag], {"metavar": setting.metavar, "help": about}


_RULES: Final = "dubito.rules"  # where a context keeps the options that are a game's rules


class GameCommand(click.Command):
    """A command with an option for each rule of the game that --game names, or its CONFIG; it is given them as `rules`.

    A rule whose name means something else to a command or a config can be said under `rules` of a config only.
    """

    def __init__(self, *rest: Any, headings: Mapping[str, str] | None = None, **more: Any) -> None:
        """`headings` has the headings of `--help` by the names of options, in the order they are shown in."""
        super().__init__(*rest, **more)
        self.headings = headings or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in click; raises UsageError for a rule of another game."""
        said, rest = self._foretold(ctx, list(args))
        _use(ctx, None, [Path(folder) for folder in said.get("games_path") or ()])
        is_asked = any(word.startswith("--") for word in rest) or not {*args}.isdisjoint(ctx.help_option_names)
        rules: list[click.Parameter] = self._rules(self._game(said, rest)) if is_asked else []
        ctx.meta[_RULES] = rules
        try:
            left = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            key = error.option_name.lstrip("-").replace("-", "_")
            if _is_a_rule(key):
                rules_from({key: ""}, self._game(said, rest))  # raises with the nearest rule
            raise
        given = {str(rule.name): ctx.params.pop(str(rule.name)) for rule in rules}
        ctx.params["rules"] = {key: value for key, value in given.items() if value is not None}
        return left

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params, rules = super().get_params(ctx), ctx.meta.get(_RULES, [])
        place = 1 + next(place for place, param in enumerate(params) if param.name == "game")
        return [*params[:place], *rules, *params[place:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings; those without one come last."""
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

    def _foretold(self, ctx: click.Context, args: list[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the values of flags that every game has, and the other words: arguments, rules and their values."""
        options = [each for each in self.params if isinstance(each, click.Option)]
        parser = click.Command(self.name, params=[*options]).make_parser(ctx)
        parser.ignore_unknown_options = True
        try:
            said, rest, _ = parser.parse_args(args)
        except click.UsageError:  # said in its turn
            return {}, []
        return said, rest

    def _game(self, said: Mapping[str, Any], rest: Sequence[str]) -> Game:
        """The game that is meant; raises UsageError."""
        name = said.get("game")
        if name is None and any(each.name == "config" for each in self.params if isinstance(each, click.Argument)):
            from dubito.experiment.config import read_config  # late: it takes a while to load

            paths = [Path(word) for word in rest if not word.startswith("-")]
            file = next((path for path in paths if path.suffix in (".yaml", ".yml") or path.is_file()), None)
            name = read_config(file).get("game") if file else None
        return find_game(DUBITO if name is None else str(name), Path.cwd())

    def _rules(self, game: Game) -> list[click.Parameter]:
        from dubito.experiment.config import SETTINGS  # late: these take a while to load
        from dubito.settings import Setting

        taken = {*SETTINGS, *(param.name for param in self.params)}
        rules = [Setting(key, field) for key, field in rules_model(game).model_fields.items() if key not in taken]
        return [click.Option(names, **attributes) for names, attributes in map(_declare, rules)]


def rules_model(game: Game) -> "type[BaseModel]":
    return type(game.rules())


def _is_a_rule(key: str) -> bool:
    for name in game_names(Path.cwd()):
        with suppress(UsageError):  # a family has no rules, and a broken game is not what was asked about
            if key in rules_model(find_game(name, Path.cwd())).model_fields:
                return True
    return False


def rules_from(rules: Mapping[str, Any], game: Game) -> "BaseModel":
    """The rules of a game with what flags say of them; raises UsageError."""
    from dubito.experiment.config import parse_config  # most commands have no use for either
    from dubito.experiment.resolve import parse_rules

    return parse_rules(parse_config({"game": game.name}, "the command", rules), game)


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    return flags(click.argument("run", required=False, type=click.Path(path_type=Path)), games_path_option)(command)


@contextmanager
def folder_of(run: Path | None) -> Iterator[Path]:
    """Yield the folder of a run, by default the latest; an exported file is unpacked into a temporary folder.

    Raises UsageError that names the nearest runs, or says that the file is not an exported run.
    """
    # late: most commands read no run
    from dubito.store.folder import RUNS, is_export, latest_run, missing_run_error, runs_inside, unpack

    if run is None:
        run = latest_run(Path(RUNS))
        note(f"the latest run: {run}")
    if not run.exists():
        raise missing_run_error(run, Path(RUNS))
    if run.is_dir():
        if runs := runs_inside(run):
            raise UsageError(f"{one_line(str(run))} is a folder of runs: name one of them, such as {runs[0]}")
        yield run
        return
    if not is_export(run):
        raise UsageError(f"{one_line(str(run))} is not a run: give a run folder, or a file that `dubito export` made")
    with unpack(run) as folder:
        yield folder
