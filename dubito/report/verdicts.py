"""Describe the result of a run in words: who beats whom, ties, and what fallbacks leave undecided.

`run` and `compare` print these sentences, leaderboards start with them, and `--json` contains them as `verdict`. A
report starts with a shorter answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, starmap
from typing import Final

from dubito.errors import join_names, one_line
from dubito.report.tables import cell_text, difference_kind
from dubito.stats.ranking import MIN_DEALS, PRELIMINARY, Order
from dubito.stats.verdict import FALLBACK_LIMIT, ComparedPair

_MAX_NAMES: Final = 4  # maximum number of names in a list of players
_HEADLINE_NAMES: Final = 2  # maximum number of names in a page's headline
# Maximum number of leads described one by one that fallbacks leave open.
_MAX_LEADS: Final = 2
_FEW_DEALS: Final = f"Preliminary (fewer than {PRELIMINARY} deals): "


def describe_verdict(order: Order, label: Callable[[str], str] = one_line) -> str:
    """Return the result in a sentence or two. `label` returns a player's display name."""
    order = replace(order, names=[*map(label, order.names)])
    if len(order.names) < 2:
        who = f"Only {order.names[0]}" if order.names else "Nobody"
        return f"{who} played, so there is no comparison."
    if order.deals < MIN_DEALS:
        deals = f"{order.deals} deal{'s' * (order.deals != 1)}"
        return f"Too few games for a comparison: {deals}, but at least {MIN_DEALS} are needed."
    ranks = order.ranks
    groups = [[place for place, rank in enumerate(ranks) if rank == one] for one in sorted({*ranks})]
    leads = [pair for pair, verdict in order.verdicts.items() if verdict.is_open]
    clauses = [_winners(order, groups)] if len(groups) > 1 else []
    clauses += [_open_lead(order, pair) for pair in leads[:_MAX_LEADS]]
    clauses += filter(None, [_tie(order, group) for group in groups if len(group) > 1])
    text = "; ".join(clauses)
    if order.is_preliminary:
        text = f"{_FEW_DEALS}{text}"
    elif text.startswith("no "):
        text = f"N{text[1:]}"
    sentences = [f"{text}.", *_fallback_sentences(order, leads[:_MAX_LEADS])]
    if len(leads) > _MAX_LEADS:
        sentences.append(f"Fallbacks could explain {len(leads) - _MAX_LEADS} more leads.")
    if order.more_games:
        sentences.append(f"About {order.more_games:,} more games would probably settle first place.")
    return " ".join(sentences)


def describe_winner(order: Order, label: Callable[[str], str] = one_line) -> tuple[str, str]:
    """Return a headline that names the winner, and a sentence about how certain the result is."""
    names = [*map(label, order.names)]
    if len(names) < 2:
        return f"{names[0]} is the only player." if names else "Nobody has played.", ""
    if order.deals < MIN_DEALS:
        return "It is too early to name a winner.", ""
    beaten = [place for place in range(1, len(names)) if order.wins(0, place)]
    others = [place for place in range(1, len(names)) if place not in beaten]
    rival = min(beaten, key=lambda place: order.verdicts[0, place].difference.value or 0.0) if beaten else 1
    verdict = order.verdicts[0, rival]
    sure = f"The lead over {names[rival]} is {_amount(order, verdict)}."
    if order.more_games:
        sure += f" About {order.more_games:,} more games would probably settle first place."
    if not verdict.difference.value:
        return f"No clear winner: {names[0]} and {names[1]} have the same {order.measure.name}.", sure
    if not beaten:
        cause = "fallbacks could explain it" if verdict.is_open else "it could be chance"
        return f"No clear winner: {names[0]} leads {names[1]} by {_format_lead(order, verdict)}, but {cause}.", sure
    whom = _few_names([names[place] for place in beaten]) if others or len(beaten) == 1 else "everyone else"
    answer = f"{names[0]} beats {whom} by {'at least ' * (len(beaten) > 1)}{_format_lead(order, verdict)}."
    if others:
        rest = _few_names([names[place] for place in others])
        if any(order.verdicts[0, place].is_open for place in others):
            answer += f" Because of fallbacks, it is unclear whether it beats {rest}."
        elif order.is_preliminary:
            answer += f" It is too early to tell how it compares with {rest}."
        else:
            answer += f" Its lead over {rest} could be chance."
    return answer, sure


def _few_names(names: Sequence[str]) -> str:
    return join_names(names) if len(names) <= _HEADLINE_NAMES else f"{names[0]} and {len(names) - 1} others"


def _format_lead(order: Order, verdict: ComparedPair) -> str:
    value = verdict.difference.value or 0.0
    if order.measure.span:
        return f"{value:.2f} {order.measure.name}"
    points = f"{100 * value:.{0 if value >= 0.01 else 1}f}"
    return f"{points} point{'s' * (points != '1')}"


