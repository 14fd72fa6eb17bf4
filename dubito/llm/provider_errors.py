"""The causes of failed provider calls, and what the user can do about them."""

import errno
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from ssl import SSLError
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dubito.errors import one_line
from dubito.llm.known_errors import NAMED_PARAMETER, UNKNOWN_MODEL, KnownError
from dubito.llm.limiter import format_duration
from dubito.llm.protocols import detect_protocol, find_protocol
from dubito.llm.protocols.wire import WireFormat
from dubito.llm.redaction import Redaction
from dubito.llm.request import AccountFault, Attempt, NonReply, NonReplyKind, ProtocolName, RawReply, Reply, TryFailed
from dubito.llm.settings import setting_fields
from dubito.llm.verdicts import Verdict, error_text, extract_sentence, judge_error, judge_error_in_body
from dubito.model_settings import Account, Api, is_on_this_machine
from dubito.store.spend import Spend

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
# Fields of a body that are not added by the player's `parameters`.
_FIXED_FIELDS: Final = frozenset(
    {
        *("model", "messages", "input", "system", "text", "store", "prompt_cache_key", "questions", "response_format"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    }
)
_REFUSALS: Final[Mapping[int, str]] = {403: "refused the request", 404: "found nothing", 405: "found nothing"}
_PROXY_LOGIN: Final = 407
_MINUTE, _YEAR = 60.0, 365 * 86_400.0  # seconds


class ErrorReader:
    """Turns the errors of one account's calls into TryFailed or AccountFault."""

    def __init__(self, account: Account, address: str, redaction: Redaction) -> None:
        self._account, self._address, self._redaction = account, address, redaction
        self._wire = find_protocol(account.api)

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
            problem = f"nothing answers at the proxy {proxy}, which {proxy.source} sets"
            return TryFailed("connection", problem, hint=f"start it, or correct {proxy.source}")
        if proxy and (refusal := _cause(error, httpx2.ProxyError)):
            problem = f"the proxy {proxy}, which {proxy.source} sets, did not connect"
            return TryFailed("connection", problem, quote=self._quote(str(refusal)))
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
        text, protocol = error_text(error), attempt.request.protocol
        verdict = (
            judge_error_in_body(error, {}, protocol) if status is None else judge_error(status, text, {}, protocol)
        )
        return self._read_verdict(verdict, f"status {verdict.status} in a batch", text, attempt)

    def read_status(
        self, status: int, text: str, headers: Mapping[str, str], attempt: Attempt
    ) -> TryFailed | AccountFault:
        """Read a response whose status is not a success."""
        if status < 400:
            # Redirects are never followed, since the question and the key are meant only for this server.
            target = self._quote(headers.get("location", "nowhere"))
            return self.blame(attempt, "base_url", f"redirects to another address (status {status})", target)
        proxy = None if is_on_this_machine(self._address) else _find_proxy(self._address)
        if status == _PROXY_LOGIN and proxy:
            problem = f"the proxy {proxy} needs a user and a password"
            return AccountFault(problem, quote=self._quote(text), hint=f"put them into {proxy.source}")
        verdict = judge_error(status, text, headers, attempt.request.protocol)
        return self._read_verdict(verdict, f"status {status}", text, attempt)

    def read_non_reply(self, body: NonReply, received: RawReply, attempt: Attempt) -> TryFailed | AccountFault:
        """Read a body with status 200 that is not a reply."""
        if body.kind is None:
            verdict = judge_error_in_body(body.error, received.headers, attempt.request.protocol)
            problem = f"status {received.status} with an error in the body"
            failed = self._read_verdict(verdict, problem, error_text(body.error), attempt)
            if isinstance(failed, TryFailed):
                failed.billed = body.generated is True or (body.generated is None and verdict.meaning == "server")
            return failed
        spoken = detect_protocol(received.raw) if body.kind == "json" and not attempt.place.is_in_game else None
        if spoken is not None:
            fields = setting_fields("api", attempt.place.player, spoken)
            uses = f"{one_line(attempt.place.player)} uses {self._wire.label}"
            problem = f"{self._address} answers in {find_protocol(spoken).label}, but {uses}"
            return AccountFault(problem, hint="set {setting}", **fields)
        problem = f"{describe_non_reply(body.kind, attempt.request.protocol)} with status {received.status}"
        return TryFailed("server", problem, billed=body.generated is True, quote=self._quote(received.raw))

    def blame(
        self, attempt: Attempt, setting: str, problem: str, quote: str = "", value: str = "", advice: str = ""
    ) -> AccountFault:
        """Return a fault that the user can fix by changing one of the player's settings."""
        hint, key_env = advice or ("set {setting}" if value else "change {setting}"), self._account.key_env
        if setting == "api_key_env" and key_env and not advice:
            hint = f"set {key_env}, or change {{setting}}"
        fields = setting_fields(setting, attempt.place.player, value)
        return AccountFault(f"{self._account} {problem}", quote=quote, hint=hint, **fields)

    def _read_unknown_path(self, status: int, quote: str, attempt: Attempt) -> AccountFault:
        """Read the error for a path that the server does not support, perhaps because it uses another protocol."""
        protocol = attempt.request.protocol
        other: Api = "responses" if protocol == "chat" else "chat"
        path = urlsplit(self._address).path.strip("/")
        uses = f"{one_line(attempt.place.player)} uses {self._wire.label}"
        hint = f"{uses}: set {{setting}}, or correct `base_url`"
        fields = setting_fields("api", attempt.place.player, other)
        has_version = self._wire.path.startswith("/v1")
        if has_version and path.endswith("v1"):
            hint, fields = "remove /v1 from the end of {setting}", setting_fields("base_url", attempt.place.player)
        elif not has_version and not path:
            hint = f"most servers need /v1 at the end of `base_url`; otherwise, set {{setting}}: {uses}"
        problem = f"{self._account} has no {self._wire.path} (status {status})"
        return AccountFault(problem, quote=quote, hint=hint, **fields)

    def _read_verdict(self, verdict: Verdict, status: str, text: str, attempt: Attempt) -> TryFailed | AccountFault:
        quote, known = self._quote(text), verdict.known
        match verdict.meaning:
            case "too_long" | "refused" | "rate_limit" | "server" as kind:
                place = setting_fields(known.setting, attempt.place.player)["where"] if known else ""
                hint = known.advice.replace("{setting}", place) if known else ""
                failed = TryFailed(kind, status, verdict.retry_after, quote=quote, hint=hint)
                failed.is_concurrent = verdict.is_concurrent
                return failed
            case "quota":
                problem = f"{self._account} has reached a daily or longer limit ({status})"
                hint = "resume when it is renewed"
                # A wait of less than a minute belongs to another limit.
                if verdict.retry_after is not None and _MINUTE <= verdict.retry_after < _YEAR:
                    moment = datetime.now() + timedelta(seconds=verdict.retry_after)
                    hint = f"resume in {format_duration(verdict.retry_after)}, at {moment:%Y-%m-%d %H:%M}"
                return AccountFault(problem, quote=quote, hint=hint)
            case "path":
                if re.search(r"\bmodel\b", text.lower()) or attempt.request.model in text:
                    return self._explain(UNKNOWN_MODEL, status, quote, attempt)
                if self._wire.writes_text:
                    return self._read_unknown_path(verdict.status, quote, attempt)
        if known is not None and known.setting == "system":
            return self._explain(known, status, quote, attempt)
        if verdict.meaning == "request" and attempt.place.attempt:
            # The question itself was answered, so the server objects to what a re-ask adds.
            return TryFailed("rejected", f"a re-ask was rejected ({status})", quote=quote)
        if known is not None and known.meaning != "path":
            return self._explain(known, status, quote, attempt)
        if verdict.status in NAMED_PARAMETER.statuses and (name := _find_parameter(text, attempt, self._wire)):
            problem = f"{NAMED_PARAMETER.problem} ({status})"
            return self.blame(attempt, f"{NAMED_PARAMETER.setting}.{name}", problem, quote)
        problem = f"{self._account} {_REFUSALS.get(verdict.status, 'rejected the request')} ({status})"
        fault = AccountFault(problem, quote=quote)
        fault.is_unexplained = verdict.status not in _REFUSALS
        return fault

    def _explain(self, known: KnownError, status: str, quote: str, attempt: Attempt) -> AccountFault:
        """Return the fault that a row of the table describes, with its advice."""
        model = one_line(attempt.request.model, 80)
        problem = f"{known.problem.replace('{model!r}', repr(model))} ({status})"
        if not known.setting:
            return AccountFault(f"{self._account} {problem}", quote=quote, hint=known.advice)
        value = known.value
        if known.setting == "response_format" and attempt.request.body.get(known.setting) == {"type": value}:
            value = "text"
        return self.blame(attempt, known.setting, problem, quote, value, known.advice)

    def _quote(self, text: str) -> str:
        return one_line(self._redaction.error(extract_sentence(self._redaction.error(text))), _MAX_QUOTED)


def describe_non_reply(kind: NonReplyKind, protocol: ProtocolName) -> str:
    return _NON_REPLIES[kind].format(find_protocol(protocol).reply_label)


def error_in_reply(errors: ErrorReader, reply: Reply, attempt: Attempt, cost: Spend) -> TryFailed | AccountFault | None:
    """Return the error, with its cost, if the body is not a reply. Such a body is neither used nor cached."""
    if reply.non_reply is None:
        return None
    failed = errors.read_non_reply(reply.non_reply, reply.received, attempt)
    is_billed = reply.usage is not None or (isinstance(failed, TryFailed) and failed.billed)
    failed.spent = cost if is_billed else Spend(calls=1)
    return failed


@dataclass(frozen=True, slots=True)
class _Proxy:
    """A proxy from the environment."""

    host: str  # with its port, without credentials
    source: str  # the variable that sets it

    def __str__(self) -> str:
        return self.host


def _find_proxy(address: str) -> _Proxy | None:
    """Return the proxy that is used for this address."""
    parts, proxies = urlsplit(address), getproxies()
    kind = parts.scheme if proxies.get(parts.scheme) else "all"
    proxy = proxies.get(kind)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    host = one_line(proxy.partition("://")[2].rpartition("@")[2].strip("/") or proxy.rpartition("@")[2], 80)
    # As in `getproxies`, the name in lower case comes first.
    names = sorted((name for name in os.environ if name.lower() == f"{kind}_proxy"), key=str.islower)
    return _Proxy(host, names[-1] if names else "the system")


def _cause(error: BaseException | None, kind: type[E]) -> E | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _find_parameter(text: str, attempt: Attempt, wire: type[WireFormat]) -> str | None:
    """Return the field of the player's `parameters` that a server's words name."""
    added = sorted(set(attempt.request.body) - _FIXED_FIELDS - {*wire.message_fields}, key=len, reverse=True)
    return next((name for name in added if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)), None)
