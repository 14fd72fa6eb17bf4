"""Foreign code imported by its path, so that no package of the same name stands in the way.

Games by name: a package with a `game.py` in `dubito/games`, or in `games` of the working directory, is found.

Bots of a game by name: drop a file into `bots/manual` or `bots/llms`, and it is found.

Bots of other games than Dubito lie in a folder there that has the game's name, or its family's, as `bots/manual/bs`.
The class of a file is the one whose name equals the file's, case and underscores ignored, a trailing
`Bot` optional; the bot's name is the class's. Looked at are the folders that came with the project and
those of the working directory. A file that cannot be used is kept as broken, with what to do, and
stops no other bot.
"""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

import dubito
from dubito.errors import UsageError, one_line, suggestion
from dubito.game import Family, Game, Player
from dubito.game.flaws import flaws_of
from dubito.game.native import compiled_twin


def import_file(name: str, file: Path, source: bytes, game: object) -> ModuleType:
    """The module of these bytes, under this name; anew if the file was edited, or the game whose classes it has."""
    mark = sha256(source).hexdigest(), game
    loaded = sys.modules.get(name)
    if loaded is None or getattr(loaded, "_dubito_mark", mark) != mark:
        loaded = import_as(name, file, source)
    loaded._dubito_mark = mark  # type: ignore[attr-defined]
    return loaded


def import_as(name: str, file: Path, source: bytes, package: Path | None = None) -> ModuleType:
    """A module of these very bytes: a cache of bytecode could be of others, and the digest would lie."""
    folders = None if package is None else [str(package)]
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    assert spec is not None  # a .py file always has one
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        exec(compile(source, str(file), "exec"), module.__dict__)  # noqa: S102, a bot is trusted code (R28)
    except BaseException:
        del sys.modules[name]
        raise
    return module


DUBITO: Final = "dubito"  # the game where none is named
_HOME: Final = Path(dubito.__file__).resolve().parent
_OWN: Final = _HOME / "games"
_FILES: Final = ("game.py", "spec.py")  # that say what the game is; the second one is what it was called before
_LOADED: Final[dict[str, str]] = {}  # packages of the user's, with the digest of what was imported


def find_game(name: str, working_directory: Path, flawed: bool = False) -> Game:
    """The game of that name; raises UsageError with the nearest one, or with what is wrong with its package.

    A `flawed` one is given too, for whoever tells all of its flaws.
    """
    folders = {folder.name: folder for folder in _folders(working_directory)}
    first, colon, member = name.partition(":")
    if first not in folders:
        hint = suggestion(first, folders)
        if members := _members_named(first.partition("(")[0], working_directory):
            hint = f"did you mean {one_line(repr(members[0] + first.removeprefix(members[0].partition(':')[2])), 80)}?"
        raise UsageError(f"there is no game {one_line(repr(first), 60)}: {hint}")
    found = _load_game(folders[first], flawed)
    if isinstance(found, Game):
        if colon:
            raise UsageError(f"there is no game {one_line(repr(name), 60)}: {first} is one game, and has no colon")
        return found
    if not member:
        raise UsageError(f"{first} is a family of games: name one of them behind a colon. {found.summary}")
    return found.member(member)


def _members_named(name: str, working_directory: Path) -> list[str]:
    """The members of families that are called so, with their family's name; of a family that cannot be used, none."""
    found = []
    for family in find_families(working_directory):
        with suppress(UsageError):
            found += [f"{family.name}:{name}" for member in family.members() if member.name == name]
    return found


def find_games(working_directory: Path) -> list[Game]:
    """All games that stand alone, by name; raises UsageError for a package that cannot be used."""
    found = (game for game in map(_load_game, _folders(working_directory)) if isinstance(game, Game))
    return sorted(found, key=lambda game: game.name)


def find_families(working_directory: Path) -> list[Family]:
    """All families of games, by name; raises UsageError for a package that cannot be used."""
    found = (family for family in map(_load_game, _folders(working_directory)) if isinstance(family, Family))
    return sorted(found, key=lambda family: family.name)


def game_names(working_directory: Path) -> list[str]:
    """The names of all games and families, sorted, whether they can be used or not."""
    return sorted(folder.name for folder in _folders(working_directory))


