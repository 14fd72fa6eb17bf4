"""Check a model player's settings before anything starts, and find its account."""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict
from urllib.parse import urlsplit

from pydantic import ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.files import CheckedModel, describe_problem
from dubito.game import Game, Player
from dubito.hooks import find_batch_sender
from dubito.llm.protocols import find_protocol, protocols
from dubito.model_settings import (
    ENVIRONMENT,
    SHORT_FORM_SETTINGS,
    Account,
    Api,
    ModelSettings,
    embedded_kind,
    is_on_this_machine,
    nested_items,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Long words of mixed characters look like a key, not like part of a variable's name.
_KEY_PART: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9]{16,}")
_EXAMPLE_URL: Final = "http://127.0.0.1:8000/v1"
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


def build_settings(
    cls: type[Player], name: str, settings: Mapping[str, Any], game: Game | None = None
) -> ModelSettings:
    """Return a player's settings, with defaults from its class and the game. Raises UsageError."""
    fallback = {"fallback": game.fallback} if game else {}
    return check_settings(name, {**fallback, **cls.defaults, **settings})


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
    wire = find_protocol(checked.api)
    if checked.wait and (sender := find_batch_sender(checked.wait)) and not sender.supports(checked.api):
        raise _refusal(name, "wait", f"{wire.label} has no batches", "remove it")
    for key, value, default in (
        ("response_format", checked.response_format, "json_schema"),
        ("output_limit", checked.output_limit, None),
        ("belief", checked.belief, None),
    ):
        if key not in wire.own_settings and value != default:
            apis = " and ".join(f"`api: {api}`" for api, other in protocols().items() if key in other.own_settings)
            raise _refusal(name, key, f"only {apis} has this setting", "remove it")
    if checked.base_url == ENVIRONMENT:
        address = os.environ.get(wire.address_variable, "").strip()
        if not address:
            problem = f"the value is `env`, but the environment variable {wire.address_variable} is not set"
            raise _refusal(name, "base_url", problem)
        checked = checked.model_copy(update={"base_url": address})
    if checked.base_url is not None and embedded_kind(checked.base_url) is None:
        server = checked.base_url.strip()
        checked = checked.model_copy(update={"base_url": server})
        _check_url(name, server)
        if checked.api_key_env is None and not is_on_this_machine(server) and not wire.uses_provider(checked):
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


def _check_parameters(name: str, api: Api, parameters: Mapping[str, Any]) -> None:
    for key in parameters:
        if key in (*_RESERVED_PARAMETERS, *find_protocol(api).message_fields):
            raise _refusal(name, f"parameters.{key}", "Dubito sets this itself", "remove it")
    if parameters.get("background"):
        raise _refusal(
            name,
            "parameters.background",
            "Dubito does not fetch background responses",
            "remove it, or set `wait: batch`",
        )
    # `text` can set any property of the response's text except its format.
    if "text" in parameters:
        text = parameters["text"]
        if api != "responses":
            hint = "set `verbosity` without `text`" if api == "chat" else "remove it"
            raise _refusal(name, "parameters.text", "only `api: responses` has this parameter", hint)
        if not isinstance(text, dict):
            raise _refusal(name, "parameters.text", "must be a mapping, such as {verbosity: low}")
        if "format" in text:
            raise _refusal(name, "parameters.text.format", "Dubito sets this itself", "remove it")
    for key in (str(key) for key, _ in nested_items(parameters)):
        if key not in _TOKEN_COUNTS and any(word in key.lower() for word in _SECRET_WORDS) and "cache" not in key:
            raise _refusal(name, f"parameters.{key}", "credentials belong in an environment variable")


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
    is_short = player.startswith(tuple(f"{wire.provider}:" for wire in protocols().values()))
    if is_short and setting in SHORT_FORM_SETTINGS:
        flag = f"--{setting.replace('_', '-')} {value}".rstrip()
        where = f"`{flag}` (`{key}` in a config)"
    elif is_short and setting == "model":
        where = f"the model's name in {one_line(player)!r}"
    return {"setting": setting, "player": player, "value": value, "where": where}


def build_account(settings: ModelSettings) -> Account:
    wire, key_env = find_protocol(settings.api), settings.api_key_env
    server = settings.base_url or wire.address
    if key_env is None and wire.uses_provider(settings):
        key_env = wire.key_variable
    return Account(settings.api, server.rstrip("/"), key_env)


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
