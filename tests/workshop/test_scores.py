"""The scores of a trial, recomputed: rates, agreement, calibration, tokens and cost."""

import pytest

from dubito.games.dubito.game import GAME
from dubito.llm.decide import StatedProbability
from dubito.llm.prices import Price
from dubito.llm.request import Usage
from dubito.stats.players import calibrations
from dubito.stats.rates import clustered_rate
from dubito.workshop.recordings import RecordedPosition
from dubito.workshop.trial import ALL, TrialAnswer, compare_answers, score_rows, tally_statements
from tests.workshop.kit import positions

OF_C = positions(40, "C")  # four for each of ten deals


def make_answer(
    one: RecordedPosition, answer: bool | None = True, cause: str | None = None, p: float | None = None
) -> TrialAnswer:
    stated = StatedProbability(one.position.seat, 0, p, False) if p is not None else None
    return TrialAnswer(one, answer, cause, stated, (Usage(100, 60, 0, 7, 0),))


def truth(one: RecordedPosition) -> bool:
    assert one.right is not None
    return bool(one.right)


def test_rates_are_correct_and_clustered_by_deal() -> None:
    assert len({one.deal for one in OF_C}) == 10
    deals = sorted({one.deal for one in OF_C}, key=str)
    right_in = deals[:7]  # seven deals are right, and three wrong
    judged = [make_answer(one, truth(one) is (one.deal in right_in)) for one in OF_C]
    (node, everything) = score_rows(judged, None)
    assert (node.node, everything.node) == ("C", ALL)
    assert node.right == everything.right == clustered_rate(10, 40, 160, 28, 7 * 16, 7 * 16)
    assert node.right.value == 0.7
    assert node.right.low < clustered_rate(40, 40, 40, 28, 28, 28).low - 0.1, (
        "treating positions as independent would narrow the interval"
    )
    yes = sum(one.answer is True for one in judged)
    assert (node.positions, node.yes.value) == (40, yes / 40)
    assert (node.invalid.value, node.causes) == (0.0, {})


def test_missing_answers_are_not_in_the_rates() -> None:
    failed = [make_answer(one, None, "refused" if n % 2 else "malformed") for n, one in enumerate(OF_C[:10])]
    came = [make_answer(one, truth(one)) for one in OF_C[10:]]
    (node, _) = score_rows(failed + came, None)
    assert node.invalid.value == 10 / 40
    assert node.causes == {"refused": 5, "malformed": 5}
    assert node.right.value == 1.0
    assert node.yes.value == sum(one.answer is True for one in came) / 30


def test_where_the_truth_does_not_decide_nothing_is_right_or_wrong() -> None:
    others = [make_answer(one) for one in positions() if one.position.node != "C"]
    bare = [make_answer(RecordedPosition(GAME, one.position)) for one in OF_C]
    assert [row.right.value for row in score_rows(others, None)] == [None] * 5
    assert [row.right.value for row in score_rows(bare, None)] == [None] * 2


def test_tokens_and_cost_of_a_decision_include_its_re_asks() -> None:
    one, two, three = OF_C[:3]
    twice = TrialAnswer(one, True, None, None, (Usage(100, 60, 0, 7, 0), Usage(130, 100, 0, 3, 0)))
    unsaid = TrialAnswer(two, True, None, None, (Usage(1, 1, 1, 1, 1), None))
    never = TrialAnswer(three, None, "unreachable", None, ())
    price = Price(10, 1, 12, 50)
    (row, _) = score_rows([twice, unsaid, never, make_answer(OF_C[3])], price)
    assert row.tokens == ((230 + 100) / 2, (160 + 60) / 2, (10 + 7) / 2)
    of_one = 40 * 10 + 60 * 1 + 7 * 50
    of_two = of_one + 30 * 10 + 100 * 1 + 3 * 50
    assert row.picodollars == pytest.approx(1000 * (of_one + of_two) / 2)
    assert score_rows([unsaid], price)[0].tokens is None
    assert score_rows([make_answer(one)], None)[0].picodollars is None


def test_agreement_is_of_positions_that_both_answered() -> None:
    found = [*OF_C[:10], *(one for one in positions() if one.position.node == "A")]
    first = [make_answer(one, n != 0 if n else None, None if n else "refused") for n, one in enumerate(found)]
    second = [make_answer(one, n not in (1, 2, 3)) for n, one in enumerate(found)]
    second[4] = make_answer(found[4], None, "malformed")
    third = [
        make_answer(one, bool(one_.answer) if n != 5 else False)
        for n, (one, one_) in enumerate(zip(found, first, strict=True))
    ]
    of_a, of_c, everything = compare_answers(first, second)
    assert (of_a.node, of_a.positions, of_a.same.value) == ("A", 4, 1.0)
    assert (of_c.node, of_c.positions, of_c.same.value) == ("C", 8, 5 / 8)
    assert (of_c.to_yes, of_c.to_no) == (3, 0)
    assert (everything.node, everything.positions, everything.to_yes) == (ALL, 12, 3)
    assert (compare_answers(third, first)[1].to_yes, compare_answers(third, first)[1].to_no) == (0, 1)


def test_stated_probabilities_are_held_against_the_truth() -> None:
    lines = [make_answer(one, p=0.9 if truth(one) else 0.2) for one in OF_C]
    silent = [make_answer(one) for one in OF_C]
    bare = [make_answer(RecordedPosition(GAME, one.position), p=0.5) for one in OF_C]
    (own,) = calibrations(tally_statements([silent, lines, bare]), ["silent", "own", "bare"])
    honest = sum(not truth(one) for one in OF_C)
    assert (own.name, own.statements) == ("own", 40)
    assert own.brier.value == pytest.approx(((40 - honest) * 0.1**2 + honest * 0.2**2) / 40)
    assert own.base_rate == (40 - honest) / 40
