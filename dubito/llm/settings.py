"""The settings of a model player, checked before anything starts."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.files import Checked
from dubito.game import Game
from dubito.llm.request import Api, entries
from dubito.settings import setting

HOUSE: Final = "house"  # as base_url: the embedded server, on whatever port
ENVIRONMENT: Final = "env"  # as base_url: what the provider's usual variable says
MOST_TOKENS: Final = 2**24  # of a kind in one reply: a larger number is not believed
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_PART: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{16,}")  # long and mixed: no part of a name
_DAY: Final = 24 * 60 * 60  # seconds
_FAULTS: Final = f"{HOUSE}?faults="
_SECRET_WORDS: Final = ("key", "token", "secret", "password", "authorization", "credential")
_TOKEN_COUNTS: Final = ("max_tokens", "max_output_tokens", "max_completion_tokens", "budget_tokens")
_OWN_PARAMETERS: Final = (
    *("model", "input", "messages", "system", "response_format", "store", "stream", "questions"),
    *("max_tokens", "max_output_tokens", "max_completion_tokens"),  # said by max_output
    *("n", "best_of"),  # several answers would be paid for, and one read
)
_IN_ENTRY: Final = re.compile(r"`(\w+)(?::( [^`]+))?` in the entry of (?:'[^']*'|\"[^\"]*\")")
_SHORT_FORMS: Final = ("openai:", "anthropic:")
# Settings of players in the short forms: keys of a config beside `games`, and flags.
SHORT_FORM_SETTINGS: Final = ("base_url", "api", "api_key_env", "max_output", "read", "system")
_OPENAI: Final = ("OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL")
_PROVIDERS: Final[dict[Api, tuple[str, str, str]]] = {  # the variable of the key, the address, its variable
    "responses": _OPENAI,
    "chat": _OPENAI,
    "decisions": _OPENAI,
    "messages": ("ANTHROPIC_API_KEY", "https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
}
ReplyPart = Literal["strict", "last_object"]
RulesRole = Literal["system", "user"]


class ModelSettings(Checked):
    """What a config may say of a model player, besides `bot` and `name`."""

    model_config = ConfigDict(defer_build=True)

    model: str = setting("Model, as its provider names it.", ..., min_length=1)
    api: Api = setting("API to ask by.", ..., usual="the provider's")
    prompt: str = setting("Name of a prompt, or the path of its folder.", "plain")
    # Without one it is the game's weakest bot, so that failing never pays.
    fallback: str = setting("Hand-written bot that answers when the model did not.", "", usual="the game's")
    reasks: int = setting("Times that an unusable reply is asked for again.", 1, ge=0, le=10)
    tries: int = setting("Failures of a request before it may be given up.", 5, ge=1, le=100)
    deadline: float = setting("Most seconds that a call may take.", 300, gt=0, le=_DAY)
    retry_after_cap: float = setting("Longest wait in seconds that a server may impose.", 60, gt=0, le=_DAY)
    max_output: int = setting("Most tokens of a reply, reasoning included.", 8192, ge=16, le=MOST_TOKENS)
    sample: int = setting("A twin with another number gets independent answers.", 0, ge=0)
    base_url: str | None = setting(
        "Server to ask; `env` means OPENAI_BASE_URL or ANTHROPIC_BASE_URL.",
        metavar="URL|env",
        usual="the provider's",
    )
    api_key_env: str | None = setting(
        "Variable with the key of that server: no other key is sent there.", usual="the provider's", min_length=1
    )
    play: Literal["best", "drawn"] = setting("Of stated probabilities, play the best answer or draw one.", "best")
    wait: Literal["batch"] | None = setting("Ask by batches, at half the price: a reply may take a day.")
    response_format: Literal["json_schema", "json_object", "text"] = setting(
        "Form of reply that a chat server is asked for.", "json_schema"
    )
    output_limit: Literal["max_tokens", "max_completion_tokens"] | None = setting(
        "Name of `max_output` at a chat server.", usual="the server's"
    )
    read: ReplyPart = setting("Take the whole reply, or its last JSON object.", "strict")
    system: RulesRole = setting("Role of the message that states the rules.", "system")
    parameters: dict[str, Any] = setting("Sent as they are, such as {reasoning: {effort: low}}.", {})


@dataclass(frozen=True, slots=True)
class Account:
    """Whom to ask and as whom: what one gate, one client and one outage belong to."""

    api: Api
    server: str  # base URL, or `house`
    key_env: str | None  # None: a loopback server that needs no key

    def __str__(self) -> str:
        return f"{self.server} ({self.key_env or 'no key'})"


def settings_for(cls: type[object], name: str, settings: Mapping[str, Any], game: Game | None = None) -> ModelSettings:
    defaults: Mapping[str, Any] = getattr(cls, "defaults", {})
    fallback = {"fallback": game.fallback} if game else {}
    return check_settings(name, {**fallback, **defaults, **settings})


def check_settings(name: str, settings: Mapping[str, Any]) -> ModelSettings:
    """The settings of a player, checked; raises UsageError naming player and key."""
    try:
        checked = ModelSettings.model_validate(dict(settings))
    except ValidationError as error:
        errors = error.errors()  # first an unknown key: a misspelt one is why another is missing
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        where = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            hint = suggestion(where, ["bot", "name", *ModelSettings.model_fields])
            raise UsageError(f"{one_line(name)}: unknown setting '{one_line(where)}': {hint}") from None
        messages = {"missing": "is needed", "string_too_short": "must not be empty"}
        message = messages.get(first["type"], str(first["msg"]).replace("Input should be", "must be"))
        raise UsageError(f"{one_line(name)}: {where}: {message}") from None
    _check_key_env(name, checked.api_key_env)
    _check_parameters(name, checked.api, checked.parameters)
    if checked.wait and checked.api == "decisions":
        raise UsageError(f"{one_line(name)}: wait: decisions are not sold in batches: take it out")
    if checked.api != "chat" and checked.response_format != "json_schema":
        raise UsageError(f"{one_line(name)}: response_format: only `api: chat` knows others than json_schema")
    if checked.api != "chat" and checked.output_limit is not None:
        raise UsageError(f"{one_line(name)}: output_limit: only `api: chat` has two names for it")
    if checked.base_url == ENVIRONMENT:
        checked = checked.model_copy(update={"base_url": _address(name, checked.api)})
    if checked.base_url is not None and not is_house(checked.base_url):
        server = checked.base_url.strip()
        checked = checked.model_copy(update={"base_url": server})
        _check_url(name, server)
        if checked.api_key_env is None and not is_on_this_machine(server) and not asks_provider(checked):
            raise UsageError(
                f"{one_line(name)}: base_url is a server of its own: name the variable with its key in api_key_env "
                "(--api-key-env); any text in it will do where the server wants none"
            )
    return checked


def _check_key_env(name: str, variable: str | None) -> None:
    """Refuse what is not a variable's name, without repeating it: it may be the key itself."""
    if variable is None:
        return
    if not _VARIABLE.fullmatch(variable) or any(map(_KEY_PART.fullmatch, variable.split("_"))):
        raise UsageError(
            f"{one_line(name)}: api_key_env is the name of an environment variable such as OPENAI_API_KEY, and this is "
            "not one, or looks like a key: a key belongs in the variable, never in a config"
        )


