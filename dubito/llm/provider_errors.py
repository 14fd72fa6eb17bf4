"""The causes of failed provider calls, and what the user can do about them."""

import errno
import re
import socket
from collections.abc import Mapping
from datetime import datetime, timedelta
from ssl import SSLError
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dubito.errors import one_line
from dubito.llm.limiter import format_duration
from dubito.llm.protocols import detect_protocol
from dubito.llm.redaction import Redaction
from dubito.llm.request import (
    AccountFault,
    Api,
    Attempt,
    NonReply,
    NonReplyKind,
    ProtocolName,
    RawReply,
    Reply,
    TryFailed,
)
from dubito.llm.settings import Account, is_on_this_machine, setting_fields
from dubito.llm.verdicts import SYSTEM_ROLE, Verdict, error_text, judge_error, judge_error_in_body
from dubito.store.model_log import Spend

E = TypeVar("E", bound=BaseException)
_MAX_QUOTED: Final = 240  # maximum number of characters quoted from a server's answer
_NON_REPLIES: Final[Mapping[NonReplyKind, str]] = {
    "empty": "an empty body",
    "page": "a web page",
    "stream": "an event stream that was not requested",
    "text": "text that is not JSON",
    "unreadable": "truncated or unreadable JSON",
    "json": "JSON that is not a {}",
}
_API_NAMES: Final[Mapping[ProtocolName, str]] = {
    "responses": "the Responses API",
    "chat": "Chat Completions",
    "messages": "the Messages API",
    "decisions": "the Decisions API",
}
_REPLY_NAMES: Final[Mapping[ProtocolName, str]] = {
    "responses": "Responses API response",
    "chat": "chat completion",
    "messages": "Messages API message",
    "decisions": "Decisions API answer",
}
_PATHS: Final[Mapping[ProtocolName, str]] = {
    "responses": "/responses",
    "chat": "/chat/completions",
    "messages": "/v1/messages",
}
_UNKNOWN_PATH: Final = re.compile(
    r"not.found|not.allowed|cannot post|invalid url|path|route|unknown endpoint", re.IGNORECASE
)
_FIELDS_OF_SETTING: Final[Mapping[str, tuple[str, ...]]] = {
    "max_output": ("max_output_tokens", "max_completion_tokens", "max_tokens"),
    "response_format": ("response_format",),
}
_UNSUPPORTED: Final = ("unsupported", "not supported", "not permitted", "unknown", "unrecognized")
_ANY_PARAMETER: Final = "parameters"  # the setting to change if the server names none
# Fields of a body that are not added by any of the player's settings.
_FIXED_FIELDS: Final = {"model", "messages", "input", "system", "text", "store", "prompt_cache_key", "questions"}
_MINUTE, _YEAR = 60.0, 365 * 86_400.0  # seconds


