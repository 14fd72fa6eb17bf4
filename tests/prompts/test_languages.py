"""Prompts in other languages: the same facts in the same order, and the same legal answers."""

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from jinja2 import TemplateRuntimeError

from dubito.errors import UsageError
from dubito.files import read_yaml
from dubito.game.log import Position
from dubito.games.dubito.engine import MAX_PLAYERS, MIN_PLAYERS, Rules
from dubito.games.dubito.facts import example_position, sample_table
from dubito.games.dubito.game import GAME
from dubito.llm.answers import REASKS
from dubito.llm.prompts import load_prompt
from dubito.llm.request import AttemptFailed
from dubito.llm.translation import Translation
from dubito.workshop.recordings import Origin, record_positions
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.experiment.kit import experiment
from tests.llm.kit import config_file
from tests.prompts.kit import REPO

LANGUAGES = ["de", "it"]
CARDS = ["ace", "jack", "queen", "king", "joker"]
RULES = [
    Rules(),
    Rules(win_rule="contested"),
    Rules(jokers=0),
    Rules(jokers=1, ranks=12, copies=3),
    Rules(ranks=11, copies=2, max_turns=60),
    Rules(ranks=5),
    Rules(duel=True, ranks=6),
    Rules(duel=True, win_rule="contested"),
]


@cache
def positions() -> list[Position]:
    """Return positions at tables of every size, under every rule that changes a text."""
    return [*_play()]


def _play() -> Iterator[Position]:
    for number, rules in enumerate(RULES):
        sizes = [2] if rules.duel else in_gate(range(MIN_PLAYERS, MAX_PLAYERS + 1), [3 + number % 6])
        for size in sizes:
            recorded = record_positions(
                sample_table(rules, size, size), Origin(None, 0, size, size), GAME, GAME.rules(**rules.stored_form())
            )
            yield from (one.position for one in recorded)


def facts_in(text: str, cards: dict[str, str]) -> list[str]:
    """Return the numbers, the cards and the words true and false in a text, in order. `cards` has all their names."""
    found = list[str]()
    for word in re.findall(r"\w+(?:\.\d+)?", text.casefold()):
        number = re.fullmatch(r"(\d+(?:\.\d+)?)(?:x|s|er)?", word)
        found += [number[1]] if number else [cards[word]] if word in cards else []
    return found


def names_of_cards(language: str) -> dict[str, str]:
    """Return the English names of cards, by their singular and their plural."""
    words = read_yaml(REPO / "prompts" / "shared" / f"{language}.yaml")["words"]
    names = {words[name].casefold(): card for card in CARDS for name in (card, f"{card}s")}
    return names | {"true": "true", "false": "false"}


ENGLISH = {name: card for card in CARDS for name in (card, f"{card}s")} | {"true": "true", "false": "false"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("base", ["plain", "plan"])
def test_every_text_of_the_game_is_translated_with_the_same_facts(base: str, language: str, at_length: bool) -> None:
    prompt, cards, original = load_prompt(f"{base}-{language}", REPO), names_of_cards(language), load_prompt(base, REPO)
    step = 1 if at_length else 2 if base == "plain" else 4
    for position in positions()[::step]:
        english, other = original.render(position), prompt.render(position)
        assert len(english.history) == len(other.history)
        texts = zip(
            (english.system, *english.history, english.user), (other.system, *other.history, other.user), strict=True
        )
        for one, two in texts:
            assert facts_in(two, cards) == facts_in(one, ENGLISH), two
        assert prompt.form_at(position).schema == original.form_at(position).schema, "the same legal answers"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("base", ["plain", "plan"])
def test_no_english_is_left(base: str, language: str) -> None:
    prompt = load_prompt(f"{base}-{language}+must-not-lie+win=3+lose=-1", REPO)
    english = r"\b(the|you|your|and|cards?|seat|plays?|doubts?|honest|player|number|hand|board|win)\b"
    english = english.replace("|hand", "") if language == "de" else english
    for node in "ABCDE":
        position = example_position(node)
        rendered, form = prompt.render(position), prompt.form_at(position)
        reasks = [form.reask_text(AttemptFailed(cause, "DETAIL"), rendered.translate) for cause in REASKS]
        assert not re.findall(f"{english}|\\b(or|reply|answer was)\\b", f"{rendered} {reasks}")
        assert sum("DETAIL" in str(text) for text in reasks) == 2


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("base", ["plain", "plan"])
def test_names_of_facts_are_explained(base: str, language: str) -> None:
    rendered = load_prompt(f"{base}-{language}", REPO).render(example_position("C"))
    names = re.findall(r"^([\w]+)(?: \d)?: ", rendered.user.partition("\n\n")[0], re.MULTILINE)
    explained = ", ".join(re.findall(r"^- ([^:]+): ", rendered.system, re.MULTILINE))
    assert names
    assert [name for name in names if name not in explained] == []


def test_catalogs_have_the_same_sentences() -> None:
    catalogs = [read_yaml(REPO / "prompts" / "shared" / f"{language}.yaml") for language in LANGUAGES]
    assert [*catalogs[0]["texts"]] == [*catalogs[1]["texts"]]
    assert [*catalogs[0]["words"]] == [*catalogs[1]["words"]]


CATALOG = """
name: Test
words: {seat: banc, ace: as, "yes": oui}
texts:
  "seat {a} plays {card}.": "{card}, dit banc {a}."
  "Good luck!": "Bonne chance!"
"""


def test_a_text_is_translated_sentence_by_sentence() -> None:
    translate = Translation(CATALOG, "test.yaml").translate
    assert translate("seat 1 plays ace. Good luck! seat 2 plays 2x 7, 1x ace.") == (
        "as, dit banc 1. Bonne chance! 2x 7, 1x as, dit banc 2."
    )
    assert [translate(text) for text in ("yes", "0.25", "", " ace ace\n")] == ["oui", "0.25", "", " as as\n"]
    for text in ("seat 1 plays king.", "Good luck", "yes and no"):
        with pytest.raises(TemplateRuntimeError, match=f"test.yaml has no translation of '{text}'"):
            translate(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (CATALOG.replace("{a}.", "{b}."), r"the translation of 'seat {a} plays {card}\.' has other parts in braces"),
        ("name: x", "test.yaml: "),
        ("name: [", "test.yaml, line 1: not valid YAML"),
    ],
)
def test_damaged_catalog_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Translation(text, "test.yaml")


