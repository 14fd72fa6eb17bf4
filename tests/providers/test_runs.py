"""Runs against the providers' real addresses: what is sent where, and what the run says that it cost."""

import json
from collections.abc import Iterator
from typing import Any, Final

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
from tests.providers.kit import DEFAULT, HOSTS, KEYS, MODELS, SETTINGS, Heard, Providers
from tests.providers.typed import ANTHROPIC_BATCH, OPENAI_BATCH, PARAMETERS, find_faults

_GEMINI: Final = ":generateContent"
_PLAIN: Final = "plain"
_UNREPORTED: Final = "tier"  # the built-in server does not say how it served a request
# API, prompt, settings, and whether the run waits for batches.
CASES: Final = [
    *((api, prompt, DEFAULT, False) for api in SETTINGS for prompt in prompt_names(REPO)),
    *((api, _PLAIN, DEFAULT, True) for api in ("responses", "chat", "messages")),
    *(
        (api, _PLAIN, name, False)
        for api, named in SETTINGS.items()
        for name, settings in named.items()
        if name not in (DEFAULT, _UNREPORTED) and "base_url" not in settings
    ),
]
IN_GATE: Final = [
    *((api, _PLAIN, DEFAULT, False) for api in ("responses", "messages", "gemini")),
    ("messages", _PLAIN, DEFAULT, True),
]


def entries(sent: bytes) -> list[dict[str, Any]]:
    """Return the JSON lines of a file, even inside the form of an upload."""
    return [json.loads(line) for line in sent.splitlines() if line.startswith(b"{")]


def bodies(heard: Heard) -> Iterator[tuple[Any, Any]]:
    """Yield what a request contains, each with its type in the SDK."""
    match heard.path:
        case "/v1/files":
            yield from ((entry["body"], PARAMETERS[api_of(entry["url"])]) for entry in entries(heard.raw))
        case "/v1/batches":
            yield heard.body, OPENAI_BATCH
        case "/v1/messages/batches":
            yield heard.body, ANTHROPIC_BATCH
        case _ if is_call(heard) and not heard.path.endswith(_GEMINI):
            yield heard.body, PARAMETERS[api_of(heard.path)]


def api_of(path: str) -> Api:
    return next(api for api in PARAMETERS if path.endswith(find_protocol(api).path))


def replies(heard: Heard) -> list[Any]:
    """Return the replies of models in an answer: one, those of a batch, or none."""
    if heard.path.endswith("/content"):
        return [entry["response"]["body"] for entry in entries(heard.answer)]
    if heard.path.endswith("/results"):
        return [entry["result"]["message"] for entry in entries(heard.answer)]
    return [heard.reply] if is_call(heard) else []


def is_call(heard: Heard) -> bool:
    return bool(heard.raw) and heard.path.endswith((*(find_protocol(api).path for api in PARAMETERS), _GEMINI))


def counts(reply: Any) -> tuple[int, int, int]:
    """Return the tokens of the whole input, the output and the cached input."""
    if usage := reply.get("usageMetadata"):
        return usage["promptTokenCount"], usage["candidatesTokenCount"], usage.get("cachedContentTokenCount", 0)
    return usage_in(json.dumps(reply))


def bill(api: Api, heard: Heard) -> int:
    """Return the list price of the replies in an answer, in picodollars. Batches cost half of it."""
    price = find_price(find_protocol(api).address, MODELS[api], {}, api)
    assert price is not None
    total = 0
    for whole, output, cached in map(counts, replies(heard)):
        total += (whole - cached) * price.input + cached * price.cached_input + output * price.output
    return total if is_call(heard) else total // 2


@pytest.mark.parametrize(("api", "prompt", "settings", "waits"), in_gate(CASES, IN_GATE))
def test_run_at_a_providers_own_address(
    shell: Shell, providers: Providers, api: Api, prompt: str, settings: str, waits: bool
) -> None:
    """Each body has the SDK's types, only the provider's key is sent, and the stated cost is the bill."""
    player = {"bot": "LLMBot", "name": "p", "api": api, "model": MODELS[api], "prompt": prompt}
    more = SETTINGS[api][settings] | ({"wait": "batch"} if waits else {})
    ended = shell("run", config_file(player | more), "--output", "r", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    assert {(heard.host, heard.status) for heard in providers.heard} == {(HOSTS[api], 200)}
    assert {
        fault for heard in providers.heard for body, of in bodies(heard) for fault in find_faults(body, of)
    } == set()
    for heard in providers.heard:
        key = KEYS[find_protocol(api).key_variable]
        assert [value for value in heard.headers.values() if "key-of-" in value] in ([key], [f"Bearer {key}"])
        assert not any(name.startswith("x-dubito") for name in heard.headers)
    (model,) = json.loads(shell("status", "r", "--json").out)["models"]
    assert model["calls"] == sum(len(replies(heard)) for heard in providers.heard)
    assert round(model["usd"] * PICO) == sum(bill(api, heard) for heard in providers.heard)
    assert model["usd_assumed"] == 0
