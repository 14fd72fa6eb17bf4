"""Locations of games: `dubito/games`, a `games` folder, or an installed package.

The working directory and the folders of `--games-path` are searched for `games/NAME`, `bots` and `prompts`. An
installed package declares its game with an entry point in the group `dubito.games`: the entry point's name is the
game's name, and its value is the package that contains `game.py`. Bots of the game are in the package's `bots/manual`
and `bots/llms`, prompts in `prompts/NAME`. Identical copies count as one game. If two different packages have the same
name, neither can be played.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import dubito
from dubito.errors import UsageError, one_line

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP: Final = "dubito.games"
HOME: Final = Path(dubito.__file__).resolve().parent
OWN: Final = HOME / "games"
_PLUGINS: Final = HOME / "plugins"
MODULE: Final = "game.py"  # defines the game
_RESERVED_PACKAGES: Final = ("games", "bots", "dubito")  # package names that Dubito uses itself
_is_package_name: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*").fullmatch
_is_pinned_name: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,80}==[\w.+!-]{1,40}", re.ASCII).fullmatch
_games_path: tuple[Path, ...] = ()  # set once per process, like the working directory


class GamePackage(NamedTuple):
    """A game's package and its origin."""

    name: str
    folder: Path
    module: str  # import path
    distribution: str = ""  # an installed package in pip's pinned form: dubito-kuhn==0.1.0
    fault: str = ""  # why it cannot be used

    @property
    def is_own(self) -> bool:
        """Whether the package ships with Dubito."""
        return self.folder.parent in (OWN, _PLUGINS)

    @property
    def origin(self) -> str:
        """Where the package came from, without naming the user's folders."""
        return self.distribution or "/".join(self.folder.parts[-2:])

    @property
    def digest(self) -> str:
        """Hash of the package's sources, independent of their location.

        Bots and prompts of installed packages are excluded.
        """
        apart = ("bots", "prompts") if self.distribution else ()
        files = (file for file in self.folder.rglob("*.py") if not file.name.startswith("."))
        named = sorted((file.relative_to(self.folder), file) for file in files)
        parts = [
            f"{name.as_posix()}\0{sha256(file.read_bytes()).hexdigest()}\n"
            for name, file in named
            if name.parts[0] not in apart
        ]
        return sha256("".join(parts).encode()).hexdigest()

    def __str__(self) -> str:
        return self.distribution or one_line(str(self.folder))


def set_games_path(folders: Sequence[Path]) -> None:
    """Also search these folders for games, bots and prompts. Raises UsageError."""
    global _games_path
    for folder in folders:
        shown = one_line(str(folder))
        if not folder.is_dir():
            raise UsageError(f"--games-path {shown}: no such folder; name a folder with games, bots or prompts")
        if not _packages(folder / "games") and not any((folder / kind).is_dir() for kind in ("bots", "prompts")):
            above = next((up for up in (folder, folder.parent) if _packages(up)), None)
            hint = f"use {one_line(str(above.resolve().parent))}" if above else "put a game into games/NAME there"
            raise UsageError(
                f"--games-path {shown}: the folder has no games/NAME/game.py, no bots and no prompts; {hint}"
            )
    _games_path = tuple(folder.resolve() for folder in folders)


def games_path() -> tuple[Path, ...]:
    """Return the folders of `--games-path`."""
    return _games_path


def games_path_words() -> list[str]:
    """Return the words of a command that set the same `--games-path`."""
    return [word for path in _games_path for word in ("--games-path", str(path))]


def own_folder(name: str) -> Path:
    """Return Dubito's own `bots`, `prompts` or `examples` folder.

    In a wheel it is inside the package, and in a clone next to it.
    """
    inside = HOME / name
    return inside if inside.is_dir() else HOME.parent / name


def plugin_folders() -> list[Path]:
    """Return the folders of the plugins that ship with Dubito.

    Each may have `bots`, `prompts` and a `game.py`.
    """
    return sorted(file.parent for file in _PLUGINS.glob("*/plugin.py"))


def roots(working_directory: Path) -> list[Path]:
    """Return the user's folders that are searched for games, bots and prompts."""
    return [working_directory, *_games_path]


def all_packages(working_directory: Path) -> list[GamePackage]:
    """Return all games and families by name, including faulty ones.

    Raises UsageError like `find_package`.
    """
    named: dict[str, list[GamePackage]] = {}
    for package in [*_folder_packages(working_directory), *_installed_packages()]:
        named.setdefault(package.name, []).append(package)
    return [package for _, each in sorted(named.items()) for package in _choose_package(each)]


def find_package(name: str, working_directory: Path) -> GamePackage | None:
    """Return the package of that name, even if faulty, or None.

    Raises UsageError if a folder uses the name of a game that ships with Dubito.
    """
    packages = [package for package in _folder_packages(working_directory) if package.name == name]
    # Nothing can replace Dubito's own games, so skip the metadata of installed packages, which is slow to read.
    if not packages or not packages[0].is_own:
        packages += _installed_packages(name)
    return _choose_package(packages)[0] if packages else None


