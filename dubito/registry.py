"""Bots of a game by name: drop a file into `bots/manual` or `bots/llms`, and it is found.

Bots of other games than Dubito lie in a folder there that has the game's name, or its family's, as `bots/manual/bs`.
The class of a file is the one whose name equals the file's, case and underscores ignored, a trailing
`Bot` optional; the bot's name is the class's. Looked at are the folders that came with the project and
those of the working directory. A file that cannot be used is kept as broken, with what to do, and
stops no other bot.
"""

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

from dubito.errors import UsageError, one_line, suggestion
from dubito.game import Player, Spec
from dubito.game_registry import DUBITO, find_game, game_names
from dubito.loading import import_as, import_file
from dubito.native import compiled_twin

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

    game: Spec
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
    spec, own = find_game(game, working_directory), _pin_own_package()
    found: dict[str, list[Bot]] = {}
    broken, elsewhere = [], dict[str, str]()
    for kind, file in _files([own, working_directory / "bots"], spec.folder):
        try:
            bot = _load(kind, file, own, spec)
            if why := spec.cannot_play(bot.cls):
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
    return Registry(spec, bots, broken, working_directory, elsewhere)


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
    """The project's model players, as those of another game than Dubito."""
    files, dubito = [file for kind, file in _files([own], DUBITO) if kind == "llms"], find_game(DUBITO, own)
    bots = [_load("llms", file, own, dubito) for file in files]
    return [bot._replace(cls=bot.cls.elsewhere()) for bot in bots]


def _load(kind: BotKind, file: Path, own: Path, game: Spec) -> Bot:
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
    own = Path(__file__).resolve().parent.parent / "bots"
    loaded = sys.modules.get("bots")
    if loaded is None or [Path(folder).resolve() for folder in loaded.__path__] != [own]:
        for name in [name for name in sys.modules if name == "bots" or name.startswith("bots.")]:
            del sys.modules[name]
        init = own / "__init__.py"
        import_as("bots", init, init.read_bytes(), own)
    return own


def _bot_class(module: ModuleType, file: Path, game: Spec) -> type[Player]:
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
