"""Random relations of players, and a reader that finds false claims in sentences about them.

The reader uses only the words and the drawn figures. It shares no code with the product, so that both would have to be
wrong in the same way.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Final, Literal

Kind = Literal["better", "worse", "tie", "identical", "fallbacks", "few", "missing"]
SMALL: Final = 1e-9


@dataclass
class Pair:
    """A drawn pair: the first player's difference from the second, and what follows from it."""

    kind: Kind
    value: float
    low: float
    high: float
    worst: float
    best: float
    close: bool  # the test that stops the run found that the difference is small
    more_games: int | None

    def swap(self) -> "Pair":
        kinds: dict[Kind, Kind] = {"better": "worse", "worse": "better"}
        kind = kinds.get(self.kind, self.kind)
        ends = (-self.value, -self.high, -self.low, -self.best, -self.worst)
        return Pair(kind, *ends, self.close, self.more_games)


@dataclass
class Drawn:
    """A random relation. Players are named by letters, the best one first if `ordered`."""

    names: str
    pairs: dict[tuple[int, int], Pair]
    shares: list[float]  # of each player's games with a fallback
    deals: int
    within: float | None
    span: tuple[float, float] | None
    paired: bool
    ordered: bool

    @property
    def unit(self) -> float:
        return 1.0 if self.span else 100.0

    @property
    def is_preliminary(self) -> bool:
        return self.paired and self.within is None and self.deals < 100

    def pair(self, one: str, other: str) -> Pair:
        first, second = self.names.index(one), self.names.index(other)
        return self.pairs[first, second] if first < second else self.pairs[second, first].swap()


def draw(seed: int, plausible: bool = False) -> Drawn:
    """Draw a relation of 2 to 8 players, which is often not transitive.

    If `plausible`, no pair is missing or shorter than the others, and all differences follow from one Score per player.
    """
    rng = Random(seed)
    n = rng.randint(2, 8)
    ordered = plausible or rng.random() < 0.5
    scores = sorted((round(rng.uniform(0, 0.9), rng.choice((1, 2, 3))) for _ in range(n)), reverse=True)
    twins = {place for place in range(n) if rng.random() < 0.4} if rng.random() < 0.3 else set()
    twins = twins if len(twins) > 1 else set()
    if twins:
        least = min(twins)
        twins = {*range(least, least + len(twins))} if ordered else twins  # equal scores are next to each other
        twins = {place for place in twins if place < n}
        for place in twins:
            scores[place] = scores[least]
    span = (-13.0, 13.0) if rng.random() < 0.2 else None
    within = rng.choice((3.0, 30.0)) / (10 if span else 1) if rng.random() < 0.3 else None
    has_fallbacks = rng.random() < 0.5
    shares = [rng.choice((0.0, 0.0, 0.01, 0.0201, 0.04, 0.3)) if has_fallbacks else 0.0 for _ in range(n)]
    wins = rng.choice((0.2, 0.5, 0.8, 1.0))
    missing = 0.0 if plausible or rng.random() < 0.6 else 0.3
    pairs = {}
    for one, other in combinations(range(n), 2):
        value = scores[one] - scores[other] if ordered else round(rng.uniform(-0.8, 0.8), 2)
        same = {one, other} <= twins
        value = (13 if span else 1) * (0.0 if same else value)
        significant = bool(value) and not same and rng.random() < wins
        half = rng.uniform(0.01, 0.9) * (13 if span else 1)
        widest = abs(value) if significant and within is None else half  # a test that stops a run can decide earlier
        ends = value - min(half, 0.9 * widest), value + min(half, 0.9 * widest)
        pair = Pair("tie", value, *ends, value - half, value + half, False, None)
        is_open = max(shares[one], shares[other]) > 0.02 and pair.worst <= SMALL and pair.best >= -SMALL
        if rng.random() < missing:
            pair.kind = rng.choice(("few", "missing"))
        elif same:
            pair.kind = "identical"
        elif significant:
            pair.kind = "fallbacks" if is_open else "better" if value > 0 else "worse"
        elif within is not None:
            pair.close = rng.random() < 0.7
        elif rng.random() < 0.8:
            pair.more_games = rng.randint(1, 9000)
        pairs[one, other] = pair
    paired = bool(twins or within or missing) or rng.random() < 0.7
    return Drawn("ABCDEFGH"[:n], pairs, shares, rng.choice((20, 250)), within, span, paired, ordered)