def _choose_package(packages: Sequence[GamePackage]) -> list[GamePackage]:
    """Sort packages with the same name, starting with the one to play.

    If the choice is ambiguous, that package gets a fault that explains why.
    """
    usable = [package for package in packages if not package.fault]
    faulty = [package for package in packages if package.fault]
    if not usable:
        return faulty
    first, *rest = usable
    if first.is_own:
        fault = f"{first.name} is a game that comes with Dubito and cannot be replaced; choose another name"
        return [first, *(one._replace(fault=f"{one}: {fault}") for one in rest), *faulty]
    other = next((one for one in rest if one.digest != first.digest), None)
    if other is not None:
        first = first._replace(fault=f"two games are named {first.name}, in {first} and in {other}; keep only one")
    return [first, *faulty]


def _folder_packages(working_directory: Path) -> Iterator[GamePackage]:
    """Yield the packages in folders, starting with those that ship with Dubito.

    Raises UsageError if a user's folder has the name of one of these.
    """
    own = {folder.name: folder for folder in (*_packages(OWN), *_packages(_PLUGINS))}
    yield from (GamePackage(name, folder, f"dubito.{folder.parent.name}.{name}") for name, folder in own.items())
    seen = {folder.resolve() for folder in own.values()}
    for root in roots(working_directory):
        for folder in _packages(root / "games"):
            if folder.name in own and folder.resolve() not in seen:
                shown = f"{one_line(str(folder))}: {folder.name}"
                raise UsageError(f"{shown} is the name of a game that comes with Dubito; rename the folder")
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                yield GamePackage(folder.name, folder, f"games.{folder.name}")


def _packages(games: Path) -> list[Path]:
    folders = {file.parent for file in games.glob(f"*/{MODULE}")}
    return sorted(folder for folder in folders if not folder.name.startswith("."))


def _installed_packages(name: str | None = None) -> list[GamePackage]:
    """Return the games of installed packages, all or only those with this name."""
    # Imported late because loading takes 40 ms, and reading 80 packages 10 ms.
    from importlib.metadata import distributions

    packages = dict[tuple[str, str], GamePackage]()  # if a distribution is installed twice, use the first
    for dist in distributions():
        try:
            for point in dist.entry_points:
                if point.group == GROUP and name in (None, point.name):
                    pinned = _pin_version(dist)
                    packages.setdefault((pinned.partition("==")[0].lower(), point.name), _load_package(point, pinned))
        except Exception as error:  # metadata can contain anything, and most packages have no games
            if name is None and _mentions_games(dist):
                pinned = _pin_version(dist)
                why = f"its entry points cannot be read ({one_line(str(error), 100)}); reinstall or remove it"
                packages[pinned, ""] = GamePackage("", Path(), "", pinned, f"{pinned}: {why}")
    return [*packages.values()]


def _mentions_games(dist: "Distribution") -> bool:
    try:
        return GROUP in (dist.read_text("entry_points.txt") or "")
    except ValueError:  # not text
        return False


def _pin_version(dist: "Distribution") -> str:
    """Return a distribution in pip's pinned form, such as `dubito-kuhn==0.1.0`."""
    try:
        return one_line(f"{dist.metadata['Name']}=={dist.version}")
    except Exception:  # its metadata may be anything
        return "a package without a name"


def _load_package(point: "EntryPoint", pinned: str) -> GamePackage:
    package = GamePackage(point.name, Path(), point.value, pinned)
    shown = f"{pinned}, entry point {one_line(f'{point.name} = {point.value!r}', 120)}"
    if not _is_package_name(point.value):
        return package._replace(
            fault=f"{shown}: the value must be the package that contains game.py, such as 'my_package'"
        )
    if (first := point.value.partition(".")[0]) in _RESERVED_PACKAGES:
        return package._replace(fault=f"{shown}: {first} is a reserved name; rename the package")
    try:
        spec = find_spec(point.value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # finding a nested package imports its parent, which is foreign code
        why = one_line(f"{type(error).__name__}: {error}", 200)
        return package._replace(fault=f"{shown}: searching for the package raised {why}; reinstall or remove it")
    places = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    folder = next((place for place in places if (place / MODULE).is_file()), None)
    if folder is None:
        lacks = "the package has no game.py" if places else "the package was not found"
        return package._replace(fault=f"{shown}: {lacks}; reinstall or remove it")
    return package._replace(folder=folder)


def missing_game_hint(origin: object) -> str:
    """Explain how to get a missing game.

    `origin` is where the run says that the game came from. The package is not recommended, because runs can come from
    strangers.
    """
    if isinstance(origin, str) and _is_pinned_name(origin):
        return f"install the package {origin} if you trust its author"
    return "put its folder into games/, or set --games-path to its location"
