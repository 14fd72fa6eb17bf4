"""The exact cost of calls. `price_list.py` reads the prices.

Money is counted in whole picodollars (1e-12 USD). A price per million tokens with up to six decimals is then a whole
number per token, so sums are never rounded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from threading import Lock
from typing import Any, Final

from dubito.llm.protocols.wire import STANDARD_MODES, service_modes
from dubito.llm.request import PLAIN, Charges, Request, Usage
from dubito.model_settings import nested_items
from dubito.store.spend import PICO, Spend, dollars

# A long-lived cache write, relative to the price of input (Anthropic, an hour) or of a write (OpenAI, twelve hours).
_LONG_WRITE_FACTOR: Final = 2
# The highest known price of a call to a provider's own tools.
_TOOL_CALL: Final = PICO * 25 // 1000
_BATCH: Final = "batch"
_TIER: Final = "service_tier"
_SHORT_TTLS: Final = ("5m", "30m")  # tokens of cache writes that cost `cache_write`


@dataclass(frozen=True, slots=True)
class PricingOptions:
    """Properties of a request that may change the price of its tokens."""

    modes: tuple[tuple[str, str], ...] = ()
    long_ttl: bool = False  # whether the cache keeps input for longer than usual
    batch: bool = False  # whether it is in a batch, even if the reply names a standard tier

    @staticmethod
    def from_request(request: Request, batch: bool = False) -> "PricingOptions":
        # Searching the text is faster than walking the body.
        long_ttl = '"ttl"' in request.text and has_long_ttl(request.body)
        # Batches cache everything marked for the cache for an hour.
        is_marked = batch and '"cache_control"' in request.text
        return PricingOptions(service_modes(request.body), long_ttl or is_marked, batch)


def has_long_ttl(value: Any) -> bool:
    return any(key == "ttl" and ttl not in _SHORT_TTLS for key, ttl in nested_items(value))


_STANDARD: Final = PricingOptions()
_ONE: Final = Fraction(1)


@dataclass(frozen=True, slots=True)
class Terms:
    """Factors applied to the list price for special services and long inputs."""

    modes: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)  # mode -> value -> factor
    highest: Mapping[str, Fraction] = field(default_factory=dict)  # mode -> highest factor of the server's models
    # A call with more input tokens than this costs the following factors more.
    long_input_above: int | None = None
    input_factor: Fraction = _ONE
    output_factor: Fraction = _ONE
    long_write: int | None = None  # picodollars per token; None if unknown

    def has_price(self, mode: str, value: str) -> bool:
        is_automatic = value == "auto" and self.highest.get(mode, _ONE) > 1
        return value in self.modes.get(mode, {}) or value in STANDARD_MODES[mode] or is_automatic

    def _mode_factor(self, mode: str, value: str) -> Fraction:
        known = self.modes.get(mode, {}).get(value)
        return known or (_ONE if value in STANDARD_MODES[mode] else max(_ONE, self.highest.get(mode, _ONE)))

    def factor(self, charges: Charges, options: PricingOptions) -> Fraction:
        """Return the price factor for the modes that the reply reports.

        A requested mode that the reply does not report can only raise the factor.
        """
        modes, factor = dict(charges.modes), _ONE
        if options.batch and modes.get(_TIER, _BATCH) in STANDARD_MODES[_TIER]:
            modes[_TIER] = _BATCH
        for mode, value in modes.items():
            factor *= self._mode_factor(mode, value)
        for mode, value in options.modes:
            if mode not in modes:
                factor *= max(_ONE, self._mode_factor(mode, value))
        return factor

    def highest_factor(self, options: PricingOptions) -> Fraction:
        return self.factor(PLAIN, options)


_STANDARD_TERMS: Final = Terms()


@dataclass(frozen=True, slots=True)
class Price:
    """A model's prices, in picodollars per token."""

    input: int
    cached_input: int  # read from the provider's cache
    cache_write: int  # input that the provider stores in its cache
    output: int  # including reasoning
    terms: Terms = field(default=_STANDARD_TERMS, compare=False, kw_only=True)

    @property
    def long_write(self) -> int:
        price = self.terms.long_write
        return _LONG_WRITE_FACTOR * max(self.input, self.cache_write) if price is None else price

    def cost(self, usage: Usage, charges: Charges = PLAIN, options: PricingOptions = _STANDARD) -> int:
        uncached = max(0, usage.input - usage.cached - usage.cache_write)
        input_cost = uncached * self.input + usage.cached * self.cached_input + usage.cache_write * self.cache_write
        long_writes = charges.long_writes or (usage.cache_write if options.long_ttl else 0)
        input_cost += long_writes * max(0, self.long_write - self.cache_write)
        tokens_cost = self._with_long_input(usage.input, input_cost, usage.output * self.output)
        return ceil(tokens_cost * self.terms.factor(charges, options)) + charges.tool_calls * _TOOL_CALL

    def _with_long_input(self, input_tokens: int, input_cost: int, output_cost: int) -> Fraction:
        terms = self.terms
        if terms.long_input_above is None or input_tokens <= terms.long_input_above:
            return Fraction(input_cost + output_cost)
        return input_cost * terms.input_factor + output_cost * terms.output_factor

    def cache_saving(self, usage: Usage) -> int:
        return usage.cached * (self.input - self.cached_input) - usage.cache_write * (self.cache_write - self.input)

    def worst_cost(self, input_tokens: int, output_tokens: int, options: PricingOptions = _STANDARD) -> int:
        rate = max(self.input, self.cached_input, self.cache_write, self.long_write if options.long_ttl else 0)
        tokens_cost = self._with_long_input(input_tokens, input_tokens * rate, output_tokens * self.output)
        return ceil(tokens_cost * self.terms.highest_factor(options))


