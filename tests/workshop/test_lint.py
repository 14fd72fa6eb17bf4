"""Lint: unused and missing facts, changing beginnings, and sizes."""

from pathlib import Path

import pytest

from dubito.game.log import Position
from dubito.games.dubito.bot import NODES
from dubito.games.dubito.events import GameStartEvent
from dubito.games.dubito.facts import DubitoFacts
from dubito.games.dubito.game import GAME
from dubito.games.dubito.knowledge import Knowledge
from dubito.games.dubito.sentences import card_name
from dubito.llm.prompts import OWN_PROMPTS, Prompt
from dubito.workshop.lint import (
    facts_left_out,
    find_beginning_fault,
    find_system_fault,
    lint,
    other_value,
    render_requests,
    unused_facts,
)
from dubito.workshop.recordings import sample_games
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.workshop.kit import PLAIN, prompt

SHORT = "{{ rule_text }} {{ objective }} {{ seat }}"
ASKS = "{{ question }} {{ if_true }} {{ if_false }} {{ hand }}"
KEYS = PLAIN.variables
SOME = sample_games(GAME)[::5]  # three table sizes, under both win rules


def of_node(node: str) -> list[Position]:
    return [one.position for game in sample_games(GAME) for one in game if one.position.node == node][:3]


@pytest.mark.parametrize(
    "folder", in_gate(sorted(path.parent.name for path in OWN_PROMPTS.glob("*/prompt.yaml")), ["plan"])
)
def test_shipped_prompts_have_no_warnings(folder: str, at_length: bool) -> None:
    assert lint(Prompt(OWN_PROMPTS / folder), sample_games(GAME) if at_length else SOME).findings == []


def test_the_sample_games_are_of_all_kinds() -> None:
    starts = [game[0].position.log[0] for game in sample_games(GAME)]
    sizes = [len(start.player_ids) for start in starts if isinstance(start, GameStartEvent)]
    assert sorted(sizes) == sorted([3, 4, 5, 6, 7, 8] * 2)
    assert {(game[0].position.rules.win_rule) for game in sample_games(GAME)} == {"immediate", "contested"}
    assert {one.position.node for game in sample_games(GAME) for one in game} == set(NODES)


def test_unused_facts_are_listed_unless_excluded(tmp_path: Path) -> None:
    message = unused_facts(prompt(tmp_path, "a", SHORT, ASKS), KEYS)
    assert {"number_elsewhere", "sure_bluff", "history", "own_moves", "own_plays", "places", "answer_format"} <= set(
        message
    )
    assert not {"hand", "question", "seat", "own_cards", "rules", "answers", "node"} & set(message)
    included = prompt(tmp_path, "b", SHORT, ASKS + "{% include 'more.txt' %}{{ history }}", more="{{ sure_bluff }}")
    assert set(message) - set(unused_facts(included, KEYS)) == {
        *("sure_bluff", "history", "own_moves", "own_plays", "places", "sets_gone")
    }


@pytest.mark.parametrize("node", NODES)
def test_facts_missing_at_a_node_are_named(tmp_path: Path, node: str) -> None:
    regular = ["board_cards"] if node in "DE" else []
    expected = {
        "C": ["number_elsewhere", "prev_cards", "prev_bluff_rate"],
    }.get(node, [*regular, "next_cards", "next_doubt_rate"])
    bare = prompt(tmp_path, "bare", SHORT, ASKS)
    assert facts_left_out(bare, node, of_node(node)) == expected
    own_prompt = prompt(
        tmp_path, "uses", SHORT, ASKS + "{% for one in players %}{{ one['cards'] }}{% endfor %}{{ history }}"
    )
    assert facts_left_out(own_prompt, node, of_node(node)) == []
    empty = prompt(tmp_path, "empty", "x", "y")
    assert facts_left_out(empty, node, of_node(node))[:3] == ["rule_text", "objective", "seat"]


def test_fact_counts_as_used_if_it_changes_the_text(tmp_path: Path) -> None:
    """Naming a fact in a condition without effect is not enough."""
    asks = ASKS + "{{ history }}{% if next_cards is none %}{% endif %}"
    never = prompt(tmp_path, "never", SHORT, asks)
    assert "next_cards" not in unused_facts(never, KEYS)
    assert facts_left_out(never, "A", of_node("A")) == ["next_cards"]
    seen = prompt(tmp_path, "seen", SHORT, asks + "{{ 'few' if next_cards is odd else 'many' }}")
    assert facts_left_out(seen, "A", of_node("A")) == []