def _address(name: str, api: Api) -> str:
    variable = _PROVIDERS[api][2]
    address = os.environ.get(variable, "").strip()
    if not address:
        raise UsageError(f"{one_line(name)}: base_url is `env`, and the environment variable {variable} is not set")
    return address


def unused_address(settings: ModelSettings) -> str | None:
    _, address, variable = _PROVIDERS[settings.api]
    set_to = os.environ.get(variable, "").strip().rstrip("/")
    return variable if asks_provider(settings) and set_to not in ("", address) else None


def _check_parameters(name: str, api: Api, parameters: Mapping[str, Any]) -> None:
    for key in parameters:
        if key in _OWN_PARAMETERS:
            raise UsageError(f"{one_line(name)}: parameters.{key}: the harness sends this itself")
    if parameters.get("background"):
        raise UsageError(
            f"{one_line(name)}: parameters.background: Dubito does not fetch background responses: remove it, or set "
            "`wait: batch`"
        )
    if "text" in parameters:
        _check_text(name, api, parameters["text"])
    for key in (str(key) for key, _ in entries(parameters)):
        if key not in _TOKEN_COUNTS and any(word in key.lower() for word in _SECRET_WORDS) and "cache" not in key:
            raise UsageError(
                f"{one_line(name)}: parameters.{one_line(key)}: credentials belong in an environment variable"
            )


