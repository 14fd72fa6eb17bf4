"""Freeze results digests and request digests, two runs with model players, an export and a saved game.

`python -m tests.freeze.made` writes these files. Once they are rewritten, the tests no longer detect earlier changes.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
import yaml

from dubito.cli.main import main
from dubito.experiment.stored import open_recorded_run
from dubito.games.dubito.facts import example_position
from dubito.games.dubito.game import GAME
from dubito.llm.prompts import load_prompt
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from dubito.model_settings import Api
from dubito.player import NODES
from tests.cli.kit import REPO
from tests.llm.kit import PROTOCOLS, settings
from tests.prompts.kit import PROMPTS

HERE: Final = Path(__file__).parent
DIGESTS: Final = HERE / "digests.json"
FIELD: Final = ("--bots", "StefaBot,UsualBot,ClaudeBot,RandomBoi")
HAND_WRITTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "immediate": (*FIELD, "--games", "2000"),
    "contested": (*FIELD, "--games", "2000", "--win-rule", "contested"),
    "contenders": ("--bots", "StefaBot,UsualBot,RandomBoi", "--contenders", "ClaudeBot,MrDoubt", "--games", "1000"),
}
MODELS: Final[Mapping[str, Any]] = {
    "games": 6,
    "table_sizes": [3],
    "bots": ["StefaBot", "UsualBot"],
    "rules": {"max_turns": 10},
    "contenders": [
        {"bot": "OpenAIBot", "name": "one", "model": "house-sharp", "prompt": "plain", "base_url": "house"},
        {"bot": "AnthropicBot", "name": "two", "model": "house-random", "prompt": "reasoned", "base_url": "house"},
    ],
}
SEATED: Final = ("StefaBot", "UsualBot", "ClaudeBot", "MrDoubt", "--seed", "3", "--deal", "7")


def request_digests() -> dict[str, str]:
    """Return digests of the request at each node for each prompt, in each protocol."""
    return {
        f"{name} {protocol} {node}": request_digest(name, protocol, node)
        for name in PROMPTS
        for protocol in PROTOCOLS
        for node in NODES
    }


def request_digest(name: str, protocol: Api, node: str) -> str:
    rendered = load_prompt(name, REPO).render(example_position(node))
    exchange = Exchange(rendered.system, rendered.user, {"type": "object"}, history=rendered.history)
    return build_request(settings(protocol), exchange, "frozen").digest


def results_digest(folder: Path) -> str:
    with open_recorded_run(folder) as run:
        return run.results_digest


def _dubito(*words: str) -> None:
    try:
        main(words)
    except SystemExit as ended:
        click.echo(f"{' '.join(words)}: {ended.code}")


def _write() -> None:
    digests: dict[str, str] = {}
    with TemporaryDirectory() as folder:
        home = Path(folder)

        def run(name: str, *words: str) -> Path:
            _dubito("run", *words, "--output", str(home / name), "--no-report", "--quiet")
            digests[name] = results_digest(home / name)
            return home / name

        for name, words in HAND_WRITTEN.items():
            run(name, *words)
        for name, config in {"finished": MODELS, "stopped": MODELS, "demo": GAME.demo}.items():
            (home / f"{name}.yaml").write_text(yaml.safe_dump(dict(config)))
        one, other = ("--cache", str(home / "cache")), ("--cache", str(home / "other"))
        finished, _ = run("finished", str(home / "finished.yaml"), *one), run("demo", str(home / "demo.yaml"), *one)
        stopped = run("stopped", str(home / "stopped.yaml"), "--budget", "calls=30", *other)
        for kept in (finished, stopped):
            _copy(kept, HERE / kept.name)
        (HERE / "finished.zip").unlink(missing_ok=True)
        _dubito("export", str(finished), str(HERE / "finished.zip"))
        (HERE / "game.json").unlink(missing_ok=True)
        _dubito("watch", *SEATED, "--save", str(HERE / "game.json"))
    DIGESTS.write_text(json.dumps({"results": digests, "requests": request_digests()}, indent=1) + "\n")


def _copy(run: Path, to: Path) -> None:
    """Copy the files of a run."""
    rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in ("manifest.yaml", "all_games.yaml"):
        (to / name).write_bytes((run / name).read_bytes())
    with closing(sqlite3.connect(run / "run.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(to / "run.db"),))  # including its journal


def frozen() -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(DIGESTS.read_text())
    return content


if __name__ == "__main__":
    _write()
