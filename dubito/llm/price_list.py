"""Prices as they are written: a file of the providers' list prices, and the config's own over it.

`prices.yaml` is written by scripts/prices.py; its head says what a line means. A config's own price has the same form.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import ConfigDict, Field, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.files import Checked, read_yaml
from dubito.llm.prices import Price, Terms, has_long_ttl
from dubito.llm.protocols import STANDARD_MODES, service_modes
from dubito.llm.settings import HOUSE, embedded_kind

_FILE: Final = Path(__file__).with_name("prices.yaml")
_DECIMALS: Final = 6  # of a price in USD per million tokens
_MOST: Final = 5_000  # USD per million tokens: so the cost of any reply fits into a column of SQLite
_NEEDED: Final = ("input", "cached_input", "cache_write", "output")
_FRESH: Final = timedelta(days=60)  # for how long a list price is taken for today's
_SOON: Final = timedelta(days=30)  # before a model's end a run is told of it
_SNAPSHOT: Final = re.compile(r"(.+)-(?:\d{4}-\d{2}-\d{2}|\d{8})")  # of a model, by its day
_BY_CALL: Final = ("tools", "web_search_options", "search_parameters", "plugins", "mcp_servers", "container")

_Times = dict[str, Annotated[float, Field(gt=0, le=100)]]


class _Above(Checked):
    model_config = ConfigDict(allow_inf_nan=False, defer_build=True)

    tokens: int = Field(ge=0)
    times: float = Field(ge=1, le=100)
    output_times: float = Field(ge=1, le=100)


class _Listed(Checked):
    model_config = ConfigDict(allow_inf_nan=False, defer_build=True)

    input: float = Field(ge=0, le=_MOST)
    cached_input: float = Field(ge=0, le=_MOST)
    cache_write: float = Field(ge=0, le=_MOST)
    output: float = Field(ge=0, le=_MOST)
    long_write: float | None = Field(default=None, ge=0, le=_MOST)
    above: _Above | None = None
    service_tier: _Times = {}
    speed: _Times = {}
    inference_geo: _Times = {}
    ends: date | None = None
    as_of: date | None = None
    source: str = ""


def unpriced(parameters: Mapping[str, Any], price: Price) -> str | None:
    """The first of a player's parameters whose cost is not in that price; None if all of them are."""
    terms = price.terms
    dear = {mode for mode, value in service_modes(parameters) if not terms.knows(mode, value)}
    if terms.long_write is None:
        dear |= {name for name, value in parameters.items() if has_long_ttl({name: value})}
    return min(dear, default=None)


def charged_by_call(parameters: Mapping[str, Any]) -> str | None:
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
        raise UsageError(_why_none({**error.errors()[0]}, where)) from None
    return _price(listed, where)


def _why_none(first: Mapping[str, Any], where: str) -> str:
    """What is wrong with an entry, by the first of pydantic's errors."""
    key = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing" and key in _NEEDED:
        return f"{where}: {key} is missing: say it in USD per million tokens"
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        return f"{where}: unknown key '{one_line(key)}': {suggestion(key, _Listed.model_fields)}"
    said = f"{where}: {key}" if key else where
    if key == "above":
        return f"{said}: say it as {{tokens: 200000, times: 2, output_times: 1.5}}, times from 1 to 100"
    if key in STANDARD_MODES:
        return f"{said}: say it as {{VALUE: TIMES}}, how many times the price it costs, from 0 to 100"
    if key in ("ends", "as_of", "source"):
        return f"{said}: {'a text' if key == 'source' else 'a day, as 2026-11-30'}"
    return f"{said}: a price is {{{', '.join(_NEEDED)}}}, numbers from 0 to {_MOST:,} in USD per million tokens"


def _price(listed: _Listed, where: str, terms: Terms | None = None) -> Price:
    """The price of an entry; `terms` are what all models of its server have."""
    modes = {**(terms.modes if terms else {}), **_modes_of({mode: getattr(listed, mode) for mode in STANDARD_MODES})}
    above = listed.above
    return Price(
        *(_pico(getattr(listed, name), f"{where}: {name}") for name in _NEEDED),
        terms=Terms(
            modes,
            {},
            above.tokens if above else None,
            _exact(above.times if above else 1),
            _exact(above.output_times if above else 1),
            None if listed.long_write is None else _pico(listed.long_write, f"{where}: long_write"),
        ),
    )


def _modes_of(listed: Mapping[str, _Times]) -> dict[str, dict[str, Fraction]]:
    return {
        mode: {value: _exact(times) for value, times in values.items()} for mode, values in listed.items() if values
    }


def _exact(times: float) -> Fraction:
    return Fraction(repr(times))


