"""What tokens cost: a dated file of the providers' list prices, the config's own over it, and exact sums.

Money is counted in whole picodollars (1e-12 USD), in which a price of up to six decimals per million tokens is a
whole number per token; so no sum is ever rounded.

What games take, by a run's own average: of what is left, may another one start?

A game is reckoned by its questions, whoever answered them, and a question at the cost of a paid reply. So games
whose replies were free, from the tape or the cache, tell how long a game is, but never make games look free.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any, Final

from pydantic import ConfigDict, Field, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.files import Checked, read_yaml
from dubito.llm.protocols import modes_of
from dubito.llm.request import PLAIN, Charges, Request, Usage, entries
from dubito.llm.settings import HOUSE, is_house
from dubito.store.model_log import Spend

PICO: Final = 10**12  # picodollars in a dollar
_FILE: Final = Path(__file__).with_name("prices.yaml")
_DECIMALS: Final = 6  # of a price in USD per million tokens
_MOST: Final = 5_000  # USD per million tokens: so the cost of any reply fits into a column of SQLite

_FRESH: Final = timedelta(days=60)  # for how long a list price is taken for today's
_LONG_WRITE: Final = 2  # times the price of input: what Anthropic takes for keeping it an hour
_TOOL_CALL: Final = PICO * 25 // 1000  # for a call of the provider's own tools: the dearest that is known
_SHORT: Final = ("5m", "30m")  # how long input is kept for the price `cache_write`
_BY_CALL: Final = ("tools", "web_search_options", "search_parameters", "plugins", "mcp_servers", "container")


class _Listed(Checked):
    model_config = ConfigDict(allow_inf_nan=False, defer_build=True)

    input: float = Field(ge=0, le=_MOST)
    cached_input: float = Field(ge=0, le=_MOST)
    cache_write: float = Field(ge=0, le=_MOST)
    output: float = Field(ge=0, le=_MOST)


@dataclass(frozen=True, slots=True)
class Surcharges:
    """What a provider takes for more than the usual service: so many times the list price."""

    modes: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)  # mode -> value -> times
    long_from: int | None = None  # tokens of input above which all of a call costs `long` times as much
    long: Fraction = Fraction(1)

    def times(self, modes: Sequence[tuple[str, str]], into: int) -> Fraction:
        """How many times the list price; a value that is not known counts as the dearest of its mode."""
        times = self.long if self.long_from is not None and into > self.long_from else Fraction(1)
        for mode, value in modes:
            known = self.modes.get(mode, {})
            times *= known.get(value) or max(known.values(), default=Fraction(1))
        return times


_NO_SURCHARGES: Final = Surcharges()


@dataclass(frozen=True, slots=True)
class Price:
    """Picodollars a token."""

    input: int
    cached_input: int  # read from the provider's cache
    cache_write: int  # input that the provider keeps for later
    output: int  # reasoning included
    # None on a price of the config's own.
    surcharges: Surcharges = field(default=_NO_SURCHARGES, compare=False, kw_only=True)

    def of(self, usage: Usage, charges: Charges = PLAIN) -> int:
        plain = max(0, usage.input - usage.cached - usage.cache_write)
        into = plain * self.input + usage.cached * self.cached_input + usage.cache_write * self.cache_write
        into += charges.long_writes * max(0, _LONG_WRITE * self.input - self.cache_write)
        tokens = into + usage.output * self.output
        calls = charges.tool_calls * _TOOL_CALL
        return ceil(tokens * self.surcharges.times(charges.modes, usage.input)) + calls

    def saved(self, usage: Usage) -> int:
        """What the provider's cache saved on them; below 0 where writing to it cost more than reading brought."""
        return usage.cached * (self.input - self.cached_input) - usage.cache_write * (self.cache_write - self.input)

    def worst(self, into: int, out: int, modes: Sequence[tuple[str, str]] = ()) -> int:
        """The most that so many tokens can cost, so served."""
        tokens = into * max(self.input, self.cached_input, self.cache_write) + out * self.output
        return ceil(tokens * self.surcharges.times(modes, into))


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a player's tries cost; without a price, calls and tokens only."""

    price: Price | None
    max_output: int

    def worst(self, request: Request) -> Spend:
        """The most a try can cost. A token is at least one byte of the request, which holds the prompt and more."""
        into = len(request.text)
        usd = self.price.worst(into, self.max_output, modes_of(request.body)) if self.price else 0
        return Spend(1, into + self.max_output, usd)

    def of(self, usage: Usage, charges: Charges = PLAIN) -> Spend:
        return Spend(1, usage.input + usage.output, self.price.of(usage, charges) if self.price else 0)