def digest_of_game(game: Game, working_directory: Path) -> str:
    """A hash over the sources of a game's package, and the version of the library that has its rules."""
    return _versioned(_digest(next(one for one in _folders(working_directory) if one.name == game.folder)), game)


def source_of(game: Game, working_directory: Path) -> str:
    """What a run's identity has of its game: the same digest, or that of the sources whose games it still plays."""
    return _versioned(game.plays_as, game) if game.plays_as else digest_of_game(game, working_directory)


def _versioned(digest: str, game: Game) -> str:
    return sha256(f"{digest}\0{game.version}".encode()).hexdigest() if game.version else digest


def _digest(folder: Path) -> str:
    files = sorted(folder.rglob("*.py"))
    parts = [f"{file.relative_to(folder).as_posix()}\0{sha256(file.read_bytes()).hexdigest()}\n" for file in files]
    return sha256("".join(parts).encode()).hexdigest()


def _folders(working_directory: Path) -> Iterator[Path]:
    """The packages of games, those that come with Dubito first; no folder of the user's may take one of their names."""
    seen = set[str]()
    for root in (_OWN, working_directory / "games"):
        for folder in sorted({file.parent for name in _FILES for file in root.glob(f"*/{name}")}):
            if folder.name in seen and folder.resolve().parent != _OWN:
                shown = f"{one_line(str(folder))}: {folder.name}"
                raise UsageError(f"{shown} is the name of a game that comes with Dubito: rename the folder")
            if folder.name not in seen:
                seen.add(folder.name)
                yield folder


def _load_game(folder: Path, flawed: bool = False) -> Game | Family:
    if folder.parent == _OWN:
        file = folder / _FILES[0]
        module = import_module(f"dubito.games.{folder.name}.game")
    else:
        file = next(folder / name for name in _FILES if (folder / name).is_file())
        module = _import_from(folder.parent.resolve(), folder.name, file.stem)
    game = getattr(module, "GAME", None) or getattr(module, "SPEC", None)
    if not isinstance(game, Game | Family):
        raise UsageError(f"{one_line(str(file))} defines no game: it needs `GAME = Game(...)` of dubito.game")
    if game.name != folder.name:
        raise UsageError(f"{one_line(str(file))}: the game is named {game.name!r}: name it as its folder")
    if isinstance(game, Game) and not flawed and folder.parent != _OWN:
        for flaw in flaws_of(game):
            raise UsageError(f"{one_line(str(file))}: {flaw}")
    return game


