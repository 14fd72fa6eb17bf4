"""The `sh` blocks of the documentation, pasted from a wheel into an empty folder, page by page.

A block that needs more than the wheel has a comment `<!--needs:REASON-->` above it, and is not run. Names in
capitals stand for what readers have: the tests set them to a run, a config, a model of the built-in server.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import click
import pytest
import yaml

from dubito.cli.main import cli
from tests.test_project import REPO

PAGES: Final = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "dubito/plugins/*/docs/*.md", "examples/**/*.md")
    for page in REPO.glob(pattern)
)
BLOCK: Final = re.compile(r"(?:^<!--needs:(.+?)-->\n)?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REASONS: Final = {"network", "clone", "Java"}
# A file that a page tells the reader to save: its path in the sentence before the block, or in its first line.
SAVED: Final = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED: Final = re.compile(r"^```\w+\n(?=# ([\w./-]+\.\w+)\n)(.*?)^```$", re.MULTILINE | re.DOTALL)
MODELS: Final = {
    "games": 20,
    "table_sizes": [3],
    "bots": ["StefaBot", "UsualBot"],
    "contenders": ["house:house-sharp@reasoned", "ClaudeBot"],
}
BOTS: Final = {
    "games": 4000,
    "table_sizes": [3],
    "bots": ["StefaBot", "UsualBot"],
    "contenders": ["Sherlock", "ClaudeBot"],
}
# Pages whose CONFIG has only bots: shards of at least a chunk, positions of bots, an executor without models.
OF_BOTS: Final = ("clusters.md", "prompts.md", "dask.md")
SERVERS: Final = ("house", "web", "seat")
REFUSED: Final = {  # what the kept runs and the fake models cannot show
    " --programs": "has no programs that could be asked again",
    " --set hand=": "cannot hold these cards",
    " --compare ": "writes bots and does not play",
}


@dataclass(frozen=True)
class Block:
    start: int  # where it begins in its page
    needs: str
    commands: list[str] = field(default_factory=list)


def blocks_of(page: Path) -> list[Block]:
    found = []
    for block in BLOCK.finditer(page.read_text()):
        lines = block[2].replace("\\\n", " ").splitlines()
        found.append(Block(block.start(), block[1] or "", [line for line in lines if line.strip()]))
    return found


def save_files(page: Path, end: int, folder: Path) -> None:
    """Save the files that a page tells the reader to save up to a place, unless a command has written them."""
    text = page.read_text()[:end]
    for path, content in [*SAVED.findall(text), *NAMED.findall(text)]:
        if not (file := folder / path).exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)


EVERY: Final = {page: blocks for page in PAGES if (blocks := blocks_of(page))}
RUNNABLE: Final = [page for page, blocks in EVERY.items() if any(not block.needs for block in blocks)]


def test_few_blocks_need_more_than_the_wheel() -> None:
    blocks = [block for page in EVERY.values() for block in page]
    marked = [block for block in blocks if block.needs]
    assert {block.needs for block in marked} == REASONS
    assert len(blocks) > 55
    assert len(marked) < len(blocks) / 3


@pytest.mark.parametrize("page", EVERY, ids=lambda page: page.stem)
def test_every_pasted_command_has_its_options(page: Path) -> None:
    lines = (line for block in EVERY[page] for line in block.commands)
    for words in ([*shlex.split(line, comments=True)] for line in lines):
        if "dubito" not in words or words[: words.index("dubito")][:1] == ["python3"]:
            continue
        command: click.Command = cli
        context, rest = click.Context(cli), words[words.index("dubito") + 1 :]
        while isinstance(command, click.Group) and rest and (inner := command.get_command(context, rest[0])):
            command, rest = inner, rest[1:]
        if command is cli:  # the command of a plugin that the page writes
            assert page.name == "writing-a-plugin.md", words
            continue
        if isinstance(command, click.Group) and "build" in command.commands:  # `leaderboard FOLDER` builds
            command = command.commands["build"]
        options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        flags = {word.split("=")[0] for word in rest if re.match(r"--[a-z]", word)}
        rules = {"--duel", "--ranks", "--copies", "--jokers", "--win-rule", "--max-turns"}
        assert flags <= options | rules, words


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment with the wheel. Dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=REPO, check=True, capture_output=True)
    (file,) = folder.glob("dubito-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet", "--no-deps", "--no-compile", str(file)]
    subprocess.run(pip, check=True, cwd=folder)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (script := folder / "venv" / "bin" / "pytest").write_text('#!/bin/sh\nexec python -m pytest "$@"\n')
    script.chmod(0o755)
    return folder / "venv"


class Reader:
    """Pastes commands, in a folder with the wheel's commands on the path."""

    def __init__(self, folder: Path, environment: Path) -> None:
        self.folder = folder
        keep = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
        self.environment = keep | {
            "PATH": os.pathsep.join([str(environment / "bin"), os.environ["PATH"]]),
            "HOME": str(folder.parent),
            "BROWSER": "true",  # opens nothing
            "PIP_NO_BUILD_ISOLATION": "0",  # this environment has what a build needs
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        self.environment.pop("PYTHONPATH", None)
        self.server: subprocess.Popen[str] | None = None

    def paste(self, line: str) -> str:
        if line.startswith("export "):
            key, _, value = shlex.split(line, comments=True)[1].partition("=")
            self.environment[key] = value
            return ""
        words = shlex.split(line, comments=True)
        if words[0] == "dubito" and words[1] in SERVERS:
            return self.serve(line)
        done = subprocess.run(
            ["/bin/bash", "-c", line], cwd=self.folder, env=self.environment, text=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=1200,
        )  # fmt: skip
        # A random bot need not qualify.
        allowed = {0} | ({1} if "tournament qualify" in line else set())
        for flag, refusal in REFUSED.items():
            if flag in line and refusal in done.stderr:
                allowed.add(2)
        assert done.returncode in allowed, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def serve(self, line: str) -> str:
        """Start a server, and wait until it prints how to stop it. It runs until the next one or the end."""
        self.stop()
        self.server = subprocess.Popen(
            ["/bin/bash", "-c", f"exec {line}"], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        lines = list[str]()
        out: IO[str] | None = self.server.stdout
        for text in out or ():
            lines.append(text)
            if "Ctrl-C to stop" in text:
                break
        else:
            raise AssertionError(f"{line}\n{''.join(lines)}")
        if token := re.search(r"^Token of \w+: (\S+)", "".join(lines), re.MULTILINE):
            self.environment["TOKEN"] = token[1]
        return "".join(lines)

    def stop(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.communicate(timeout=120)
            self.server = None


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Return a folder with what readers have already: two runs with the same deals, a saved game, configs."""
    folder = tmp_path_factory.mktemp("kept") / "here"
    folder.mkdir()
    (folder / "models.config.yaml").write_text(yaml.safe_dump(MODELS))
    (folder / "bots.config.yaml").write_text(yaml.safe_dump(BOTS))
    reader = Reader(folder, wheel)
    reader.paste("dubito run models.config.yaml --output kept/run --no-report --quiet")
    reader.paste(
        "dubito run models.config.yaml --contenders Sherlock,ClaudeBot --output kept/other --no-report --quiet"
    )
    reader.paste("dubito watch StefaBot UsualBot ClaudeBot --save kept/game.json --pace 0")
    return folder


@pytest.fixture
def reader(tmp_path: Path, wheel: Path) -> Iterator[Reader]:
    folder = tmp_path / "here"
    folder.mkdir()
    reader = Reader(folder, wheel)
    try:
        yield reader
    finally:
        reader.stop()


def fill_in(page: Path, line: str, folder: Path, kept: Path) -> str:
    """Replace the names in capitals that a command has. What they stand for is only there if it is named."""
    local = "--base-url http" in line
    model = "house-writer" if "dubito forge" in line else "house-random"
    line = line.replace("openai:MODEL", f"{'openai' if local else 'house'}:{model}")
    line = line.replace("dubito tournament play", "dubito tournament play --trust")  # asked at a terminal
    config = "bots" if page.name in OF_BOTS else "models"
    have = {
        "RUN": ("kept/run", "runs/RUN"),
        "OTHER": ("kept/other", "runs/OTHER"),
        "CONFIG": (f"{config}.config.yaml", "CONFIG.yaml"),
        "games/NAME.json": ("kept/game.json", "games/NAME.json"),
        "runs/first": ("kept/run", "runs/first"),
        "runs/models": ("kept/run", "runs/models"),
    }
    for name, (source, target) in have.items():
        line, count = re.subn(rf"(?<![\w/.-]){re.escape(name)}(?![\w-])", target, line)
        if count and not (folder / target).exists():
            (folder / target).parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (kept / source).is_dir() else shutil.copyfile
            copy(kept / source, folder / target)
    return line


@pytest.mark.at_length
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_page_works_when_it_is_pasted_from_top_to_bottom(page: Path, reader: Reader, kept: Path) -> None:
    if page.name == "servers.md":
        reader.serve("dubito house")
    for block in EVERY[page]:
        save_files(page, block.start, reader.folder)
        for line in [] if block.needs else block.commands:
            reader.paste(fill_in(page, line, reader.folder, kept))
