"""Rewrite `dubito/llm/prices.yaml` for a release. The script needs two more packages:

    pip install genai-prices && pip download --no-deps litellm
    python scripts/prices.py litellm-*.whl 2026-11-26 > dubito/llm/prices.yaml

The date is the day on which both were up to date. A model's line has the highest of several prices: those in
genai-prices and litellm, announced prices, and prices at different hours of a day. It also has the highest factor of a
tier's rates. `BY_HAND` has prices that neither package lists, taken from the providers' pages. Review the diff before
you commit it.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any, Final
from zipfile import ZipFile

from genai_prices.data import providers
from genai_prices.types import StartDateConstraint, TieredPrices

HEAD: Final = """\
# Model prices in USD per million tokens, one line per model, written by scripts/prices.py. docs/money.md explains how
# the cost of a call follows. Models that are not listed have no price: add yours to `prices` in this form.
# Required: input, cached_input (read from the provider's cache), cache_write (stored for the usual time), output.
# long_write: stored for 12 hours (OpenAI) or one hour (Anthropic). above: if a call has more than `tokens` input
# tokens, the whole call costs `times` as much, and its output `output_times`. service_tier, speed, inference_geo:
# factors for replies that state these values; under a server, for all of its models.
# ends: the day that the provider has announced as the model's last; fast_ends: as the last of its `speed: fast`
# (code.claude.com/docs/en/fast-mode; Opus 4.6: at the latest). as_of: the day on which `source` had the price:
#   G genai-prices {genai}, L litellm {litellm}, GL both (the higher price if they differ)
#   P the provider's page, for what G and L lack: gpt-6.2-sol from developers.openai.com/api/docs/models (its ultrafast
#     is 3 times until 2027-02-28, but listed as 6 already); fast mode of Opus 4.6 to 4.8 from
#     platform.claude.com/docs/en/build-with-claude/fast-mode
"""
KINDS: Final = ("input", "cached_input", "cache_write", "long_write", "output")
LITELLM: Final = dict(
    zip(
        KINDS,
        (
            *("input_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost"),
            *("cache_creation_input_token_cost_above_", "output_cost_per_token"),
        ),
        strict=True,
    )
)
GENAI: Final = dict(
    zip(KINDS, ("input_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok", "output_mtok"), strict=True)
)
TIERS: Final = {  # keyed by litellm's names: mode and value
    "flex": ("service_tier", "flex"),
    "batches": ("service_tier", "batch"),
    "priority": ("service_tier", "priority"),
    "ultrafast": ("service_tier", "ultrafast"),
}
OTHER_THAN_TEXT: Final = (
    r"audio|realtime|image|search|transcribe|tts|embed|whisper|live|"
    r"computer-use|translate|omni|robotics|deep-research"
)
DATED: Final = re.compile(r"(.+?)-(\d{4}-\d{2}-\d{2}|\d{8})")


@dataclass(frozen=True)
class Server:
    address: str
    genai: str  # the provider's name in genai-prices
    litellm: str
    prefix: str  # prefix of its models in litellm
    models: str  # pattern of the models to list
    times: str = ""  # factors for all of its models, from the provider's pages
    also: tuple[str, ...] = ()  # its other addresses


SERVERS: Final = (
    Server(
        "https://api.openai.com/v1",
        *("openai", "openai", "", r"gpt-[4-9].*|o\d.*|chat-latest"),
    ),
    Server(
        "https://api.anthropic.com",
        *("anthropic", "anthropic", "", r"claude-.*"),
        "{inference_geo: {us: 1.1}}  # platform.claude.com/docs/en/about-claude/pricing",
    ),
    Server(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        *("google", "gemini", "gemini/", r"gemini-(2\.5|[3-9]).*"),
        also=("https://generativelanguage.googleapis.com",),
    ),
    Server(
        "https://api.mistral.ai/v1",
        *("mistral", "mistral", "mistral/"),
        r"mistral-(large-(2512|4)|medium-(3-5|latest)|small-(2603|latest))|ministral-.*-2512|codestral-2508",
    ),
    Server(
        "https://api.deepseek.com",
        *("deepseek", "deepseek", "deepseek/", r"deepseek-(chat|reasoner|flash|v4-(flash|pro))"),
        also=("https://api.deepseek.com/v1",),
    ),
    Server(
        "https://api.groq.com/openai/v1",
        *("groq", "groq", "groq/"),
        r"llama-3\.[13].*-(instant|versatile)|meta-llama/llama-4.*|openai/gpt-oss-\d+b|qwen/.*|moonshotai/.*",
    ),
    Server("https://api.x.ai/v1", "x-ai", "xai", "xai/", r"grok-(3|3-mini|4-0709|4-1-fast-.*|4\.\d+)"),
)
ALSO: Final = ("gpt-6-cyber", "claude-fable-5-2", "claude-mythos-5-2")  # on sale, but missing in litellm


@dataclass(frozen=True)
class Line:
    rates: Mapping[str, Decimal]
    above: tuple[int, Decimal, Decimal] | None = None  # tokens, factor of the input, factor of the output
    times: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)
    ends: str | None = None
    fast_ends: str | None = None
    source: str = "P"


_SOL: Final = dict(zip(KINDS, map(Decimal, ("2", "0.1", "2.5", "5", "10")), strict=True))
BY_HAND: Final = {
    "gpt-6.2-sol": Line(
        _SOL,
        (272_000, Decimal(2), Decimal("1.5")),
        {
            "service_tier": {
                "batch": Decimal("0.5"),
                **dict.fromkeys(("priority", "fast"), Decimal(2)),
                "ultrafast": Decimal(6),
            }
        },
    ),
    **{
        model: Line({}, times={"speed": {"fast": Decimal(times)}}, fast_ends=day)
        for model, times, day in (
            ("claude-opus-4-6", 6, "2026-07-24"),
            ("claude-opus-4-7", 6, "2026-07-24"),
            ("claude-opus-4-8", 2, "2026-11-30"),
        )
    },
}


def most_expensive(lines: list[Line]) -> Line:
    """Return the highest price for each part. A tier counts as cheaper only if every source that lists it agrees."""
    first, *rest = lines
    for one in rest:
        aboves = [line.above for line in (first, one) if line.above]
        modes = {**first.times, **one.times}
        first = Line(
            {
                kind: max(line.rates[kind] for line in (first, one) if kind in line.rates)
                for kind in KINDS
                if kind in {**first.rates, **one.rates}
            },
            (min(a for a, _, _ in aboves), max(i for _, i, _ in aboves), max(o for _, _, o in aboves))
            if aboves
            else None,
            {
                mode: {
                    value: max(line.times[mode][value] for line in (first, one) if value in line.times.get(mode, {}))
                    for value in {**first.times.get(mode, {}), **one.times.get(mode, {})}
                }
                for mode in modes
            },
            min(filter(None, (first.ends, one.ends)), default=None),
            first.fast_ends or one.fast_ends,
            first.source + one.source,
        )
    return first


def long_input_step(
    rates: Mapping[str, Decimal], above: Mapping[str, Decimal], tokens: int
) -> tuple[int, Decimal, Decimal] | None:
    """Return the input length above which a call counts as long, and the factors for its input and output."""
    if not above:
        return None
    into = max(above.get(kind, rates[kind]) / rates[kind] for kind in KINDS[:-1] if rates.get(kind))
    return tokens, into, above.get("output", rates["output"]) / rates["output"] if rates.get("output") else into


def factor(usual: Mapping[str, Decimal], tier: Mapping[str, Decimal]) -> Decimal:
    """Return a tier's highest factor over the usual rates. Rates that the tier does not list are the usual ones."""
    return max(tier.get(kind, rate) / rate for kind, rate in usual.items() if rate and kind != "long_write")