class ErrorReader:
    """Turns the errors of one account's calls into TryFailed or AccountFault."""

    def __init__(self, account: Account, address: str, redaction: Redaction) -> None:
        self._account, self._address, self._redaction = account, address, redaction

    def read_connection_error(self, error: Exception, deadline: float, attempt: Attempt, *, is_late: bool) -> TryFailed:
        """Read the error of a call without an answer.

        If a connection was made, the server may have answered and may bill the call.
        """
        import httpx2

        sent = not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        if is_late:
            return TryFailed("deadline", f"no complete answer within the deadline of {deadline:g} s", billed=sent)
        dns, refused = _cause(error, socket.gaierror), _cause(error, ConnectionRefusedError)
        proxy = None if is_on_this_machine(self._address) else _find_proxy(self._address)
        if proxy and (dns or refused):
            return TryFailed("connection", f"nothing answers at the proxy {proxy}: start it, or correct HTTPS_PROXY")
        if dns is not None:
            host = one_line(urlsplit(self._address).hostname or self._address, 80)
            reason = one_line(str(dns.strerror), 80)
            return TryFailed("connection", f"cannot find the host {host!r} (DNS: {reason}); check `base_url`")
        os_error = _cause(error, OSError)
        if os_error is not None and os_error.errno in (errno.EMFILE, errno.ENFILE):
            return TryFailed("connection", f"{os_error.strerror}: lower `in_flight`, or raise `ulimit -n`")
        base_url = setting_fields("base_url", attempt.place.player)
        if refused is not None:
            problem = f"nothing answers at {self._address} (connection refused)"
            return TryFailed("connection", problem, hint="start the server, or correct {setting}", **base_url)
        if (handshake := _cause(error, SSLError)) is not None:
            problem = f"no TLS at {self._address} ({one_line(str(handshake), 80)})"
            hint = "if the server does not use TLS, its address begins with http://: correct {setting}"
            return TryFailed("connection", problem, hint=hint, **base_url)
        cause = f": {type(error.__cause__).__name__}" if error.__cause__ else ""
        return TryFailed("connection", self._quote(f"{type(error).__name__}: {error}{cause}"), billed=sent)

    def read_batch_entry(self, status: int | None, error: Any, attempt: Attempt) -> TryFailed | AccountFault:
        """Read the error that a batch reports for one of its requests."""
        verdict = judge_error_in_body(error, {}) if status is None else judge_error(status, error_text(error), {})
        return self._read_verdict(verdict, f"status {verdict.status} in a batch", error_text(error), attempt)

    def read_status(
        self, status: int, text: str, headers: Mapping[str, str], attempt: Attempt
    ) -> TryFailed | AccountFault:
        """Read a response whose status is not a success."""
        if status < 400:
            # Redirects are never followed, since the question and the key are meant only for this server.
            target = self._quote(headers.get("location", "nowhere"))
            return self.blame(attempt, "base_url", f"redirects to another address (status {status})", target)
        verdict = judge_error(status, text, headers)
        if verdict.meaning == "model" and _mentions_path(text, attempt) and attempt.request.protocol in _PATHS:
            return self._read_unknown_path(status, self._quote(text), attempt)
        return self._read_verdict(verdict, f"status {status}", text, attempt)

    def read_non_reply(self, body: NonReply, received: RawReply, attempt: Attempt) -> TryFailed | AccountFault:
        """Read a body with status 200 that is not a reply."""
        if body.kind is None:
            verdict = judge_error_in_body(body.error, received.headers)
            problem = f"status {received.status} with an error in the body"
            failed = self._read_verdict(verdict, problem, error_text(body.error), attempt)
            if isinstance(failed, TryFailed):
                failed.billed = body.generated is True or (body.generated is None and verdict.meaning == "server")
            return failed
        spoken = detect_protocol(received.raw) if body.kind == "json" and not attempt.place.is_in_game else None
        if spoken is not None:
            fields = setting_fields("api", attempt.place.player, spoken)
            problem = f"{self._address} answers in {_API_NAMES[spoken]}, but {_describe_api(attempt)}"
            return AccountFault(problem, hint="set {setting}", **fields)
        problem = f"{describe_non_reply(body.kind, attempt.request.protocol)} with status {received.status}"
        return TryFailed("server", problem, billed=body.generated is True, quote=self._quote(received.raw))

    def blame(self, attempt: Attempt, setting: str, problem: str, quote: str = "", value: str = "") -> AccountFault:
        """Return a fault that the user can fix by changing one of the player's settings."""
        hint, key_env = "set {setting}" if value else "change {setting}", self._account.key_env
        if setting == "api_key_env" and key_env:
            hint = f"set {key_env}, or change {{setting}}"
        if setting == _ANY_PARAMETER and key_env is None:
            hint += ", or set `api_key_env` to the variable with your key, since no key was sent"
        fields = setting_fields(setting, attempt.place.player, value)
        return AccountFault(f"{self._account} {problem}", quote=quote, hint=hint, **fields)

    def _read_unknown_path(self, status: int, quote: str, attempt: Attempt) -> AccountFault:
        """Read the error for a path that the server does not support, perhaps because it uses another protocol."""
        protocol = attempt.request.protocol
        other: Api = "responses" if protocol == "chat" else "chat"
        path = urlsplit(self._address).path.strip("/")
        hint = f"{_describe_api(attempt)}: set {{setting}}, or correct `base_url`"
        fields = setting_fields("api", attempt.place.player, other)
        if protocol == "messages" and path.endswith("v1"):
            hint, fields = "remove /v1 from the end of {setting}", setting_fields("base_url", attempt.place.player)
        elif protocol != "messages" and not path:
            hint = (
                f"most servers need /v1 at the end of `base_url`; otherwise, set {{setting}}: {_describe_api(attempt)}"
            )
        problem = f"{self._account} has no {_PATHS[protocol]} (status {status})"
        return AccountFault(problem, quote=quote, hint=hint, **fields)

    def _read_verdict(self, verdict: Verdict, status: str, text: str, attempt: Attempt) -> TryFailed | AccountFault:
        quote = self._quote(text)
        match verdict.meaning:
            case "too_long" | "refused" | "rate_limit" | "server" as kind:
                failed = TryFailed(kind, status, verdict.retry_after, quote=quote)
                failed.is_concurrent = verdict.is_concurrent
                return failed
            case "size":
                problem = f"does not accept a request of this size, including the reserved output ({status})"
                return self.blame(attempt, "max_output", problem, quote)
            case "quota":
                problem = f"{self._account} has reached a daily or longer limit ({status})"
                return AccountFault(problem, quote=quote, hint=_describe_renewal(verdict))
            case "money":
                problem, hint = f"{self._account} has no credit left ({status})", "top it up"
                if verdict.status != 402:
                    hint += ", or resume when its quota is renewed"
                return AccountFault(problem, quote="" if verdict.status == 402 else quote, hint=hint)
            case "key":
                return self.blame(attempt, "api_key_env", f"refused the key ({status})")
            case "model":
                model = one_line(str(attempt.request.body.get("model")), 80)
                return self.blame(attempt, "model", f"has no model {model!r}, or `api` or `base_url` is wrong", quote)
            case "request":
                return self._read_rejection(status, text, attempt)

    def _read_rejection(self, status: str, text: str, attempt: Attempt) -> TryFailed | AccountFault:
        quote = self._quote(text)
        if SYSTEM_ROLE.search(text.lower()):
            return self.blame(attempt, "system", f"does not accept a system message ({status})", quote, "user")
        if attempt.place.attempt:
            # The question itself was answered, so the server objects to what a re-ask adds.
            return TryFailed("rejected", f"a re-ask was rejected ({status})", quote=quote)
        setting = _find_setting(text, attempt)
        fault = self.blame(attempt, setting, f"rejected the request ({status})", quote)
        fault.is_unexplained = setting == _ANY_PARAMETER
        return fault

    def _quote(self, text: str) -> str:
        return one_line(self._redaction.error(text), _MAX_QUOTED)


