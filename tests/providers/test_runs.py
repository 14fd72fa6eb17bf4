"""Runs against the providers' real addresses: what is sent where, and what the run says that it cost."""

import json
from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import Any, Final, NamedTuple

import pytest

from dubito.llm.price_list import find_price
from dubito.llm.prompts import prompt_names
from dubito.llm.protocols import find_protocol
from dubito.model_settings import Api
from dubito.store.spend import PICO
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.house.kit import usage_in
from tests.llm.kit import config_file
from tests.providers.kit import DEFAULT, FAULTS, HOSTS, KEYS, MODELS, SETTINGS, Fault, LoggedRequest, Providers
from tests.providers.typed import ANTHROPIC_BATCH, OPENAI_BATCH, PARAMETERS, find_faults

_GEMINI: Final = ":generateContent"
_PLAIN: Final = "plain"
# Of the list price, by settings: flex costs half; fast mode costs twice as much, and 1.1 times in the US.
_FACTORS: Final = {("responses", "tier"): "0.5", ("chat", "tier"): "0.5", ("messages", "tier"): "2.2"}
_LONG_WRITES: Final = ("responses", "tier")  # what is cached for 12 hours costs more
# API, prompt, settings, and whether the run waits for batches.
CASES: Final = [
    *((api, prompt, DEFAULT, False) for api in SETTINGS for prompt in prompt_names(REPO)),
    *((api, _PLAIN, DEFAULT, True) for api in ("responses", "chat", "messages")),
    *(
        (api, _PLAIN, name, False)
        for api, named in SETTINGS.items()
        for name, settings in named.items()
        if name != DEFAULT and "base_url" not in settings
    ),
]
IN_GATE: Final = [
    *((api, _PLAIN, DEFAULT, False) for api in ("responses", "gemini")),
    ("messages", _PLAIN, "tier", False),
    ("messages", _PLAIN, DEFAULT, True),
]


def entries(sent: bytes) -> list[dict[str, Any]]:
    """Return the JSON lines of a file, even inside the form of an upload."""
    return [json.loads(line) for line in sent.splitlines() if line.startswith(b"{")]


def bodies(request: LoggedRequest) -> Iterator[tuple[Any, Any]]:
    """Yield what a request contains, each with its type in the SDK."""
    match request.path:
        case "/v1/files":
            yield from ((entry["body"], PARAMETERS[api_of(entry["url"])]) for entry in entries(request.raw))
        case "/v1/batches":
            yield request.body, OPENAI_BATCH
        case "/v1/messages/batches":
            yield request.body, ANTHROPIC_BATCH
        case _ if is_call(request) and not request.path.endswith(_GEMINI):
            yield request.body, PARAMETERS[api_of(request.path)]


def api_of(path: str) -> Api:
    return next(api for api in PARAMETERS if path.endswith(find_protocol(api).path))


def replies(request: LoggedRequest) -> list[Any]:
    """Return the replies of models in an answer: one, those of a batch, or none."""
    if request.path.endswith("/content"):
        return [entry["response"]["body"] for entry in entries(request.answer)]
    if request.path.endswith("/results"):
        return [entry["result"]["message"] for entry in entries(request.answer)]
    return [request.reply] if is_call(request) else []


def is_call(request: LoggedRequest) -> bool:
    return bool(request.raw) and request.path.endswith((*(find_protocol(api).path for api in PARAMETERS), _GEMINI))


class Counts(NamedTuple):
    """The tokens that a reply reports: the whole input, the output, and what was read from and written to the cache."""

    input: int
    output: int
    read: int
    written: int


def count(reply: Any) -> Counts:
    if usage := reply.get("usageMetadata"):
        counts = usage["promptTokenCount"], usage["candidatesTokenCount"], usage.get("cachedContentTokenCount", 0)
        return Counts(*counts, written=0)
    usage = reply["usage"]
    if "cache_read_input_tokens" in usage:
        read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        return Counts(usage["input_tokens"] + read + written, usage["output_tokens"], read, written)
    details = usage.get("input_tokens_details") or usage["prompt_tokens_details"]
    whole, output, read = usage_in(json.dumps(reply))
    return Counts(whole, output, read, details["cache_write_tokens"])


def bill(api: Api, settings: str, request: LoggedRequest) -> int:
    """Return what the replies in an answer cost, in picodollars. Batches cost half of the list price."""
    price = find_price(find_protocol(api).address, MODELS[api], {}, api)
    assert price is not None
    write = price.long_write if (api, settings) == _LONG_WRITES else price.cache_write
    factor = Fraction(_FACTORS.get((api, settings), "1") if is_call(request) else "0.5")
    total = 0
    for one in map(count, replies(request)):
        tokens = (one.input - one.read - one.written) * price.input + one.output * price.output
        total += ceil((tokens + one.read * price.cached_input + one.written * write) * factor)
    return total


@pytest.mark.parametrize(("api", "prompt", "settings", "waits"), in_gate(CASES, IN_GATE))
def test_run_at_a_providers_own_address(
    shell: Shell, providers: Providers, api: Api, prompt: str, settings: str, waits: bool
) -> None:
    """Each body has the SDK's types, only the provider's key is sent, and the stated cost is the bill."""
    player = {"bot": "LLMBot", "name": "p", "api": api, "model": MODELS[api], "prompt": prompt}
    more = SETTINGS[api][settings] | ({"wait": "batch"} if waits else {})
    ended = shell("run", config_file(player | more), "--output", "r", "--quiet")
    if api == "decisions" and prompt.startswith("plain-"):  # a translation
        assert (ended.code, "`language`" in ended.err, providers.requests) == (2, True, [])
        return
    assert (ended.code, ended.err) == (0, "")
    assert {(request.host, request.status) for request in providers.requests} == {(HOSTS[api], 200)}
    assert {
        fault for request in providers.requests for body, of in bodies(request) for fault in find_faults(body, of)
    } == set()
    for request in providers.requests:
        key = KEYS[find_protocol(api).key_variable]
        assert [value for value in request.headers.values() if "key-of-" in value] in ([key], [f"Bearer {key}"])
        assert not any(name.startswith("x-dubito") for name in request.headers)
    (model,) = json.loads(shell("status", "r", "--json").out)["models"]
    assert model["calls"] == sum(len(replies(request)) for request in providers.requests)
    assert round(model["usd"] * PICO) == sum(bill(api, settings, request) for request in providers.requests)
    assert model["usd_assumed"] == 0


@pytest.mark.parametrize("fault", in_gate(FAULTS, ["cut"]))
@pytest.mark.parametrize("api", in_gate([api for api in SETTINGS if api != "decisions"], ["messages"]))
def test_a_fault_on_the_way_to_a_provider_is_repaired(
    shell: Shell, providers: Providers, api: Api, fault: Fault
) -> None:
    """The call is repeated, and it is assumed to cost money if the provider answered."""
    player = {"bot": "LLMBot", "name": "p", "api": api, "model": MODELS[api], "prompt": _PLAIN}
    providers.faults.append(fault)
    ended = shell("run", config_file(player), "--output", "r", "--quiet")
    assert (ended.code, ended.err, providers.faults) == (0, "", [])
    (model,) = json.loads(shell("status", "r", "--json").out)["models"]
    calls = [request.body for request in providers.requests]
    assert model["calls"] == len(calls) == 1 + len({json.dumps(body) for body in calls})
    assert (model["usd_assumed"] > 0) == (fault == "cut")
