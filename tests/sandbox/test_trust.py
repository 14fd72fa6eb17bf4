"""docs/trust.md: a test holds each row of its table."""

import re

from tests.cli.kit import REPO, Shell

PAGE = REPO / "docs" / "trust.md"
LEAKS = "from pathlib import Path\nPath('ran').write_text(str(Path('secret').read_text()))\n"


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_row_names_tests_that_exist() -> None:
    source = "".join(path.read_text("utf-8") for path in (REPO / "tests").rglob("test_*.py"))
    assert len(rows()) > 12
    for kind, *_, tests in rows():
        names = re.findall(r"`(\w+)`", tests)
        assert names, kind
        assert [name for name in names if f"def {name}(" not in source] == [], kind


def test_page_is_linked_where_people_look() -> None:
    for name in ("README.md", "SECURITY.md", "docs/programs.md", "docs/runs.md", "docs/index.md"):
        assert "trust.md" in (REPO / name).read_text("utf-8"), name


def test_bot_in_python_runs_as_the_user(shell: Shell) -> None:
    (shell.folder / "secret").write_text("word")
    shell.bot("mine.py", LEAKS + "from bots.base import BotBase\n\n\nclass Mine(BotBase):\n    pass\n")
    shell("bots")
    assert (shell.folder / "ran").read_text() == "word"


def test_game_package_runs_as_the_user(shell: Shell) -> None:
    (shell.folder / "secret").write_text("word")
    package = shell.folder / "games" / "mine"
    package.mkdir(parents=True)
    (package / "game.py").write_text(LEAKS)
    shell("games", "check", "mine")
    assert (shell.folder / "ran").read_text() == "word"
