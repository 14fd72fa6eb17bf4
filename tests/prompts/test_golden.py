"""Golden renderings of every node; `python -m tests.prompts.golden` writes them anew when a change was meant."""

import pytest

from dubito.facts import facts
from dubito.llm.prompts import load_prompt
from dubito.player import NODES
from dubito.positions import example_position
from dubito.rules import Rules
from tests.prompts import golden
from tests.prompts.kit import PLAIN, REPO, turns


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("name", golden.NAMES)
def test_a_rendering_is_the_golden_one(name: str, node: str) -> None:
    file = golden.folder(name) / f"{node}.txt"
    assert file.read_bytes().decode() == golden.renderings(name)[file]


@pytest.mark.parametrize("name", golden.NAMES)
def test_the_folder_holds_the_golden_renderings_and_nothing_else(name: str) -> None:
    assert sorted(golden.folder(name).iterdir()) == sorted(golden.renderings(name))


def test_the_example_positions_have_much_to_tell() -> None:
    """Otherwise the golden renderings would freeze little."""
    told = "\n".join(file.read_text() for file in golden.folder("plain").iterdir())
    for text in (": a bluff", ": honest", "Yours: ", "discards", "a hard win", ", known ", " less ", "sure_bluff: no"):
        assert text in told, text


def test_every_line_of_the_facts_has_its_meaning() -> None:
    """And every meaning its line, at one node or another; `seat N` stands for a line a player."""
    values = facts(example_position("C"))
    block = PLAIN.render(example_position("C")).user.partition("=== facts ===\n")[2].partition("=== end")[0]
    names = {line.partition(":")[0] for line in block.splitlines()}
    seats = {f"seat {player['seat']}" for player in values["players"]}
    assert seats < names
    assert names - seats | {"seat N"} == set(values["meanings"])


@pytest.mark.parametrize("win_rule", ["immediate", "contested"])
@pytest.mark.parametrize("size", [3, 4, 5, 8])
@pytest.mark.parametrize("name", golden.NAMES)
def test_the_request_begins_like_the_one_before(name: str, size: int, win_rule: str) -> None:
    """The system text stays the same through a game, and from a player's fifth decision on three quarters of a
    request are the beginning of his request before: providers charge less for that part.
    """
    prompt, rules = load_prompt(name, REPO), Rules(win_rule=win_rule)  # type: ignore[arg-type]
    for deal in range(3):
        last: dict[int, bytes] = {}
        decisions = dict.fromkeys(range(size), 0)
        systems: dict[int, set[str]] = {seat: set() for seat in range(size)}
        for _, positions in turns(rules, size, deal):
            for one in positions:
                rendered = prompt.render(one)
                text = (rendered.system + rendered.user).encode()
                decisions[one.seat] += 1
                systems[one.seat].add(rendered.system)
                if decisions[one.seat] >= 5:
                    assert shared(last[one.seat], text) >= 0.75 * len(text), str(rendered)
                last[one.seat] = text
        assert all(len(texts) <= 1 for texts in systems.values())
        assert max(decisions.values()) > 5


def shared(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