class Likely:
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
        """Picodollars a byte of a request, and of the output; None while there is nothing to learn from."""
        with self._lock:
            return (self._input / self._bytes, self._output) if self._bytes else None

    def of(self, request: Request) -> int | None:
        worst, rates = self.tariff.worst(request).usd, self.rates
        if self.tariff.price is None:
            return None
        return worst if rates is None else min(worst, int(len(request.text) * rates[0]) + rates[1])


def unpriced(parameters: Mapping[str, Any]) -> str | None:
    """The first of a player's parameters that makes tokens cost more than the list price; None if none does."""
    dear = {mode for mode, _ in modes_of(parameters)}
    for name, value in parameters.items():  # which may say for how long input is to be kept
        dear |= {name for key, ttl in entries(value) if key == "ttl" and ttl not in _SHORT}
    return min(dear, default=None)


def charged_by_call(parameters: Mapping[str, Any]) -> str | None:
    """The first of a player's parameters that lets a server charge for more than tokens; None if none does."""
    return next((name for name in _BY_CALL if parameters.get(name)), None)


def read_prices(given: str | Mapping[str, Any], source: str, home: Path) -> dict[str, Price]:
    """The prices of a config, by model: a mapping, or the path of a file that holds one. Raises UsageError."""
    if isinstance(given, str):
        source = str(home / given)
        given = _loaded(home / given)
    prices: dict[str, Price] = {}
    for model, entry in given.items():
        name = one_line(str(model))
        if str(model) in prices:  # as a number and as a text
            raise UsageError(f"{source}: {name} stands twice")
        prices[str(model)] = price_of(entry, f"{source}: {name}")
    return prices


def price_of(entry: Any, where: str) -> Price:
    """The price in one entry; raises UsageError that names what is missing or wrong."""
    try:
        listed = _Listed.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        if first["type"] == "missing":
            raise UsageError(f"{where}: {key} is missing: say it in USD per million tokens") from None
        if first["type"] == "extra_forbidden":
            raise UsageError(
                f"{where}: unknown key '{one_line(key)}': {suggestion(key, _Listed.model_fields)}"
            ) from None
        said = f"{where}: {key}" if key else where
        raise UsageError(
            f"{said}: a price is {{{', '.join(_Listed.model_fields)}}}, numbers from 0 to {_MOST:,} in USD per million "
            "tokens"
        ) from None
    return Price(*(_pico(getattr(listed, name), f"{where}: {name}") for name in _Listed.model_fields))


def _pico(usd_per_million: float, where: str) -> int:
    exact = Decimal(repr(usd_per_million)) * 10**_DECIMALS
    if exact != int(exact):
        raise UsageError(f"{where}: a price has at most {_DECIMALS} decimals, in USD per million tokens")
    return int(exact)


def _loaded(path: Path) -> dict[str, Any]:
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a file of prices is a list of `MODEL: {{{', '.join(_Listed.model_fields)}}}` lines")
    return content


@dataclass(frozen=True, slots=True)
class _Provider:
    """The list prices of one server, by model, and the day on which they were read."""

    as_of: date
    models: Mapping[str, Price]


@cache
def _listed() -> dict[str, _Provider]:
    """The shipped prices, by server."""
    return {server: _provider(listed) for server, listed in _loaded(_FILE)["servers"].items()}


def _provider(listed: Mapping[str, Any]) -> _Provider:
    modes = {
        mode: {value: Fraction(str(times)) for value, times in values.items()}
        for mode, values in listed.get("times", {}).items()
    }
    models = {}
    for model, entry in listed["models"].items():
        price, long = price_of(entry, f"{_FILE.name}: {model}"), listed.get("long", {}).get(model)
        above = Surcharges(modes, long["above"], Fraction(str(long["times"]))) if long else Surcharges(modes)
        models[model] = replace(price, surcharges=above)
    return _Provider(listed["as_of"], models)


def find_price(server: str, model: str, own: Mapping[str, Price]) -> Price | None:
    provider = _listed().get(HOUSE if is_house(server) else server)
    if provider and is_house(server):
        (free,) = provider.models.values()
        return own.get(model) or free
    return own.get(model) or (provider.models.get(model) if provider else None)


