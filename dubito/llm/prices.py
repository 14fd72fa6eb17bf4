"""What tokens cost, in exact sums; the prices themselves are read in `price_list.py`.

Money is counted in whole picodollars (1e-12 USD), in which a price of up to six decimals per million tokens is a
whole number per token; so no sum is ever rounded.

What games take, by a run's own average: of what is left, may another one start?

A game is reckoned by its questions, whoever answered them, and a question at the cost of a paid reply. So games
whose replies were free, from the tape or the cache, tell how long a game is, but never make games look free.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from operator import attrgetter
from threading import Lock
from typing import Any, Final

from dubito.llm.protocols import STANDARD_MODES, service_modes
from dubito.llm.request import PLAIN, Charges, Request, Usage, entries
from dubito.store.model_log import Spend

PICO: Final = 10**12  # picodollars in a dollar

_LONG_WRITE: Final = 2  # times the price of input (Anthropic, for an hour) or of a write (OpenAI, for twelve)
_TOOL_CALL: Final = PICO * 25 // 1000  # for a call of the provider's own tools: the dearest that is known
_BATCH: Final = "batch"
_amounts: Final[Callable[[Spend], tuple[int, int, int]]] = attrgetter("calls", "tokens", "usd")  # asked at every call
_TIER: Final = "service_tier"
_SHORT: Final = ("5m", "30m")  # how long input is kept for the price `cache_write`


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for that may change the price of its tokens."""

    modes: tuple[tuple[str, str], ...] = ()
    long: bool = False  # that input is kept for longer than is usual
    batch: bool = False  # in a batch, even if the reply names a usual tier

    @staticmethod
    def by(request: Request, batch: bool = False) -> "Asked":
        # Searching the text is faster than walking the body.
        long = '"ttl"' in request.text and has_long_ttl(request.body)
        # A batch keeps all that is marked for an hour.
        marked = batch and '"cache_control"' in request.text
        return Asked(service_modes(request.body), long or marked, batch)


def has_long_ttl(value: Any) -> bool:
    return any(key == "ttl" and ttl not in _SHORT for key, ttl in entries(value))


_PLAINLY: Final = Asked()  # nothing more
_ONE: Final = Fraction(1)


@dataclass(frozen=True, slots=True)
class Terms:
    """What is not the usual service costs so many times the list price."""

    modes: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)  # mode -> value -> times
    dearest: Mapping[str, Fraction] = field(default_factory=dict)  # mode -> times of any model of the server
    above: int | None = None  # tokens of input from which on all of a call costs more
    into: Fraction = _ONE  # times the price of input, then
    out: Fraction = _ONE
    long_write: int | None = None  # picodollars a token; None: it is not said

    def knows(self, mode: str, value: str) -> bool:
        left_to_it = value == "auto" and self.dearest.get(mode, _ONE) > 1
        return value in self.modes.get(mode, {}) or value in STANDARD_MODES[mode] or left_to_it

    def _times_list_price(self, mode: str, value: str) -> Fraction:
        known = self.modes.get(mode, {}).get(value)
        return known or (_ONE if value in STANDARD_MODES[mode] else max(_ONE, self.dearest.get(mode, _ONE)))

    def times(self, charges: Charges, asked: Asked) -> Fraction:
        """Return the factor on the list price by the reply's modes; for others, by what was asked for, if dearer."""
        said, times = dict(charges.modes), _ONE
        if asked.batch and said.get(_TIER, _BATCH) in STANDARD_MODES[_TIER]:
            said[_TIER] = _BATCH
        for mode, value in said.items():
            times *= self._times_list_price(mode, value)
        for mode, value in asked.modes:
            if mode not in said:
                times *= max(_ONE, self._times_list_price(mode, value))
        return times

    def most(self, asked: Asked) -> Fraction:
        return self.times(PLAIN, asked)


