"""The fake models decide only by the facts in the text."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, cycle, islice, product
from random import Random
from typing import Any

import pytest

from dubito.game.log import Position
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, play_game
from dubito.games.dubito.bot import NODES
from dubito.games.dubito.engine import Result, Rules, deal_table
from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.games.dubito.fake_models import read_facts, sharp, stated_chance
from dubito.games.dubito.game import GAME
from dubito.house.core import model_names
from dubito.llm.templates import format_value
from tests.conftest import in_gate
from tests.house.kit import opinion
from tests.prompts.kit import PLAIN, PROMPTS, REGISTRY, RULES, SIZES, asked_bot, record_questions, turns


def line(player: dict[str, Any]) -> str:
    """Format a player's line independently."""
    text = f"{player['cards']} {player['doubts']}/{player['chances_to_doubt']}"
    text += f" {player['honest_plays']}/{player['doubted_plays']}"
    if player["known_cards"]:
        text += " known " + " ".join(player["known_cards"])
        text += f" less {player['put_down']}" if player["put_down"] else ""
    return text


@pytest.mark.parametrize(
    ("rules", "size"), in_gate(product(RULES, [3, 5, 8]), [*zip(RULES, [3, 5, 8], strict=True)][:2]), ids=str
)
def test_the_block_parsed_back_is_the_facts(rules: Rules, size: int) -> None:
    for _, positions in turns(rules, size, 6):
        for position in positions:
            values = DubitoFacts().facts(position)
            read = read_facts(str(PLAIN.render(position)))
            assert len(read) > 15
            for player in values["players"]:
                assert read.pop(f"seat {player['seat']}") == line(player)
            assert read == {name: str(format_value(values[name])) for name in read}
            assert ("number" in read) == (values["number"] is not None)


def format_lines(values: dict[str, Any]) -> dict[str, str]:
    names = {name: str(format_value(value)) for name, value in values.items() if not isinstance(value, dict)}
    return names | {f"seat {player['seat']}": line(player) for player in values["players"]}


def recorded(many: int) -> Iterator[Position]:
    tables = ((rules, size, deal) for deal in count() for rules in RULES for size in SIZES)
    asked = (one for table in tables for _, positions in turns(*table) for one in positions)
    return islice(asked, many)


def test_house_sharp_answers_prompts_like_bare_facts(at_length: bool) -> None:
    """The stated probability is also the same, so the prompt loses or inverts nothing."""
    many = 2000 if at_length else 250
    answers = Counter[tuple[str, bool]]()
    stated, in_turn = set[float | None](), cycle(PROMPTS.items())
    for position in recorded(many):
        known = format_lines(DubitoFacts().facts(position))
        direct, chance = sharp(known), stated_chance(known)
        answers[position.node, direct] += 1
        stated.add(chance)
        for name, prompt in PROMPTS.items() if at_length else [next(in_turn)]:
            rendered = opinion("house-sharp", str(prompt.render(position)), Random(0), prompt.form_at(position).schema)
            first = rendered.answers.get(position.node, rendered.answer)
            assert (first, rendered.understood, rendered.stated) == (direct, True, chance), name
    assert answers.total() == many
    assert {node for node, _ in answers} == set(NODES)
    for node in "CD":
        assert min(answers[node, True], answers[node, False]) > many / 40, "both answers must be frequent"
    assert len(stated) > 30


def test_the_last_block_counts() -> None:
    first, last = (str(PLAIN.render(example_position(node))) for node in "AC")
    assert read_facts(first + last)["node"] == "C"
    assert read_facts("no facts") == read_facts("=== facts ===\nnode: C") == {}


def ask_house(model: str, text: str, seed: int = 0) -> tuple[bool, bool]:
    voiced = opinion(model, text, Random(seed))
    return voiced.answer, voiced.understood


@pytest.mark.parametrize("model", model_names(GAME))
def test_without_facts_every_model_flips_a_coin(model: str) -> None:
    for text in (
        "",
        "Should I doubt?",
        "=== facts ===\nnode: C\n=== end of facts ===",
        "=== facts ===\nnode: Z\n=== end of facts ===",
    ):
        answers = [ask_house(model, text, seed) for seed in range(400)]
        assert {understood for _, understood in answers} == {model == "house-random"}
        assert 150 < sum(yes for yes, _ in answers) < 250


def test_the_coin_of_house_random_is_fair_with_facts_too() -> None:
    text = str(PLAIN.render(example_position("D")))
    answers = [ask_house("house-random", text, seed) for seed in range(400)]
    assert all(understood for _, understood in answers)
    assert 150 < sum(yes for yes, _ in answers) < 250