class Misread(Exception):
    """A sentence is false, or the reader does not know its form."""


_NUMBER: Final = r"-?[\d,]*\.?\d+"
_EARLY: Final = r"(?P<early>, but the test that stops the run decided earlier)?"
_ENDS: Final = rf"\[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\] \((?:anytime )?95 % confidence interval{_EARLY}\)"
_AMOUNT: Final = rf"(?P<value>{_NUMBER}) (?:points of Score|Score) {_ENDS}"
_SHARES: Final = r"(?P<shares>[\d.]+ % of the games of .+?) had fallbacks"


@dataclass
class Reader:
    """Checks each sentence about a relation."""

    drawn: Drawn
    named_leads: list[tuple[str, str]] = field(default_factory=list)
    leader: str = ""  # "it" in a headline

    def read_verdict(self, text: str) -> None:
        text = text.removeprefix("Preliminary (fewer than 100 deals): ")
        first, *sentences = re.split(r"\.(?: |$)", text)
        for clause in first.split("; "):
            self._read(
                _CLAUSES, clause[:1].lower() + clause[1:] if clause.startswith(("No ", "Every ", "Too ")) else clause
            )
        for sentence in filter(None, sentences):
            self._read(_SENTENCES, sentence)

    def read_headline(self, answer: str, sure: str) -> None:
        for sentence in filter(None, re.split(r"\.(?: |$)", answer)):
            self._read(_HEADLINES, sentence)
        for sentence in filter(None, re.split(r"\.(?: |$)", sure)):
            self._read(_HEADLINES | _SENTENCES, sentence)

    def _read(self, forms: "dict[str, Callable[[Reader, re.Match[str]], None]]", sentence: str) -> None:
        for form, check in forms.items():
            if match := re.fullmatch(form, sentence):
                try:
                    check(self, match)
                except AssertionError as error:
                    raise Misread(f"{sentence!r} is false: {error}") from None
                return
        raise Misread(f"{sentence!r} has an unknown form")

    # -- what a sentence names

    def groups(self, names: str, apart_from: Sequence[str] = ()) -> Iterator[list[str]]:
        """Yield the players that a list can mean. "2 others" can be any two of those that are not named."""
        listed = re.fullmatch(r"(.*?)(?: and (\d+) others)?", names)
        assert listed
        own = re.split(r", | and ", listed[1])
        free = [name for name in self.drawn.names if name not in (*own, *apart_from)]
        for others in combinations(free, int(listed[2] or 0)):
            yield [*own, *others]

    def some_group(self, names: str, holds: Callable[[str], bool], apart_from: Sequence[str] = ()) -> None:
        """Check that each listed player has a property."""
        assert any(all(map(holds, group)) for group in self.groups(names, apart_from)), names

    def all_pairs(self, names: str, *kinds: Kind, holds: Callable[[Pair], bool] = lambda pair: True) -> None:
        def fits(group: Sequence[str]) -> bool:
            pairs = [self.drawn.pair(*both) for both in combinations(group, 2)]
            return all(pair.kind in kinds and holds(pair) for pair in pairs)

        assert any(map(fits, self.groups(names))), names

    def kind(self, one: str, other: str) -> Kind:
        return self.drawn.pair(one, other).kind

    def check_amount(self, match: re.Match[str], pair: Pair) -> None:
        for end in ("value", "low", "high"):
            self.check_number(match[end], getattr(pair, end))

    def check_number(self, shown: str, true: float) -> None:
        digits = len(shown.partition(".")[2])
        assert abs(float(shown.replace(",", "")) - self.drawn.unit * true) <= 0.5001 * 0.1**digits, (shown, true)

    # -- verdicts

    def winners(self, match: re.Match[str]) -> None:
        leads = {}
        (winners,) = [*self.groups(match["winners"])] if "others" not in match["winners"] else [[]]
        if not winners:  # more winners than are listed: all that beat the loser and are unbeaten
            winners = [one for one in self.drawn.names if one != match["loser"] and self.is_unbeaten(one)]
            winners = [one for one in winners if self.kind(one, match["loser"]) == "better"]
            self.some_group(match["winners"], winners.__contains__)
        for one in winners:
            assert self.kind(one, match["loser"]) == "better", (one, match["loser"])
            leads[one] = self.drawn.pair(one, match["loser"])
        least = min(leads.values(), key=lambda pair: pair.value)
        self.check_amount(match, least)
        assert bool(match["early"]) == (least.low <= 0 <= least.high), "the interval contradicts the sentence"
        if not match["least"]:
            assert max(pair.value for pair in leads.values()) - least.value < SMALL
        if match["rest"]:
            named = (*winners, match["loser"])
            rest = [name for name in self.drawn.names if name not in named]

            def is_beaten(name: str) -> bool:
                pairs = [self.drawn.pair(one, name) for one in winners]
                return all(pair.kind == "better" and pair.value >= least.value - SMALL for pair in pairs)

            if match["rest"] == "everyone else":
                assert all(map(is_beaten, rest)), rest
            else:
                self.some_group(match["rest"], is_beaten, named)

    def is_unbeaten(self, name: str) -> bool:
        return all(self.kind(other, name) != "better" for other in self.drawn.names if other != name)

    def open_lead(self, match: re.Match[str]) -> None:
        one, other = match["one"], match["other"]
        pair = self.drawn.pair(one, other)
        assert pair.kind == "fallbacks"
        assert pair.value > 0
        self.named_leads.append((one, other))
        self.check_amount(match, pair)
        self.limits(match, pair)
        self.check_shares(match["shares"])

    def limits(self, match: re.Match[str], pair: Pair) -> None:
        self.check_number(match["worst"], pair.worst)
        self.check_number(match["best"], pair.best)

    def check_shares(self, text: str) -> None:
        for share, name in re.findall(r"([\d.]+) % of the games of (\w)", text):
            true = self.drawn.shares[self.drawn.names.index(name)]
            assert true > 0.02
            assert abs(float(share) - 100 * true) < 0.051

    def tie(self, match: re.Match[str]) -> None:
        self.all_pairs(match["names"], "tie", "identical")
        if match["value"]:
            self.check_amount(match, self.drawn.pair(*self.drawn.names))

    def close(self, match: re.Match[str]) -> None:
        within = float(match["within"])
        assert within == self.drawn.within
        self.all_pairs(match["names"], "tie", holds=lambda pair: pair.close)

        def stays_inside(pair: Pair) -> bool:
            return self.drawn.unit * max(pair.high, -pair.low) < within

        if "although" in match[0]:
            assert not all(map(stays_inside, self.drawn.pairs.values()))
        else:
            self.all_pairs(match["names"], "tie", holds=stays_inside)
        if match["value"]:
            self.check_amount(match, self.drawn.pair(*self.drawn.names))

    def no_winner(self, match: re.Match[str]) -> None:
        self.all_pairs(match["names"], "tie", "identical", "fallbacks", "few", "missing")

    def identical(self, match: re.Match[str]) -> None:
        self.all_pairs(match["names"], "identical")
        assert int(match["deals"]) == self.drawn.deals

    def not_better(self, match: re.Match[str]) -> None:
        self.some_group(match["names"], lambda name: self.kind(match["one"], name) == "tie", match["one"])

    def few_deals(self, match: re.Match[str]) -> None:
        assert self.kind(match["one"], match["other"]) in ("few", "missing")

    def few_pairs(self, match: re.Match[str]) -> None:
        pairs = [tuple(pair.split(" and ")) for pair in match["pairs"].split(", ")]
        few = [both for both in combinations(self.drawn.names, 2) if self.kind(*both) in ("few", "missing")]
        assert pairs == few

    def cycle(self, match: re.Match[str]) -> None:
        assert not any(map(self.is_unbeaten, self.drawn.names)), match[0]

    def difference(self, match: re.Match[str]) -> None:
        one, other = (match["one"] or self.drawn.names[0]), (match["other"] or self.drawn.names[1])
        pair = self.drawn.pair(one, other)
        assert pair.kind != "missing"
        self.limits(match, pair)
        self.check_shares(match["shares"])

    def more_leads(self, match: re.Match[str]) -> None:
        leads = sum(pair.kind == "fallbacks" for pair in self.drawn.pairs.values())
        assert int(match["count"]) == leads - len(self.named_leads)

    def more_fallbacks(self, match: re.Match[str]) -> None:
        assert int(match["count"]) <= sum(share > 0.02 for share in self.drawn.shares)

    def more_games(self, match: re.Match[str]) -> None:
        first, count = self.drawn.names[0], int(match["count"].replace(",", ""))
        for other in self.drawn.names[1:]:
            pair = self.drawn.pair(first, other)
            assert pair.kind == "better" or (pair.more_games is not None and pair.more_games <= count), other

    # -- headlines

    def beats(self, match: re.Match[str]) -> None:
        self.leader, shown = match["one"], float(match["value"])

        def is_beaten(name: str) -> bool:
            lead = self.drawn.unit * self.drawn.pair(self.leader, name).value
            is_true = lead >= shown - SMALL if match["least"] else abs(lead - shown) <= self.rounding(match["value"])
            return self.kind(self.leader, name) == "better" and is_true

        if match["names"] == "everyone else":
            assert all(is_beaten(name) for name in self.drawn.names if name != self.leader)
        else:
            self.some_group(match["names"], is_beaten, self.leader)

    def rounding(self, shown: str) -> float:
        return 0.5001 * 0.1 ** len(shown.partition(".")[2])

    def chance(self, match: re.Match[str]) -> None:
        self.with_leader(match, "tie")
        self.some_group(match["names"], lambda name: self.drawn.pair(self.leader, name).value > 0, self.leader)

    def early(self, match: re.Match[str]) -> None:
        assert self.drawn.is_preliminary
        self.with_leader(match, "tie")

    def with_leader(self, match: re.Match[str], *kinds: Kind) -> None:
        self.some_group(match["names"], lambda name: self.kind(self.leader, name) in kinds, self.leader)

    def twins(self, match: re.Match[str]) -> None:
        self.some_group(match["names"], lambda name: self.kind(match["one"], name) == "identical", match["one"])

    def all_twins(self, match: re.Match[str]) -> None:
        first = self.drawn.names[0]
        assert any(
            all(self.kind(one, other) == "identical" for other in self.drawn.names if other != one)
            for one in self.drawn.names
        ), first
        assert int(match["deals"]) == self.drawn.deals

    def leads(self, match: re.Match[str]) -> None:
        pair = self.drawn.pair(match["one"], match["other"])
        assert pair.kind == ("fallbacks" if "fallbacks" in match[0] else "tie")
        assert pair.value > 0
        assert abs(self.drawn.unit * pair.value - float(match["value"])) <= self.rounding(match["value"])
        self.no_champion()

    def no_champion(self) -> None:
        for one in self.drawn.names:
            assert not all(self.kind(one, other) == "better" for other in self.drawn.names if other != one), one

    def same(self, match: re.Match[str]) -> None:
        pair = self.drawn.pair(match["one"], match["other"])
        assert (pair.kind, pair.value) == ("tie", 0)
        self.no_champion()

    def lead_amount(self, match: re.Match[str]) -> None:
        pairs = [self.drawn.pair(one, match["other"]) for one in self.drawn.names if one != match["other"]]
        for pair in pairs:
            try:
                assert pair.value > 0
                assert pair.kind != "missing"
                return self.check_amount(match, pair)
            except AssertionError:
                continue
        raise AssertionError(match["other"])

    def minus(self, match: re.Match[str]) -> None:
        assert self.kind(match["one"], match["other"]) != "missing"
        self.check_amount(match, self.drawn.pair(match["one"], match["other"]))