@dataclass(frozen=True, slots=True)
class Tariff:
    """The cost of a player's calls. Without a price, only calls and tokens are counted."""

    price: Price | None
    max_output: int
    batch: bool = False

    def options(self, request: Request) -> PricingOptions:
        return PricingOptions.from_request(request, self.batch)

    def worst_cost(self, request: Request) -> Spend:
        """Return the maximum cost of a call, given that a token has at least one byte."""
        input_tokens = len(request.text)
        usd = self.price.worst_cost(input_tokens, self.max_output, self.options(request)) if self.price else 0
        return Spend(1, input_tokens + self.max_output, usd)

    def cost(self, usage: Usage, charges: Charges = PLAIN, options: PricingOptions = _STANDARD) -> Spend:
        return Spend(1, usage.input + usage.output, self.price.cost(usage, charges, options) if self.price else 0)


class CostEstimator:
    """Estimates the cost of a player's calls that ended without a reported cost.

    The input is estimated at the average cost per byte of the run's replies so far, the output at the cost of the
    largest one. Shared by threads.
    """

    def __init__(self, tariff: Tariff, replies: Iterable[tuple[int, tuple[int, ...], int]]) -> None:
        """Learn from earlier replies, given as request size in bytes, usage and picodollars."""
        self.tariff, self._lock = tariff, Lock()
        self._bytes = 0
        self._input_cost = 0  # picodollars for these bytes
        self._largest_output = 0  # picodollars
        for size, counts, cost in replies:
            self.learn(size, Usage(*counts), cost)

    def learn(self, size: int, usage: Usage | None, cost: int) -> None:
        """Learn from a reply to a request of this many bytes, if its cost is known."""
        price = self.tariff.price
        list_cost = price.cost(usage) if price and usage else 0
        if price and usage and list_cost:
            input_cost = cost * price.cost(replace(usage, output=0)) // list_cost
            with self._lock:
                self._bytes += size
                self._input_cost += input_cost
                self._largest_output = max(self._largest_output, cost - input_cost)

    @property
    def rates(self) -> tuple[float, int] | None:
        """Picodollars of input per byte and of the largest output, or None before the first reply."""
        with self._lock:
            return (self._input_cost / self._bytes, self._largest_output) if self._bytes else None

    def estimate(self, request: Request) -> int | None:
        worst, rates = self.tariff.worst_cost(request).usd, self.rates
        if self.tariff.price is None:
            return None
        return worst if rates is None else min(worst, int(len(request.text) * rates[0]) + rates[1])


def describe_excess(used: Spend, worst: Spend) -> str | None:
    """Describe how a call exceeded its reservation, or return None if it did not."""
    if used.tokens <= worst.tokens and used.usd <= worst.usd:
        return None
    money = f" ({dollars(used.usd)} and {dollars(worst.usd)})" if used.usd > worst.usd else ""
    return f"the server reported {used.tokens:,} tokens, but {worst.tokens:,} were reserved{money}"
