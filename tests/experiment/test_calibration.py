"""Calibration: worked examples, bin edges, clustering, and the engine's truth."""

import json
from collections import Counter
from collections.abc import Set
from pathlib import Path
from random import Random
from typing import cast

import pytest

from dubito.cli.summary import print_summary
from dubito.experiment.config import parse_config
from dubito.experiment.models import Models
from dubito.experiment.play import ChunkPlayer, draw_lineups
from dubito.experiment.resolve import resolve
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.games.dubito.cards import JOKER, Hand, TurnOutput
from dubito.games.dubito.engine import RESULTS, Rules, State
from dubito.llm.decide import Journal
from dubito.stats.players import Calibration, Statement, add_statements, calibrations
from dubito.stats.tally import Tally, unpack_outcome
from tests.experiment.kit import experiment, resolved
from tests.llm.kit import contender, rows, run_games, small

Deal = list[tuple[int, Statement]]

STATER = '''
from bots.manual.random_boi import RandomBoi
from dubito.llm.decide import StatedProbability
class Stater(RandomBoi):
    """States a probability, null or nonsense, each time it is asked whether it doubts."""
    def should_doubt(self, p):
        stated_probability = self.rng.choice([0.0, 0.25, 1.0, None])
        impossible = stated_probability is None and self.rng.random() < 0.5
        self._seating.services.stated.append(StatedProbability(self.id, 0, stated_probability, impossible))
        return super().should_doubt(p)
'''


def make_statement(
    p: float | None, dishonest: bool, player: int = 0, impossible: bool = False
) -> tuple[int, Statement]:
    return player, Statement(0, p, impossible, dishonest)


def summed(*deals: Deal) -> Tally:
    tally = Tally()
    for deal in deals:
        add_statements(tally, deal)
    return tally


def calibration(*deals: Deal) -> Calibration:
    (one,) = calibrations(summed(*deals), ["somebody"])
    return one


def test_calibration_of_a_worked_example_is_exact() -> None:
    """((.9 - 1)^2 + (.9 - 0)^2 + (.2 - 0)^2 + (.3 - 0)^2) / 4 = .95 / 4. Two statements are unusable."""
    one = calibration(
        [make_statement(0.9, True), make_statement(0.2, False), make_statement(None, True)],
        [
            make_statement(0.9, False),
            make_statement(0.3, False),
            make_statement(None, False, impossible=True),
            make_statement(None, True),
        ],
    )
    assert (one.name, one.statements, one.nulls, one.impossible) == ("somebody", 4, 2, 1)
    assert one.brier.value == pytest.approx(0.95 / 4)
    assert one.brier.low < 0.95 / 4 < one.brier.high
    assert one.base_rate == 0.25
    assert one.base_brier == pytest.approx(0.25 * 0.75), "the score for always stating 1/4"
    rows = [(b.low, b.statements, b.mean, b.dishonest.value) for b in one.bins]
    assert rows == [(0.2, 1, 0.2, 0.0), (0.3, 1, 0.3, 0.0), (0.9, 2, 0.9, 0.5)]


@pytest.mark.parametrize(
    ("p", "low"),
    [(0.0, 0.0), (0.0999, 0.0), (0.1, 0.1), (0.3, 0.3), (0.6, 0.6), (0.7, 0.7), (0.8999, 0.8), (0.95, 0.9), (1.0, 0.9)],
)
def test_probabilities_are_binned_by_tenths(p: float, low: float) -> None:
    (only,) = calibration([make_statement(p, True)]).bins
    assert only.low == low
    assert only.mean == pytest.approx(p)


def test_player_with_only_null_statements_has_no_score() -> None:
    one = calibration([make_statement(None, True), make_statement(None, False, impossible=True)])
    assert (one.statements, one.nulls, one.impossible, one.bins) == (0, 1, 1, [])
    assert (one.brier.value, one.base_rate, one.base_brier) == (None, None, None)
    assert calibrations(Tally(), ["somebody"]) == []


def test_players_are_calibrated_separately() -> None:
    one, other = calibrations(summed([make_statement(1.0, True), make_statement(0.0, True, player=2)]), ["a", "b", "c"])
    assert (one.name, one.brier.value, other.name, other.brier.value) == ("a", 0.0, "c", 1.0)
    assert [b.low for b in one.bins] == [0.9]


def random_deals(n: int, m: int) -> list[Deal]:
    rng = Random(5)
    return [
        [make_statement(rng.randint(0, 1000) / 1000, dishonest)] * m
        for dishonest in (rng.random() < 0.4 for _ in range(n))
    ]