def from_genai(provider: str, day: date) -> Iterator[tuple[str, Line]]:
    (found,) = (one for one in providers if one.id == provider)
    now = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for model in found.models:
        given = model.prices if isinstance(model.prices, list) else []
        prices = [] if given else [model.prices]
        for one in reversed(given):  # later prices come first; future prices and those for some hours count too
            prices.append(one.prices)
            if one.constraint is None or (
                isinstance(one.constraint, StartDateConstraint) and one.constraint.active(now)
            ):
                break
        lines = [line for price in prices if (line := genai_line(price))]
        if not lines or model.deprecated:
            continue
        line = replace(most_expensive(lines), source="G")
        times: dict[str, dict[str, Decimal]] = {}
        for variant in model.price_variants or ():
            (mode, value), *more = variant.when.items()
            tier = genai_line(variant.prices, complete=False)
            if tier and not more and tier.rates:
                mode, value = ("service_tier", "batch") if mode == "processing" else (mode, value)
                known = times.setdefault(mode, {})
                known[value] = max(known.get(value, Decimal(0)), factor(line.rates, tier.rates))
        yield model.id, replace(line, times=times)


def genai_line(price: Any, complete: bool = True) -> Line | None:
    given = {kind: value for kind, name in GENAI.items() if (value := getattr(price, name)) is not None}
    rates = {kind: value.base if isinstance(value, TieredPrices) else value for kind, value in given.items()}
    if complete and not rates.get("input"):
        return None
    tiered = {kind: value for kind, value in given.items() if isinstance(value, TieredPrices)}
    above = {kind: max(tier.price for tier in value.tiers) for kind, value in tiered.items()}
    tokens = min((tier.start for value in tiered.values() for tier in value.tiers), default=0)
    return Line(rates, long_input_step(rates, above, tokens) if complete else None)