def outdated(server: str, model: str, own: Mapping[str, Price], today: date) -> str | None:
    """A warning if the list price in use was read too long ago; None if it was not, or the price is the config's
    own."""
    provider = None if is_house(server) else _listed().get(server)
    if provider is None or model in own or model not in provider.models or today - provider.as_of <= _FRESH:
        return None
    days = (today - provider.as_of).days
    return (
        f"the list prices of {server} were read on {provider.as_of:%Y-%m-%d}, {days} days ago: "
        "check them, and say what has changed in `prices`"
    )


def dollars(pico: int) -> str:
    """An amount in words, exact to a hundredth of a cent: `$1.2345`."""
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
class Past:
    """What a run knows of its games from before it was stopped."""

    ended: dict[int, int] = field(default_factory=dict)  # the games that ended, with their questions
    replies: int = 0  # that were paid for
    spent: Spend = _NOTHING  # on them, and on failures under way to them


class Forecast:
    """The forecast of one run; those that share it see to its lock."""

    def __init__(self, past: Past) -> None:
        self._ended = set(past.ended)
        self._questions = sum(past.ended.values())  # of the games that ended
        self._replies, self._spent = past.replies, past.spent
        self._worst = Spend()  # of any call
        self._under_way: dict[int, int] = {}  # games, with their questions so far
        # What the last paid reply of a game took: the longer a game, the longer its prompts.
        self._last: dict[int, Spend] = {}
        self._longest = 0  # questions of any game
        self._most: tuple[int, ...] = astuple(_NOTHING)  # that a paid reply took

    @property
    def none_ended(self) -> bool:
        return not self._ended

    @property
    def idle(self) -> bool:
        return not self._under_way

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

    def reserved(self, worst: Spend) -> None:
        """A call may take this much."""
        self._worst = Spend(*(max(pair) for pair in zip(astuple(self._worst), astuple(worst), strict=True)))

    def settled(self, game: int, used: Spend, replied: bool) -> None:
        """A call of a game took this."""
        if game >= 0:
            self._spent += used
            self._replies += replied
            if replied:
                self._last[game] = used
                self._most = tuple(map(max, self._most, astuple(used)))

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
        amounts = zip(each, self._most, astuple(self._worst), strict=True)
        return Spend(*(ceil(questions * max(mean, most) + worst) for mean, most, worst in amounts))

    def rests(self, games: Iterable[int]) -> Iterator[Spend]:
        """About what is spent until the first of these games under way have ended: one, two, and so on."""
        each, worst = self._each(), astuple(self._worst)
        sums, most = [0.0] * len(worst), [0.0] * len(worst)  # the last call has to find room for its worst
        for game in games:
            if each is not None:
                questions, amounts = self._rest(game, each)
                sums = [total + questions * amount for total, amount in zip(sums, amounts, strict=True)]
                most = list(map(max, most, amounts))
            last = [max(0.0, a - b) if any(sums) else 0.0 for a, b in zip(worst, most, strict=True)]
            yield Spend(*(ceil(total + more) for total, more in zip(sums, last, strict=True)))

    def _rest(self, game: int, each: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
        """How many questions a game under way has still to come, and what each of them takes.

        One that has become long is taken to go on for half as long again.
        """
        if game in self._ended:
            return 0, each
        long, done = self._long(), self._under_way[game]
        last = astuple(self._last.get(game, _NOTHING))
        return max(long - done, max(long, done) * _REST), tuple(map(max, each, last))

    def _sum(self, parts: Sequence[tuple[float, tuple[float, ...]]]) -> Spend:
        """What so many questions take, of which the last has to find room for its worst."""
        if not any(questions for questions, _ in parts):
            return Spend()
        sums = [sum(amounts) for amounts in zip(*([n * amount for amount in each] for n, each in parts), strict=True)]
        most = [max(amounts) for amounts in zip(*(each for _, each in parts), strict=True)]
        triples = zip(sums, most, astuple(self._worst), strict=True)
        return Spend(*(ceil(total + max(0.0, worst - one)) for total, one, worst in triples))

    def _long(self) -> float:
        """How many questions a game has. The short ones end first: what the others have had so far counts as well."""
        if not self._ended:
            return LONG
        return max(1.0, (self._questions + sum(self._under_way.values())) / len(self._ended))

    def _each(self) -> tuple[float, ...] | None:
        """What a paid reply costs; the most that a call may cost while no game has ended; None if no call was made."""
        if self._ended and self._replies:
            return tuple(amount / self._replies for amount in astuple(self._spent))
        return astuple(self._worst) if self._worst.calls else None
