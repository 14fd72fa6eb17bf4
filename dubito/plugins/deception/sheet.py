"""Count how each player lies and detects lies, in all games of a run and in parts of them.

docs/deception.md defines all figures.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Final, NamedTuple

from dubito.experiment.lies import STAKES, TrackedGame, TrackedPlay, TrackedResponse, name_band
from dubito.stats.detection import (
    Belief,
    Detection,
    Signals,
    area_under_curve,
    brier_score,
    calibration_error,
    detection,
    divergence,
    log_loss,
    mean_by_deal,
)
from dubito.stats.players import Calibration, cluster_sums
from dubito.stats.rates import Rate, Sums, clustered_rate

EVEN: Final = 0.5  # a stated probability that favours neither answer
MIN_CASES: Final = 10  # minimum number of lies and of honest plays for figures that are not shares
# The lowest value of each band of the parts that are numbers of cards.
_BANDS: Final[Mapping[str, Sequence[int]]] = {"stake": STAKES, "hand": (1, 4, 8, 13), "cards": (1, 2, 3, 4)}
ALL: Final = ("all", "")  # the part with all moves
PARTS: Final[Mapping[str, str]] = {
    "stake": "cards at stake",
    "hand": "cards in its hand",
    "cards": "cards played",
    "half": "part of the game",
}
PartKey = tuple[str, str]  # the kind of part, and the part
BeliefsByMove = Mapping[tuple[int, int, int], float]  # by game, seat and move
_NONE: Final[BeliefsByMove] = {}
_HALVES: Final = ("first half", "second half")


class RateSpec(NamedTuple):
    """A share: its title, and the names of two counts."""

    title: str
    events: str
    cases: str


RATES: Final[Mapping[str, RateSpec]] = {
    "chosen": RateSpec("voluntary {lies}, % of plays", "chosen", "plays"),
    "forced": RateSpec("forced {lies}, % of plays", "forced", "plays"),
    "willing": RateSpec("{lies} where it could be honest, %", "chosen", "free"),
    "uncalled": RateSpec("{lies} that no player called, %", "uncalled", "lies"),
    "believed": RateSpec("{lies} believed, % of answers to them", "believed", "asked"),
    "precision": RateSpec("right {calls}, % of its {calls}", "hits", "calls"),
    "recall": RateSpec("called {lies}, % of all it was asked about", "hits", "met"),
    "alarms": RateSpec("false {calls}, % of honest plays it was asked about", "alarms", "honest"),
    "against": RateSpec("answers against its own stated probability, %", "against", "rated"),
}


@dataclass(slots=True)
class Counts:
    """What a player did, in one deal or in all."""

    plays: int = 0
    free: int = 0  # plays that could be honest: all except forced lies
    chosen: int = 0
    forced: int = 0
    lies: int = 0
    uncalled: int = 0  # lies that no player called
    asked: int = 0  # answers of other players to its lies
    believed: int = 0  # answers that let them pass
    met: int = 0  # lies of others that it was asked about
    hits: int = 0
    honest: int = 0  # honest plays of others that it was asked about
    alarms: int = 0
    calls: int = 0
    rated: int = 0  # answers with a stated probability
    against: int = 0  # answers against it: a call below 50 %, or letting a play pass above

    def add_play(self, play: TrackedPlay) -> None:
        self.plays += 1
        self.free += play.lie != "forced"
        if play.lie:
            calls = sum(called for _, called in play.called)
            self.chosen += play.lie == "chosen"
            self.forced += play.lie == "forced"
            self.lies += 1
            self.uncalled += not calls
            self.asked += len(play.called)
            self.believed += len(play.called) - calls

    def add_response(self, response: TrackedResponse, stated: float | None) -> None:
        self.rated += stated is not None
        self.against += stated is not None and stated != EVEN and response.called != (stated > EVEN)
        self.calls += response.called
        if response.is_lie:
            self.met += 1
            self.hits += response.called
        else:
            self.honest += 1
            self.alarms += response.called


COUNTS: Final = tuple(one.name for one in fields(Counts))
_DealCounts = tuple[int, ...]  # in the order of `COUNTS`


class GapSpec(NamedTuple):
    """A share of answers, or a mean over them, given a belief."""

    title: str
    unit: int | None = None  # values are summed in units of 1 / this number; None for a share


_NATS: Final = 10**6
GAPS: Final[Mapping[str, GapSpec]] = {
    "reference_loss": GapSpec("log loss of {reference}", _NATS),
    "against_reference": GapSpec("answers against {reference}, %"),
    "reference_cards": GapSpec("cards gained by each", 1),
    "loss": GapSpec("own log loss", _NATS),
    "divergence": GapSpec("divergence (KL) from {reference}", _NATS),
    "calls_against": GapSpec("{calls} when it believed a play, %"),
    "passes_against": GapSpec("plays let pass that it rated as {lies}, %"),
    "own_cards": GapSpec("cards gained by each answer against its belief", 1),
}


BELIEF_BANDS: Final = ("0 to 20", "20 to 40", "40 to 60", "60 to 80", "80 to 100")  # of the reference's belief, in %


@dataclass
class BeliefGap:
    """How far a player's answers are from beliefs: the reference's and its own.

    For each band of the reference's belief, it has the share of plays that the player called lies.
    """

    sums: dict[str, list[int]] = field(default_factory=lambda: {key: [0] * 6 for key in (*GAPS, *BELIEF_BANDS)})

    def add_deal(self, values: Mapping[str, Sequence[int]]) -> None:
        for key, own in values.items():
            self.sums[key] = [a + b for a, b in zip(self.sums[key], cluster_sums(len(own), sum(own)), strict=True)]

    def count(self, key: str) -> int:
        return Sums(*self.sums[key]).m

    def rate(self, key: str) -> Rate:
        """Return the share, or the mean. A mean of few cases is None."""
        sums, unit = Sums(*self.sums[key]), GAPS[key].unit if key in GAPS else None
        if unit is None:
            return clustered_rate(*sums)
        return Rate(None) if sums.m < MIN_CASES else mean_by_deal(sums, unit)


def judge_answer(one: TrackedResponse, own: float | None, reference: float | None) -> Iterator[tuple[str, int]]:
    """Yield the values of an answer for `GAPS`, and whether it called a lie for the band of the reference's belief.

    An answer against a belief gains the cards at stake if it was right, compared with the opposite answer, or else
    loses them.
    """
    cards = one.pile if one.called == one.is_lie else -one.pile
    if reference is not None:
        yield BELIEF_BANDS[min(int(reference * len(BELIEF_BANDS)), len(BELIEF_BANDS) - 1)], int(one.called)
        yield "reference_loss", round(_NATS * log_loss(reference, one.is_lie))
        if reference != EVEN:
            is_against = one.called != (reference > EVEN)
            yield "against_reference", int(is_against)
            if is_against:
                yield "reference_cards", cards
    if own is not None:
        yield "loss", round(_NATS * log_loss(own, one.is_lie))
        if reference is not None:
            yield "divergence", round(_NATS * divergence(reference, own))
        if own != EVEN:
            is_against = one.called != (own > EVEN)
            yield "passes_against" if own > EVEN else "calls_against", int(is_against)
            if is_against:
                yield "own_cards", cards


@dataclass
class Part:
    """The moves of a player in one part of its games: how many deals have the same counts."""

    deals: Counter[_DealCounts] = field(default_factory=Counter)

    def count(self, name: str) -> int:
        place = COUNTS.index(name)
        return sum(times * deal[place] for deal, times in self.deals.items())

    def rate(self, key: str) -> Rate:
        spec, sums = RATES[key], [0] * 6
        y, m = COUNTS.index(spec.events), COUNTS.index(spec.cases)
        for deal, times in self.deals.items():
            sums = [a + times * b for a, b in zip(sums, cluster_sums(deal[m], deal[y]), strict=True)]
        return clustered_rate(*sums)

    @property
    def detection(self) -> Detection:
        """The sensitivity and the criterion, or None for both if there are few cases."""
        if min(self.count("met"), self.count("honest")) < MIN_CASES:
            return Detection(Rate(None), Rate(None))
        places = [COUNTS.index(name) for name in ("met", "hits", "honest", "alarms")]
        signals = Counter[Signals]()
        for deal, times in self.deals.items():
            signals[Signals(*(deal[place] for place in places))] += times
        return detection(signals)


@dataclass(frozen=True)
class BeliefQuality:
    """How well probabilities match the truth. Figures of few cases are None."""

    beliefs: Sequence[Belief]

    @property
    def area(self) -> Rate:
        true = sum(one.is_true for one in self.beliefs)
        return Rate(None) if min(true, len(self.beliefs) - true) < MIN_CASES else area_under_curve(self.beliefs)

    @property
    def calibration_error(self) -> Rate:
        return Rate(None) if len(self.beliefs) < MIN_CASES else calibration_error(self.beliefs)

    @property
    def brier(self) -> Rate:
        return Rate(None) if len(self.beliefs) < MIN_CASES else brier_score(self.beliefs)

    @property
    def base_brier(self) -> float | None:
        """The Brier score of always stating the base rate."""
        share = sum(one.is_true for one in self.beliefs) / max(1, len(self.beliefs))
        return share * (1 - share) if self.beliefs else None


@dataclass(frozen=True)
class PlayerSheet:
    """The figures of one player."""

    name: str
    parts: Mapping[PartKey, Part]  # includes `ALL`, and others with at least one move
    beliefs: Sequence[Belief] = ()
    calibration: Calibration | None = None  # None if the player was never asked for a probability
    wins: Sequence[Belief] = ()  # the probabilities to win, stated once per turn
    gap: BeliefGap = field(default_factory=BeliefGap)

    @property
    def whole(self) -> Part:
        return self.parts[ALL]

    @property
    def quality(self) -> BeliefQuality:
        return BeliefQuality(self.beliefs)

    def split(self, kind: str) -> Iterator[tuple[str, Part]]:
        """Yield the parts of this kind in order, with their titles."""
        yield from ((name, self.parts[kind, name]) for name in band_names(kind) if (kind, name) in self.parts)


class CostlyMove(NamedTuple):
    """A voluntary lie that was caught, or a false call."""

    cards: int  # at stake
    game: int
    turn: int
    player: str
    is_call: bool  # whether it is a false call


@dataclass(frozen=True)
class Sheet:
    games: int
    players: Sequence[PlayerSheet]
    costly: Sequence[CostlyMove] = ()  # the most cards first
    reference: str | None = None  # the source of the reference beliefs, if there are any


class SheetCounter:
    """Adds up the moves of games, deal by deal. Players are indexes into `names`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._games = names, 0
        self._parts: list[defaultdict[PartKey, Part]] = [defaultdict(Part) for _ in names]
        self._beliefs: list[list[Belief]] = [[] for _ in names]
        self._wins: list[list[Belief]] = [[] for _ in names]
        self._gaps = [BeliefGap() for _ in names]
        self._costly: list[CostlyMove] = []
        for parts in self._parts:
            parts[ALL] = Part()

    def add_deal(
        self,
        deal: int,
        games: Sequence[TrackedGame],
        stated: BeliefsByMove | None = None,
        reference: BeliefsByMove = _NONE,
    ) -> None:
        """Add the games of a deal. `stated` contains what players stated, and `reference` the reference beliefs."""
        self._games += len(games)
        counts = defaultdict[tuple[int, PartKey], Counts](Counts)
        gaps = defaultdict[int, defaultdict[str, list[int]]](lambda: defaultdict(list))
        for game in games:
            for play in game.plays:
                if play.lie == "chosen" and any(called for _, called in play.called):
                    self._add_costly(play, is_call=False)
                for part in _parts_of(play, play.cards):
                    counts[play.player, part].add_play(play)
            for one in game.responses:
                if one.called and not one.is_lie:
                    self._add_costly(one, is_call=True)
                belief = (stated or {}).get((one.game, one.seat, one.move))
                for part in _parts_of(one):
                    counts[one.player, part].add_response(one, belief)
                if belief is not None:
                    self._beliefs[one.player].append(Belief(deal, belief, one.is_lie))
                for key, value in judge_answer(one, belief, reference.get((one.game, one.seat, one.move))):
                    gaps[one.player][key].append(value)
        for player, values in gaps.items():
            self._gaps[player].add_deal(values)
        for (player, part), own in counts.items():
            self._parts[player][part].deals[tuple(getattr(own, name) for name in COUNTS)] += 1

    def _add_costly(self, one: TrackedPlay | TrackedResponse, is_call: bool) -> None:
        self._costly.append(CostlyMove(one.pile, one.game, one.turn, self._names[one.player], is_call))

    def add_win(self, player: int, belief: Belief) -> None:
        self._wins[player].append(belief)

    def sheet(self, calibrations: Iterable[Calibration] = (), reference: str | None = None) -> Sheet:
        by_name = {one.name: one for one in calibrations}
        return Sheet(
            self._games,
            [
                PlayerSheet(name, parts, beliefs, by_name.get(name), wins, gap)
                for name, parts, beliefs, wins, gap in zip(
                    self._names, self._parts, self._beliefs, self._wins, self._gaps, strict=True
                )
            ],
            sorted(self._costly, key=lambda one: (-one.cards, one.game, one.turn)),
            reference,
        )


def _parts_of(move: TrackedPlay | TrackedResponse, cards: int = 0) -> Iterator[PartKey]:
    yield ALL
    yield "half", _HALVES[move.late]
    for kind, number in (("stake", move.pile), ("hand", move.hand), ("cards", cards)):
        if number:
            yield kind, _band_of(kind, number)


@cache
def _band_of(kind: str, number: int) -> str:
    return name_band(_BANDS[kind], max(low for low in _BANDS[kind] if low <= number))


def band_names(kind: str) -> Sequence[str]:
    return _HALVES if kind == "half" else [name_band(_BANDS[kind], low) for low in _BANDS[kind]]
