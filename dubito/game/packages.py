"""Where games lie: in `dubito/games`, in `games` of a folder, or in an installed package.

A folder is the working directory, or one of `--games-path`: its `games/NAME`, `bots` and `prompts` are used alike. A
package says by an entry point of the group `dubito.games` which game it has: the point's name is the game's, its value
the package with `game.py`. The game's bots lie in the package's `bots/manual` and `bots/llms`, its prompts in
`prompts/NAME`. The same bytes are one game, wherever they lie; of two that differ none is played.
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
_TAKEN: Final = ("games", "bots", "dubito")  # packages that mean something else where games are played
_PACKAGE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*").fullmatch
_PINNED: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,80}==[\w.+!-]{1,40}", re.ASCII).fullmatch
_games_path: tuple[Path, ...] = ()  # of this process, as its working directory is


class GamePackage(NamedTuple):
    """A game's package, and where it came from."""

    name: str
    folder: Path
    module: str  # what it is imported as
    distribution: str = ""  # of an installed one, as pip pins it: dubito-kuhn==0.1.0
    fault: str = ""  # why it cannot be used

    @property
    def is_own(self) -> bool:
        """Whether it comes with Dubito."""
        return self.folder.parent in (OWN, _PLUGINS)

    @property
    def origin(self) -> str:
        """Where it came from, without the folders of whoever plays it."""
        return self.distribution or "/".join(self.folder.parts[-2:])

    @property
    def digest(self) -> str:
        """A hash over its sources, the same wherever they lie: bots and prompts of an installed one do not count."""
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
    """Let what lies in these folders be used as if it lay in the working directory; raises UsageError."""
    global _games_path
    for folder in folders:
        shown = one_line(str(folder))
        if not folder.is_dir():
            raise UsageError(
                f"--games-path {shown}: there is no such folder: give one that holds games, bots or prompts"
            )
        if not _packages(folder / "games") and not any((folder / kind).is_dir() for kind in ("bots", "prompts")):
            above = next((up for up in (folder, folder.parent) if _packages(up)), None)
            hint = f"give {one_line(str(above.resolve().parent))}" if above else "put a game into games/NAME there"
            raise UsageError(f"--games-path {shown}: it holds no games/NAME/game.py, no bots and no prompts: {hint}")
    _games_path = tuple(folder.resolve() for folder in folders)


def games_path() -> tuple[Path, ...]:
    """The folders of `--games-path`."""
    return _games_path


def own_folder(name: str) -> Path:
    """Return Dubito's own `bots` or `prompts`: inside the package in a wheel, beside it in a clone."""
    inside = HOME / name
    return inside if inside.is_dir() else HOME.parent / name


def plugin_folders() -> list[Path]:
    """Return the folders of the plugins that ship with Dubito. Each may have `bots`, `prompts` and a `game.py`."""
    return sorted(file.parent for file in _PLUGINS.glob("*/plugin.py"))


def roots(working_directory: Path) -> list[Path]:
    """The folders whose games, bots and prompts are used beside what comes with Dubito."""
    return [working_directory, *_games_path]


def all_packages(working_directory: Path) -> list[GamePackage]:
    """Every game's and family's, by name; one with a fault is among them. Raises UsageError as `package_named`."""
    named: dict[str, list[GamePackage]] = {}
    for package in [*_in_folders(working_directory), *_installed()]:
        named.setdefault(package.name, []).append(package)
    return [package for _, each in sorted(named.items()) for package in _one_of(each)]


def package_named(name: str, working_directory: Path) -> GamePackage | None:
    """The one of that name, perhaps with a fault; None if there is none.

    Raises UsageError if a folder has taken the name of a game that comes with Dubito.
    """
    found = [package for package in _in_folders(working_directory) if package.name == name]
    if not found or not found[0].is_own:  # which nothing replaces: then no metadata is read, which takes a while
        found += _installed(name)
    return _one_of(found)[0] if found else None


