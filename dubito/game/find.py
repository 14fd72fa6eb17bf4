"""Find games and bots by name, and import them from their paths.

Importing by path keeps packages with the same name separate. `packages.py` finds the game packages.

Bots are classes in the files of `bots/manual` and `bots/llms`. Bots of games other than Dubito are in subfolders named
after the game or its family, such as `bots/manual/bs`. Each class is a bot by its own name, without private classes and
those that another class of the file inherits from. Bots are searched in Dubito's own folders, the working directory,
`--games-path` and the packages of installed games. A user's bot replaces Dubito's own bot of the same name. A file that
cannot be used is listed as broken, with advice on how to fix it, and does not affect other bots.
"""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from dubito.errors import UsageError, find_similar, join_names, one_line, suggestion
from dubito.game import Family, Game, Player
from dubito.game.flaws import find_definition_flaws
from dubito.game.native import compiled_twin
from dubito.game.seat_random import draw_from_seats, redirect_random
from dubito.hooks import find_source_reader
from dubito.packages import (
    HOME,
    MODULE,
    GamePackage,
    all_packages,
    find_package,
    own_folder,
    plugin_folders,
    roots,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def import_file(name: str, file: Path, source: bytes, game: object, code: ast.Module | None = None) -> ModuleType:
    """Import a module under this name from `source`, or from the code that replaces it.

    The module is imported again if the file was edited or now belongs to another game.
    """
    mark = sha256(source).hexdigest(), game
    loaded = sys.modules.get(name)
    if loaded is None or getattr(loaded, "_dubito_mark", mark) != mark:
        loaded = import_as(name, file, code or source)
    loaded._dubito_mark = mark  # type: ignore[attr-defined]
    return loaded


def import_as(name: str, file: Path, source: bytes | ast.Module, package: Path | None = None) -> ModuleType:
    """Import a module from these bytes, or from code parsed from them.

    No bytecode cache is used, because its code might not match the digest.
    """
    folders = None if package is None else [str(package)]
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    assert spec is not None  # a .py file always has a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(source, str(file), "exec"), module.__dict__)  # noqa: S102, a bot is trusted code (R28)
    except BaseException:
        del sys.modules[name]
        raise
    return module


DUBITO: Final = "dubito"  # the default game
PROGRAM_FILE: Final = "bot.yaml"  # in the folder of a program bot
_LOADED: Final[dict[str, str]] = {}  # the user's imported packages, with the digest of their sources at import
_PACKAGES: Final[dict[str, str]] = {}  # maps `games.NAME` to the package's real name, if it is installed


class NoSuchGame(UsageError):
    """Raised when no game has this name."""


def find_game(name: str, working_directory: Path, flawed: bool = False) -> Game:
    """Return the game of that name.

    Raises UsageError with the most similar name or a description of what is wrong with the package. If `flawed` is
    true, games with flaws are returned as well, so that the caller can list the flaws.
    """
    first, colon, member = name.partition(":")
    package = find_package(first, working_directory)
    if package is None:
        hint = suggestion(first, game_names(working_directory))
        sought, members = first.partition("(")[0], []
        for family in find_families(working_directory):
            with suppress(UsageError):  # a family that cannot be used
                members += [f"{family.name}:{sought}" for member in family.members() if member.name == sought]
        if members:
            hint = f"did you mean {one_line(repr(members[0] + first.removeprefix(members[0].partition(':')[2])), 80)}?"
        if first.isdecimal():
            hint = f"to play that many games, use --games {one_line(first, 60)}"
        raise NoSuchGame(f"unknown game {one_line(repr(first), 60)}: {hint}")
    game = _load_game(package, working_directory, flawed)
    if isinstance(game, Game):
        if colon:
            raise UsageError(
                f"unknown game {one_line(repr(name), 60)}: {first} is a single game, so leave out the colon"
            )
        return game
    if not member:
        raise UsageError(f"{first} is a family of games; add the name of a game after a colon. {game.summary}")
    return game.member(member)


def find_games(working_directory: Path) -> list[Game]:
    """Return all usable single games by name."""
    return [game for game in usable_games(working_directory)[0] if isinstance(game, Game)]


def find_families(working_directory: Path) -> list[Family]:
    """Return all usable families by name."""
    return [family for family in usable_games(working_directory)[0] if isinstance(family, Family)]


def usable_games(working_directory: Path) -> tuple[list[Game | Family], list[str]]:
    """Return all usable games and families by name, and why other packages cannot be used."""
    games, faults = list[Game | Family](), list[str]()
    for package in all_packages(working_directory):
        try:
            games.append(_load_game(package, working_directory))
        except UsageError as error:
            faults.append(str(error))
    return games, faults


def game_names(working_directory: Path) -> list[str]:
    """Return the sorted names of all games and families, usable or not."""
    return sorted({package.name for package in all_packages(working_directory) if package.name})


def package_of(game: Game, working_directory: Path) -> GamePackage:
    """Return the package of a game found from this working directory."""
    package = find_package(game.folder, working_directory)
    assert package is not None
    return package


def digest_of_game(game: Game, working_directory: Path) -> str:
    """Hash the sources of a game's package and the version of its library."""
    digest = package_of(game, working_directory).digest
    return sha256(f"{digest}\0{game.version}".encode()).hexdigest() if game.version else digest


def source_of(game: Game, working_directory: Path) -> str:
    """Return what identifies a game's implementation, in addition to its name and `rules_version`.

    For a game that comes with Dubito, this is the version of the library that implements its rules, if any. Its files
    can be edited freely because a test guards its `rules_version`. For any other game it is the digest of its sources,
    because nothing reminds the author to increase `rules_version`.
    """
    return game.version if package_of(game, working_directory).is_own else digest_of_game(game, working_directory)


def _load_game(package: GamePackage, working_directory: Path, flawed: bool = False) -> Game | Family:
    if package.fault:
        raise UsageError(package.fault)
    file = package.folder / MODULE
    if package.is_own:
        module = import_module(f"{package.module}.game")
    else:
        _set_games_package(working_directory)
        module = _import_from(package, file.stem)
    game = getattr(module, "GAME", None)
    shown = one_line(str(file))
    if not isinstance(game, Game | Family):
        raise UsageError(f"{shown} does not define a game; add `GAME = MyGame()` with a subclass of dubito.game.Game")
    if isinstance(game, Game) and not flawed and not package.is_own:
        for flaw in find_definition_flaws(game):
            raise UsageError(f"{shown}: {flaw}")
    if (name := getattr(game, "name", None)) != package.name:
        named = f"its entry point, {package.name}" if package.distribution else "its folder"
        raise UsageError(f"{shown}: the game is named {name!r}; it must be named after {named}")
    return game


def _import_from(package: GamePackage, name: str) -> ModuleType:
    """Import a module from a user's or an installed package.

    Other modules can import either as `games.NAME`.
    """
    digest, mark, alias = package.digest, package.module, f"games.{package.name}"
    # The package was edited, or the name now means another package.
    if _LOADED.get(mark, digest) != digest or _PACKAGES.get(alias, mark) != mark:
        _forget(mark)
        _forget(alias)
    _LOADED[mark], _PACKAGES[alias] = digest, mark
    try:
        return import_module(f"{mark}.{name}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # importing foreign code may raise anything
        text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        raise UsageError(
            f"the game in {one_line(str(package.folder))}: importing it raises {text}; correct it"
        ) from None


def _forget(package: str) -> None:
    """Drop the package and its modules from the import cache."""
    for loaded in [loaded for loaded in sys.modules if f"{loaded}.".startswith(f"{package}.")]:
        del sys.modules[loaded]
    _LOADED.pop(package, None)


def _set_games_package(working_directory: Path) -> None:
    """Make `import games` search the `games` folders that apply to this directory."""
    folders = [str((root / "games").resolve()) for root in roots(working_directory)]
    loaded = sys.modules.get("games")
    if loaded is None or [*loaded.__path__] != folders:
        for package in ["games", *(mark for mark in _LOADED if mark.startswith("games."))]:
            _forget(package)
        sys.modules["games"] = games = ModuleType("games")
        games.__path__ = folders
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


class _UncachedLoader(SourceFileLoader):
    """Imports a user's module without writing bytecode, which could differ from the source that was hashed."""

    def set_data(self, path: str, data: "ReadableBuffer", *, _mode: int = 0o666) -> None:
        pass


@dataclass(eq=False)
class _GameFinder:
    """An importer of users' games, which makes installed games available as `games.NAME`.

    Both names refer to the same module.
    """

    # by the name `games.NAME`: the module's own spec
    _own: dict[str, ModuleSpec | None] = field(default_factory=dict)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if _installed_name(name):
            return ModuleSpec(name, self)  # type: ignore[arg-type]
        if not any(f"{name}.".startswith(f"{package}.") for package in _LOADED):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _UncachedLoader(name, spec.loader.path)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = _installed_name(spec.name)
        assert name is not None  # find_spec has already checked this
        module = import_module(name)
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec, which the import system replaced. The module itself has already run."""
        assert module.__spec__ is not None
        module.__spec__ = self._own[module.__spec__.name]


def _installed_name(module: str) -> str | None:
    """Return the real name of the module `games.NAME...` of an installed game."""
    parts = module.split(".", 2)
    package = _PACKAGES.get(".".join(parts[:2])) if parts[0] == "games" else None
    return ".".join([package, *parts[2:]]) if package and package != ".".join(parts[:2]) else None


_FINDER: Final = _GameFinder()


BotKind = Literal["manual", "llms"]
KINDS: Final[tuple[BotKind, ...]] = ("manual", "llms")
_UNSEEDED: Final = ("secrets", "numpy")  # modules whose randomness cannot be seeded


class Bot(NamedTuple):
    """A bot that can be played."""

    name: str
    cls: type[Player]
    file: Path
    kind: BotKind
    digest: str  # sha256 of the file
    repeatable: bool  # False if it uses randomness that cannot be seeded
    missing: Sequence[str] = ()  # unanswered nodes, at which a game would stop

    @property
    def usual(self) -> bool:
        """Whether the bot plays by default, if no opponents are named. The flag is not inherited."""
        return self.cls.__dict__.get("usual", True) is not False

    @property
    def is_base(self) -> bool:
        """Whether the bot needs settings to play, like LLMBot (the base of configured model players) and ProgramBot."""
        return self.cls.__dict__.get("defaults") == {}

    @property
    def fastest(self) -> type[Player]:
        """The compiled class if this installation has one, otherwise `cls`."""
        return compiled_twin(self.cls, self.file, self.digest)

    @property
    def summary(self) -> str:
        """The first line of the class's docstring."""
        doc = (self.cls.__dict__.get("__doc__") or "").strip()
        return one_line(doc.splitlines()[0]) if doc else "(no docstring)"


class BrokenBot(NamedTuple):
    """A bot file that cannot be used, and why."""

    file: Path
    kind: BotKind
    reason: str
    name: str | None = None  # set if two bots have the same name

    def __str__(self) -> str:
        return f"{_short_path(self.file)}: {self.reason}"

    def has_name(self, name: str) -> bool:
        """Return whether the name refers to this file."""
        plain = ["".join(filter(str.isalnum, each.casefold())).removesuffix("bot") for each in (self.file.stem, name)]
        return name == self.name or plain[0] == plain[1]


@dataclass(frozen=True, slots=True)
class Registry:
    """All bots of a game by name, and the files that cannot be used."""

    game: Game
    bots: dict[str, Bot]
    broken: list[BrokenBot]
    working_directory: Path
    # Bots of the game's family that do not play this game, and why.
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    program: Bot | None = None  # the bot for all programs, which needs a command
    replaced: Mapping[str, Bot] = field(default_factory=dict)  # Dubito's own bots, by the name of the user's

    def find(self, name: str) -> Bot:
        """Return the bot of that name.

        Raises UsageError with the most similar name or a description of what is broken.
        """
        if name in self.bots:
            return self.bots[name]
        if self.program is not None and name == self.program.name:
            return self.program
        for broken in self.broken:
            if broken.has_name(name):
                raise UsageError(f"bot {one_line(name)!r} cannot be used: {broken}")
        listed = [bot.name for bot in self.playable()]
        if name in self.elsewhere:
            raise UsageError(f"{name} {self.elsewhere[name]}; choose from {', '.join(listed)}")
        having = []  # the other games that have a bot of this name
        for game in game_names(self.working_directory):
            with suppress(UsageError):  # a broken game does not matter here
                if game != self.game.folder and name in find_bots(self.working_directory, game).bots:
                    having.append(game)
        if having:
            raise UsageError(
                f"no bot of {self.game.name} is named {one_line(name)!r}, but {' and '.join(having)} "
                f"{'has' if len(having) == 1 else 'have'} one: "
                f"add `game: {having[0]}`, or choose from {', '.join(listed)}"
            )
        model = "" if ":" in name or find_similar(name, listed) else f"; a model is `openai:{one_line(name)}`"
        files = " and ".join(_short_path(broken.file) for broken in self.broken)
        unused = f"; {files} cannot be used: `dubito bots` shows the reason" if files else ""
        raise UsageError(f"no bot is named {one_line(name)!r}: {suggestion(name, listed)}{model}{unused}")

    @property
    def fallback(self) -> type[Player]:
        """The bot class that takes over when a turn fails, which is the game's weakest (R13).

        A user's bot of that name does not take over.
        """
        name = self.game.fallback
        return self.replaced[name].cls if name in self.replaced else self.find(name).cls

    def describe_replaced(self, names: Iterable[str]) -> str | None:
        """Return a note that names the bots that replace Dubito's own, or None."""
        replaced = [name for name in sorted(names) if name in self.replaced]
        if not replaced:
            return None
        files = sorted({_short_path(self.bots[name].file) for name in replaced})
        come = "comes" if len(replaced) == 1 else "come"
        return f"{join_names(replaced)} {come} from your {join_names(files)}, not from Dubito"

    def playable(self) -> list[Bot]:
        """Return the bots by name, without those that need settings."""
        return [bot for _, bot in sorted(self.bots.items()) if not bot.is_base]

    def hand_written(self) -> list[Bot]:
        """Return the default opponents: hand-written bots whose `usual` is true.

        Raises UsageError if a hand-written bot's file is broken.
        """
        for broken in self.broken:
            if broken.kind == "manual":
                raise UsageError(f"{broken}; or name the bots to play with --bots")
        return [bot for _, bot in sorted(self.bots.items()) if bot.kind == "manual" and bot.usual]


def find_bots(working_directory: Path, game: str = DUBITO) -> Registry:
    """Load every bot of a game. Raises UsageError if the game does not exist."""
    found_game, own = find_game(game, working_directory), _set_bots_package()
    by_name: dict[str, list[Bot]] = {}
    broken, elsewhere = [], dict[str, str]()
    for kind, file in _files(_bot_folders(found_game, own, working_directory)):
        try:
            loaded = _load_bots(kind, file, own, found_game)
        except _UnusableError as error:
            broken.append(BrokenBot(file, kind, str(error)))
            continue
        for bot in loaded:
            if why := found_game.cannot_play(bot.cls):
                elsewhere[bot.name] = why
                continue
            twins = by_name.setdefault(bot.name, [])
            if all(bot.digest != twin.digest for twin in twins):  # files with the same bytes count as one bot
                twins.append(bot)
    manual = [folder for kind, folder in _bot_folders(found_game, own, working_directory) if kind == "manual"]
    programs = [file for folder in manual for file in sorted(folder.glob(f"*/{PROGRAM_FILE}"))]
    for file in programs:
        try:
            by_name.setdefault(file.parent.name, []).append(_load_program(file, own))
        except UsageError as error:
            broken.append(BrokenBot(file, "manual", str(error)))
    dubito = find_game(DUBITO, own)
    if game != DUBITO:
        # The model players that ship with Dubito play every game.
        files = _files([("llms", own / "llms")])
        by_name = {bot.name: [bot] for _, file in files for bot in _load_bots("llms", file, own, dubito)} | by_name
    replaced = dict[str, Bot]()
    for name, twins in by_name.items():
        users = [bot for bot in twins if not bot.file.is_relative_to(own) and not bot.file.is_relative_to(HOME)]
        if len(twins) == 2 and len(users) == 1:
            replaced[name] = next(bot for bot in twins if bot is not users[0])
            by_name[name] = [users[0]._replace(kind=replaced[name].kind)]
        elif len(twins) > 1:
            paths = " and ".join(_short_path(bot.file) for bot in users or twins)
            reason = f"the name {name} is used by {paths}; rename one class"
            broken += [BrokenBot(bot.file, bot.kind, reason, name) for bot in users or twins]
    bots = {name: twins[0] for name, twins in by_name.items() if len(twins) == 1}
    # The bot for all players that are programs, which can play every game.
    (program,) = _load_bots("llms", own / "llms" / "_program_bot.py", own, dubito)
    return Registry(found_game, bots, broken, working_directory, elsewhere, program, replaced)


class _UnusableError(Exception):
    """Raised with the reason why a file does not define a bot."""


def _bot_folders(game: Game, own: Path, working_directory: Path) -> Iterator[tuple[BotKind, Path]]:
    """Yield the game's bot folders: Dubito's, the user's and those of installed packages."""
    for bots in (own, *(root / "bots" for root in (*plugin_folders(), *roots(working_directory)))):
        for kind in KINDS:
            yield kind, bots / kind if game.name == DUBITO else bots / kind / game.folder
    package = package_of(game, working_directory)
    if package.distribution:
        yield from ((kind, package.folder / "bots" / kind) for kind in KINDS)


def manual_folders(game: Game, working_directory: Path) -> list[Path]:
    """Return the folders with a game's hand-written bots, Dubito's own first."""
    own = _set_bots_package()
    return [folder for kind, folder in _bot_folders(game, own, working_directory) if kind == "manual"]


def _files(folders: Iterable[tuple[BotKind, Path]]) -> Iterator[tuple[BotKind, Path]]:
    seen = set()
    for kind, folder in folders:
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            real = os.path.realpath(folder / name)
            # Skip hidden files: macOS and editors leave ._x.py and .#x.py behind.
            if name.endswith(".py") and not name.startswith(("_", ".")) and real not in seen:
                seen.add(real)
                yield kind, folder / name


def _load_program(file: Path, own: Path) -> Bot:
    """Return the bot for a folder that contains a program. Runs check the bot's settings."""
    from dubito.files import read_yaml  # imported late because it loads pydantic, and few bots are folders

    settings = read_yaml(file)
    if not isinstance(settings, dict) or not isinstance(settings.get("process"), list):
        raise UsageError("`process` is missing; add a line such as `process: [python3, my_bot.py]`")
    base: type[Player] = import_bots("llms._program_bot").ProgramBot
    command = one_line(" ".join(map(str, settings["process"])), 80)
    fields = {"defaults": settings, "usual": False, "origin": "a program", "__doc__": f"The program {command}."}
    digest = sha256(file.read_bytes()).hexdigest()
    return Bot(file.parent.name, type(file.parent.name, (base,), fields), file, "manual", digest, repeatable=True)


def _load_bots(kind: BotKind, file: Path, own: Path, game: Game) -> list[Bot]:
    try:
        source = file.read_bytes()
        digest = sha256(source).hexdigest()
        foreign = find_source_reader(game.name)
        code = converted = foreign.convert_source(source) if foreign else None
        if draws := _may_import(source, ("random",)) and "random" in _imports(source):
            code = redirect_random(code or ast.parse(source))
        module = import_file(_module_name(file, own), file, source, game, code)
        if foreign and converted is not None:
            foreign.seat_bots(module)
        if draws:
            draw_from_seats(module, Player)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise _UnusableError(f"syntax error{where}: {one_line(error.msg)}; correct it") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a bot file is importing foreign code may raise anything
        text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        raise _UnusableError(f"importing it raises {text}; correct or remove the file") from None
    repeatable = _is_repeatable(source)
    classes = _bot_classes(module, game)
    return [Bot(cls.__name__, cls, file, kind, digest, repeatable, game.missing(cls)) for cls in classes]


def _module_name(file: Path, own: Path) -> str:
    """Return a bot's module name, such as `bots.manual.bs.player1`.

    Names of the user's files are derived from their folder.
    """
    inside = file.relative_to(own) if file.is_relative_to(own) else None
    if inside is not None:
        return ".".join(["bots", *inside.with_suffix("").parts])
    if file.is_relative_to(HOME):  # a plugin's
        return ".".join(["dubito", *file.relative_to(HOME).with_suffix("").parts])
    # the hash keeps folders apart
    return f"bots_{sha256(str(file.parent.resolve()).encode()).hexdigest()[:12]}.{file.stem}"


def _set_bots_package() -> Path:
    """Make `import bots` mean Dubito's own package, and return its folder."""
    own = own_folder("bots")
    loaded = sys.modules.get("bots")
    if loaded is None or [Path(folder).resolve() for folder in loaded.__path__] != [own]:
        for name in [name for name in sys.modules if name == "bots" or name.startswith("bots.")]:
            del sys.modules[name]
        init = own / "__init__.py"
        import_as("bots", init, init.read_bytes(), own)
    return own


def import_bots(name: str) -> ModuleType:
    """Return the module `bots.NAME` that ships with Dubito."""
    _set_bots_package()
    return import_module(f"bots.{name}")


def _bot_classes(module: ModuleType, game: Game) -> list[type[Player]]:
    """Return the file's bot classes.

    Private classes and those that another bot of the file inherits from are not bots.
    """
    classes = [
        value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    ]
    bots = [
        cls
        for cls in classes
        if (issubclass(cls, game.base) or (issubclass(cls, Player) and cls.is_model))
        and not cls.__name__.startswith("_")
    ]
    if not bots:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        raise _UnusableError(f"no class is a bot (classes found: {names}); make one a subclass of {game.base_path}")
    return [cls for cls in bots if not any(other is not cls and issubclass(other, cls) for other in bots)]


@cache
def _is_repeatable(source: bytes) -> bool:
    """Return whether these sources use no randomness that cannot be seeded."""
    if b"SystemRandom" in source:
        return False
    return not _may_import(source, _UNSEEDED) or _imports(source).isdisjoint(_UNSEEDED)


def _may_import(source: bytes, names: Sequence[str]) -> bool:
    """Return False if no line with `import` mentions a module, so that the sources need not be parsed, for speed."""
    lines = b"\n".join(source.splitlines()).replace(b"\\\n", b" ").split(b"\n")
    return not source.isascii() or any(
        b"import" in line and any(name.encode() in line for name in names) for line in lines
    )


def _imports(source: bytes) -> frozenset[str]:
    """Return the top-level names of all imported modules, at any depth of the code."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.split(".")[0])
    return frozenset(names)


def _short_path(file: Path) -> str:
    """Return the last three parts of a path: bots/manual/name.py."""
    return one_line("/".join(file.parts[-3:]))
