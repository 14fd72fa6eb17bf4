"""A bot's compiled class is used only if its file has exactly the compiled bytes and nothing is added."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import dubito
from dubito.experiment.config import Config
from dubito.experiment.play import ChunkPlayer
from dubito.experiment.resolve import resolve
from dubito.game.find import find_bots
from hatch_build import BOTS

BOT = """from bots.base import BotBase


class MyBot(BotBase):
    def __init__(self, id, eager=True):
        super().__init__(id)

    def bluff_first_hand(self, p):
        return False

    should_doubt = bluff_regular = bluff_first_hand
"""
TWIN = BOT.replace("return False", "raise ValueError('the twin is asked')")


def write_bot(clone: Path, bot: str, twin: str) -> None:
    """Write a bot's file, and a compiled twin that expects these bytes."""
    for file, text in (
        (clone / "bots" / "manual" / "my_bot.py", bot),
        (clone / "twins" / "compiled_bots" / f"d{sha256(bot.encode()).hexdigest()}" / "my_bot.py", twin),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set up a working directory with a bot and a pure Python twin that reports its use."""
    write_bot(tmp_path, BOT, TWIN)
    with monkeypatch.context() as patch:
        patch.setattr(dubito, "__path__", [str(tmp_path / "twins"), *dubito.__path__])
        yield tmp_path


def error_of(clone: Path, **values: Any) -> str:
    registry = find_bots(clone)
    run = resolve(Config(games=3, table_sizes=[3], **{"bots": ["MyBot"], **values}), registry)
    return str(ChunkPlayer(run).play(range(run.experiment.deals), lambda: False).error)


def test_compiled_twin_of_the_same_bytes_plays(clone: Path) -> None:
    assert "the twin is asked (my_bot.py, line 9)" in error_of(clone)


@pytest.mark.parametrize("usage", [{"bot_deadline": 60}, {"bots": [{"bot": "MyBot", "eager": False}]}])
def test_bot_with_settings_or_deadline_plays_from_its_file(clone: Path, usage: dict[str, Any]) -> None:
    assert error_of(clone, **usage) == "None"


def test_edited_file_is_not_replaced_by_its_compiled_twin(clone: Path) -> None:
    file = clone / "bots" / "manual" / "my_bot.py"
    file.write_text(file.read_text() + "\n")
    assert error_of(clone) == "None"


def test_compiled_twin_names_a_missing_module(clone: Path) -> None:
    write_bot(clone, f"{BOT}\n", f"import lost_module\n{TWIN}")
    with pytest.raises(ModuleNotFoundError, match="'lost_module'"):
        error_of(clone)


def test_the_eleven_bots_of_the_source_are_compiled(tmp_path: Path) -> None:
    bots = find_bots(tmp_path).bots.values()
    assert {bot.file.stem for bot in bots if "isBre/Dubito" in getattr(bot.cls, "origin", "")} == {*BOTS}
