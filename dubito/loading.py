"""Foreign code imported by its path, so that no package of the same name stands in the way."""

import importlib.util
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType


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