def _pico(usd_per_million: float, where: str) -> int:
    exact = Decimal(repr(usd_per_million)) * 10**_DECIMALS
    if exact != int(exact):
        raise UsageError(f"{where}: a price has at most {_DECIMALS} decimals, in USD per million tokens")
    return int(exact)


def _loaded(path: Path) -> dict[str, Any]:
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a file of prices is a list of `MODEL: {{{', '.join(_NEEDED)}}}` lines")
    return content


@dataclass(frozen=True, slots=True)
class _Line:
    """A model's price at its server, the day on which it was read, and that of the model's end, if it is known."""

    price: Price
    as_of: date | None
    ends: date | None


@dataclass(frozen=True, slots=True)
class _Provider:
    """What a server's models cost, and its decisions."""

    models: Mapping[str, _Line]
    decisions: Mapping[str, _Line] = field(default_factory=dict)

    def line(self, model: str, api: str = "") -> _Line | None:
        lines, dated = self.decisions if api == "decisions" else self.models, _SNAPSHOT.fullmatch(model)
        return lines.get(model) or (lines.get(dated[1]) if dated else None)


@cache
def _shipped_prices() -> dict[str, _Provider]:
    text, fast = _FILE.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    servers = yaml.load(text, fast)["servers"]  # noqa: S506, a SafeLoader: ours is no user's, and read at every start
    return {server: _provider(listed) for server, listed in servers.items()}


def _provider(listed: Mapping[str, Any]) -> _Provider:
    common = Terms(_modes_of(listed.get("times", {})))
    lines = _lines(listed["models"], common)
    dearest: dict[str, Fraction] = {}
    for line in lines.values():
        for mode, values in line.price.terms.modes.items():
            dearest[mode] = max(Fraction(1), dearest.get(mode, Fraction(1)), *values.values())
    return _Provider(
        {model: replace(line, price=_with_dearest(line.price, dearest)) for model, line in lines.items()},
        _lines(listed.get("decisions", {}), Terms()),
    )


def _with_dearest(price: Price, dearest: Mapping[str, Fraction]) -> Price:
    return replace(price, terms=replace(price.terms, dearest=dearest))


def _lines(entries: Mapping[str, Any], common: Terms) -> dict[str, _Line]:
    read = ((str(model), _Listed.model_validate(entry)) for model, entry in entries.items())
    return {model: _Line(_price(one, model, common), one.as_of, one.ends) for model, one in read}


def find_price(server: str, model: str, own: Mapping[str, Price], api: str = "") -> Price | None:
    """What a model costs there; the config's own price goes over the list's. None if nobody says it."""
    is_free = embedded_kind(server) is not None
    provider = _shipped_prices().get(HOUSE if is_free else server)
    if provider and is_free:
        (free,) = provider.models.values()
        return own.get(model) or free.price
    line = provider.line(model, api) if provider else None
    return own.get(model) or (line.price if line else None)


def price_to_fill_in(model: str) -> str:
    """A line of `prices` for a model that has none, at the dearest price that is known of any."""
    every = [line.price for provider in _shipped_prices().values() for line in provider.models.values()]
    dear = {name: max(getattr(price, name) for price in every) / 10**_DECIMALS for name in _NEEDED}
    numbers = ", ".join(f"{name}: {usd:g}" for name, usd in dear.items())
    return f"prices: {{{json.dumps(model)}: {{{numbers}}}}}"


def outdated(server: str, model: str, own: Mapping[str, Price], today: date) -> str | None:
    """A warning if the list price in use was read too long ago; None if it was not, or the price is the config's
    own."""
    line = _line_of(server, model)
    if line is None or line.as_of is None or model in own or today - line.as_of <= _FRESH:
        return None
    return (
        f"the list prices of {server} were read on {line.as_of:%Y-%m-%d}, {(today - line.as_of).days} days ago: "
        "check them, and say what has changed in `prices`"
    )


def ends_soon(server: str, model: str, today: date) -> str | None:
    """A warning if a model's provider has announced its end, and that is near or over; None else."""
    line = _line_of(server, model)
    if line is None or line.ends is None or line.ends - today > _SOON:
        return None
    days = (line.ends - today).days
    when = f"in {days} day{'s' * (days > 1)}" if days > 0 else "today" if days == 0 else "so it may not answer any more"
    verb = "ends" if days >= 0 else "ended"
    return (
        f"note: {one_line(model)} {verb} on {line.ends:%Y-%m-%d} by its provider's announcement, {when}: what is asked "
        "of it cannot be asked again after that"
    )


def _line_of(server: str, model: str) -> _Line | None:
    provider = None if embedded_kind(server) else _shipped_prices().get(server)
    return provider.line(model) if provider else None
