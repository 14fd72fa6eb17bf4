"""What a trial says of a prompt: rates with 95 % intervals, clustered by deal, and what a decision takes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final

from dubito.game import Bool
from dubito.llm.prices import Price
from dubito.llm.request import CAUSES
from dubito.stats.players import Statement, add_stated, cluster
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import Tally
from dubito.workshop.parts import part
from dubito.workshop.trial import TrialAnswer

ALL: Final = "all"  # nodes together


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A prompt at the positions of one node, or of all."""

    node: str
    positions: int
    yes: Rate  # of the answers that came, where they are yes or no
    invalid: Rate
    causes: dict[str, int]  # of those that did not come
    right: Rate  # where the truth decides it, as the game says, and is known
    tokens: tuple[float, float, float] | None  # a decision: in, of them cached, out; None: no reply said
    picodollars: float | None  # a thousand decisions; None: no price is known


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two prompts at the positions of one node, or of all, at which both answered."""

    node: str
    positions: int
    same: Rate
    to_yes: int  # no by the second prompt, yes by the first
    to_no: int


def rows(taken: Sequence[TrialAnswer], price: Price | None) -> list[ScoreRow]:
    """Node by node, then all."""
    return [_row(node, those, price) for node in _nodes(taken) if (those := _of(node, taken))]


def agreements(taken: Sequence[TrialAnswer], other: Sequence[TrialAnswer]) -> list[Agreement]:
    """Node by node, then all; the same positions in the same order."""
    found = []
    for node in _nodes(taken):
        both = zip(_of(node, taken), _of(node, other), strict=True)
        pairs = [(one, two) for one, two in both if None not in (one.answer, two.answer)]
        if pairs:
            same = _rate((one.recorded.deal, one.answer == two.answer) for one, two in pairs)
            flips = Counter(one.answer for one, two in pairs if _is_bool(one) and one.answer is not two.answer)
            found.append(Agreement(node, len(pairs), same, flips[True], flips[False]))
    return found


def stated(taken: Sequence[Sequence[TrialAnswer]]) -> Tally:
    """What the prompts' models stated, beside the truth where it is known; prompts by their number."""
    deals: defaultdict[object, list[tuple[int, Statement]]] = defaultdict(list)
    for number, each in enumerate(taken):
        for one in each:
            truth = _truth(one)
            if one.stated is not None and truth is not None:
                said = one.stated
                statement = Statement(said.seat, said.p_bluff, said.impossible, truth)
                deals[one.recorded.deal].append((number, statement))
    tally = Tally()
    for statements in deals.values():
        add_stated(tally, statements)
    return tally


def _nodes(taken: Sequence[TrialAnswer]) -> list[str]:
    """The nodes of the game, then all together."""
    return [*(node.name for node in taken[0].recorded.game.nodes), ALL] if taken else []


def _is_bool(one: TrialAnswer) -> bool:
    """Whether it was a question of yes or no."""
    return one.recorded.game.node(one.recorded.position.node).answer == Bool()


def _of(node: str, taken: Sequence[TrialAnswer]) -> list[TrialAnswer]:
    return [one for one in taken if node in (ALL, one.recorded.position.node)]


def _row(node: str, taken: Sequence[TrialAnswer], price: Price | None) -> ScoreRow:
    answered = [one for one in taken if one.answer is not None]
    causes = Counter(one.cause for one in taken)
    judged = [(one, truth) for one in answered if (truth := _truth(one)) is not None]
    told = [[usage for usage in one.usages if usage] for one in taken if one.usages and None not in one.usages]
    return ScoreRow(
        node,
        len(taken),
        _rate((one.recorded.deal, one.answer) for one in answered if _is_bool(one)),
        _rate((one.recorded.deal, one.answer is None) for one in taken),
        {cause: causes[cause] for cause in CAUSES if causes[cause]},
        _rate((one.recorded.deal, one.answer == truth) for one, truth in judged),
        (
            mean(sum(usage.input for usage in usages) for usages in told),
            mean(sum(usage.cached for usage in usages) for usages in told),
            mean(sum(usage.output for usage in usages) for usages in told),
        )
        if told
        else None,
        1000 * mean(sum(map(price.of, usages)) for usages in told) if told and price else None,
    )


def _truth(one: TrialAnswer) -> Any:
    """The right answer; None where the truth does not decide it, or the file does not have the truth."""
    right, hidden = part(one.recorded.game, "right", None), one.recorded.hidden
    return None if right is None or hidden is None else right(one.recorded.position, hidden)


def _rate(counted: Iterable[tuple[object, bool]]) -> Rate:
    """The share that is true, each with its deal."""
    deals: defaultdict[object, list[bool]] = defaultdict(list)
    for deal, true in counted:
        deals[deal].append(true)
    parts = [cluster(len(group), sum(group)) for group in deals.values()]
    return clustered_rate(*map(sum, zip(*parts, strict=True))) if parts else Rate(None)