Forms = dict[str, Callable[[Reader, re.Match[str]], None]]
_CLAUSES: Final[Forms] = {
    rf"(?P<winners>.+?) (?:is|are) significantly better than (?P<loser>\w) by (?P<least>at least )?{_AMOUNT}"
    r"(?:, and better than (?P<rest>.+?) by at least as much)?": Reader.winners,
    rf"(?P<one>\w) leads (?P<other>\w) by {_AMOUNT}, but {_SHARES}: counting those games as losses or hard wins gives "
    rf"(?P<worst>{_NUMBER}) to (?P<best>{_NUMBER}), so there is no winner": Reader.open_lead,
    rf"no significant difference (?:between|among) (?P<names>.+?)(?:: {_AMOUNT})?": Reader.tie,
    r"no winner among (?P<names>.+)": Reader.no_winner,
    rf"(?P<names>.+?) are probably less than (?P<within>[\d.]+) (?:points of )?Score apart"
    rf"(?:, although a larger difference is still possible)?(?:: {_AMOUNT})?": Reader.close,
    r"(?P<names>.+?) played identically in all (?P<deals>\d+) deals": Reader.identical,
    r"(?P<one>\w) is not significantly better than (?P<names>.+)": Reader.not_better,
    r"too few common deals: (?P<pairs>.+)": Reader.few_pairs,
    r"every player is significantly worse than another one": Reader.cycle,
}
_SENTENCES: Final[Forms] = {
    rf"{_SHARES}: counting those games as losses or hard wins, the difference"
    rf"(?: between (?P<one>\w) and (?P<other>\w))? is (?P<worst>{_NUMBER}) to (?P<best>{_NUMBER}) "
    r"(?:points of )?Score": Reader.difference,
    r"Fallbacks could explain (?P<count>\d+) more leads?": Reader.more_leads,
    r"(?P<count>\d+) other players? also had fallbacks in more than 2 % of the games": Reader.more_fallbacks,
    r"About (?P<count>[\d,]+) more games would probably settle first place": Reader.more_games,
}
_HEADLINES: Final[Forms] = {
    r"(?P<one>\w) beats (?P<names>.+?) by (?P<least>at least )?(?P<value>[\d.]+) (?:points?|Score)": Reader.beats,
    r"Its lead over (?P<names>.+) could be chance": Reader.chance,
    r"It does not differ significantly from (?P<names>.+)": lambda reader, match: reader.with_leader(match, "tie"),
    r"It is too early to tell how it compares with (?P<names>.+)": Reader.early,
    r"Because of fallbacks, it is unclear whether it beats (?P<names>.+)": lambda reader, match: reader.with_leader(
        match, "fallbacks"
    ),
    r"It has too few common deals with (?P<names>.+)": lambda reader, match: reader.with_leader(
        match, "few", "missing"
    ),
    r"(?P<one>\w) played identically to (?P<names>.+)": Reader.twins,
    r"They had the same results in all (?P<deals>\d+) deals": Reader.all_twins,
    r"No clear winner: (?P<one>\w) leads (?P<other>\w) by (?P<value>[\d.]+) (?:points?|Score), but "
    r"(?:fallbacks could explain it|it could be chance)": Reader.leads,
    r"No clear winner: (?P<one>\w) and (?P<other>\w) have the same Score": Reader.same,
    r"No clear winner: (?P<one>\w) and (?P<other>\w) have too few common deals": Reader.few_deals,
    r"No clear winner: every player is significantly worse than another one": Reader.cycle,
    rf"The lead over (?P<other>\w) is {_AMOUNT}": Reader.lead_amount,
    rf"(?P<one>\w) minus (?P<other>\w) is {_AMOUNT}": Reader.minus,
}
