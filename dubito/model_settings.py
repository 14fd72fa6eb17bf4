"""The settings of a model player. `dubito/llm/settings.py` checks them before anything starts."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, SerializerFunctionWrapHandler, model_serializer

from dubito.files import CheckedModel
from dubito.hooks import model_servers
from dubito.settings import setting

# Values of base_url: the built-in server, and the address in the provider's usual variable.
HOUSE: Final = "house"
ENVIRONMENT: Final = "env"
# Maximum number of tokens of one kind in a reply. A larger count is treated as an error.
MAX_TOKENS: Final = 2**24
_DAY: Final = 24 * 60 * 60  # seconds
_HOUSE_WITH_FAULTS: Final = f"{HOUSE}?faults="
# Settings of players written as `openai:MODEL`: top-level keys of a config, and flags.
SHORT_FORM_SETTINGS: Final = ("base_url", "api", "api_key_env", "max_output", "read", "system")
Api = Literal["responses", "chat", "messages", "decisions", "gemini"]
ReplyPart = Literal["strict", "last_object", "reasoning"]
RulesRole = Literal["system", "user"]


class ModelSettings(CheckedModel):
    """A model player's settings in a config, besides `bot` and `name`."""

    model_config = ConfigDict(defer_build=True)

    model: str = setting("Model name, as the provider spells it.", ..., min_length=1)
    api: Api = setting("API to use.", ..., usual="the provider's")
    prompt: str = setting("Name of a prompt, or path to its folder.", "plain")
    # The game's default is its weakest bot, so that failing is never an advantage.
    fallback: str = setting("Hand-written bot that answers when the model does not.", "", usual="the game's")
    adviser: str | dict[str, Any] | None = setting(
        "Bot whose answer each question states as advice: a hand-written bot, or `{process: [WORD, ...]}`.",
        metavar="NAME",
    )
    reasks: int = setting("How many times to ask again after an unusable reply.", 1, ge=0, le=10)
    tries: int = setting("Minimum number of failures before a request is given up.", 5, ge=1, le=100)
    deadline: float = setting("Time limit per call, in seconds.", 300, gt=0, le=_DAY)
    retry_after_cap: float = setting("Longest wait to accept from a server, in seconds.", 60, gt=0, le=_DAY)
    max_output: int = setting("Maximum number of tokens in a reply, including reasoning.", 8192, ge=16, le=MAX_TOKENS)
    sample: int = setting("Players that differ only in this number get independent answers.", 0, ge=0)
    base_url: str | None = setting(
        "Server to use; `env` means the provider's variable, such as OPENAI_BASE_URL.",
        metavar="URL|env",
        usual="the provider's",
    )
    api_key_env: str | None = setting(
        "Environment variable with the server's key.", usual="the provider's", min_length=1
    )
    play: Literal["best", "drawn"] = setting(
        "With stated probabilities, play the best answer or draw one at random.", "best"
    )
    belief: Literal["logprobs"] | None = setting(
        "Take stated probabilities from the answer's tokens; the server must return log-probabilities."
    )
    wait: Literal["batch"] | None = setting("Use batches at half the price; a reply can take a day.")
    response_format: Literal["json_schema", "json_object", "text"] = setting(
        "Reply format requested from a chat server.", "json_schema"
    )
    output_limit: Literal["max_tokens", "max_completion_tokens"] | None = setting(
        "Field name of `max_output` in requests to a chat server.", usual="the server's"
    )
    read: ReplyPart = setting(
        "Parse the whole reply, only its last JSON object, or the end of the reasoning if the reply has no text.",
        "strict",
    )
    system: RulesRole = setting("Role of the message with the rules.", "system")
    parameters: dict[str, Any] = setting("Extra fields for each request, such as {reasoning: {effort: low}}.", {})

    @model_serializer(mode="wrap")
    def _leave_out_adviser(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the settings without an adviser that is not set, so that it changes no run without one."""
        settings: dict[str, Any] = dump(self)
        return {key: value for key, value in settings.items() if key != "adviser" or value is not None}


@dataclass(frozen=True, slots=True)
class Account:
    """A server with a key, the unit of rate limits, clients and outages."""

    api: Api
    server: str  # base URL, or `house`
    key_env: str | None  # None for a server on this machine that needs no key

    def __str__(self) -> str:
        return f"{self.server} ({self.key_env or 'no key'})"


def embedded_kind(server: str) -> str | None:
    """Return the kind of a server that the run starts (`house` or a plugin's), or None for other servers."""
    kind = server.partition("?")[0]
    return kind if kind == HOUSE or kind in model_servers() else None


def is_started_by_run(server: str) -> bool:
    """Return whether the run starts this server with a real model, as a plugin defines."""
    return embedded_kind(server) not in (None, HOUSE)


def is_house(server: str) -> bool:
    return server == HOUSE or server.startswith(_HOUSE_WITH_FAULTS)


def parse_faults(server: str) -> str:
    return server.removeprefix(_HOUSE_WITH_FAULTS) if server != HOUSE else ""


def is_on_this_machine(server: str) -> bool:
    if embedded_kind(server):
        return True
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
        # 0.0.0.0 reaches this machine, too.
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return False


def nested_items(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a mapping and, recursively, of all mappings inside it."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nested_items(inner)
