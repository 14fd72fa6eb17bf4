"""The settings of a model player. They are checked before anything starts."""

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict
from urllib.parse import urlsplit

from pydantic import ConfigDict, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.files import CheckedModel, describe_problem
from dubito.game import Game
from dubito.hooks import model_servers
from dubito.settings import setting

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Values of base_url: the built-in server, and the address in the provider's usual variable.
HOUSE: Final = "house"
ENVIRONMENT: Final = "env"
# Maximum number of tokens of one kind in a reply. A larger count is treated as an error.
MAX_TOKENS: Final = 2**24
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Long words of mixed characters look like a key, not like part of a variable's name.
_KEY_PART: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{16,}")
_DAY: Final = 24 * 60 * 60  # seconds
_EXAMPLE_URL: Final = "http://127.0.0.1:8000/v1"
_HOUSE_WITH_FAULTS: Final = f"{HOUSE}?faults="
_SECRET_WORDS: Final = ("key", "token", "secret", "password", "authorization", "credential")
_TOKEN_COUNTS: Final = ("max_tokens", "max_output_tokens", "max_completion_tokens", "budget_tokens")
_RESERVED_PARAMETERS: Final = (
    *("model", "input", "messages", "system", "response_format", "store", "stream", "questions"),
    # Set by max_output.
    *("max_tokens", "max_output_tokens", "max_completion_tokens"),
    # These would pay for several answers, although only one is read.
    *("n", "best_of"),
    # Set by belief.
    *("logprobs", "top_logprobs"),
)
_SHORT_FORMS: Final = ("openai:", "anthropic:")
# Settings of players written as `openai:MODEL`: top-level keys of a config, and flags.
SHORT_FORM_SETTINGS: Final = ("base_url", "api", "api_key_env", "max_output", "read", "system")
Api = Literal["responses", "chat", "messages", "decisions"]
_OPENAI: Final = ("OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL")
# The variable with the key, the address, and the variable that overrides the address.
_PROVIDERS: Final[dict[Api, tuple[str, str, str]]] = {
    "responses": _OPENAI,
    "chat": _OPENAI,
    "decisions": _OPENAI,
    "messages": ("ANTHROPIC_API_KEY", "https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
}
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
    reasks: int = setting("How many times to ask again after an unusable reply.", 1, ge=0, le=10)
    tries: int = setting("Minimum number of failures before a request is given up.", 5, ge=1, le=100)
    deadline: float = setting("Time limit per call, in seconds.", 300, gt=0, le=_DAY)
    retry_after_cap: float = setting("Longest wait to accept from a server, in seconds.", 60, gt=0, le=_DAY)
    max_output: int = setting("Maximum number of tokens in a reply, including reasoning.", 8192, ge=16, le=MAX_TOKENS)
    sample: int = setting("Players that differ only in this number get independent answers.", 0, ge=0)
    base_url: str | None = setting(
        "Server to use; `env` means OPENAI_BASE_URL or ANTHROPIC_BASE_URL.",
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


@dataclass(frozen=True, slots=True)
class Account:
    """A server with a key, the unit of rate limits, clients and outages."""

    api: Api
    server: str  # base URL, or `house`
    key_env: str | None  # None for a server on this machine that needs no key

    def __str__(self) -> str:
        return f"{self.server} ({self.key_env or 'no key'})"


def build_settings(
    cls: type[object], name: str, settings: Mapping[str, Any], game: Game | None = None
) -> ModelSettings:
    """Return a player's settings, with defaults from its class and the game. Raises UsageError."""
    defaults: Mapping[str, Any] = getattr(cls, "defaults", {})
    fallback = {"fallback": game.fallback} if game else {}
    return check_settings(name, {**fallback, **defaults, **settings})


def _refusal(name: str, setting: str, problem: str, hint: str = "") -> UsageError:
    where = f"{one_line(name)}: {one_line(setting)}"
    return UsageError(problem, hint=hint, setting=setting, player=name, where=where)


def check_settings(name: str, settings: Mapping[str, Any]) -> ModelSettings:
    """Check a player's settings. The UsageError it raises names the player and the setting."""
    try:
        checked = ModelSettings.model_validate(dict(settings))
    except ValidationError as invalid:
        # Check unknown settings first, since a misspelt one may be why another is missing.
        errors = sorted(invalid.errors(), key=lambda error: error["type"] != "extra_forbidden")
        raise describe_invalid_setting(name, errors[0], ModelSettings) from None
    _check_key_env(name, checked.api_key_env)
    _check_parameters(name, checked.api, checked.parameters)
    if checked.wait and checked.api == "decisions":
        raise _refusal(name, "wait", "the Decisions API has no batches", "remove it")
    for key, default in (("response_format", "json_schema"), ("output_limit", None), ("belief", None)):
        if checked.api != "chat" and getattr(checked, key) != default:
            raise _refusal(name, key, "only `api: chat` has this setting", "remove it")
    if checked.base_url == ENVIRONMENT:
        checked = checked.model_copy(update={"base_url": _address_from_environment(name, checked.api)})
    if checked.base_url is not None and embedded_kind(checked.base_url) is None:
        server = checked.base_url.strip()
        checked = checked.model_copy(update={"base_url": server})
        _check_url(name, server)
        if checked.api_key_env is None and not is_on_this_machine(server) and not uses_provider_address(checked):
            raise _refusal(
                name,
                "base_url",
                "this server needs a separate key",
                "name the variable with the key in `api_key_env` (--api-key-env); if the server needs no key, any "
                "value will do",
            )
    return checked


def describe_invalid_setting(name: str, error: "ErrorDetails", model: type[CheckedModel]) -> UsageError:
    """Describe a Pydantic error in a player's settings. `model` is the class that declares them."""
    setting = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        if model is not ModelSettings and setting in ModelSettings.model_fields:
            return _refusal(name, setting, "is a setting of model players", "remove it")
        hint = suggestion(setting, ["bot", "name", *model.model_fields])
        return UsageError(f"{one_line(name)}: unknown setting '{one_line(setting)}': {hint}")
    return _refusal(name, setting, "is needed" if error["type"] == "missing" else describe_problem(error))


def _check_key_env(name: str, variable: str | None) -> None:
    """Refuse anything but a variable's name.

    The message does not repeat the value, since it could be the key.
    """
    if variable is None:
        return
    if not _VARIABLE.fullmatch(variable) or any(map(_KEY_PART.fullmatch, variable.split("_"))):
        raise _refusal(
            name,
            "api_key_env",
            "must be the name of an environment variable, such as OPENAI_API_KEY; this is not one, or looks like a key",
            "a key belongs in the variable, never in a config",
        )


def _address_from_environment(name: str, api: Api) -> str:
    variable = _PROVIDERS[api][2]
    address = os.environ.get(variable, "").strip()
    if not address:
        raise _refusal(name, "base_url", f"the value is `env`, but the environment variable {variable} is not set")
    return address


def ignored_address_variable(settings: ModelSettings) -> str | None:
    """Return the environment variable with a server address that the player ignores, if there is one."""
    _, address, variable = _PROVIDERS[settings.api]
    value = os.environ.get(variable, "").strip().rstrip("/")
    return variable if uses_provider_address(settings) and value not in ("", address) else None


def _check_parameters(name: str, api: Api, parameters: Mapping[str, Any]) -> None:
    for key in parameters:
        if key in _RESERVED_PARAMETERS:
            raise _refusal(name, f"parameters.{key}", "Dubito sets this itself", "remove it")
    if parameters.get("background"):
        raise _refusal(
            name,
            "parameters.background",
            "Dubito does not fetch background responses",
            "remove it, or set `wait: batch`",
        )
    if "text" in parameters:
        _check_text(name, api, parameters["text"])
    for key in (str(key) for key, _ in nested_items(parameters)):
        if key not in _TOKEN_COUNTS and any(word in key.lower() for word in _SECRET_WORDS) and "cache" not in key:
            raise _refusal(name, f"parameters.{key}", "credentials belong in an environment variable")


def _check_text(name: str, api: Api, text: Any) -> None:
    """Check the parameter `text`, which can set any property of the response's text except its format."""
    if api != "responses":
        hint = "set `verbosity` without `text`" if api == "chat" else "remove it"
        raise _refusal(name, "parameters.text", "only `api: responses` has this parameter", hint)
    if not isinstance(text, dict):
        raise _refusal(name, "parameters.text", "must be a mapping, such as {verbosity: low}")
    if "format" in text:
        raise _refusal(name, "parameters.text.format", "Dubito sets this itself", "remove it")


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise _refusal(name, "base_url", f"not an address such as {_EXAMPLE_URL}") from None
    if parts.username or parts.password or any(word in parts.query.lower() for word in _SECRET_WORDS):
        hint = "put the key in the variable that `api_key_env` names"
        raise _refusal(name, "base_url", "must not contain credentials", hint)
    is_web_address = parts.scheme in ("http", "https") and parts.hostname and not parts.fragment
    if not is_web_address or not url.isprintable() or " " in url:
        raise _refusal(name, "base_url", f"{one_line(url, 80)!r} is not an address such as {_EXAMPLE_URL}")


class SettingFields(TypedDict):
    """The fields with which an error names a setting."""

    setting: str
    player: str
    value: str
    where: str


def setting_fields(setting: str, player: str, value: str = "") -> SettingFields:
    """Return the error fields that name this player's setting as the one to fix."""
    key = f"{setting}: {value}" if value else setting
    where = f"`{key}` in the entry of {one_line(player)!r}"
    if player.startswith(_SHORT_FORMS) and setting in SHORT_FORM_SETTINGS:
        flag = f"--{setting.replace('_', '-')} {value}".rstrip()
        where = f"`{flag}` (`{key}` in a config)"
    elif player.startswith(_SHORT_FORMS) and setting == "model":
        where = f"the model's name in {one_line(player)!r}"
    return {"setting": setting, "player": player, "value": value, "where": where}


def build_account(settings: ModelSettings) -> Account:
    usual_key, address, _ = _PROVIDERS[settings.api]
    server = settings.base_url or address
    key_env = settings.api_key_env
    if key_env is None and uses_provider_address(settings):
        key_env = usual_key
    return Account(settings.api, server.rstrip("/"), key_env)


def embedded_kind(server: str) -> str | None:
    """Return the kind of a server that the run starts (`house` or a plugin's), or None for other servers."""
    kind = server.partition("?")[0]
    return kind if kind == HOUSE or kind in model_servers() else None


def is_house(server: str) -> bool:
    return server == HOUSE or server.startswith(_HOUSE_WITH_FAULTS)


def parse_faults(server: str) -> str:
    return server.removeprefix(_HOUSE_WITH_FAULTS) if server != HOUSE else ""


def uses_provider_address(settings: ModelSettings) -> bool:
    return settings.base_url is None or settings.base_url.rstrip("/") == _PROVIDERS[settings.api][1]


def has_limits_by_model(account: Account) -> bool:
    return any(account.server == address for _, address, _ in _PROVIDERS.values())


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


def load_key(account: Account, name: str) -> str:
    """Return the account's key from the environment, or a dummy key if none is needed. Raises UsageError."""
    if account.key_env is None:
        return "no-key-needed"
    key = os.environ.get(account.key_env, "").strip()
    if not key:
        raise UsageError(
            f"{one_line(name)} needs a key for {account.server}",
            hint=f"set the environment variable {account.key_env}, or try it without a key using `base_url: house`",
        )
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"{one_line(name)}: the key in {account.key_env} contains characters that a header cannot contain"
        )
    return key


def nested_items(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a mapping and, recursively, of all mappings inside it."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nested_items(inner)
