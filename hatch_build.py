"""Add `bots`, `prompts` and `examples`, without recorded runs, to the package `dubito` in the wheel.

With DUBITO_COMPILE=1 it also compiles hot modules and Dubito's bots (docs/performance.md). An editable install uses the
folders as they are.
"""

import os
import shutil
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOT: Final = (
    "dubito/game/streams.py",
    "dubito/game/seating.py",
    "dubito/games/dubito/engine.py",
    "dubito/stats/tally.py",
    "dubito/experiment/play.py",
    "dubito/game/table.py",
    "dubito/games/dubito/cards.py",
    "dubito/games/dubito/bot.py",
    "bots/base.py",
)
BOTS: Final = (
    "adapty_boi",
    "always_truthful",
    "claude_bot",
    "just_put_cards",
    "mr_doubt",
    "mr_no_doubt",
    "random_boi",
    "risk_counter",
    "stefa_bot",
    "sus_boi",
    "usual_bot",
)


class CompiledEngine(BuildHookInterface[Any]):
    """Compiles hot modules and bots with mypyc. The wheel contains their sources too, for readers and tracebacks."""

    def dependencies(self) -> list[str]:
        """Return the packages that a build needs besides hatchling."""
        return ["mypy>=2.4,<3", "setuptools>=65"] if self._wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders and, if wanted, compiled modules, which make the wheel specific to this platform."""
        if version == "editable":
            return
        if self.target_name == "wheel":
            # Recorded runs are large, and a wheel cannot show what they show: their games are replayed from a clone.
            examples = [f"examples/{one.name}" for one in Path(self.root, "examples").iterdir() if one.name != "runs"]
            build_data["force_include"] |= {
                str(Path(self.root, name)): f"dubito/{name}" for name in ("bots", "prompts", *sorted(examples))
            }
        if not self._wanted:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="dubito-compile-")
        build_data["force_include"] |= _compile(Path(self.root), Path(self._folder.name))
        build_data |= {"pure_python": False, "infer_tag": True}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    @property
    def _wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("DUBITO_COMPILE", "") not in ("", "0")


def _compile(root: Path, folder: Path) -> dict[str, str]:
    """Return the extension modules and their paths in the wheel. Needs a C compiler; mypyc defines MYPYC_OPT_LEVEL."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    here, source = Path.cwd(), folder / "source"
    for package in ("dubito", "bots"):
        shutil.copytree(root / package, source / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    twins = [_add_twin(source, source / "bots" / "manual" / f"{name}.py") for name in BOTS]
    os.chdir(source)  # tracebacks show paths relative to this folder
    try:
        # Do not follow imports of dependencies: a build has none, and the SDKs would take ten times as long.
        config = f"--config-file={root / 'pyproject.toml'}"  # ignore other config files
        flags = [config, "--ignore-missing-imports", "--follow-imports=silent", "--no-site-packages"]
        optimize = os.environ.get("MYPYC_OPT_LEVEL", "3")
        target = str(folder / "c")
        extensions = mypycify([*flags, *HOT, *twins], opt_level=optimize, target_dir=target, group_name="dubito")
        command = build_ext(Distribution({"name": "dubito", "ext_modules": extensions}))
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(here)
    built = {file: file.relative_to(folder / "lib") for file in (folder / "lib").rglob("*") if file.is_file()}
    return {str(file): str(Path("dubito", at) if at.parts[0] == "bots" else at) for file, at in built.items()}


def _add_twin(source: Path, bot: Path) -> str:
    """Copy a bot's file to where `dubito.game.native.compiled_twin` looks for its compiled class: under its digest.

    Adds a decorator that bots do not need otherwise. It and its import replace blank lines, so that line numbers stay
    the same.
    """
    text = bot.read_text(encoding="utf-8")
    for blank, word in (
        ("\n\nfrom bots", "\nfrom dubito.game.native import mypyc_attr\nfrom bots"),
        ("\n\n\nclass ", "\n\n@mypyc_attr(allow_interpreted_subclasses=True)\nclass "),
    ):
        if text.count(blank) != 1:
            raise ValueError(f"{bot}: expected one blank line before {blank.strip()!r}")
        text = text.replace(blank, word)
    package = source / "dubito" / "compiled_bots" / f"d{sha256(bot.read_bytes()).hexdigest()}"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / bot.name).write_text(text, encoding="utf-8")
    return str((package / bot.name).relative_to(source))
