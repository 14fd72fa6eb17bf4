"""The documentation for bot writers is correct: code blocks play, commands run, and names exist."""

import ast
import re
import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import yaml

from bots.base import BotBase
from dubito import game_data
from dubito.game.find import Bot, find_bots
from dubito.game.table import Entrant
from dubito.games.dubito.cards import HandView, PlayerData, TurnData
from dubito.games.dubito.engine import Rules, WinRule
from tests.bots.kit import (
    NODES_A_TO_E,
    NUMBER,
    REGISTRY,
    REPO,
    chance,
    entrants,
    in_seat,
    load_bot,
    play_out,
    regular,
)
from tests.bots.test_statistics import PUBLISHED
from tests.cli.kit import Shell

WRITING = (REPO / "docs" / "writing-a-bot.md").read_text()
BOTS = (REPO / "docs" / "bots.md").read_text()
TEMPLATE = (REPO / "bots" / "manual" / "_template.py").read_text()
WITNESS, CAREFUL = [(REPO / "examples" / "bots" / f"{name}.py").read_text() for name in ("witness", "careful")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", WRITING, re.MULTILINE | re.DOTALL)


PROSE = re.sub(r"^```.*?^```$", "", WRITING, flags=re.MULTILINE | re.DOTALL)


def bots_and_tests() -> tuple[list[str], list[str]]:
    sources = [one for one in blocks("python") if not one.startswith("# examples/")]
    return [one for one in sources if "\nclass " in one], [one for one in sources if "\nclass " not in one]


def name_of(source: str) -> str:
    (name,) = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return name


def plays(bot: Bot, **settings: object) -> None:
    """Play whole games of two instances under both win rules. A BotError fails the test."""
    mine = Entrant(bot.name, bot.cls, settings)
    for rule in get_args(WinRule):
        for deal in range(20):
            assert play_out([mine, *entrants("StefaBot", "ClaudeBot"), mine], Rules(win_rule=rule), 3, deal).over


@pytest.mark.parametrize("source", [*bots_and_tests()[0], WITNESS, CAREFUL, TEMPLATE], ids=name_of)
def test_every_bot_in_the_guide_plays(tmp_path: Path, source: str) -> None:
    name = name_of(source)
    bot = load_bot(tmp_path, name.lower(), source)
    assert bot.name == name
    assert bot.repeatable
    assert bot.summary.endswith(".")
    plays(bot)


def test_the_guide_shows_the_three_ways_of_r28() -> None:
    assert [name_of(source) for source in bots_and_tests()[0]] == ["Honest", "Whole"]
    assert name_of(CAREFUL) == "Careful"


def test_the_guide_shows_what_the_witness_observes() -> None:
    (shown,) = re.findall(r"^```python\n# examples/bots/witness.py\n(.*?)^```$", WRITING, re.MULTILINE | re.DOTALL)
    assert shown in WITNESS


def test_the_template_answers_three_nodes_and_its_setting_counts(tmp_path: Path) -> None:
    bot = load_bot(tmp_path, "my_bot", TEMPLATE)
    assert {name for name in NODES_A_TO_E.values() if name in vars(bot.cls)} == {NODES_A_TO_E[node] for node in "ACD"}
    assert vars(bot.cls).keys() >= {"__init__", "origin"}
    for settings, risk in ((None, 0.3), ({"risk": 0.8}, 0.8)):
        player = in_seat(bot.cls, (NUMBER, NUMBER, 1), settings)
        assert chance(player, "D", regular((NUMBER, NUMBER, 1))) == pytest.approx(risk)


@pytest.fixture
def workshop(shell: Shell) -> Shell:
    """Set up the folder that the guide assumes, with the config that it tells the reader to save."""
    (config,) = blocks("yaml")
    (shell.folder / "mine.yaml").write_text(config)
    return shell


def line_of_shell(line: str, shell: Shell) -> str:
    """Run a command line from a guide, which must succeed, and return its output."""
    program, *words = shlex.split(line, comments=True)
    if program == "dubito":
        result = shell(*words)
        assert result.code == 0, result.err
        return result.out
    words = [sys.executable, "-m", program, "-p", "no:cacheprovider", *words] if program == "pytest" else [line]
    done = subprocess.run(words, shell=len(words) == 1, cwd=shell.folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_ten_minutes_work_line_by_line(workshop: Shell) -> None:
    lines = blocks("sh")[0].replace("--games 2000", "--games 100")
    written, checked, game, ranking = (line_of_shell(line, workshop) for line in lines.splitlines())
    assert written.startswith("written: bots/manual/my_bot.py\n")
    assert checked.startswith("MyBot passed all checks in ")
    assert game.startswith("The cards are dealt: MyBot holds 18, StefaBot holds 18, ClaudeBot holds 18.")
    assert "[MyBot holds" in game
    assert re.search(r"^MyBot ", ranking, re.MULTILINE)


@pytest.mark.at_length
def test_two_versions_compare_as_the_guide_shows(workshop: Shell) -> None:
    line_of_shell("dubito new bot MyBot", workshop)
    _, lines, _ = blocks("sh")
    _, shown = blocks("text")
    assert shown in [line_of_shell(line, workshop) for line in lines.splitlines()][-1]


def test_a_bots_own_tests_pass_as_the_guide_shows(workshop: Shell) -> None:
    line_of_shell("dubito new bot MyBot", workshop)
    (source,) = bots_and_tests()[1]
    (workshop.folder / "test_my_bot.py").write_text(source)
    output = line_of_shell(blocks("sh")[-1].strip(), workshop)
    assert f"{source.count('def test_')} passed" in output


def test_the_config_gives_the_twin_its_setting(workshop: Shell) -> None:
    line_of_shell("dubito new bot MyBot", workshop)
    config = yaml.safe_load((workshop.folder / "mine.yaml").read_text())
    (twin,) = [entry for entry in config["bots"] if isinstance(entry, dict)]
    assert (twin.pop("bot"), twin.pop("name")) == ("MyBot", "Bold")
    plays(find_bots(workshop.folder).find("MyBot"), **twin)
    ranking = line_of_shell("dubito run mine.yaml --games 30", workshop)
    assert all(re.search(rf"^{name} ", ranking, re.MULTILINE) for name in ("MyBot", "Bold", "StefaBot"))


def test_guide_explains_exactly_the_fields_of_a_turn() -> None:
    named = Counter(re.findall(r"`p\.(\w+)`", PROSE))
    assert named.keys() == {field.name for field in fields(TurnData)}
    rows = re.findall(r"^\| (`\..*?) \|", PROSE, re.MULTILINE)
    assert re.findall(r"`\.(\w+)`", " ".join(rows)) == [field.name for field in fields(PlayerData)]


def test_every_event_is_explained_with_all_its_fields() -> None:
    rows = dict(re.findall(r"^\| `(\w+Event)` \| (.*) \|$", PROSE, re.MULTILINE))
    assert rows.keys() == {event.__name__ for event in get_args(game_data.Event)}
    for name, text in rows.items():
        event = getattr(game_data, name)
        expected = {field.name for field in fields(event)} | ({"loser_id"} & vars(event).keys())
        assert set(re.findall(r"`(\w+)`", text)) == expected, name


def test_every_helper_in_the_guide_exists() -> None:
    """The guide must also mention every method of the hand."""
    player = in_seat(BotBase, (1, 2))
    picks = set(re.findall(r"self\.cards\.(\w+)", WRITING))
    assert picks == {name for name in vars(HandView) if not name.startswith("_")}
    for name in set(re.findall(r"self\.(\w+)", PROSE)):
        assert hasattr(player, name), name
    assert {*NODES_A_TO_E.values()} <= set(re.findall(r"`(\w+)`", PROSE))


def test_the_table_of_bots_is_the_bots_of_the_source() -> None:
    table = re.findall(r"^\| (\w+) \|(.*)\|$", BOTS, re.MULTILINE)
    source = {name for name, bot in REGISTRY.bots.items() if "isBre/Dubito" in bot.cls.origin}
    assert {name for name, _ in table} - {"bot"} == source
    maximize = {name: row.split("|")[3].strip() for name, row in table if name != "bot"}
    assert [name for name, answer in maximize.items() if answer == "no"] == ["RandomBoi"]


def test_rates_in_the_guide_are_close_to_those_of_the_source() -> None:
    stated = re.findall(r"(\w+) (\d\d\.\d)[,. ]", BOTS)
    rates = {name: float(rate) for name, rate in stated if name in PUBLISHED}
    assert rates == pytest.approx(PUBLISHED, abs=0.61)


def test_links_have_targets() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", BOTS + WRITING):
        assert (REPO / "docs" / target).exists(), target
