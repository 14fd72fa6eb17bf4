"""The probabilities that the built-in models report with their answers."""

from collections.abc import Iterator
from random import Random

import pytest

from dubito.games.dubito.bot import NODES
from dubito.games.dubito.facts import example_position
from dubito.games.dubito.fake_models import read_facts
from tests.house.kit import opinion
from tests.prompts.kit import PLAIN, RULES, turns


def questions(node: str) -> Iterator[str]:
    for _, positions in turns(RULES[0], 5, 3):
        yield from (str(PLAIN.render(position)) for position in positions if position.node == node)


def test_house_sharp_states_a_probability_where_it_judges_a_play() -> None:
    texts = list(questions("C"))
    stated = [opinion("house-sharp", text, Random(0)).stated for text in texts]
    assert len(set(stated)) > 10
    for text, p in zip(texts, stated, strict=True):
        assert p is not None
        assert 0 <= p <= 1
        assert p == round(p, 3)
        assert (p == 1.0) >= (read_facts(text)["sure_bluff"] == "yes")
    assert 1.0 in stated, "some plays are sure bluffs"


@pytest.mark.parametrize("node", ["C", "D"])
def test_odds_of_house_sharp_favor_its_choice(node: str) -> None:
    asked = [{"type": "choice", "name": node, "choices": [{"value": True}, {"value": False}]}]
    shares = []
    for text in questions(node):
        written = opinion("house-sharp", text, Random(0)).answer
        (opinion_text,) = opinion("house-sharp", text, Random(0), {"questions": asked}).answer
        yes, no = (each["probability"] for each in opinion_text["probabilities"])
        assert opinion_text["choice"] is written is (yes > no)
        assert yes + no == 1
        assert opinion_text["confidence"] == max(yes, no)
        shares.append(yes)
    assert min(shares) < 0.5 < max(shares)
    assert sum(0.01 < yes < 0.99 for yes in shares) > len(shares) / 4


def test_other_models_state_no_probability() -> None:
    text = str(PLAIN.render(example_position("C")))
    assert [opinion(model, text, Random(0)).stated for model in ("house-random", "house-honest")] == [None, None]
    assert opinion("house-sharp", "no facts", Random(0)).stated is None


@pytest.mark.parametrize("node", [node for node in NODES if node != "C"])
def test_no_probability_is_stated_at_other_nodes(node: str) -> None:
    rendered = opinion("house-sharp", str(PLAIN.render(example_position(node))), Random(0))
    assert (rendered.understood, rendered.stated) == (True, None)


def test_an_answer_does_not_need_the_facts_of_the_statement() -> None:
    facts = "node: C\nown_cards: 9\nwin_rule: contested\nsure_bluff: no\nprev_about_to_win: yes\nheld_of_number: 1\n"
    rates = "next_doubt_rate: 0.50\ntable_doubt_rate: 0.50\nboard_cards: 3"
    opinion_text = opinion("house-sharp", f"=== facts ===\n{facts}{rates}\n=== end of facts ===", Random(0))
    assert (opinion_text.answer, opinion_text.understood, opinion_text.stated) == (True, True, None)
