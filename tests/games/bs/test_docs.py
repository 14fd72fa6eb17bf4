"""The BS bot guide is correct: code blocks play, commands run, names exist."""

import re
from pathlib import Path

import pytest
import yaml

from bots.manual.bs import _template
from dubito.game.find import find_bots
from dubito.game.table import Entrant
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import DECK, HandView
from dubito.games.bs.table import View
from tests.bots.test_docs import line_of_shell, name_of
from tests.cli.kit import Shell
from tests.experiment.kit import REPO
from tests.games.bs.kit import play_deal

WRITING = (REPO / "docs" / "writing-a-bs-bot.md").read_text()
TEMPLATE = Path(str(_template.__file__)).read_text()
MEMORY = (REPO / "examples" / "bots" / "memory.py").read_text()
FOLDER = Path("bots") / "manual" / "bs"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", WRITING, re.MULTILINE | re.DOTALL)


PROSE = re.sub(r"^```.*?^```$", "", WRITING, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def here(shell: Shell) -> Shell:
    """Set up the folder that the guide assumes: the template, and the config that it tells the reader to save."""
    (shell.folder / FOLDER).mkdir(parents=True)
    (shell.folder / FOLDER / "_template.py").write_text(TEMPLATE)
    (shell.folder / "mine.yaml").write_text(blocks("yaml")[0])
    return shell


@pytest.mark.parametrize("source", [blocks("python")[0], MEMORY, TEMPLATE], ids=name_of)
def test_every_bot_in_the_guide_plays(tmp_path: Path, source: str) -> None:
    name = name_of(source)
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / f"{name.lower()}.py").write_text(source)
    registry = find_bots(tmp_path, "bs")
    assert not registry.broken
    bot = registry.find(name)
    assert bot.repeatable
    assert bot.summary.endswith(".")
    others = [registry.find(other).cls for other in ("ConMan", "Player1", "Player3")]
    for seed in range(20):
        assert play_deal([bot.cls, *others], seed).over


def test_the_guide_shows_a_first_bot_and_one_that_remembers() -> None:
    first, shown = blocks("python")
    assert name_of(first) == "Honest"
    assert shown.removeprefix("# examples/bots/memory.py\n") in MEMORY


def test_memory_bot_notices_caught_players(tmp_path: Path) -> None:
    """For the plays that it was asked about, its count equals the engine's."""
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "memory.py").write_text(MEMORY)
    registry = find_bots(tmp_path, "bs")
    kept: list[BSBot] = []
    memory = registry.find("Memory").cls

    class Kept(memory):  # type: ignore[misc, valid-type]
        def __init__(self, id: int) -> None:
            super().__init__(id)
            kept.append(self)

    others = [registry.find(other).cls for other in ("ConMan", "Player1", "RiskTaker")]
    total = 0
    for seed in range(10):
        game = play_deal([Kept, *others], seed)
        counted = [count.lies_accused for count in game.counts]
        assert kept[-1].caught[1:] == counted[1:]  # type: ignore[attr-defined]
        total += sum(counted[1:])
    assert total > 10


def test_the_ten_minutes_work_line_by_line(here: Shell) -> None:
    lines, game, *_ = blocks("sh")
    lines = lines.replace("--games 2000", "--games 100")
    written, checked, ranking = (line_of_shell(line, here) for line in lines.splitlines())
    assert written.startswith("written: bots/manual/bs/my_bot.py\n")
    assert checked.startswith("MyBot passed all checks in ")
    assert re.search(r"^MyBot ", ranking, re.MULTILINE)
    output = line_of_shell(game.strip(), here)
    assert output.startswith("The cards are dealt: MyBot holds 13")
    assert "really" in output


def test_the_config_gives_the_twin_its_setting(here: Shell) -> None:
    line_of_shell(blocks("sh")[0].splitlines()[0], here)
    config = yaml.safe_load((here.folder / "mine.yaml").read_text())
    (twin,) = [entry for entry in config["bots"] if isinstance(entry, dict)]
    bot = find_bots(here.folder, "bs").find(twin.pop("bot"))
    assert Entrant(twin.pop("name"), bot.cls, twin).settings == {"trust": 6}
    ranking = line_of_shell("dubito run mine.yaml --games 30 --no-report", here)
    assert all(re.search(rf"^{name} ", ranking, re.MULTILINE) for name in ("MyBot", "Trusting", "ConMan"))


def test_every_method_and_field_is_explained_and_no_other() -> None:
    tabled = set(re.findall(r"`(\w+)\((?:number, |seat, number, n_cards, )?table\)`", PROSE))
    assert tabled == {"request_cards", "bs", "initialize", "update"} <= set(dir(BSBot))
    fields = set(re.findall(r"`table\.(\w+)`", PROSE))
    public = {name for name in vars(View) if not name.startswith("_")}
    assert fields == public - {"node", "why_illegal"}
    cards = set(re.findall(r"`self\.cards\.(\w+)\(n\)`", PROSE))
    assert cards == {name for name in vars(HandView) if not name.startswith("_")}
    assert set(re.findall(r"`card\.(\w+)`", PROSE)) == set(DECK[0]._fields)


def test_mistake_is_reported_as_in_the_guide(shell: Shell) -> None:
    empty = blocks("python")[0].replace("return self.cards.of(number) or self.cards.first(1)", "return []")
    (shell.folder / FOLDER).mkdir(parents=True)
    (shell.folder / FOLDER / "honest.py").write_text(empty)
    pool = ("--game", "bs", "--bots", "Honest,ConMan,Player1,Player3", "--games", "4", "--workers", "1")
    line = ("run", *pool, "--quiet", "--on-bot-error")
    for how in ("fallback", "forfeit"):
        assert re.search(r"^Honest ", shell(*line, how).out, re.MULTILINE)
    stopped = shell(*line, "stop")
    assert stopped.code == 3
    assert re.search(r"Honest.*nothing was played; play at least one card", stopped.err)
