"""The providers' list prices, and a config's own prices, which override them.

scripts/prices.py writes `prices.yaml`, including the explanation at its top. A config's prices have the same form.
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
from dubito.files import CheckedModel, read_yaml
from dubito.llm.prices import Price, Terms, has_long_ttl
from dubito.llm.protocols.wire import STANDARD_MODES, service_modes
from dubito.model_settings import HOUSE, embedded_kind

_FILE: Final = Path(__file__).with_name("prices.yaml")
_DECIMALS: Final = 6  # maximum number of decimals of a price in USD per million tokens
_MAX_PRICE: Final = 5_000  # USD per million tokens; keeps the cost of any reply within an SQLite column
_REQUIRED: Final = ("input", "cached_input", "cache_write", "output")
_MAX_AGE: Final = timedelta(days=60)  # maximum age of a list price without a warning
_END_NOTICE: Final = timedelta(days=30)  # how long before a model's end a run shows a warning
_DATED_MODEL: Final = re.compile(r"(.+)-(?:\d{4}-\d{2}-\d{2}|\d{8})")
_CHARGED_BY_CALL: Final = ("tools", "web_search_options", "search_parameters", "plugins", "mcp_servers", "container")

_Factors = dict[str, Annotated[float, Field(gt=0, le=100)]]


class _LongInput(CheckedModel):
    model_config = ConfigDict(allow_inf_nan=False, defer_build=True)

    tokens: int = Field(ge=0)
    times: float = Field(ge=1, le=100)
    output_times: float = Field(ge=1, le=100)


class _Entry(CheckedModel):
    model_config = ConfigDict(allow_inf_nan=False, defer_build=True)

    input: float = Field(ge=0, le=_MAX_PRICE)
    cached_input: float = Field(ge=0, le=_MAX_PRICE)
    cache_write: float = Field(ge=0, le=_MAX_PRICE)
    output: float = Field(ge=0, le=_MAX_PRICE)
    long_write: float | None = Field(default=None, ge=0, le=_MAX_PRICE)
    above: _LongInput | None = None
    service_tier: _Factors = {}
    speed: _Factors = {}
    inference_geo: _Factors = {}
    ends: date | None = None
    fast_ends: date | None = None
    as_of: date | None = None
    source: str = ""


def find_unpriced(parameters: Mapping[str, Any], price: Price) -> str | None:
    """Return the first of a player's parameters whose cost the price does not include, or None."""
    terms = price.terms
    unpriced = {mode for mode, value in service_modes(parameters) if not terms.has_price(mode, value)}
    if terms.long_write is None:
        unpriced |= {name for name, value in parameters.items() if has_long_ttl({name: value})}
    return min(unpriced, default=None)


def find_charged_by_call(parameters: Mapping[str, Any]) -> str | None:
    return next((name for name in _CHARGED_BY_CALL if parameters.get(name)), None)


def read_prices(prices_or_path: str | Mapping[str, Any], source: str, home: Path) -> dict[str, Price]:
    """Read a config's prices by model, from a mapping or from a file with one. Raises UsageError."""
    if isinstance(prices_or_path, str):
        path = home / prices_or_path
        source, prices_or_path = str(path), read_yaml(path)
        if not isinstance(prices_or_path, dict):
            raise UsageError(f"{path}: a file of prices needs lines such as `MODEL: {{{', '.join(_REQUIRED)}}}`")
    prices: dict[str, Price] = {}
    for model, entry in prices_or_path.items():
        name = one_line(str(model))
        # In YAML, two keys differ if one is a number and the other a string.
        if str(model) in prices:
            raise UsageError(f"{source}: {name} appears twice")
        prices[str(model)] = parse_price(entry, f"{source}: {name}")
    return prices


def parse_price(entry: Any, where: str) -> Price:
    """Parse an entry. The UsageError it raises describes what is missing or wrong."""
    try:
        checked = _Entry.model_validate(entry)
    except ValidationError as error:
        raise UsageError(_describe_error({**error.errors()[0]}, where)) from None
    return _build_price(checked, where)


def _describe_error(first: Mapping[str, Any], where: str) -> str:
    key = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing" and key in _REQUIRED:
        return f"{where}: {key} is missing: set it in USD per million tokens"
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        return f"{where}: unknown key '{one_line(key)}': {suggestion(key, _Entry.model_fields)}"
    where = f"{where}: {key}" if key else where
    if key == "above":
        return f"{where}: write it as {{tokens: 200000, times: 2, output_times: 1.5}}, with factors from 1 to 100"
    if key in STANDARD_MODES:
        return f"{where}: write it as {{VALUE: FACTOR}}, with price factors from 0 to 100"
    if key in ("ends", "fast_ends", "as_of", "source"):
        return f"{where}: must be {'a string' if key == 'source' else 'a day, such as 2026-11-30'}"
    return (
        f"{where}: a price needs {{{', '.join(_REQUIRED)}}}, numbers from 0 to {_MAX_PRICE:,} in USD per million tokens"
    )


def _build_price(entry: _Entry, where: str, server_terms: Terms | None = None) -> Price:
    """Build an entry's price. `server_terms` apply to all models of its server."""
    stated = entry.model_dump()
    own_modes = _exact_modes({mode: stated[mode] for mode in STANDARD_MODES})
    modes, above = {**(server_terms.modes if server_terms else {}), **own_modes}, entry.above
    return Price(
        *(_to_pico(stated[name], f"{where}: {name}") for name in _REQUIRED),
        terms=Terms(
            modes,
            {},
            above.tokens if above else None,
            _exact(above.times if above else 1),
            _exact(above.output_times if above else 1),
            None if entry.long_write is None else _to_pico(entry.long_write, f"{where}: long_write"),
        ),
    )


