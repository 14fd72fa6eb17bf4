"""Describe the relation of a run's players in words: who beats whom, ties, and what fallbacks leave undecided.

`run` and `compare` print these sentences, leaderboards start with them, and `--json` contains them as `verdict`. A
report starts with a shorter answer. Every pair that a sentence names, or includes as "everyone else" or "others", is
looked up in the relation: no sentence follows from the order of the players alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import floor
from operator import attrgetter
from typing import Final

from dubito.errors import join_names, one_line, pluralize
from dubito.report.tables import cell_text, difference_kind
from dubito.stats.relation import FALLBACK_LIMIT, MIN_DEALS, PRELIMINARY, ComparedPair, Relation

_MAX_NAMES: Final = 4  # maximum number of names in a list of players
_HEADLINE_NAMES: Final = 2  # maximum number of names in a page's headline
# Maximum number of leads described one by one that fallbacks leave open.
_MAX_LEADS: Final = 2
_FEW_DEALS: Final = f"Preliminary (fewer than {PRELIMINARY} deals): "
_CYCLE: Final = "every player is significantly worse than another one"
_LOWER_CASE: Final = ("no ", "every ", "too ")  # first words, which are not names
_BEATS: Final = "It beats {}."
_TWINS: Final = "It played identically to {}."
_ROUNDING: Final = 1e-9

Places = tuple[int, ...]  # players, by their index in the relation


def describe_verdict(relation: Relation, label: Callable[[str], str] = one_line) -> str:
    """Return the result in a sentence or two. `label` returns a player's display name."""
    relation = replace(relation, names=[*map(label, relation.names)])
    if len(relation.names) < 2:
        who = f"Only {relation.names[0]}" if relation.names else "Nobody"
        return f"{who} played, so there is no comparison."
    if relation.deals < MIN_DEALS:
        deals = f"{relation.deals} deal{'s' * (relation.deals != 1)}"
        return f"Too few games for a comparison: {deals}, but at least {MIN_DEALS} are needed."
    pairs = [*combinations(range(len(relation.names)), 2)]
    leads = [_leader_first(relation, *pair) for pair in pairs if relation.pair(*pair).is_open]
    unknown = [_names(relation, pair) for pair in pairs if relation.pair(*pair).withheld == "too few deals"]
    clauses = [*_winners(relation)]
    for one, other in leads[:_MAX_LEADS]:
        pair, names = relation.pair(one, other), relation.names
        lead = f"{names[one]} leads {names[other]} by {_amount(relation, pair)}"
        limits = f"counting those games as {relation.limits} gives {_limits(relation, pair)}"
        clauses.append(f"{lead}, but {_shares(relation, (one, other))}: {limits}, so there is no winner")
    clauses += _ties(relation)
    clauses += [f"too few common deals: {', '.join(unknown)}"] if unknown else []
    text = "; ".join(clauses)
    if relation.is_preliminary:
        text = f"{_FEW_DEALS}{text}"
    elif text.startswith(_LOWER_CASE):
        text = f"{text[0].upper()}{text[1:]}"
    sentences = [f"{text}.", *_fallback_sentences(relation, leads[:_MAX_LEADS])]
    if len(leads) > _MAX_LEADS:
        more = pluralize(len(leads) - _MAX_LEADS, "more lead")
        sentences.append(f"{relation.failures.capitalize()} could explain {more}.")
    return " ".join([*sentences, *_games_to_settle(relation)])


def describe_winner(relation: Relation, label: Callable[[str], str] = one_line) -> tuple[str, str]:
    """Return a headline that names the winner, and a sentence about how certain the result is."""
    relation = replace(relation, names=[*map(label, relation.names)])
    names = relation.names
    if len(names) < 2:
        return f"{names[0]} is the only player." if names else "Nobody has played.", ""
    if relation.deals < MIN_DEALS:
        return "It is too early to name a winner.", ""
    if not relation.unbeaten:
        return f"No clear winner: {_CYCLE}.", ""
    first, groups = relation.unbeaten[0], dict[str, list[int]]()
    others = [place for place in range(len(names)) if place != first]
    for place in others:
        groups.setdefault(_describe_pair(relation, first, place), []).append(place)
    beaten, twins = groups.pop(_BEATS, []), groups.pop(_TWINS, [])
    rest = [place for place in others if place not in twins]
    sentences = []
    if beaten:
        rival = min(beaten, key=lambda place: relation.pair(first, place).lead)
        whom = "everyone else" if beaten == others and len(beaten) > 1 else _few_names(relation, beaten)
        lead = _format_lead(relation, relation.pair(first, rival), at_least=len(beaten) > 1)
        sentences = [f"{names[first]} beats {whom} by {lead}."]
        sentences += [text.format(_few_names(relation, places)) for text, places in groups.items()]
    elif rest:
        rival = rest[0]
        sentences = [f"No clear winner: {_describe_undecided(relation, *_leader_first(relation, first, rival))}."]
    if twins:
        sentences.append(f"{names[first]} played identically to {_few_names(relation, twins)}.")
    if not rest:
        return sentences[0], f"They had the same results in all {relation.deals:,} deals."
    one, other = _leader_first(relation, first, rival)
    pair = relation.pair(one, other)
    sure = [f"{names[one]} minus {names[other]} is {_amount(relation, pair)}."]
    if pair.difference.value is None:
        sure = []
    elif pair.lead:
        sure = [f"The lead over {names[other]} is {_amount(relation, pair)}."]
    return " ".join(sentences), " ".join([*sure, *_games_to_settle(relation)])


