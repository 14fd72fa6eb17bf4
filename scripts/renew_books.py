"""Update what depends on the bytes of bots: the books, and the example submissions of the leaderboard.

Run `.venv/bin/python scripts/renew_books.py` after a bot's file was edited. Before a release this makes new books.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from dubito.game.find import find_bots
from dubito.plugins.leaderboard.book import BOOKS
from dubito.store.folder import load_manifest, unpack

REPO = Path(__file__).resolve().parent.parent


def update_book(file: Path) -> None:
    """Replace the digests of bots, and nothing else of the file."""
    text = file.read_text("utf-8")
    book = yaml.safe_load(text)
    registry = find_bots(REPO, book["game"])
    for name, digest in {**book["bots"], **book["exploiters"]}.items():
        text = text.replace(f"{name}: {digest}", f"{name}: {registry.find(name).digest}")
    file.write_text(text, "utf-8")


def play_again(submission: Path) -> None:
    """Play the run of a submission with today's bots, and export it in place of the submission."""
    with unpack(submission) as folder:
        manifest = load_manifest(folder)
    identity = manifest["identity"]
    config = {key: identity[key] for key in ("game", "seed", "table_sizes", "rules")}
    config |= {key: [player["name"] for player in identity[key]] for key in ("bots", "contenders")}
    with TemporaryDirectory() as home:
        Path(home, "c.yaml").write_text(yaml.safe_dump({**config, "games": manifest["games"], "output": "run"}))
        for words in (("run", "c.yaml", "--quiet", "--no-report"), ("export", "run", "run.zip")):
            subprocess.run([sys.executable, "-m", "dubito", *words], cwd=home, check=True, stdout=subprocess.DEVNULL)
        submission.write_bytes(Path(home, "run.zip").read_bytes())


def main() -> None:
    for file in sorted(BOOKS.glob("*.yaml")):
        update_book(file)
    for submission in sorted(REPO.glob("examples/leaderboard/submissions/*/*.zip")):
        play_again(submission)


if __name__ == "__main__":
    main()
