"""Games by name: a package with a `spec.py` in `dubito/games`, or in `games` of the working directory, is found."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

from dubito.errors import UsageError, one_line, suggestion
from dubito.game import Family, Spec

DUBITO: Final = "dubito"  # the game where none is named
_OWN: Final = Path(__file__).resolve().parent / "games"
_SPEC: Final = "spec.py"
_LOADED: Final[dict[str, str]] = {}  # packages of the user's, with the digest of what was imported


def find_game(name: str, working_directory: Path) -> Spec:
    """The game of that name; raises UsageError with the nearest one, or with what is wrong with its package."""
    folders = {folder.name: folder for folder in _folders(working_directory)}
    first, colon, member = name.partition(":")
    if first not in folders:
        hint = suggestion(first, folders)
        if members := _members_named(first.partition("(")[0], working_directory):
            hint = f"did you mean {one_line(repr(members[0] + first.removeprefix(members[0].partition(':')[2])), 80)}?"
        raise UsageError(f"there is no game {one_line(repr(first), 60)}: {hint}")
    found = _load(folders[first])
    if isinstance(found, Spec):
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


def find_games(working_directory: Path) -> list[Spec]:
    """All games that stand alone, by name; raises UsageError for a package that cannot be used."""
    found = (game for game in map(_load, _folders(working_directory)) if isinstance(game, Spec))
    return sorted(found, key=lambda game: game.name)


def find_families(working_directory: Path) -> list[Family]:
    """All families of games, by name; raises UsageError for a package that cannot be used."""
    found = (family for family in map(_load, _folders(working_directory)) if isinstance(family, Family))
    return sorted(found, key=lambda family: family.name)


def game_names(working_directory: Path) -> list[str]:
    """The names of all games and families, sorted, whether they can be used or not."""
    return sorted(folder.name for folder in _folders(working_directory))


def digest_of_game(spec: Spec, working_directory: Path) -> str:
    """A hash over the sources of a game's package, and the version of the library that has its rules."""
    digest = _digest(next(folder for folder in _folders(working_directory) if folder.name == spec.folder))
    return sha256(f"{digest}\0{spec.version}".encode()).hexdigest() if spec.version else digest


def _digest(folder: Path) -> str:
    files = sorted(folder.rglob("*.py"))
    parts = [f"{file.relative_to(folder).as_posix()}\0{sha256(file.read_bytes()).hexdigest()}\n" for file in files]
    return sha256("".join(parts).encode()).hexdigest()


def _folders(working_directory: Path) -> Iterator[Path]:
    """The packages of games, those that come with Dubito first; no folder of the user's may take one of their names."""
    seen = set[str]()
    for root in (_OWN, working_directory / "games"):
        for file in sorted(root.glob(f"*/{_SPEC}")):
            folder = file.parent
            if folder.name in seen and folder.resolve().parent != _OWN:
                shown = f"{one_line(str(folder))}: {folder.name}"
                raise UsageError(f"{shown} is the name of a game that comes with Dubito: rename the folder")
            if folder.name not in seen:
                seen.add(folder.name)
                yield folder


def _load(folder: Path) -> Spec | Family:
    if folder.parent == _OWN:
        module = import_module(f"dubito.games.{folder.name}.spec")
    else:
        module = _import_from(folder.parent.resolve(), folder.name)
    spec = getattr(module, "SPEC", None)
    if not isinstance(spec, Spec | Family):
        raise UsageError(f"{one_line(str(folder / _SPEC))} defines no game: it needs `SPEC = Spec(...)` of dubito.game")
    if spec.name != folder.name:
        raise UsageError(f"{one_line(str(folder / _SPEC))}: the game is named {spec.name!r}: name it as its folder")
    return spec


def _import_from(games: Path, name: str) -> ModuleType:
    """The `spec` of a package of the user's, as `games.NAME.spec`: so its bots import from it, wherever it lies."""
    _pin(games)
    digest, mark = _digest(games / name), f"games.{name}"
    if _LOADED.get(mark) != digest:  # edited since
        for module in [module for module in sys.modules if f"{module}.".startswith(f"{mark}.")]:
            del sys.modules[module]
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # a cache of bytecode could be of other bytes
    try:
        spec = import_module(f"{mark}.spec")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # foreign code: its import may raise anything
        text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        raise UsageError(f"the game in {one_line(str(games / name))}: importing it raises {text}: correct it") from None
    finally:
        sys.dont_write_bytecode = written
    _LOADED[mark] = digest
    return spec


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