def _leader_first(relation: Relation, one: int, other: int) -> tuple[int, int]:
    return (one, other) if relation.pair(one, other).lead >= 0 else (other, one)


def _games_to_settle(relation: Relation) -> Iterator[str]:
    if relation.more_games:
        yield f"About {relation.more_games:,} more games would probably settle first place."


def _describe_pair(relation: Relation, first: int, other: int) -> str:
    """Return a sentence about "it", the first player, and a place for the names of others to which it also applies."""
    pair = relation.pair(first, other)
    if pair.withheld:
        unclear = f"Because of {relation.failures}, it is unclear whether it beats {{}}."
        return unclear if pair.is_open else "It has too few common deals with {}."
    if pair.outcome == "better":
        return _BEATS
    if pair.outcome == "identical":
        return _TWINS
    if relation.is_preliminary:
        return "It is too early to tell how it compares with {}."
    return "Its lead over {} could be chance." if pair.lead > 0 else "It does not differ significantly from {}."


def _describe_undecided(relation: Relation, one: int, other: int) -> str:
    """Describe a pair without a winner and why it has none. The first one leads or ties."""
    pair, names = relation.pair(one, other), relation.names
    if pair.withheld == "too few deals":
        return f"{names[one]} and {names[other]} have too few common deals"
    if not pair.lead:
        return f"{names[one]} and {names[other]} have the same {relation.measure.name}"
    cause = f"{relation.failures} could explain it" if pair.is_open else "it could be chance"
    return f"{names[one]} leads {names[other]} by {_format_lead(relation, pair)}, but {cause}"


def _few_names(relation: Relation, places: Sequence[int]) -> str:
    names = [relation.names[place] for place in places]
    return join_names(names) if len(names) <= _HEADLINE_NAMES else f"{names[0]} and {len(names) - 1} others"


def _format_lead(relation: Relation, pair: ComparedPair, at_least: bool = False) -> str:
    """Format a lead briefly. The smallest of several leads is rounded down, so that none is smaller."""
    scale, unit = (1, f" {relation.measure.name}") if relation.measure.span else (100, " points")
    digits = 2 if relation.measure.span else 0 if pair.lead >= 0.01 else 1
    value = scale * pair.lead
    if at_least:
        value = floor(value * 10**digits + _ROUNDING) / 10**digits
    shown = f"{value:.{digits}f}"
    return f"{'at least ' * at_least}{shown}{unit[:-1] if (shown, unit) == ('1', ' points') else unit}"


def _winners(relation: Relation) -> Iterator[str]:
    """Describe which unbeaten players beat the best of the rest, by how much, and whom else they beat.

    The first unbeaten player's ties with players that others beat are also described.
    """
    every, top = range(len(relation.names)), relation.unbeaten
    if not top:
        yield _CYCLE
        return
    others = [place for place in every if place not in top]
    best = next((place for place in others if any(relation.wins(one, place) for one in top)), None)
    better = top[:1] if best is None else [one for one in top if relation.wins(one, best)]
    beaten = [place for place in others if all(relation.wins(one, place) for one in better)]
    if beaten:
        lead = attrgetter("lead")
        leads = {place: min((relation.pair(one, place) for one in better), key=lead) for place in beaten}
        least = min(beaten, key=lambda place: leads[place].lead)
        same = len({relation.pair(one, least).lead for one in better}) == 1
        text = f"{_names(relation, better)} {'is' if len(better) == 1 else 'are'} significantly better than "
        text += f"{relation.names[least]} by {'' if same else 'at least '}{_amount(relation, leads[least])}"
        if more := [place for place in beaten if place != least]:
            # Of several winners, "everyone else" could include the other winners.
            whom = "everyone else" if 1 < len(more) == len(every) - 2 else _names(relation, more)
            text += f", and better than {whom} by at least as much"
        yield text
    tie = "no significant difference"
    if tied := [place for place in others if relation.pair(better[0], place).outcome == tie]:
        yield f"{relation.names[better[0]]} is not significantly better than {_names(relation, tied)}"