def _import_from(games: Path, name: str, module: str) -> ModuleType:
    """A module of a package of the user's, as `games.NAME.game`: so its bots import from it, wherever it lies."""
    _pin(games)
    digest, mark = _digest(games / name), f"games.{name}"
    if _LOADED.get(mark) != digest:  # edited since
        for loaded in [loaded for loaded in sys.modules if f"{loaded}.".startswith(f"{mark}.")]:
            del sys.modules[loaded]
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # a cache of bytecode could be of other bytes
    try:
        found = import_module(f"{mark}.{module}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # foreign code: its import may raise anything
        text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        raise UsageError(f"the game in {one_line(str(games / name))}: importing it raises {text}: correct it") from None
    finally:
        sys.dont_write_bytecode = written
    _LOADED[mark] = digest
    return found


def _pin(games: Path) -> None:
    """Make `import games` mean this folder."""
    loaded = sys.modules.get("games")
    if loaded is None or [*loaded.__path__] != [str(games)]:
        for module in [module for module in sys.modules if f"{module}.".startswith("games.")]:
            del sys.modules[module]
        _LOADED.clear()
        package = ModuleType("games")
        package.__path__ = [str(games)]
        sys.modules["games"] = package


BotKind = Literal["manual", "llms"]
KINDS: Final[tuple[BotKind, ...]] = ("manual", "llms")
_UNSEEDED: Final = ("random", "secrets", "numpy")  # modules whose draws no seed of ours reaches


class Bot(NamedTuple):
    """A bot that can be played."""

    name: str
    cls: type[Any]  # a Player: what else its game says
    file: Path
    kind: BotKind
    digest: str  # sha256 of the file
    repeatable: bool  # False: it draws from randomness that no seed reaches
    missing: Sequence[str] = ()  # the nodes at which its games would stop, since nobody has written them

    @property
    def usual(self) -> bool:
        """Whether it plays where no field is named; a subclass of one that does not is a bot of its own."""
        return self.cls.__dict__.get("usual", True) is not False

    @property
    def fastest(self) -> type[Any]:
        """The class as this installation plays it fastest: compiled from the same bytes, if it was."""
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
    name: str | None = None  # of a clash

    def __str__(self) -> str:
        return f"{_short(self.file)}: {self.reason}"

    def is_called(self, name: str) -> bool:
        """Whether whoever asks for this name means this file."""
        return name == self.name or _same_name(self.file.stem, name)


@dataclass(frozen=True, slots=True)
class Registry:
    """All bots of a game found, by name, and the files that could not be used."""

    game: Game
    bots: dict[str, Bot]
    broken: list[BrokenBot]
    working_directory: Path
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # bots of its family that it has no use for: why

    def find(self, name: str) -> Bot:
        """The bot of that name; raises UsageError with the nearest one, or with what is broken."""
        if name in self.bots:
            return self.bots[name]
        for broken in self.broken:
            if broken.is_called(name):
                raise UsageError(f"bot {one_line(name)!r} cannot be used: {broken}")
        if name in self.elsewhere:
            raise UsageError(f"{name} {self.elsewhere[name]}: choose from {', '.join(sorted(self.bots))}")
        if having := self._elsewhere(name):
            raise UsageError(
                f"no bot of {self.game.name} is named {one_line(name)!r}, but {' and '.join(having)} "
                f"{'has' if len(having) == 1 else 'have'} one: "
                f"add `game: {having[0]}`, or choose from {', '.join(sorted(self.bots))}"
            )
        raise UsageError(f"no bot is named {one_line(name)!r}: {suggestion(name, self.bots)}")

    def _elsewhere(self, name: str) -> list[str]:
        """The other games that have a bot of this name."""
        found = []
        for game in game_names(self.working_directory):
            with suppress(UsageError):  # a broken game is not what was asked about
                if game != self.game.folder and name in find_bots(self.working_directory, game).bots:
                    found.append(game)
        return found

    @property
    def fallback(self) -> type[Any]:
        """Whose rules play a failed turn: the game's weakest bot (R13)."""
        return self.find(self.game.fallback).cls

    def hand_written(self) -> list[Bot]:
        """The usual field: the hand-written bots, by name, but those that join by name only; raises UsageError if a
        file of one is broken."""
        for broken in self.broken:
            if broken.kind == "manual":
                raise UsageError(f"{broken}; or name the bots to play with --bots")
        return [bot for _, bot in sorted(self.bots.items()) if bot.kind == "manual" and bot.usual]


def find_bots(working_directory: Path, game: str = DUBITO) -> Registry:
    """Load every bot file of a game, the project's and the working directory's; raises UsageError for no such game."""
    found_game, own = find_game(game, working_directory), _pin_own_package()
    found: dict[str, list[Bot]] = {}
    broken, elsewhere = [], dict[str, str]()
    for kind, file in _files([own, working_directory / "bots"], found_game.folder):
        try:
            bot = _load_bot(kind, file, own, found_game)
            if why := found_game.cannot_play(bot.cls):
                elsewhere[bot.name] = why
                continue
        except _UnusableError as error:
            broken.append(BrokenBot(file, kind, str(error)))
            continue
        twins = found.setdefault(bot.name, [])
        if all(bot.digest != twin.digest for twin in twins):  # the same bytes are one bot
            twins.append(bot)
    if game != DUBITO:
        found = {bot.name: [bot] for bot in _model_players(own)} | found
    for name, twins in found.items():
        if len(twins) > 1:
            files = " and ".join(_short(bot.file) for bot in twins)
            reason = f"the name {name} is used by {files}: rename one class and its file"
            broken += [BrokenBot(bot.file, bot.kind, reason, name) for bot in twins]
    bots = {name: twins[0] for name, twins in found.items() if len(twins) == 1}
    return Registry(found_game, bots, broken, working_directory, elsewhere)


class _UnusableError(Exception):
    """Why a file gives no bot."""


def _files(roots: list[Path], game: str) -> Iterator[tuple[BotKind, Path]]:
    seen = set()
    for root in roots:
        for kind in KINDS:
            folder = root / kind if game == DUBITO else root / kind / game
            for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
                real = os.path.realpath(folder / name)
                if name.endswith(".py") and not name.startswith("_") and real not in seen:
                    seen.add(real)
                    yield kind, folder / name


def _model_players(own: Path) -> list[Bot]:
    """The project's model players, who play every game."""
    files, dubito = [file for kind, file in _files([own], DUBITO) if kind == "llms"], find_game(DUBITO, own)
    return [_load_bot("llms", file, own, dubito) for file in files]


def _load_bot(kind: BotKind, file: Path, own: Path, game: Game) -> Bot:
    try:
        source = file.read_bytes()
        digest = sha256(source).hexdigest()
        repeatable = _is_repeatable(source)
        module = import_file(_module_name(file, own), file, source, game)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise _UnusableError(f"syntax error{where}: {one_line(error.msg)}: correct it") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a bot file is foreign code: its import may raise anything
        text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        raise _UnusableError(f"importing it raises {text}: correct the file, or remove it") from None
    cls = _bot_class(module, file, game)
    return Bot(cls.__name__, cls, file, kind, digest, repeatable, game.missing(cls))


def _module_name(file: Path, own: Path) -> str:
    """What a bot's module is called: `bots.manual.bs.player1`, or a name of its own for a file of the user's."""
    inside = file.relative_to(own) if file.is_relative_to(own) else None
    if inside is not None:
        return ".".join(["bots", *inside.with_suffix("").parts])
    return f"bots_{sha256(str(file.parent.resolve()).encode()).hexdigest()[:12]}.{file.stem}"  # no other folder's


def _pin_own_package() -> Path:
    """Make `import bots` mean the package that came with this project, and return its folder."""
    own = _HOME.parent / "bots"
    loaded = sys.modules.get("bots")
    if loaded is None or [Path(folder).resolve() for folder in loaded.__path__] != [own]:
        for name in [name for name in sys.modules if name == "bots" or name.startswith("bots.")]:
            del sys.modules[name]
        init = own / "__init__.py"
        import_as("bots", init, init.read_bytes(), own)
    return own


def _bot_class(module: ModuleType, file: Path, game: Game) -> type[Player]:
    classes = [
        value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    ]
    named = [cls for cls in classes if _same_name(cls.__name__, file.stem)]
    exact = [cls for cls in named if _folded(cls.__name__) == _folded(file.stem)]
    for cls in exact or named:
        if issubclass(cls, game.base) or (issubclass(cls, Player) and cls.is_model):
            return cls
        raise _UnusableError(f"class {cls.__name__} is no bot: make it a subclass of {game.base_path}")
    others = ", ".join(cls.__name__ for cls in classes) or "none"
    raise _UnusableError(f"no class has the name of the file (classes found: {others}): rename the class or the file")


def _folded(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _same_name(one: str, other: str) -> bool:
    return _folded(one).removesuffix("bot") == _folded(other).removesuffix("bot")


@cache
def _is_repeatable(source: bytes) -> bool:
    """Whether a file of these bytes imports none of the modules whose draws no seed reaches, wherever it does.

    Most files say so at a glance, since a name stands on the line of its import; only the others are parsed.
    """
    lines = b"\n".join(source.splitlines()).replace(b"\\\n", b" ").split(b"\n")
    if source.isascii() and not any(b"import" in line and _names_unseeded(line) for line in lines):
        return True
    return _imports(source).isdisjoint(_UNSEEDED)


def _names_unseeded(line: bytes) -> bool:
    return any(name.encode() in line for name in _UNSEEDED)


def _imports(source: bytes) -> frozenset[str]:
    """The top-level names of all modules that a file of these bytes imports, wherever it does."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.split(".")[0])
    return frozenset(names)


def _short(file: Path) -> str:
    """The last three parts of a path: bots/manual/name.py."""
    return one_line("/".join(file.parts[-3:]))
