"""What tokens cost: a dated file of the providers' list prices, the config's own over it, and exact sums.

Money is counted in whole picodollars (1e-12 USD), in which a price of up to six decimals per million tokens is a
whole number per token; so no sum is ever rounded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.llm.settings import HOUSE, is_house
from dubito.llm.wire import Request, Usage
from dubito.store.model_log import Spend
from dubito.yaml_file import read_yaml

PICO: Final = 10**12  # picodollars in a dollar
_FILE: Final = Path(__file__).with_name("prices.yaml")
_DECIMALS: Final = 6  # of a price in USD per million tokens
_MOST: Final = 5_000  # USD per million tokens: so the cost of any reply fits into a column of SQLite


class _Listed(BaseModel):
    """A price as files and configs say it: USD per million tokens. All four, since none follows from another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    input: float = Field(ge=0, le=_MOST)
    cached_input: float = Field(ge=0, le=_MOST)
    cache_write: float = Field(ge=0, le=_MOST)
    output: float = Field(ge=0, le=_MOST)


@dataclass(frozen=True, slots=True)
class Price:
    """Picodollars a token."""

    input: int
    cached_input: int  # read from the provider's cache
    cache_write: int  # input that the provider keeps for later
    output: int  # reasoning included

    def of(self, usage: Usage) -> int:
        """What these tokens cost."""
        plain = max(0, usage.input - usage.cached - usage.cache_write)
        into = plain * self.input + usage.cached * self.cached_input + usage.cache_write * self.cache_write
        return into + usage.output * self.output

    def saved(self, usage: Usage) -> int:
        """What the provider's cache saved on them; below 0 where writing to it cost more than reading brought."""
        return usage.cached * (self.input - self.cached_input) - usage.cache_write * (self.cache_write - self.input)

    def worst(self, into: int, out: int) -> int:
        """The most that so many tokens can cost."""
        return into * max(self.input, self.cached_input, self.cache_write) + out * self.output


@dataclass(frozen=True, slots=True)
class Tariff:
    """What a player's tries cost; without a price, calls and tokens only."""

    price: Price | None
    max_output: int

    def worst(self, request: Request) -> Spend:
        """The most a try can cost. A token is at least one byte of the request, which holds the prompt and more."""
        into = len(request.text)
        return Spend(1, into + self.max_output, self.price.worst(into, self.max_output) if self.price else 0)

    def of(self, usage: Usage) -> Spend:
        """What a try did cost, by the usage in its reply."""
        return Spend(1, usage.input + usage.output, self.price.of(usage) if self.price else 0)


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
    return Price(*(_pico(getattr(listed, field), f"{where}: {field}") for field in _Listed.model_fields))


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


@cache
def _listed() -> dict[str, dict[str, Price]]:
    """The shipped prices: server -> model -> price."""
    servers = _loaded(_FILE)["servers"]
    return {
        server: {model: price_of(entry, f"{_FILE.name}: {model}") for model, entry in listed["models"].items()}
        for server, listed in servers.items()
    }


def find_price(server: str, model: str, own: Mapping[str, Price]) -> Price | None:
    """The price of a model at a server: the config's own, else the provider's list price; None if unknown."""
    return own.get(model) or _listed().get(HOUSE if is_house(server) else server, {}).get(model)


def dollars(pico: int) -> str:
    """An amount in words, exact to a hundredth of a cent: `$1.2345`."""
    return f"{'-' if pico < 0 else ''}${abs(pico) / PICO:,.4f}"


def beyond(used: Spend, worst: Spend) -> str | None:
    """How a try used more than the worst that was reserved for it, in words; None if it did not."""
    if used.tokens <= worst.tokens and used.usd <= worst.usd:
        return None
    money = f" ({dollars(used.usd)} and {dollars(worst.usd)})" if used.usd > worst.usd else ""
    return f"the server reported {used.tokens:,} tokens, where {worst.tokens:,} were reserved{money}"