def test_a_template_that_cannot_bear_another_value_does_look_at_it(tmp_path: Path) -> None:
    asks = ASKS + "{{ history }}{{ {next_cards: 'x'}[players[1]['cards']] }}"
    assert facts_left_out(prompt(tmp_path, "mine", SHORT, asks), "A", of_node("A")) == []


@pytest.mark.parametrize("value", [None, True, 0, 3, 0.5, 0.25, "", "ace", [], ["ace"], [[1]], {}, {"7": 2}])
def test_another_value_is_another_one(value: object) -> None:
    assert other_value(value) != value


def test_facts_that_imply_others_really_do() -> None:
    """The question and its effects contain the facts that they are assumed to contain."""
    for game in sample_games(GAME):
        for one in game:
            values, turn = DubitoFacts().facts(one.position), one.position.known(Knowledge).turn()
            if one.position.node in "CDE":
                assert card_name(turn.current_number, plural=True) in values["question"]
            if one.position.node == "C":
                assert f"seat {turn.last_player_id} played {turn.n_cards_played} card" in values["question"]
                assert f"picks up the {turn.board_cards} card" in values["if_true"]
            if one.position.node == "D":
                assert f"hold {values['held_of_number']} of them" in values["question"]


def test_beginnings_are_measured_in_blocks_of_the_request_before() -> None:
    made = render_requests(PLAIN, sample_games(GAME)[:2])
    last: dict[tuple[int, int], list[str]] = {}
    decisions: dict[tuple[int, int], int] = {}
    asked = [(number, one.position) for number, game in enumerate(sample_games(GAME)[:2]) for one in game]
    assert len(made) == len(asked) > 100
    for one, (number, position) in zip(made, asked, strict=True):
        rendered = PLAIN.render(position)
        blocks, key = [rendered.system, *rendered.history], (number, position.seat)
        size = len("".join([*blocks, rendered.user]).encode())
        decisions[key] = decisions.get(key, 0) + 1
        assert (one.decision, one.bytes) == (decisions[key], size)
        before = last.get(key, [])
        assert blocks[: len(before)] == before
        assert one.shared == len("".join(before).encode()) / size
        last[key] = blocks


def test_a_system_text_that_moves_is_found_with_its_line(tmp_path: Path) -> None:
    made = render_requests(prompt(tmp_path, system="Rules.\nYou hold {{ own_cards }} cards.\n"), SOME)
    message = find_system_fault(made)
    assert message is not None
    assert message.startswith("the system text changes within a game, at ")
    assert "from line 2 of the system text on: You hold " in message
    assert find_system_fault(render_requests(PLAIN, SOME)) is None


def test_a_beginning_that_moves_is_found_with_its_line(tmp_path: Path) -> None:
    user = "{{ 'Same line. ' * 50 }}\n\n{{ own_cards }} {{ 'x' * 900 }}"
    message = find_beginning_fault(render_requests(prompt(tmp_path, user=user), SOME))
    assert message is not None
    assert "requests have less than 80% in common with the player's previous request" in message
    assert "from line 3 of the user text on: " in message
    steady = prompt(tmp_path, "steady", system="{{ 'Same line. ' * 600 }}", user="{{ own_cards }} {{ 'x' * 900 }}")
    assert find_beginning_fault(render_requests(steady, SOME)) is None


@pytest.mark.at_length
def test_the_command_prints_sizes_and_findings(shell: Shell) -> None:
    prompt(Path("prompts"), user="{{ question }} {{ 'x' * own_cards }}")
    result = shell("prompts", "lint", "mine")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].startswith("mine: A test. Averages over 12 games")
    assert " ".join(lines[1].split()) == "node requests bytes tokens (approx.) shared with previous request %"
    mine = Prompt(Path("prompts/mine"))
    made = [mine.render(one.position) for game in sample_games(GAME) for one in game if one.position.node == "A"]
    size = sum(len("".join([one.system, *one.history, one.user]).encode()) for one in made) / len(made)
    assert lines[2].split()[:4] == ["A", f"{len(made)}", f"{size:.0f}", f"{size / 4:.0f}"]
    assert lines[7].startswith("- facts that no template uses: ")
    assert "- missing at A, B, C, D, E: rule_text" in lines
    assert "- missing at C, D, E: board_cards" in lines
    assert shell("prompts", "lint", "plain").out.endswith("no findings\n")


def test_a_prompt_that_does_not_load_is_reported_in_one_sentence(shell: Shell) -> None:
    result = shell("prompts", "lint", "mine")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("dubito: no prompt is named 'mine'")