def test_missing_sentence_and_missing_catalog_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "mine"
    folder.mkdir(parents=True)
    (folder / "prompt.yaml").write_text("title: x\nlanguage: xx\nanswer: [answer]\n")
    (folder / "system.jinja").write_text("{{ objective }}")
    (folder / "user.jinja").write_text("{{ question }}")
    with pytest.raises(UsageError, match=r"there is no .*mine/shared/xx\.yaml"):
        load_prompt("./prompts/mine", tmp_path)
    (tmp_path / "prompts" / "shared").mkdir()
    (tmp_path / "prompts" / "shared" / "xx.yaml").write_text(CATALOG)
    with pytest.raises(UsageError, match=r"system\.jinja, line 1: .*xx\.yaml has no translation of 'Be the first"):
        load_prompt("./prompts/mine", tmp_path)


def test_missing_reask_is_reported_when_the_prompt_is_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "mine"
    shutil.copytree(REPO / "prompts" / "plain-it", folder)
    shutil.copytree(REPO / "prompts" / "shared", tmp_path / "prompts" / "shared")
    catalog = tmp_path / "prompts" / "shared" / "it.yaml"
    catalog.write_text(re.sub(r'  "Your last reply was cut off.*\n', "", catalog.read_text()))
    with pytest.raises(UsageError, match=r"it\.yaml has no translation of 'Your last reply was cut off"):
        load_prompt("./prompts/mine", tmp_path)


def test_decision_models_have_no_translated_questions() -> None:
    with pytest.raises(UsageError, match="prompt plain-it: api: decisions puts its questions beside the text"):
        load_prompt("plain-it", REPO).for_api("decisions")


def test_language_is_a_condition() -> None:
    models = ["house:house-random", "house:house-random@plain+must-not-lie"]
    crossed = experiment(contenders=models, conditions=["silent", {"language": "it"}], games=8).contenders
    assert [player.name for player in crossed] == [
        "house:house-random",
        "house:house-random@plain-it",
        "house:house-random@plain+must-not-lie",
        "house:house-random@plain-it+must-not-lie",
    ]
    with pytest.raises(UsageError) as caught:
        experiment(contenders=["house:house-random@reasoned"], conditions=[{"language": "it"}], games=1)
    assert str(caught.value) == (
        "test.yaml: conditions.0: language: there is no prompt reasoned-it; translated into it: plain and plan"
    )
    with pytest.raises(UsageError, match="there is no prompt plain-fr; no prompt is in this language"):
        experiment(contenders=models, conditions=[{"language": "fr"}], games=1)


def test_translated_run_is_compared_with_english_and_can_be_checked(shell: Shell) -> None:
    config = config_file("house:house-random", conditions=["silent", {"language": "de"}, {"language": "it"}], games=30)
    assert shell("run", config, "--output", "r", "--quiet", "--no-report").code == 0
    out = shell("compare", "r").out
    rows = out.split("Effect of each condition")[1].splitlines()[2:4]
    assert ["language=de" in rows[0], "language=it" in rows[1]] == [True, True]
    checked = shell("replay", "r")
    assert checked.code == 0, checked.err
