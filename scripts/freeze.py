"""Record again all data that depends on the bytes of bots and prompts: `python -m scripts.freeze [STEP...]`.

The steps are `books` (digests of bots in the books), `submissions` (the leaderboard's example runs), `golden`
(renderings and games), `frozen` (tests/freeze) and `cassettes`. If no step is named, all of them run, in this order.
Run the script after changing a bot or a prompt, review the diff, and commit it separately. It takes several minutes.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from dubito.game.find import find_bots
from dubito.plugins.leaderboard.book import BOOKS
from dubito.store.folder import load_manifest, unpack

REPO: Final = Path(__file__).resolve().parent.parent


def update_books() -> None:
    """Replace only the digests of bots and the versions of rules in every book."""
    for file in sorted(BOOKS.glob("*.yaml")):
        text = file.read_text("utf-8")
        book = yaml.safe_load(text)
        registry = find_bots(REPO, book["game"])
        version = registry.game.rules_version
        text = text.replace(f"rules_version: {book['rules_version']}\n", f"rules_version: {version}\n")
        for name, digest in {**book["bots"], **book["exploiters"]}.items():
            text = text.replace(f"{name}: {digest}", f"{name}: {registry.find(name).digest}")
        file.write_text(text, "utf-8")


def replay_submissions() -> None:
    for file in sorted(REPO.glob("examples/leaderboard/submissions/*/*.zip")):
        replay_submission(file)


def replay_submission(file: Path) -> None:
    """Play a submission's run with today's bots, and replace the submission with its export."""
    with unpack(file) as folder:
        manifest = load_manifest(folder)
    identity = manifest["identity"]
    config = {key: identity[key] for key in ("game", "seed", "table_sizes", "rules")}
    config |= {key: [player["name"] for player in identity[key]] for key in ("bots", "contenders")}
    with TemporaryDirectory() as name:
        home = Path(name)
        (home / "c.yaml").write_text(yaml.safe_dump({**config, "games": manifest["games"], "output": "run"}))
        run_module("dubito", "run", "c.yaml", "--quiet", "--no-report", folder=home)
        run_module("dubito", "export", "run", "run.zip", folder=home)
        file.write_bytes((home / "run.zip").read_bytes())


def write_golden() -> None:
    for module in ("prompts", "engine", "plugins.openspiel.games", "plugins.openspiel.training"):
        run_module(f"tests.{module}.golden")
    for folder in sorted(REPO.glob("prompts/*/*/golden")):  # games other than Dubito
        prompt = folder.parent
        run_module("dubito", "prompts", "golden", "--game", prompt.parent.name, str(prompt))


def write_frozen() -> None:
    for module in ("made", "games", "scenes"):
        run_module(f"tests.freeze.{module}")


def record_cassettes() -> None:
    run_module("tests.cassettes.record")


def run_module(module: str, *words: str, folder: Path = REPO) -> None:
    subprocess.run([sys.executable, "-m", module, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


STEPS: Final[dict[str, Callable[[], None]]] = {
    "books": update_books,
    "submissions": replay_submissions,
    "golden": write_golden,
    "frozen": write_frozen,
    "cassettes": record_cassettes,
}


def main(names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in STEPS]:
        sys.exit(f"Unknown step {unknown[0]!r}. Choose from {', '.join(STEPS)}.")
    for name in names or STEPS:
        print(f"{name} ...", flush=True)
        STEPS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