def test_statements_of_one_deal_do_not_narrow_the_intervals() -> None:
    single, tripled = calibration(*random_deals(200, 1)), calibration(*random_deals(200, 3))
    assert tripled.statements == 3 * single.statements
    ours, theirs = [single.brier], [tripled.brier]
    ours += [stated.dishonest for stated in single.bins]
    theirs += [stated.dishonest for stated in tripled.bins]
    for one, other in zip(ours, theirs, strict=True):
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
    assert single.brier.high - single.brier.low < 0.12
    with_silent_deals = calibration(*random_deals(200, 1), *([make_statement(None, True)] for _ in range(9)))
    assert (with_silent_deals.brier, with_silent_deals.bins) == (single.brier, single.bins), (
        "deals without statements have no effect"
    )


def test_chunks_add_up_in_any_grouping() -> None:
    deals = random_deals(50, 2)
    whole = summed(*deals).to_json()
    for cut in (1, 25, 49):
        assert (summed(*deals[:cut]) + summed(*deals[cut:])).to_json() == whole
    assert Tally.from_json(whole, RESULTS).to_json() == whole


class Seats:
    """Gives each seat the game's journal so that a test bot can state a probability."""

    def __init__(self, touched: Set[int] = frozenset()) -> None:
        self.touched = touched

    def service(self, name: str, journal: Journal, seats: int) -> object:
        journal.fallback_seats |= self.touched
        return journal


def asked_again(record: str, rules: Rules) -> list[tuple[int, bool]]:
    """Derive from deal and outputs who was asked to doubt, and whether the cards were a bluff."""
    plain = json.loads(record)
    game = State(rules, [Hand(cards) for cards in plain["hands"]])
    asked, number, last = [], 0, list[int]()
    for doubt, declared, cards in plain["outputs"]:
        if game.can_doubt:
            asked.append((game.seat, any(card not in (number, JOKER) for card in last)))
        game.apply(TurnOutput(doubt, declared, cards))
        number, last = (0, []) if doubt else (declared or number, cards)
    return asked


@pytest.mark.parametrize("win_rule", ["immediate", "contested"])
def test_statements_are_compared_with_the_actual_cards(tmp_path: Path, win_rule: str) -> None:
    (tmp_path / "bots" / "manual").mkdir(parents=True)
    (tmp_path / "bots" / "manual" / "stater.py").write_text(STATER)
    bots = find_bots(tmp_path)
    run = resolve(parse_config({"bots": ["Stater"], "games": 30, "rules": {"win_rule": win_rule}}, "test"), bots)
    of = run.experiment
    player, judged = ChunkPlayer(run), Counter[bool]()
    for deal in range(30):
        streams = DealStreams(of.seed, deal)
        (lineup,) = draw_lineups(of, deal, streams)
        game = player.play_with_models(deal, lineup, streams, cast(Models, Seats()))
        assert [(s.seat, s.dishonest) for s in game.statements] == asked_again(game.record, Rules(**of.rules))
        assert {s.stated for s in game.statements} == {0.0, 0.25, 1.0, None}
        assert {s.impossible for s in game.statements if s.stated is None} == {True, False}
        judged.update(s.dishonest for s in game.statements)
    assert min(judged.values()) > 100, "both cases must be frequent"


def test_fallback_seats_are_removed_with_their_game() -> None:
    of = experiment(bots=["RandomBoi"], games=1, table_sizes=[4])
    streams = DealStreams(of.seed, 0)
    (lineup,) = draw_lineups(of, 0, streams)
    game = ChunkPlayer(resolved(of)).play_with_models(0, lineup, streams, cast(Models, Seats(touched={1, 3})))
    assert game.fallback_seats == {1, 3}
    assert not game.statements


def test_run_is_scored_from_its_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = small(contender("sharp", "house-sharp", prompt="reasoned"), games=2, turns=20)
    run = run_games(of, tmp_path / "r")
    assert run.failure is None
    errors = []
    query = "SELECT p_bluff FROM decisions WHERE game = ? AND node = 'C' ORDER BY decision"
    for game, row, record in rows(run.folder, "SELECT game, outcome, record FROM games"):
        asked = [
            bluff
            for seat, bluff in asked_again(record, Rules(**of.rules))
            if seat == unpack_outcome(row, RESULTS).contender_seat
        ]
        stated = [p for (p,) in rows(run.folder, query, (game,))]
        errors += [(p - bluff) ** 2 for p, bluff in zip(stated, asked, strict=True)]
    (sharp,) = calibrations(run.tally, run.experiment.names)
    assert (sharp.name, sharp.statements) == ("sharp", len(errors))
    assert sharp.brier.value == pytest.approx(sum(errors) / len(errors), abs=1e-6)
    print_summary(run, tables=True, sizes=False)
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("Stated probability that the last play is dishonest (node C) vs. the truth")
    assert lines[start + 2].split()[:5] == ["sharp", "fake", "model", f"{len(errors)}", f"{sharp.brier.value:.3f}"]
    shown = [line.split() for line in lines[start + 5 : start + 5 + len(sharp.bins)]]
    assert [(line[0], int(line[6])) for line in shown] == [("sharp", stated.statements) for stated in sharp.bins]