def _check_text(name: str, api: Api, text: Any) -> None:
    """Refuse a `text` that is not more about the text of a response, such as its verbosity, beside the form of ours."""
    if api != "responses":
        instead = "say `verbosity` without it" if api == "chat" else "take it out"
        raise UsageError(f"{one_line(name)}: parameters.text: only `api: responses` knows it: {instead}")
    if not isinstance(text, dict):
        raise UsageError(f"{one_line(name)}: parameters.text: say it as {{verbosity: low}}")
    if "format" in text:
        raise UsageError(f"{one_line(name)}: parameters.text.format: the harness sends this itself")


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UsageError(f"{one_line(name)}: base_url is not an address such as http://127.0.0.1:8000/v1") from None
    if parts.username or parts.password or any(word in parts.query.lower() for word in _SECRET_WORDS):
        raise UsageError(f"{one_line(name)}: base_url must hold no credentials: put the key in api_key_env's variable")
    is_whole = parts.scheme in ("http", "https") and parts.hostname and not parts.fragment
    if not is_whole or not url.isprintable() or " " in url:
        raise UsageError(
            f"{one_line(name)}: base_url {one_line(url, 80)!r} is not an address such as http://127.0.0.1:8000/v1"
        )


def where_said(setting: str, player: str, value: str = "") -> str:
    """Where a user says a setting of the player of this name, or a value of it."""
    flag, key = f"--{setting.replace('_', '-')} {value}".rstrip(), f"{setting}: {value}" if value else setting
    if player.startswith(_SHORT_FORMS):
        if setting in SHORT_FORM_SETTINGS:
            return f"`{flag}` (`{key}` in a config)"
        if setting == "model":
            return f"the model's name in {one_line(player)!r}"
    return f"`{key}` in the entry of {one_line(player)!r}"


def said_as_flags(fault: str) -> str:
    return _IN_ENTRY.sub(lambda found: f"`--{found[1].replace('_', '-')}{found[2] or ''}`", fault)


def account_of(settings: ModelSettings) -> Account:
    """The account that a player's calls go to."""
    usual_key, address, _ = _PROVIDERS[settings.api]
    server = settings.base_url or address
    key_env = settings.api_key_env
    if key_env is None and asks_provider(settings):
        key_env = usual_key
    return Account(settings.api, server.rstrip("/"), key_env)


def is_house(server: str) -> bool:
    return server == HOUSE or server.startswith(_FAULTS)


def faults_of(server: str) -> str:
    return server.removeprefix(_FAULTS) if server != HOUSE else ""


def asks_provider(settings: ModelSettings) -> bool:
    return settings.base_url is None or settings.base_url.rstrip("/") == _PROVIDERS[settings.api][1]


def has_limits_by_model(account: Account) -> bool:
    return any(account.server == address for _, address, _ in _PROVIDERS.values())


def is_on_this_machine(server: str) -> bool:
    """Whether a server is on this machine."""
    if is_house(server):
        return True
    host = urlsplit(server).hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified  # 0.0.0.0 reaches this machine, too
    except ValueError:
        return False


def key_of(account: Account, name: str) -> str:
    """The account's key from the environment, or a dummy where none is needed; raises UsageError."""
    if account.key_env is None:
        return "no-key-needed"
    key = os.environ.get(account.key_env, "").strip()
    if not key:
        raise UsageError(
            f"{one_line(name)} needs a key for {account.server}: set the environment variable {account.key_env}, "
            "or say `base_url: house` to try it without one"
        )
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{one_line(name)}: the key in {account.key_env} has characters that no header can hold")
    return key