def _exact_modes(modes: Mapping[str, _Factors]) -> dict[str, dict[str, Fraction]]:
    return {mode: {value: _exact(times) for value, times in values.items()} for mode, values in modes.items() if values}


def _exact(times: float) -> Fraction:
    return Fraction(repr(times))


def _to_pico(usd_per_million: float, where: str) -> int:
    exact = Decimal(repr(usd_per_million)) * 10**_DECIMALS
    if exact != int(exact):
        raise UsageError(f"{where}: a price can have at most {_DECIMALS} decimals, in USD per million tokens")
    return int(exact)


@dataclass(frozen=True, slots=True)
class _Line:
    """A model's price on its server."""

    price: Price
    as_of: date | None  # when the price was read
    ends: date | None  # the model's announced end
    fast_ends: date | None  # the announced end of its `speed: fast`


@dataclass(frozen=True, slots=True)
class _Provider:
    """A server's prices: its models, and their use in the Decisions API."""

    models: Mapping[str, _Line]
    decisions: Mapping[str, _Line] = field(default_factory=dict)

    def line(self, model: str, api: str = "") -> _Line | None:
        lines, dated = self.decisions if api == "decisions" else self.models, _DATED_MODEL.fullmatch(model)
        return lines.get(model) or (lines.get(dated[1]) if dated else None)


@cache
def _shipped_prices() -> dict[str, _Provider]:
    text, fast = _FILE.read_text(encoding="utf-8"), yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    # A SafeLoader, using the C version because this is read at every start.
    servers = yaml.load(text, fast)["servers"]  # noqa: S506
    return {server: _build_provider(listed) for server, listed in servers.items()}


def _build_provider(listed: Mapping[str, Any]) -> _Provider:
    common = Terms(_exact_modes(listed.get("times", {})))
    lines = _parse_lines(listed["models"], common)
    highest: dict[str, Fraction] = {}
    for line in lines.values():
        for mode, values in line.price.terms.modes.items():
            highest[mode] = max(Fraction(1), highest.get(mode, Fraction(1)), *values.values())
    for model, line in lines.items():
        terms = replace(line.price.terms, highest=highest)
        lines[model] = replace(line, price=replace(line.price, terms=terms))
    return _Provider(lines, _parse_lines(listed.get("decisions", {}), Terms()))


def _parse_lines(entries: Mapping[str, Any], common: Terms) -> dict[str, _Line]:
    parsed = ((str(model), _Entry.model_validate(entry)) for model, entry in entries.items())
    return {model: _Line(_build_price(one, model, common), one.as_of, one.ends, one.fast_ends) for model, one in parsed}


def find_price(server: str, model: str, own: Mapping[str, Price], api: str = "") -> Price | None:
    """Return a model's price on a server, or None if unknown. A config's own price overrides the list."""
    is_free = embedded_kind(server) is not None
    provider = _shipped_prices().get(HOUSE if is_free else server)
    if provider and is_free:
        (free,) = provider.models.values()
        return own.get(model) or free.price
    line = provider.line(model, api) if provider else None
    return own.get(model) or (line.price if line else None)


def price_to_fill_in(model: str) -> str:
    """Return a line for `prices` with the highest known prices, to fill in for a model without a price."""
    prices = [line.price for provider in _shipped_prices().values() for line in provider.models.values()]
    listed = zip(*((price.input, price.cached_input, price.cache_write, price.output) for price in prices), strict=True)
    highest = {name: max(each) / 10**_DECIMALS for name, each in zip(_REQUIRED, listed, strict=True)}
    numbers = ", ".join(f"{name}: {usd:g}" for name, usd in highest.items())
    return f"prices: {{{json.dumps(model)}: {{{numbers}}}}}"


def old_price_warning(server: str, model: str, own: Mapping[str, Price], today: date) -> str | None:
    """Return a warning if the list price in use is old. A config's own price never counts as old."""
    line = _find_line(server, model)
    if line is None or line.as_of is None or model in own or today - line.as_of <= _MAX_AGE:
        return None
    return (
        f"the list prices of {server} were last checked on {line.as_of:%Y-%m-%d}, {(today - line.as_of).days} days "
        "ago: "
        "check them, and put new prices into `prices`"
    )


def end_warnings(server: str, model: str, parameters: Mapping[str, Any], today: date) -> list[str]:
    """Return warnings if the provider has announced the end of the model, or of a mode that the player asks for."""
    line, name = _find_line(server, model), one_line(model)
    if line is None:
        return []
    ends = [(name, line.ends, "it may no longer answer")]
    if parameters.get("speed") == "fast":
        ends.append((f"`speed: fast` of {name}", line.fast_ends, "it may be refused or have no effect"))
    warnings = []
    for what, end, effect in ends:
        if end and end - today <= _END_NOTICE:
            days = (end - today).days
            when = f"in {days} day{'s' * (days > 1)}" if days > 0 else "today" if days == 0 else f"so {effect}"
            ending = f"{'retires' if days >= 0 else 'retired'} {what} on {end:%Y-%m-%d}, {when}"
            warnings.append(f"note: the provider {ending}: after that, this run cannot be repeated")
    return warnings


def _find_line(server: str, model: str) -> _Line | None:
    provider = None if embedded_kind(server) else _shipped_prices().get(server)
    return provider.line(model) if provider else None
