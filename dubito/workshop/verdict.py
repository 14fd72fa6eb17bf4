"""Summarize a trial in one sentence, and check expectations of a prompt."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dubito.errors import UsageError, one_line, suggestion
from dubito.stats.rates import Rate, paired_difference
from dubito.workshop.trial import ScoreRow, TrialAnswer

_EXPECTATION: Final = re.compile(r"\s*([a-z_]+)\s*(>=|<=)\s*([0-9]+(?:\.[0-9]+)?)\s*")
_MEASURES: Final[Mapping[str, Callable[[ScoreRow], float | None]]] = {  # rates in percent, tokens of a decision
    "right": lambda row: _percent(row.right),
    "yes": lambda row: _percent(row.yes),
    "invalid": lambda row: _percent(row.invalid),
    "tokens_in": lambda row: row.tokens[0] if row.tokens else None,
    "tokens_out": lambda row: row.tokens[2] if row.tokens else None,
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """A bound on a prompt's figures over all positions, such as `right>=55`."""

    measure: str
    is_least: bool
    bound: float

    def check(self, row: ScoreRow) -> str | None:
        """Return how the figures violate the bound, or None."""
        value = _MEASURES[self.measure](row)
        limit = f"{'at least' if self.is_least else 'at most'} {self.bound:g}"
        if value is None:
            return f"{self.measure}: no figure, expected {limit}"
        if (value >= self.bound) if self.is_least else (value <= self.bound):
            return None
        return f"{self.measure}: {value:.1f}, expected {limit}"


def parse_expectations(text: str) -> list[Expectation]:
    """Parse 'right>=55, invalid<=1'. Raises UsageError."""
    expectations = []
    for part in text.split(","):
        match = _EXPECTATION.fullmatch(part)
        if match is None:
            raise UsageError(f"--expect {one_line(part.strip(), 60)!r}: write it as 'right>=55, invalid<=1'")
        measure, sign, bound = match.groups()
        if measure not in _MEASURES:
            raise UsageError(f"--expect: unknown measure '{measure}': {suggestion(measure, _MEASURES)}")
        expectations.append(Expectation(measure, sign == ">=", float(bound)))
    return expectations


def describe_trial(name: str, row: ScoreRow) -> str:
    """Return a sentence about a prompt's results over all positions."""
    parts, right = list[str](), row.right
    if right.value is not None:
        parts.append(f"right at {_percent(right):.1f} % [{100 * right.low:.1f}, {100 * right.high:.1f}] of them")
    parts.append(f"{_percent(row.invalid) or 0.0:.1f} % without a valid answer")
    if row.tokens:
        parts.append(f"{row.tokens[0]:,.0f} tokens in and {row.tokens[2]:,.0f} out per decision")
    return f"{name} at {row.positions:,} positions: {', '.join(parts)}."


def compare_trials(
    names: tuple[str, str], rows: tuple[ScoreRow, ScoreRow], one: Sequence[TrialAnswer], other: Sequence[TrialAnswer]
) -> str:
    """Return a sentence that compares the first prompt with the second at the same positions."""
    first, second = names
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if None not in (a.answer, b.answer)]
    same = sum(a.answer == b.answer for a, b in pairs)
    sentence = f"{first} and {second} give the same answer at {same:,} of {len(pairs):,} positions"
    difference = compare_rights(one, other)
    if difference is not None and difference.value is not None:
        verdict = "no significant difference"
        if difference.low > 0 or difference.high < 0:
            better, worse = (first, second) if difference.low > 0 else (second, first)
            verdict = f"{better} is significantly better than {worse}"
        points = f"{100 * difference.value:+.1f} points [{100 * difference.low:.1f}, {100 * difference.high:.1f}]"
        sentence += f"; right: {points}, {verdict}"
    tokens = [row.tokens[0] + row.tokens[2] if row.tokens else 0.0 for row in rows]
    if all(tokens) and round(tokens[0]) != round(tokens[1]):
        share = 100 * (tokens[0] / tokens[1] - 1)
        sentence += f"; {first} takes {abs(share):.0f} % {'more' if share > 0 else 'fewer'} tokens"
    return f"{sentence}."


def compare_rights(one: Sequence[TrialAnswer], other: Sequence[TrialAnswer]) -> Rate | None:
    """Return the paired difference in the share of right answers, with its 95 % interval clustered by deal.

    Return None if no position with a known truth was answered by both prompts.
    """
    deals: defaultdict[object, list[int]] = defaultdict(list)
    for a, b in zip(one, other, strict=True):
        right: object = a.recorded.right
        if right is not None and None not in (a.answer, b.answer):
            deals[a.recorded.deal].append((a.answer == right) - (b.answer == right))
    if not deals:
        return None
    most, sums = max(map(len, deals.values())), [sum(differences) for differences in deals.values()]
    by_deal = paired_difference(len(sums), sum(sums), sum(each * each for each in sums), most)
    return by_deal.rescale(most * len(sums) / sum(map(len, deals.values())))


def _percent(rate: Rate) -> float | None:
    return None if rate.value is None else 100 * rate.value