def from_litellm(table: Mapping[str, Any], server: Server) -> Iterator[tuple[str, Line]]:
    for name, entry in table.items():
        ours = entry.get("litellm_provider") == server.litellm and name.startswith(server.prefix)
        if not ours or entry.get("mode") not in ("chat", "responses"):
            continue
        rates = litellm_rates(entry, "")
        if not (rates.get("input") and rates.get("output")):
            continue
        steps = {match[1] for key in entry if (match := re.search(r"above_(\d+)k_tokens$", key))}
        size = min(map(int, steps), default=0)
        above = litellm_rates(entry, f"_above_{size}k_tokens") if steps else {}
        times: dict[str, dict[str, Decimal]] = {}
        for tier, (mode, value) in TIERS.items():
            if taken := litellm_rates(entry, f"_{tier}"):
                times.setdefault(mode, {})[value] = factor(rates, taken)
        if fast := (entry.get("provider_specific_entry") or {}).get("fast"):
            times["speed"] = {"fast": Decimal(str(fast))}
        if server.genai == "openai" and (priority := times.get("service_tier", {}).get("priority")):
            times["service_tier"]["fast"] = priority  # two names for the same tier
        line = Line(rates, long_input_step(rates, above, size * 1000), times, entry.get("deprecation_date"), source="L")
        yield name.removeprefix(server.prefix), line


def litellm_rates(entry: Mapping[str, Any], suffix: str) -> dict[str, Decimal]:
    found = {}
    for kind, name in LITELLM.items():
        names = [f"{name}{span}{suffix}" for span in ("12hr", "1hr")] if kind == "long_write" else [f"{name}{suffix}"]
        known = [Decimal(str(entry[one])) * 10**6 for one in names if entry.get(one) is not None]
        if known:
            found[kind] = max(known)
    return found