def _ties(relation: Relation) -> Iterator[str]:
    """Describe the groups of equal rank in which no player beats another."""
    for rank in sorted({*relation.ranks}):
        group = [place for place, own in enumerate(relation.ranks) if own == rank]
        pairs = [relation.pair(*pair) for pair in combinations(group, 2)]
        outcomes = {pair.outcome for pair in pairs}
        names = _names(relation, group)
        if not outcomes - {"identical"} or outcomes & {"better", "worse"}:
            continue
        if "withheld" in outcomes:
            if len(group) > 2:
                yield f"no winner among {names}"
            continue
        if relation.within is not None and all(pair.stop_test == "within" for pair in pairs):
            text = f"{names} are probably less than {relation.within:g} {_unit(relation)} apart"
            widest = max(max(pair.difference.high, -pair.difference.low) for pair in pairs)
            if (1 if relation.measure.span else 100) * widest >= relation.within:
                text += ", although a larger difference is still possible"
        else:
            text = f"no significant difference {'between' if len(group) == 2 else 'among'} {names}"
        alone = relation.paired and len(relation.names) == 2
        yield f"{text}: {_amount(relation, pairs[0])}" if alone else text
    for twins in _twins(relation):
        yield f"{_names(relation, twins)} played identically in all {relation.deals:,} deals"


def _twins(relation: Relation) -> Iterator[Places]:
    """Yield groups of players that all played identically, covering every identical pair."""
    covered = set[Places]()
    every = range(len(relation.names))
    for pair in combinations(every, 2):
        if relation.pair(*pair).outcome == "identical" and pair not in covered:
            group: Places = pair
            for place in every[pair[1] + 1 :]:
                if all(relation.pair(one, place).outcome == "identical" for one in group):
                    group = (*group, place)
            covered |= {*combinations(group, 2)}
            yield group


def _fallback_sentences(relation: Relation, described: Sequence[Places]) -> Iterator[str]:
    """Yield the worst and best case for players with too many fallbacks, skipping `described` pairs."""
    shares = dict[int, float]()
    for both, pair in relation.pairs.items():
        shares |= zip(both, pair.fallback_shares, strict=True)
    above, done = [place for place in sorted(shares) if shares[place] > FALLBACK_LIMIT], set[Places]()
    for place in above[:_MAX_NAMES]:
        both = (0, max(1, place))
        compared = relation.pair(*both)
        if both in done or compared.difference.value is None or any(place in pair for pair in described):
            continue
        done.add(both)
        between = f" between {_names(relation, both)}" if len(relation.names) > 2 else ""
        text = _shares(relation, both)
        yield (
            f"{text[0].upper()}{text[1:]}: counting those games as {relation.limits}, the difference{between} is "
            f"{_limits(relation, compared)} {_unit(relation)}."
        )
    if len(above) > _MAX_NAMES:
        others, limit = pluralize(len(above) - _MAX_NAMES, "other player"), f"{100 * FALLBACK_LIMIT:g} %"
        yield f"{others} also had {relation.failures} in more than {limit} of the games."


def _shares(relation: Relation, pair: Places) -> str:
    above = []
    for place, share in zip(pair, relation.pair(*pair).fallback_shares, strict=True):
        if share > FALLBACK_LIMIT:
            # Use three digits if one digit would round a share above the limit to the limit.
            digits = 1 if round(100 * share, 1) > 100 * FALLBACK_LIMIT else 3
            above.append(f"{100 * share:.{digits}f} % of the games of {relation.names[place]}")
    return f"{join_names(above)} had {relation.failures}"


def _amount(relation: Relation, pair: ComparedPair) -> str:
    shown = cell_text(pair.difference, difference_kind(relation.measure)).replace("+", "")
    value, _, interval = shown.partition(" ")
    kind = "anytime " * (relation.within is not None)
    # The test that stops a run can find a difference before the anytime interval excludes 0.
    is_early = pair.outcome in ("better", "worse") and pair.difference.low <= 0 <= pair.difference.high
    decided = ", but the test that stops the run decided earlier" * is_early
    return f"{value} {_unit(relation)} {interval} ({kind}95 % confidence interval{decided})"


def _limits(relation: Relation, pair: ComparedPair) -> str:
    ends = (cell_text(end, difference_kind(relation.measure)).replace("+", "") for end in (pair.worst, pair.best))
    return " to ".join(ends)


def _unit(relation: Relation) -> str:
    return relation.measure.name if relation.measure.span else f"points of {relation.measure.name}"


def _names(relation: Relation, places: Sequence[int]) -> str:
    names = [relation.names[place] for place in places]
    if len(names) > _MAX_NAMES + 1:
        return f"{', '.join(names[:_MAX_NAMES])} and {len(names) - _MAX_NAMES} others"
    return join_names(names)