def describe_non_reply(kind: NonReplyKind, protocol: ProtocolName) -> str:
    return _NON_REPLIES[kind].format(_REPLY_NAMES[protocol])


def error_in_reply(errors: ErrorReader, reply: Reply, attempt: Attempt, cost: Spend) -> TryFailed | AccountFault | None:
    """Return the error, with its cost, if the body is not a reply. Such a body is neither used nor cached."""
    if reply.non_reply is None:
        return None
    failed = errors.read_non_reply(reply.non_reply, reply.received, attempt)
    is_billed = reply.usage is not None or (isinstance(failed, TryFailed) and failed.billed)
    failed.spent = cost if is_billed else Spend(calls=1)
    return failed


def _describe_api(attempt: Attempt) -> str:
    return f"{one_line(attempt.place.player)} uses {_API_NAMES[attempt.request.protocol]}"


def _find_proxy(address: str) -> str | None:
    """Return the host and port of the environment's proxy for this address, without credentials."""
    parts, proxies = urlsplit(address), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc):
        return None
    return one_line(proxy.partition("://")[2].rpartition("@")[2].strip("/") or proxy, 80)


def _mentions_path(text: str, attempt: Attempt) -> bool:
    names_model = "model" in text.lower() or str(attempt.request.body.get("model")) in text
    return not text.strip() or (not names_model and _UNKNOWN_PATH.search(text) is not None)


def _cause(error: BaseException | None, kind: type[E]) -> E | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _find_setting(text: str, attempt: Attempt) -> str:
    """Return the setting that a server rejects: one of Dubito's or one of the player's `parameters`."""
    names_limit = any(name in text and name in attempt.request.body for name in ("max_tokens", "max_completion_tokens"))
    if attempt.request.protocol == "chat" and names_limit and any(words in text.lower() for words in _UNSUPPORTED):
        # The server uses the other name for the limit.
        return "output_limit"
    for setting, names in _FIELDS_OF_SETTING.items():
        if any(name in text for name in names):
            return setting
    added = sorted(set(attempt.request.body) - _FIXED_FIELDS, key=len, reverse=True)
    return next((f"parameters.{name}" for name in added if name in text), _ANY_PARAMETER)


def _describe_renewal(verdict: Verdict) -> str:
    """Return when the server says a used-up limit is renewed.

    A wait of less than a minute belongs to another limit.
    """
    if verdict.retry_after is None or not _MINUTE <= verdict.retry_after < _YEAR:
        return "resume when it is renewed"
    moment = datetime.now() + timedelta(seconds=verdict.retry_after)
    return f"resume in {format_duration(verdict.retry_after)}, at {moment:%Y-%m-%d %H:%M}"