_USUAL_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class Price:
    """Picodollars a token."""

    input: int
    cached_input: int  # read from the provider's cache
    cache_write: int  # input that the provider keeps for later
    output: int  # reasoning included
    terms: Terms = field(default=_USUAL_TERMS, compare=False, kw_only=True)

    @property
    def long_write(self) -> int:
        said = self.terms.long_write
        return _LONG_WRITE * max(self.input, self.cache_write) if said is None else said

    def of(self, usage: Usage, charges: Charges = PLAIN, asked: Asked = _PLAINLY) -> int:
        plain = max(0, usage.input - usage.cached - usage.cache_write)
        into = plain * self.input + usage.cached * self.cached_input + usage.cache_write * self.cache_write
        kept = charges.long_writes or (usage.cache_write if asked.long else 0)
        into += kept * max(0, self.long_write - self.cache_write)
        tokens = self._tokens(usage.input, into, usage.output * self.output)
        return ceil(tokens * self.terms.times(charges, asked)) + charges.tool_calls * _TOOL_CALL

    def _tokens(self, tokens: int, into: int, out: int) -> Fraction:
        """What so many tokens of input cost, and the output, by how long the call is."""
        terms = self.terms
        if terms.above is None or tokens <= terms.above:
            return Fraction(into + out)
        return into * terms.into + out * terms.out

    def saved(self, usage: Usage) -> int:
        return usage.cached * (self.input - self.cached_input) - usage.cache_write * (self.cache_write - self.input)

    def worst(self, into: int, out: int, asked: Asked = _PLAINLY) -> int:
        rate = max(self.input, self.cached_input, self.cache_write, self.long_write if asked.long else 0)
        return ceil(self._tokens(into, into * rate, out * self.output) * self.terms.most(asked))


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a player's tries cost; without a price, calls and tokens only."""

    price: Price | None
    max_output: int
    batch: bool = False

    def asked(self, request: Request) -> Asked:
        return Asked.by(request, self.batch)

    def worst(self, request: Request) -> Spend:
        into = len(request.text)
        usd = self.price.worst(into, self.max_output, self.asked(request)) if self.price else 0
        return Spend(1, into + self.max_output, usd)

    def of(self, usage: Usage, charges: Charges = PLAIN, asked: Asked = _PLAINLY) -> Spend:
        return Spend(1, usage.input + usage.output, self.price.of(usage, charges, asked) if self.price else 0)


class CostEstimator:
    """What a try of a player probably cost whose cost nobody knows: by the run's replies to it so far.

    The input at so much a byte of the request as theirs took, and the largest output of them. Shared by threads.
    """

    def __init__(self, tariff: Tariff, replies: Iterable[tuple[int, tuple[int, ...], int]]) -> None:
        """`replies` are those of before: bytes of the request, usage, picodollars."""
        self.tariff, self._lock = tariff, Lock()
        self._bytes = self._input = 0  # picodollars of input for so many bytes
        self._output = 0  # picodollars, of the largest
        for size, counts, cost in replies:
            self.learns(size, Usage(*counts), cost)

    def learns(self, size: int, usage: Usage | None, cost: int) -> None:
        """A reply to a request of that size cost so many picodollars, if it says so."""
        price = self.tariff.price
        listed = price.of(usage) if price and usage else 0
        if price and usage and listed:
            into = cost * price.of(replace(usage, output=0)) // listed
            with self._lock:
                self._bytes += size
                self._input += into
                self._output = max(self._output, cost - into)

    @property
    def rates(self) -> tuple[float, int] | None:
        with self._lock:
            return (self._input / self._bytes, self._output) if self._bytes else None

    def of(self, request: Request) -> int | None:
        worst, rates = self.tariff.worst(request).usd, self.rates
        if self.tariff.price is None:
            return None
        return worst if rates is None else min(worst, int(len(request.text) * rates[0]) + rates[1])


def dollars(pico: int) -> str:
    return f"{'-' if pico < 0 else ''}${abs(pico) / PICO:,.4f}"


def beyond(used: Spend, worst: Spend) -> str | None:
    """How a try used more than the worst that was reserved for it, in words; None if it did not."""
    if used.tokens <= worst.tokens and used.usd <= worst.usd:
        return None
    money = f" ({dollars(used.usd)} and {dollars(worst.usd)})" if used.usd > worst.usd else ""
    return f"the server reported {used.tokens:,} tokens, where {worst.tokens:,} were reserved{money}"


LONG: Final = 50  # questions that a game is taken to have before any has finished
_REST: Final = 0.5  # the part of a game that is assumed to be still to come, however much was played
_NOTHING: Final = Spend()


@dataclass(frozen=True, slots=True)
class PastGames:
    """What a run knows of its games from before it was stopped."""

    ended: dict[int, int] = field(default_factory=dict)  # the games that ended, with their questions
    replies: int = 0  # that were paid for
    spent: Spend = _NOTHING  # on them, and on failures under way to them


def _left(long: float, asked: float) -> float:
    """How many questions a game has still to come that usually has so many, and has had so many; one that has become
    long is taken to go on for half as long again."""
    return max(long - asked, max(long, asked) * _REST)


