"""Reference beliefs, and how far answers are from them."""

import json
from math import log
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.lies import TrackedGame, TrackedResponse
from dubito.experiment.stored import open_recorded_run
from dubito.game.table import step
from dubito.plugins.deception.reference import BotReference, ReferenceReplay
from dubito.plugins.deception.sheet import BELIEF_BANDS, GAPS, BeliefGap, SheetCounter, judge_answer
from tests.cli.kit import Shell

RUN = """
bots: [Sherlock, StefaBot]
contenders: [ClaudeBot]
games: 8
table_sizes: [3]
"""


@pytest.fixture
def run(tmp_path: Path, shell: Shell) -> Path:
    (tmp_path / "c.yaml").write_text(RUN)
    assert shell("run", "c.yaml", "--output", "r", "--quiet").code == 0
    return tmp_path / "r"


def test_the_reference_believes_what_the_bot_believed_in_the_game(run: Path) -> None:
    compared = 0
    with open_recorded_run(run) as stored:
        reference = BotReference(stored, "Sherlock")
        for number in stored.experiment.game_numbers:
            table, _ = stored.player.build_table(number)
            _moves, beliefs = ReferenceReplay(stored, number, [*range(3)], reference).moves()
            moves = [0] * 3
            while not table.state.over:
                state, player = table.state, table.players[table.state.seat]
                moves[state.seat] += 1
                belief = beliefs.get((number, state.seat, moves[state.seat]))
                assert (belief is None) is (stored.game.truth(state) is None)
                if belief is not None and type(player).__name__ == "Sherlock":
                    assert belief == stored.game.read_belief(player)
                    compared += 1
                step(table, announce=True)
    assert compared > 20


def respond(called: bool, is_lie: bool, move: int = 1) -> TrackedResponse:
    return TrackedResponse(0, 0, move, move, 0, 0, is_lie, called, 6, 7, False)


@pytest.mark.parametrize(
    ("called", "is_lie", "own", "reference", "values"),
    [
        (True, False, 0.2, 0.5, {"reference_loss": 0.693147, "loss": -log(0.8), "calls_against": 1, "own_cards": -6}),
        (True, True, 0.2, None, {"loss": -log(0.2), "calls_against": 1, "own_cards": 6}),
        (False, True, 0.9, None, {"loss": -log(0.9), "passes_against": 1, "own_cards": -6}),
        (True, True, 0.9, None, {"loss": -log(0.9), "passes_against": 0}),
        (False, False, None, 0.9, {"reference_loss": -log(0.1), "against_reference": 1, "reference_cards": 6}),
        (False, True, 0.0, None, {"loss": -log(0.001), "calls_against": 0}),
    ],
)
def test_answers_are_judged_by_beliefs(
    called: bool, is_lie: bool, own: float | None, reference: float | None, values: dict[str, float]
) -> None:
    found = {key: value for key, value in judge_answer(respond(called, is_lie), own, reference) if key in GAPS}
    nats = {key: value / 10**6 if key.endswith(("loss", "divergence")) else value for key, value in found.items()}
    divergence = nats.pop("divergence", None)
    assert nats == pytest.approx(values, abs=1e-6)
    assert (divergence is None) is (own is None or reference is None)
    if own == 0.2 and reference == 0.5:
        assert divergence == pytest.approx(0.5 * log(0.5 / 0.2) + 0.5 * log(0.5 / 0.8), abs=1e-6)


def test_calls_are_shares_by_the_reference_s_belief() -> None:
    gap = BeliefGap()
    for called, reference in ((False, 0.0), (True, 0.19), (True, 0.2), (False, 0.8), (True, 1.0)):
        answers = judge_answer(respond(called, True), None, reference)
        gap.add_deal({key: [value] for key, value in answers})
    shares = {band: (gap.rate(band).value, gap.count(band)) for band in BELIEF_BANDS if gap.count(band)}
    assert shares == {"0 to 20": (0.5, 2), "20 to 40": (1, 1), "80 to 100": (0.5, 2)}


def test_means_have_intervals_by_deal_from_ten_cases_on() -> None:
    counter = SheetCounter(["one"])
    for deal in range(5):
        responses = [respond(deal < 4, True, move) for move in (1, 2)]
        counter.add_deal(deal, [TrackedGame([], responses)], {(0, 0, 1): 0.2, (0, 0, 2): 0.2})
    (gap,) = [one.gap for one in counter.sheet().players]
    assert (gap.rate("calls_against").value, gap.rate("calls_against").cases) == (0.8, 10)
    assert gap.rate("own_cards").value is None, "there are only eight answers against the belief"
    assert gap.rate("loss").value == pytest.approx(-log(0.2), abs=1e-6)
    gap = BeliefGap()
    for cards in ([3, -1], [4, 4], [0, 2], [6, 0], [1, 1]):
        gap.add_deal({"own_cards": cards})
    rate = gap.rate("own_cards")
    assert rate.value == 2
    # means of deals: 1, 4, 1, 3, 1, so a standard error of (8 / 4 / 5) ** 0.5; t with 4 degrees of freedom is 2.7764
    assert rate.high - 2 == pytest.approx(2.7764 * 0.4**0.5, abs=0.01)


def test_the_sheet_has_reference_beliefs_for_all_players(run: Path, shell: Shell) -> None:
    result = shell("deception", "r", "--json", "--quiet", "--output", "sheet")
    document = json.loads(result.out)
    assert document["reference"] == "Sherlock"
    gaps: dict[str, Any] = {one["name"]: one["gap"] for one in document["players"]}
    assert 0 < gaps["Sherlock"]["against_reference"]["value"] < gaps["StefaBot"]["against_reference"]["value"]
    assert gaps["Sherlock"]["loss"]["value"] is None
    calls = gaps["Sherlock"]["calls_by_belief"]
    assert calls["0 to 20"]["value"] < calls["80 to 100"]["value"]
    rows = json.loads((run.parent / "sheet" / "data" / "deception-reference.json").read_text())["rows"]
    assert {row["player"]: row["against_reference"] for row in rows} == {
        name: gap["against_reference"]["value"] for name, gap in gaps.items()
    }


def test_no_bot_is_the_reference_of_rules_that_it_does_not_know(tmp_path: Path, shell: Shell) -> None:
    """Sherlock assumes four cards of each number, and this deck has two."""
    flags = ("--copies", "2", "--jokers", "0", "--games", "4", "--table-sizes", "3", "--max-turns", "60")
    assert (
        shell("run", "--contenders", "StefaBot", "--bots", "UsualBot", *flags, "--output", "two", "--quiet").code == 0
    )
    result = shell("deception", "two", "--quiet", "--json")
    assert json.loads(result.out)["reference"] is None, result.err