def _one_of(packages: Sequence[GamePackage]) -> list[GamePackage]:
    """Of those of one name the one that is played, or what to say instead; then those that cannot be used."""
    usable = [package for package in packages if not package.fault]
    faulty = [package for package in packages if package.fault]
    if not usable:
        return faulty
    first, *rest = usable
    if first.is_own:
        taken = f"{first.name} is the name of a game that comes with Dubito, which nothing replaces: rename its game"
        return [first, *(one._replace(fault=f"{one}: {taken}") for one in rest), *faulty]
    other = next((one for one in rest if one.digest != first.digest), None)
    if other is not None:
        first = first._replace(fault=f"two games are named {first.name}, in {first} and in {other}: keep one of them")
    return [first, *faulty]


def _in_folders(working_directory: Path) -> Iterator[GamePackage]:
    """Those that come with Dubito first; no folder of the user's may take one of their names."""
    own = {folder.name: folder for folder in (*_packages(OWN), *_packages(_PLUGINS))}
    yield from (GamePackage(name, folder, f"dubito.{folder.parent.name}.{name}") for name, folder in own.items())
    seen = {folder.resolve() for folder in own.values()}
    for root in roots(working_directory):
        for folder in _packages(root / "games"):
            if folder.name in own and folder.resolve() not in seen:
                shown = f"{one_line(str(folder))}: {folder.name}"
                raise UsageError(f"{shown} is the name of a game that comes with Dubito: rename the folder")
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                yield GamePackage(folder.name, folder, f"games.{folder.name}")


def _packages(games: Path) -> list[Path]:
    found = {file.parent for file in games.glob(f"*/{MODULE}")}
    return sorted(folder for folder in found if not folder.name.startswith("."))


def _installed(name: str | None = None) -> list[GamePackage]:
    """Those that installed packages bring, of this name if one is given."""
    from importlib.metadata import distributions  # late: it takes 40 ms to load, and 10 to read 80 packages

    found = dict[tuple[str, str], GamePackage]()  # of a distribution that is there twice the first one counts
    for dist in distributions():
        try:
            for point in dist.entry_points:
                if point.group == GROUP and name in (None, point.name):
                    pinned = _pinned(dist)
                    found.setdefault((pinned.partition("==")[0].lower(), point.name), _package_at(point, pinned))
        except Exception as error:  # whatever stands there: most packages are no game's
            if name is None and _speaks_of_games(dist):
                pinned = _pinned(dist)
                why = f"its entry points cannot be read ({one_line(str(error), 100)}): install it anew, or remove it"
                found[pinned, ""] = GamePackage("", Path(), "", pinned, f"{pinned}: {why}")
    return [*found.values()]


def _speaks_of_games(dist: "Distribution") -> bool:
    try:
        return GROUP in (dist.read_text("entry_points.txt") or "")
    except ValueError:  # it is no text
        return False


def _pinned(dist: "Distribution") -> str:
    """A distribution as pip pins it, or what of that it says."""
    try:
        return one_line(f"{dist.metadata['Name']}=={dist.version}")
    except Exception:  # its metadata may be anything
        return "a package without a name"


def _package_at(point: "EntryPoint", pinned: str) -> GamePackage:
    found = GamePackage(point.name, Path(), point.value, pinned)
    shown = f"{pinned}, entry point {one_line(f'{point.name} = {point.value!r}', 120)}"
    if not _PACKAGE(point.value):
        return found._replace(fault=f"{shown}: the value is to be the package that holds game.py, as 'my_package'")
    if (first := point.value.partition(".")[0]) in _TAKEN:
        return found._replace(fault=f"{shown}: {first} is taken where games are played: name the package otherwise")
    try:
        spec = find_spec(point.value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of a package in a package, foreign code was imported
        why = one_line(f"{type(error).__name__}: {error}", 200)
        return found._replace(fault=f"{shown}: looking for the package raises {why}: install it anew, or remove it")
    places = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    folder = next((place for place in places if (place / MODULE).is_file()), None)
    if folder is None:
        lacks = "the package holds no game.py" if places else "there is no such package"
        return found._replace(fault=f"{shown}: {lacks}: install it anew, or remove it")
    return found._replace(folder=folder)


def where_to_get(origin: object) -> str:
    """What to do to have a game that this distribution brought, if one did; a run that says so may be anybody's."""
    if isinstance(origin, str) and _PINNED(origin):
        return f"look for the package {origin}, which the run's own file names: install it only if you trust its author"
    return "put its folder under games/, or say with --games-path where it lies"