class Forecast:
    """The forecast of one run, not thread-safe.

    Only games with model players begin here; the others cost nothing, and say nothing about what a game takes.
    """

    def __init__(self, past: PastGames) -> None:
        self._ended = set(past.ended)
        self._questions = sum(past.ended.values())  # of the games that ended
        self._asking = sum(questions > 0 for questions in past.ended.values())  # of them, those in which any was asked
        self._replies, self._spent = past.replies, past.spent
        self._worst = Spend()  # of any call
        self._under_way: dict[int, int] = {}  # games, with their questions so far
        # What the last paid reply of a game took: the longer a game, the longer its prompts.
        self._last: dict[int, Spend] = {}
        self._longest = 0  # questions of any game
        self._most: tuple[int, ...] = _amounts(_NOTHING)  # that a paid reply took

    @property
    def none_ended(self) -> bool:
        return not self._asking

    @property
    def idle(self) -> bool:
        return not self._under_way

    def parts(self, games: int) -> tuple[float, float]:
        """How many games were played in which anything is asked, and how many of so many in all are left: each of
        those under way is the part of its questions that it has probably had."""
        had, ended = self._under_way.values(), len(self._ended)
        long = (self._questions + sum(had)) / self._asking if self._asking else LONG  # the short ones end first
        begun = sum(asked / (asked + _left(long, asked)) for asked in had)
        asking = (self._asking + len(had)) / max(1, ended + len(had))  # the share of games
        return self._asking + begun, asking * (games - ended - len(had)) + len(had) - begun

    def begins(self, game: int) -> None:
        self._under_way[game] = 0

    def asked(self, game: int) -> None:
        if game in self._under_way:
            self._under_way[game] += 1
            self._longest = max(self._longest, self._under_way[game])

    def ends(self, game: int) -> None:
        questions = self._under_way.pop(game, 0)
        self._last.pop(game, None)
        if game not in self._ended:
            self._ended.add(game)
            self._questions += questions
            self._asking += questions > 0

    def reserved(self, worst: Spend) -> None:
        self._worst = Spend(*(max(pair) for pair in zip(_amounts(self._worst), _amounts(worst), strict=True)))

    def settled(self, game: int, used: Spend, replied: bool) -> None:
        """A call of a game took this."""
        if game >= 0:
            self._spent += used
            self._replies += replied
            if replied:
                self._last[game] = used
                self._most = tuple(map(max, self._most, _amounts(used)))

    def needed(self, games: Sequence[int]) -> Spend | None:
        """The most that is spent once these games too, and all those under way, have ended; None while nobody can say.

        Games that are wholly on the tape need nothing, even when everything is used up.
        """
        new = [game for game in games if game not in self._ended]
        if not new:
            return Spend()
        each = self._each()
        if each is None:
            return None
        return self._sum([(self._long(), each)] * len(new) + [self._rest(game, each) for game in self._under_way])

    def at_most(self, games: int) -> Spend:
        """More than so many games under way still take, and quickly told."""
        each, questions = self._each(), games * max(self._long(), self._longest)
        if each is None or not games:
            return Spend()
        amounts = zip(each, self._most, _amounts(self._worst), strict=True)
        return Spend(*(ceil(questions * max(mean, most) + worst) for mean, most, worst in amounts))

    def rests(self, games: Iterable[int]) -> Iterator[Spend]:
        """About what is spent until the first of these games under way have ended: one, two, and so on."""
        each, worst = self._each(), _amounts(self._worst)
        sums, most = [0.0] * len(worst), [0.0] * len(worst)  # the last call has to find room for its worst
        for game in games:
            if each is not None:
                questions, amounts = self._rest(game, each)
                sums = [total + questions * amount for total, amount in zip(sums, amounts, strict=True)]
                most = list(map(max, most, amounts))
            last = [max(0.0, a - b) if any(sums) else 0.0 for a, b in zip(worst, most, strict=True)]
            yield Spend(*(ceil(total + more) for total, more in zip(sums, last, strict=True)))

    def _rest(self, game: int, each: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
        """How many questions a game under way has still to come, and what each of them takes."""
        if game in self._ended:
            return 0, each
        last = _amounts(self._last.get(game, _NOTHING))
        return _left(self._long(), self._under_way[game]), tuple(map(max, each, last))

    def _sum(self, parts: Sequence[tuple[float, tuple[float, ...]]]) -> Spend:
        """What so many questions take, of which the last has to find room for its worst."""
        if not any(questions for questions, _ in parts):
            return Spend()
        sums = [sum(amounts) for amounts in zip(*([n * amount for amount in each] for n, each in parts), strict=True)]
        most = [max(amounts) for amounts in zip(*(each for _, each in parts), strict=True)]
        triples = zip(sums, most, _amounts(self._worst), strict=True)
        return Spend(*(ceil(total + max(0.0, worst - one)) for total, one, worst in triples))

    def _long(self) -> float:
        """Return how many questions a game has that asks any.

        Short games end first, so what the games in progress have asked so far counts as well.
        """
        if not self._asking:
            return LONG
        return max(1.0, (self._questions + sum(self._under_way.values())) / self._asking)

    def _each(self) -> tuple[float, ...] | None:
        if self._asking and self._replies:
            return tuple(amount / self._replies for amount in _amounts(self._spent))
        return _amounts(self._worst) if self._worst.calls else None