@pytest.mark.parametrize("model", ["house-honest", "house-sharp"])
@pytest.mark.parametrize("node", NODES)
def test_answer_is_deterministic_with_facts(model: str, node: str) -> None:
    text = str(PLAIN.render(example_position(node)))
    assert len({ask_house(model, text, seed) for seed in range(20)}) == 1
    assert ask_house(model, text)[1] is True


def question(**changes: str) -> str:
    """Return a prompt with the facts of a regular turn, after these changes."""
    values = read_facts(str(PLAIN.render(example_position("C"))))
    assert {*READY, *changes} <= set(values)
    lines = [f"{name}: {value}" for name, value in (values | READY | changes).items()]
    return "\n".join(["=== facts ===", *lines, "=== end of facts ==="])


READY = {"own_cards": "9", "held_of_number": "2", "sure_bluff": "no", "prev_about_to_win": "no", "board_cards": "9"}


def test_house_honest_bluffs_only_where_it_must() -> None:
    for node, expected in (("A", False), ("B", True), ("D", False), ("E", True), ("C", False)):
        assert ask_house("house-honest", question(node=node)) == (expected, True)
    assert ask_house("house-honest", question(held_of_number="0")) == (True, True)
    assert ask_house("house-honest", question(prev_about_to_win="yes")) == (True, True)


def test_house_sharp_doubts_impossible_plays_and_pending_winners() -> None:
    quiet = {"prev_bluff_rate": "0.00", "last_play": "1", "number_elsewhere": "0", "table_bluff_rate": "0.05"}
    assert ask_house("house-sharp", question(**quiet)) == (False, True)
    assert ask_house("house-sharp", question(**quiet, sure_bluff="yes")) == (True, True)
    assert ask_house("house-sharp", question(**quiet, prev_about_to_win="yes")) == (True, True)


def test_house_sharp_plays_last_cards_that_cannot_be_doubted() -> None:
    """R9: under `immediate`, an empty hand has won."""
    for node, expected in (("A", True), ("B", True), ("C", False), ("D", True), ("E", True)):
        assert sharp({"node": node, "own_cards": "3", "win_rule": "immediate"}) is expected
        changes = {"node": node, "own_cards": "3", "win_rule": "immediate", "sure_bluff": "yes"}
        assert ask_house("house-sharp", question(**changes)) == (expected, True)
    assert ask_house("house-sharp", question(own_cards="3", win_rule="contested", sure_bluff="yes")) == (True, True)
    assert ask_house("house-sharp", question(node="A", own_cards="3", win_rule="contested")) == (False, True)


def test_house_sharp_bluffs_against_players_who_never_doubt() -> None:
    bold, shy = {"next_doubt_rate": "0.90"}, {"next_doubt_rate": "0.00"}
    assert ask_house("house-sharp", question(node="D", held_of_number="1", **shy)) == (True, True)
    assert ask_house("house-sharp", question(node="D", held_of_number="1", **bold)) == (False, True)
    assert ask_house("house-sharp", question(node="D", held_of_number="3", **shy)) == (False, True)


def by_the_prompt(position: Position, chance: Random) -> bool:
    """Return house-sharp's answer to the prompt `plain`."""
    voiced = opinion("house-sharp", str(PLAIN.render(position)), chance)
    assert voiced.understood
    answer: bool = voiced.answer
    return answer


@pytest.mark.parametrize("rules", in_gate(RULES[:2], 1), ids=str)
def test_house_sharp_beats_random_boi_clearly(rules: Rules, at_length: bool) -> None:
    """R10: both play at tables of three to six, in the same seat with the same cards and neighbours."""
    deals = 120 if at_length else 16
    others = [REGISTRY.bots[name].cls for name in ("RandomBoi", "ClaudeBot", "StefaBot", "UsualBot", "AdaptyBoi")]
    scores = []
    for bot in (asked_bot(by_the_prompt), REGISTRY.bots["RandomBoi"].cls, REGISTRY.bots["ClaudeBot"].cls):
        score = 0.0
        for deal in range(deals):
            streams = DealStreams(11, deal)
            field = streams.seating().choices(others, k=2 + deal % 4)
            table = deal_table([Entrant("x", one) for one in (bot, *field)], rules, streams, deal=deal)
            record_questions(table, rules)
            score += {Result.HARD_WIN: 1.0, Result.SOFT_WIN: 0.5}.get(play_game(table).result(0), 0.0) / deals
        scores.append(score)
    sharp_one, random_boi, claude = scores
    assert sharp_one > random_boi + 0.15
    assert sharp_one > claude - 0.05
