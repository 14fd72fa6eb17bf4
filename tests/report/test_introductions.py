"""A player's page begins with how it decides."""

from html import unescape
from pathlib import Path

from dubito.experiment.stored import open_recorded_run
from dubito.report.introductions import ModelWords, introduce
from dubito.report.tables import Paragraph, Verbatim
from tests.experiment.kit import REPO


def read_first(report: Path, name: str) -> str:
    """Return the first section of a player's page."""
    with open_recorded_run(report.parent) as source:
        player = source.names.index(name)
    page = (report / f"bots/{player}.html").read_text()
    return unescape(page.partition("<h2>How it decides</h2>")[2].partition("<h2>")[0])


def test_page_of_a_bot_begins_with_its_description_and_code(bots_run: Path) -> None:
    first = read_first(bots_run / "report", "StefaBot")
    assert (REPO / "bots/manual/stefa_bot.py").read_text().strip() in first
    with open_recorded_run(bots_run, REPO) as source:
        assert source.registry.find("StefaBot").summary in first


def test_page_of_a_model_begins_with_its_prompt_and_its_words(stating_run: Path) -> None:
    first = read_first(stating_run / "report", "states")
    assert "The model house-sharp answers each question of the prompt" in first
    assert "=== facts ===" in first
    assert '<li><a href="../games/' in first
    assert first.count("“") == 1


def test_code_that_did_not_play_is_not_shown(bots_run: Path) -> None:
    with open_recorded_run(bots_run, REPO) as source:
        spec = next(spec for spec in source.planned.players if spec.name == "StefaBot")
        kinds = [type(block) for block in introduce(source, "StefaBot", ModelWords()).blocks]
        assert kinds == [Paragraph, Verbatim]
        object.__setattr__(spec, "source", "0" * 64)
        assert [type(block) for block in introduce(source, "StefaBot", ModelWords()).blocks] == [Paragraph]
        object.__setattr__(spec, "bot", "Nobody")
        (missing,) = introduce(source, "StefaBot", ModelWords()).blocks
        assert isinstance(missing, Paragraph)
        assert missing.text.startswith("This machine does not have the bot: ")