def _winners(order: Order, groups: Sequence[Sequence[int]]) -> str:
    """Describe which players in the best group beat the best of the rest, and by how much.

    If they also beat everyone else, say so.
    """
    other = min(place for group in groups[1:] for place in group)
    better = [place for place in groups[0] if place < other and order.wins(place, other)]
    rest = [place for place in range(len(order.names)) if place > other]
    least = min((order.verdicts[place, other] for place in better), key=lambda one: one.difference.value or 0.0)
    same = len({order.verdicts[place, other].difference.value for place in better}) == 1
    text = (
        f"{_some_names([order.names[place] for place in better])} {'is' if len(better) == 1 else 'are'} significantly "
    )
    text += f"better than {order.names[other]} by {'' if same else 'at least '}{_amount(order, least)}"
    if rest and all(order.wins(one, place) for one in better for place in rest):
        whom = "everyone else" if len(rest) > 1 else order.names[rest[0]]
        text += f", and better than {whom} by at least as much"
    return text


def _open_lead(order: Order, pair: tuple[int, int]) -> str:
    """Describe a player's lead that fallbacks could explain."""
    verdict, (one, other) = order.verdicts[pair], (order.names[place] for place in pair)
    return (
        f"{one} leads {other} by {_amount(order, verdict)}, but the fallback made {_shares(order, pair)}: "
        f"counting those games as {order.limits} gives {_limits(order, verdict)}, so there is no winner"
    )


def _tie(order: Order, group: Sequence[int]) -> str:
    """Describe a group in which no player beats another."""
    pairs, names = [*combinations(group, 2)], _some_names([order.names[place] for place in group])
    if any(starmap(order.wins, pairs)):
        return ""
    if any(order.verdicts[pair].is_open for pair in pairs):
        return f"no winner among {names}" if len(group) > 2 else ""
    if order.within is not None and order.close >= {*pairs}:
        text = f"{names} are less than {order.within:g} {_unit(order)} apart"
    else:
        text = f"no significant difference {'between' if len(group) == 2 else 'among'} {names}"
    return f"{text}: {_amount(order, order.verdicts[0, 1])}" if order.paired and len(order.names) == 2 else text


def _fallback_sentences(order: Order, described: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the worst and best case for players with too many fallbacks, skipping `described` pairs."""
    shares = [0.0] * len(order.names)
    for pair, verdict in order.verdicts.items():
        for place, share in zip(pair, verdict.fallback_shares, strict=True):
            shares[place] = share
    done = {*described}
    above = [place for place, share in enumerate(shares) if share > FALLBACK_LIMIT]
    for place in above[:_MAX_NAMES]:
        if any(place in pair for pair in described):
            continue
        pair = (0, max(1, place))
        if pair in done:
            continue
        done.add(pair)
        between = f" between {order.names[0]} and {order.names[pair[1]]}" if len(order.names) > 2 else ""
        yield (
            f"The fallback made {_shares(order, pair)}: counting those games as {order.limits}, the difference"
            f"{between} is {_limits(order, order.verdicts[pair])} {_unit(order)}."
        )
    if len(above) > _MAX_NAMES:
        others = len(above) - _MAX_NAMES
        yield f"The fallback also made more than {100 * FALLBACK_LIMIT:g} % of the decisions of {others} other players."


def _shares(order: Order, pair: tuple[int, int]) -> str:
    both = zip(pair, order.verdicts[pair].fallback_shares, strict=True)
    above = [(share, order.names[place]) for place, share in both if share > FALLBACK_LIMIT]
    return join_names([f"{_percent(share)} of the decisions of {name}" for share, name in above])


def _percent(share: float) -> str:
    # Use three digits if one digit would round a share above the limit to the limit.
    return f"{100 * share:.1f} %" if round(100 * share, 1) > 100 * FALLBACK_LIMIT else f"{100 * share:.3f} %"


def _amount(order: Order, verdict: ComparedPair) -> str:
    shown = cell_text(verdict.difference, difference_kind(order.measure)).replace("+", "")
    value, _, interval = shown.partition(" ")
    return f"{value} {_unit(order)} {interval} ({'anytime ' * (order.within is not None)}95 % confidence interval)"


def _limits(order: Order, verdict: ComparedPair) -> str:
    ends = (cell_text(end, difference_kind(order.measure)).replace("+", "") for end in (verdict.worst, verdict.best))
    return " to ".join(ends)


def _unit(order: Order) -> str:
    return order.measure.name if order.measure.span else f"points of {order.measure.name}"


def _some_names(names: Sequence[str]) -> str:
    if len(names) > _MAX_NAMES + 1:
        return f"{', '.join(names[:_MAX_NAMES])} and {len(names) - _MAX_NAMES} others"
    return join_names(names)