def sold_models(server: Server, table: Mapping[str, Any], day: date) -> dict[str, Line]:
    """Return the models that a server offers on this day."""
    litellm, genai = dict(from_litellm(table, server)), dict(from_genai(server.genai, day))
    own = {model: line for model, line in BY_HAND.items() if re.fullmatch(server.models, model)}
    first_hand = server.genai in ("openai", "anthropic")  # genai-prices also has models that are no longer sold
    found: dict[str, Line] = {}
    for model in sorted({*litellm, *genai, *own}):
        known = [lines[model] for lines in (genai, litellm, own) if model in lines]
        gone = first_hand and not {model} & {*litellm, *own, *ALSO}
        if (
            not re.fullmatch(server.models, model)
            or re.search(OTHER_THAN_TEXT, model)
            or gone
            or DATED.fullmatch(model)
        ):
            continue
        line, snapshots = most_expensive(known), [one.ends for _, one in snapshots_of(model, litellm)]
        last = max(filter(None, snapshots)) if snapshots and all(snapshots) else None
        if is_sold(line := replace(line, ends=line.ends or last), day):
            found[model] = line
            found |= {  # a line also covers its snapshots
                name: one
                for name, one in snapshots_of(model, litellm)
                if is_sold(one, day) and any(rate > line.rates.get(kind, rate) for kind, rate in one.rates.items())
            }
    return found


def snapshots_of(model: str, lines: Mapping[str, Line]) -> Iterator[tuple[str, Line]]:
    for name, line in lines.items():
        if (dated := DATED.fullmatch(name)) and dated[1] == model:
            yield name, line


def is_sold(line: Line, day: date) -> bool:
    return line.ends is None or date.fromisoformat(line.ends) >= day


def format_line(line: Line, day: date) -> str:
    into = line.rates["input"]
    rates: dict[str, Decimal] = {"cached_input": into, "output": Decimal(0), **line.rates}
    rates["cache_write"] = max(into, rates.get("cache_write", into))
    parts = [f"{kind}: {number(rates[kind])}" for kind in KINDS if kind in rates]
    if line.above:
        tokens, times, output = line.above
        parts.append(f"above: {{tokens: {tokens}, times: {number(times)}, output_times: {number(output)}}}")
    for mode, values in line.times.items():
        listed = ", ".join(f"{value}: {number(times)}" for value, times in sorted(values.items()) if times != 1)
        parts += [f"{mode}: {{{listed}}}"] if listed else []
    parts += [f"{key}: {day}" for key, day in (("ends", line.ends), ("fast_ends", line.fast_ends)) if day]
    return "{" + ", ".join([*parts, f"as_of: {day}", f"source: {line.source}"]) + "}"


def number(value: Decimal) -> str:
    """Format with at most six decimals, rounded up."""
    return f"{value.quantize(Decimal('0.000001'), 'ROUND_UP').normalize():f}"


def main(wheel: str, read: str) -> None:
    day = date.fromisoformat(read)
    with ZipFile(wheel) as packed:
        table = json.loads(packed.read("litellm/model_prices_and_context_window_backup.json"))
    print(HEAD.format(genai=version("genai-prices"), litellm=wheel.rsplit("/", 1)[-1].split("-")[1]), end="servers:\n")
    for server in SERVERS:
        lines = sold_models(server, table, day)
        decisions = dict(from_genai("openai-decisions", day)) if server.genai == "openai" else {}
        for address in (server.address, *server.also):
            print(f"  {address}:")
            if server.times:
                print(f"    times: {server.times}")
            show("decisions:  # only input is billed, cached or not", decisions, day)
            show("models:", lines, day)
    print("  house:  # the embedded server costs nothing (docs/house.md)")
    print("    models:")
    print("      house-random: {input: 0, cached_input: 0, cache_write: 0, output: 0}  # like all house models")


def show(title: str, lines: Mapping[str, Line], day: date) -> None:
    if lines:
        print(f"    {title}")
    for model, line in lines.items():
        print(f"      {model}: {format_line(line, day)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
