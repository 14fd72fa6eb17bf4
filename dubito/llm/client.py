"""One HTTP call through a provider's own SDK, and every way it can fail put under its right name.

The SDKs' retries are off; base URL, organisation and project are told, never read from the environment.
A body is taken raw, so that a reply that was paid for is never lost to a parser's exception.

Whether a packed body came to its end: the HTTP client unpacks what there is of it, and does not say.

A deadline for a whole HTTP call, kept on the socket, since a synchronous call cannot be cancelled.

An HTTP client's timeouts are per socket operation: a server that trickles a byte a second never meets one. Here every
connect, read and write gets no more time than the calling thread's deadline leaves.

Servers close idle connections, and a call that is sent just then is lost. So a connection is used again only if it
was idle for less than servers are known to wait. One that turns out closed all the same can be told from a lost
answer: the server's machine answers a request that nobody reads with a reset, and one that was read without.
"""

import errno
import os
import re
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import cached_property, partial
from ssl import SSLContext, SSLError
from time import monotonic
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from dubito.errors import DubitoError, one_line
from dubito.llm.limiter import span_in_words as length
from dubito.llm.protocols import protocol_of
from dubito.llm.redaction import Redaction
from dubito.llm.request import AccountFault, Api, Ask, Failure, Instead, RawReply, Reply, TryFailed
from dubito.llm.settings import Account, is_on_this_machine, where_said
from dubito.llm.streamed import STREAMS, Tell, body_of, listener
from dubito.llm.verdicts import SYSTEM_ROLE, Verdict, text_of, verdict, verdict_within
from dubito.store.model_log import Spend

E = TypeVar("E", bound=BaseException)
_KEPT_HEADERS: Final = ("request-id", "x-request-id", "retry-after", "retry-after-ms")
_KEPT_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-")
_HEADER_VARIABLES: Final = ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS")
_ENVIRONMENT: Final = threading.Lock()
_KEEP_ALIVE: Final = re.compile(r"\btimeout=(\d{1,6})\b")
_MOST: Final = ContextVar("bytes of a body, unpacked", default=8 * 2**20)
_LONGEST: Final = 2**29  # bytes of a file of replies
_NOT_THERE: Final = (404, 405, 410, 501)
_TOO_LARGE: Final = b"(a body of more than 8 MB, which was not kept)"
_CUT_SHORT: Final = b"(a stream that ended before its reply did)"
_LOST: Final = {_TOO_LARGE: "a body of more than 8 MB", _CUT_SHORT: "a stream that ended before its reply did,"}
_STREAMED: Final = ContextVar[tuple[Api, Tell] | None]("the protocol of events, and who hears them", default=None)
_INSTEAD: Final[Mapping[Instead, str]] = {  # of a reply
    "empty": "an empty body",
    "page": "a web page",
    "stream": "an event stream that nobody asked for",
    "text": "a text that is no JSON",
    "unreadable": "JSON that is cut short or cannot be read",
    "json": "JSON that is no {}",
}
_APIS: Final[Mapping[Api, str]] = {
    "responses": "the Responses API",
    "chat": "Chat Completions",
    "messages": "the Messages API",
    "decisions": "the Decisions API",
}
_NO_PATH: Final = re.compile(
    r"not.found|not.allowed|cannot post|invalid url|path|route|unknown endpoint", re.IGNORECASE
)
_PATHS: Final[Mapping[Api, str]] = {
    "responses": "/responses",
    "chat": "/chat/completions",
    "messages": "/v1/messages",
}
_REPLIES: Final[Mapping[Api, str]] = {
    "responses": "response of the Responses API",
    "chat": "chat completion",
    "messages": "message of the Messages API",
    "decisions": "answer of the Decisions API",
}
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {  # what the harness sends by its own settings
    "max_output": ("max_output_tokens", "max_completion_tokens", "max_tokens"),
    "response_format": ("response_format",),
}
_UNKNOWN: Final = ("unsupported", "not supported", "not permitted", "unknown", "unrecognized")
_UNNAMED: Final = "parameters"
_A_MINUTE, _A_YEAR = 60.0, 365 * 86_400.0  # seconds
_SENT: Final = {"model", "messages", "input", "system", "text", "store", "prompt_cache_key", "questions"}


class _NoStreamsError(Exception):
    """The server streams nothing to this account, or nothing of this model: OpenAI verifies organisations first."""


class NotThere(DubitoError):
    """The server knows nothing under this path."""


class Provider:
    """The client of one account; shared by all threads."""

    def __init__(self, account: Account, address: str, key: str, connections: int) -> None:
        """`address` is the account's base URL, with the house's port where it is the house."""
        self._account, self._key = account, key
        self._address, _, query = address.partition("?")  # as Azure's `?api-version=...`
        self._query = dict(parse_qsl(query))
        self._connections, self._is_here = connections, is_on_this_machine(address)
        self._preparing, self._streams, self._is_closed = threading.Lock(), True, False
        self._redacts = Redaction(key)

    def send(self, ask: Ask, number: int, deadline: float) -> RawReply:
        """Make one HTTP call; raises TryFailed or AccountFault."""
        headers = {}
        if self._is_here:  # for the house's repeatable faults; nobody else is told
            headers = {"x-dubito-draw": ask.draw, "x-dubito-try": str(number)}
        options = {"headers": headers, "timeout": deadline}
        streams, hear = STREAMS.get(ask.request.protocol, {}), listener() if self._streams else None
        body, wanted = ask.request.body, None
        if streams and hear:
            body, wanted = {**body, **streams}, (ask.request.protocol, partial(self._tell, hear))
        reading = _STREAMED.set(wanted)
        try:
            return self._receive(
                ask,
                deadline,
                # not the SDK's typed method: what is sent is the body to the letter
                lambda client: client.post(ask.request.path, cast_to=self._raw, body=body, options=options),
            )
        except _NoStreamsError:
            self._streams = False
            return self.send(ask, number, deadline)
        finally:
            _STREAMED.reset(reading)

    def _tell(self, hear: Tell, words: str) -> None:
        hear(self._redacts.reply(words))

    def errand(self, ask: Ask, deadline: float, path: str, **sent: Any) -> RawReply:
        """A call that is no try: what is `sent`, as the SDK's `post` takes it, or a question if that is nothing.

        Its answer may be long. `ask` is a request that it is made for. Raises as a try does, and NotThere.
        """
        options = {"timeout": deadline, **sent.pop("options", {})}
        before = _MOST.set(_LONGEST)
        try:
            if sent:
                return self._receive(
                    ask, deadline, lambda client: client.post(path, cast_to=self._raw, options=options, **sent)
                )
            return self._receive(ask, deadline, lambda client: client.get(path, cast_to=self._raw, options=options))
        finally:
            _MOST.reset(before)

    def _receive(self, ask: Ask, deadline: float, call: Callable[[Any], Any]) -> RawReply:
        """Return what a call received; raises TryFailed or AccountFault."""
        client, bound = self._client
        if self._is_closed:  # perhaps before there was a client
            bound.refuse_connections()
        with bound.within(deadline):
            try:
                response = self._call_anew(client, bound, call)
            except self._errors.APIStatusError as error:
                if _STREAMED.get() and error.response.status_code == 400 and b"stream" in error.response.content:
                    raise _NoStreamsError from None
                if error.response.status_code in _NOT_THERE and _MOST.get() == _LONGEST:
                    raise NotThere(error.response.status_code) from None
                failure = self._status(error.response, ask)
                if isinstance(failure, TryFailed):
                    failure.headers = self._keep_headers(error.response.headers)
                raise failure from None
            except self._errors.APIConnectionError as error:
                raise self._lost(error, bound.passed, deadline, ask) from None
            except UnicodeEncodeError:
                raise self._fault(ask, "api_key_env", "was not asked: the key cannot be written") from None

        if keeps := _KEEP_ALIVE.search(response.headers.get("keep-alive", "")):
            bound.idle_below(float(keeps[1]))
        self._streams &= response.content != _CUT_SHORT  # a server whose streams cannot be read is asked without
        if what := _LOST.get(response.content) or (None if whole(response) else "a gzip body that was cut short"):
            raise TryFailed("server", f"{what} with status {response.status_code}", billed=True)
        raw = self._redacts.reply(response.content.decode("utf-8", "replace"))
        return RawReply(response.status_code, raw, self._keep_headers(response.headers))

    def prepare(self) -> None:
        with self._preparing:
            _ = self._client

    def _keep_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self._redacts.reply(value) for name, value in _kept_headers(headers).items()}

    def _call_anew(self, client: Any, bound: "Deadline", call: Callable[[Any], Any]) -> Any:
        """Return the response. A connection that the server closed while idle has carried nothing: try the next."""
        while True:
            try:
                return call(client)
            except self._errors.APIConnectionError:
                if not bound.stale or bound.passed:
                    raise

    def close(self) -> None:
        """Close all connections, also one that a call given up on is still opening."""
        self._is_closed = True
        if "_client" in self.__dict__:
            client, deadline = self._client
            deadline.refuse_connections()
            client.close()

    @cached_property
    def _errors(self) -> Any:
        """The SDK's module, which holds its errors. Imported late: it takes a second."""
        if self._account.api == "messages":
            import anthropic

            return anthropic
        import openai

        return openai

    @cached_property
    def _raw(self) -> type[Any]:
        import httpx2

        return httpx2.Response

    @cached_property
    def _client(self) -> "tuple[Any, Deadline]":
        """The SDK's client, and the deadlines of its connections."""
        import httpx2

        limits = httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections)
        sdk, messages = self._errors, self._account.api == "messages"
        default = sdk.DefaultHttpxClient if messages else sdk.DefaultHttpx2Client
        try:
            if self._is_here:  # the SDKs' own clients would put the environment's proxy between
                # To read the world's certificates takes a while.
                secure = not self._address.startswith("http:") and httpx2.create_ssl_context()
                client = httpx2.Client(limits=limits, trust_env=False, verify=secure)
            else:
                client = default(limits=limits, follow_redirects=False)
        except Exception as error:
            raise AccountFault(_network_settings_error(error)) from None
        client.event_hooks["response"] += [_watch, _read_within]  # before the SDK reads it, all at once
        common = {"api_key": self._key, "base_url": self._address, "max_retries": 0, "http_client": client}
        common["default_query"] = self._query
        with _without_custom_headers():
            if messages:
                return sdk.Anthropic(**common, auth_token=None), Deadline(client)
            none = {"OpenAI-Organization": sdk.Omit(), "OpenAI-Project": sdk.Omit()}
            return sdk.OpenAI(**common, default_headers=none), Deadline(client)

    def _lost(self, error: Exception, late: bool, deadline: float, ask: Ask) -> TryFailed:
        """No answer came. Unless no connection was made, the server may have answered, and may bill it."""
        import httpx2

        sent = not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        if late:
            return TryFailed("deadline", f"no complete answer within the deadline of {deadline:g} s", billed=sent)
        proxy = None if self._is_here else _proxy_for(self._address)
        if proxy and (_cause(error, socket.gaierror) or _cause(error, ConnectionRefusedError)):
            return TryFailed("connection", f"nothing answers at the proxy {proxy}: start it, or correct HTTPS_PROXY")
        if (unknown := _cause(error, socket.gaierror)) is not None:
            host = one_line(urlsplit(self._address).hostname or self._address, 80)
            why = one_line(str(unknown.strerror), 80)
            return TryFailed("connection", f"the name {host!r} is not known (DNS: {why}); check `base_url`")
        full = _cause(error, OSError)
        if full is not None and full.errno in (errno.EMFILE, errno.ENFILE):
            return TryFailed("connection", f"{full.strerror}: lower `in_flight`, or raise `ulimit -n`")
        if _cause(error, ConnectionRefusedError) is not None:
            nobody = f"nothing answers at {self._address} (connection refused)"
            failed = TryFailed("connection", nobody)
            failed.todo = f"{nobody}: start the server, or correct {where_said('base_url', ask.place.player)}"
            return failed
        if (handshake := _cause(error, SSLError)) is not None:
            failed = TryFailed("connection", f"no TLS at {self._address} ({one_line(str(handshake), 80)})")
            failed.todo = f"{failed.reason}: a server without a certificate has an http:// address"
            return failed
        cause = f": {type(error.__cause__).__name__}" if error.__cause__ else ""
        reason = self._scrubbed(f"{type(error).__name__}: {error}{cause}")
        return TryFailed("connection", reason, billed=sent)

    def entry_failure(self, status: int | None, error: Any, ask: Ask) -> TryFailed | AccountFault:
        found = verdict_within(error, {}) if status is None else verdict(status, text_of(error), {})
        return self._failure(found, f"status {found.status} in a batch", text_of(error), ask)

    def failure(self, came: Failure, received: RawReply, ask: Ask) -> TryFailed | AccountFault:
        """What it means that this came with status 200."""
        if came.instead is not None:
            spoken = protocol_of(received.raw) if came.instead == "json" and not ask.place.in_game else None
            if spoken is not None:
                return AccountFault(f"{self._address} answers in {_APIS[spoken]}, but {_asks(ask, spoken)}")
            brief = f"{instead_in_words(came.instead, ask.request.protocol)} with status {received.status}"
            said = self._scrubbed(received.raw) or None
            return TryFailed("server", brief, billed=came.generated is True, said=said)
        found = verdict_within(came.error, received.headers)
        failed = self._failure(found, f"status {received.status} with an error in it", text_of(came.error), ask)
        if isinstance(failed, TryFailed):
            failed.billed = came.generated is True or (came.generated is None and found.meaning == "server")
        return failed

    def _status(self, response: Any, ask: Ask) -> TryFailed | AccountFault:
        status = response.status_code
        if status < 400:  # the question is for this server alone, and so is the key
            to = self._scrubbed(response.headers.get("location", "nowhere"))
            return self._fault(ask, "base_url", f"sends us elsewhere (status {status})", to)
        found = verdict(status, response.text, response.headers)
        if found.meaning == "model" and _is_of_a_path(response.text, ask) and ask.request.protocol in _PATHS:
            return self._unknown_path(status, self._scrubbed(response.text), ask)
        return self._failure(found, f"status {status}", response.text, ask)

    def _unknown_path(self, status: int, said: str, ask: Ask) -> AccountFault:
        """The server may know another protocol's path."""
        protocol = ask.request.protocol
        other: Api = "responses" if protocol == "chat" else "chat"
        here = where_said("base_url", ask.place.player)
        what, todo = (
            f"{self._account} has no {_PATHS[protocol]} (status {status}",
            f"{_asks(ask, other)}, or correct {here}",
        )
        path = urlsplit(self._address).path.strip("/")
        if protocol == "messages" and path.endswith("v1"):
            todo = f"take /v1 off the end of {here}"
        elif protocol != "messages" and not path:
            todo = f"most servers want /v1 at the end of {here}; or else {todo}"
        return AccountFault(f"{what}{said and ': '}{said}), and {todo}", f"{what}), and {todo}")

    def _failure(self, found: Verdict, brief: str, text: str, ask: Ask) -> TryFailed | AccountFault:
        said = self._scrubbed(text)
        match found.meaning:
            case "too_long" | "refused" | "rate_limit" | "server" as kind:
                failed = TryFailed(kind, brief, found.retry_after, said=said)
                failed.at_once = found.at_once
                return failed
            case "size":
                what = f"takes no request of this size ({brief}); the output that it reserves counts"
                return self._fault(ask, "max_output", what, said)
            case "quota":
                what, todo = f"{self._account} has used up a limit of a day or longer ({brief})", _resume_at(found)
                return AccountFault(f"{what}: {said}; {todo}", f"{what}; {todo}")
            case "money":
                broke = f"{self._account} has no money left"
                if found.status == 402:
                    return AccountFault(f"{broke} ({brief}); top it up")
                what, todo = f"{broke}, or no quota ({brief})", "; top it up, or go on when it is renewed"
                return AccountFault(f"{what}: {said}{todo}", f"{what}{todo}")
            case "key":
                return self._fault(ask, "api_key_env", f"refused the key ({brief})")
            case "model":
                model = one_line(str(ask.request.body.get("model")), 80)
                return self._fault(ask, "model", f"has no model {model!r}, or `api` or `base_url` is wrong", said)
            case "request":
                return self._rejected(brief, text, ask)

    def _rejected(self, brief: str, text: str, ask: Ask) -> TryFailed | AccountFault:
        """Return whose fault a rejected request is: the re-ask's alone, or a setting's that the user has to change."""
        said = self._scrubbed(text)
        if SYSTEM_ROLE.search(text.lower()):
            return self._fault(ask, "system", f"takes no system message ({brief})", said, "user")
        if ask.place.attempt:  # the question itself was answered, so what is wrong is what a re-ask adds
            return TryFailed("rejected", f"a re-ask was rejected ({brief})", said=said)
        named = _setting_complained_of(text, ask)
        fault = self._fault(ask, named, f"rejected the request ({brief})", said)
        fault.stray = named == _UNNAMED
        return fault

    def _fault(self, ask: Ask, setting: str, what: str, said: str | None = None, to: str = "") -> AccountFault:
        """Return the fault that the user has to fix: which setting to change (`to` what), and what the server said."""
        hint = f"set {self._account.key_env}, or change " if setting == "api_key_env" and self._account.key_env else ""
        todo = f"; {hint or ('say ' if to else 'change ')}{where_said(setting, ask.place.player, to)}"
        if setting == _UNNAMED and self._account.key_env is None:
            key = where_said("api_key_env", ask.place.player)
            todo += f", or name the variable of a key in {key}: none was sent"
        told = what if said is None else f"{what}: {said}"
        return AccountFault(f"{self._account} {told}{todo}", f"{self._account} {what}{todo}")

    def _scrubbed(self, text: str) -> str:
        return one_line(self._redacts.error(text), 240)


def error_in_place(provider: Provider, reply: Reply, ask: Ask, cost: Spend) -> TryFailed | AccountFault | None:
    """What stands in a reply's place, with what it cost: such a body is never used and never cached."""
    if reply.failure is None:
        return None
    failed = provider.failure(reply.failure, reply.received, ask)
    billed = reply.usage is not None or (isinstance(failed, TryFailed) and failed.billed)
    failed.spent = cost if billed else Spend(calls=1)
    return failed


def _network_settings_error(error: Exception) -> str:
    """Return what in the environment keeps a client from being made; a proxy's address may hold a password."""
    if isinstance(error, OSError):
        named = _variables_set("SSL_CERT_FILE", "SSL_CERT_DIR") or "this system's certificates"
        return f"cannot read the certificates ({error.strerror or 'no certificate in it'}): correct or unset {named}"
    named = _variables_set("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY") or "the system's proxy"
    if isinstance(error, ImportError):
        return f"a SOCKS proxy needs the extra `socks`: pip install 'dubito[socks]', or unset {named}"
    return f"cannot use the proxy settings ({type(error).__name__}): correct or unset {named}"


def _variables_set(*names: str) -> str:
    return " and ".join(name for each in names for name in (each, each.lower()) if os.environ.get(name))


def _asks(ask: Ask, instead: Api) -> str:
    asked = f"{one_line(ask.place.player)} asks in {_APIS[ask.request.protocol]}"
    return f"{asked}: add {where_said('api', ask.place.player, instead)}"


def _proxy_for(address: str) -> str | None:
    """Return the host and port of the environment's proxy for this address, without its credentials."""
    parts, proxies = urlsplit(address), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc):
        return None
    return one_line(proxy.partition("://")[2].rpartition("@")[2].strip("/") or proxy, 80)


def _is_of_a_path(said: str, ask: Ask) -> bool:
    of_model = "model" in said.lower() or str(ask.request.body.get("model")) in said
    return not said.strip() or (not of_model and _NO_PATH.search(said) is not None)


def _cause(error: BaseException | None, kind: type[E]) -> E | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def instead_in_words(instead: Instead, protocol: Api) -> str:
    return _INSTEAD[instead].format(_REPLIES[protocol])


def _setting_complained_of(said: str, ask: Ask) -> str:
    """The setting that a server complains of: a parameter of the player's, or one of the harness's own."""
    limited = any(name in said and name in ask.request.body for name in ("max_tokens", "max_completion_tokens"))
    if ask.request.protocol == "chat" and limited and any(words in said.lower() for words in _UNKNOWN):
        return "output_limit"  # such a server knows it by its other name
    for setting, names in _SETTINGS.items():
        if any(name in said for name in names):
            return setting
    own = sorted(set(ask.request.body) - _SENT, key=len, reverse=True)
    return next((f"parameters.{name}" for name in own if name in said), _UNNAMED)


def _resume_at(found: Verdict) -> str:
    """When a used-up limit is renewed, by the server's own words; a wait shorter than a minute is of another limit."""
    if found.retry_after is None or not _A_MINUTE <= found.retry_after < _A_YEAR:
        return "go on when it is renewed"
    moment = datetime.now() + timedelta(seconds=found.retry_after)
    return f"go on in {length(found.retry_after)}, at {moment:%Y-%m-%d %H:%M}"


def _has_events(response: Any) -> bool:
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


def _read_within(response: Any) -> None:
    """Read the body in pieces, unpacked, up to a limit; what is longer is no reply, and none of it is kept.

    Events that were asked for are told to whoever listens; the body is what they make.
    """
    size = 0

    def pieces() -> Iterator[bytes]:
        nonlocal size
        for piece in response.iter_bytes():
            size += len(piece)
            if size > _MOST.get():
                response.close()
                return
            yield piece

    wanted = _STREAMED.get() if _has_events(response) else None
    content = b"".join(pieces()) if wanted is None else body_of(wanted[0], pieces(), wanted[1]) or _CUT_SHORT
    response._content = _TOO_LARGE if size > _MOST.get() else content  # httpx2 has no public way to say it


@contextmanager
def _without_custom_headers() -> Iterator[None]:
    """Hide the variables from which the SDKs would take headers, credentials too, for any server at all."""
    with _ENVIRONMENT:
        hidden = {name: os.environ.pop(name) for name in _HEADER_VARIABLES if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(hidden)


def _kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() in _KEPT_HEADERS or name.lower().startswith(_KEPT_PREFIXES)
    }


_SIZE: Final = 4  # bytes at the end of a gzip body: how long the text is that it holds


def whole(response: httpx2.Response) -> bool:
    """Whether a received body is all there, as far as its packing tells."""
    stream = response.stream
    if not isinstance(stream, _Tail):
        return True
    if _STREAMED.get() and _has_events(response):  # the events say so
        return True
    said = int.from_bytes(stream.end, "little")
    return said == len(response.content) & 0xFFFFFFFF


def _watch(response: httpx2.Response) -> None:
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing in ("gzip", "x-gzip"):
        response.headers["content-encoding"] = "gzip"  # httpx does not know its old name
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _Tail(response.stream)


class _Tail(httpx2.SyncByteStream):
    """A stream of which the last bytes are kept."""

    def __init__(self, stream: httpx2.SyncByteStream) -> None:
        self._stream = stream
        self.end = b""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self.end = (self.end + piece[-_SIZE:])[-_SIZE:]
            yield piece

    def close(self) -> None:
        self._stream.close()


_IDLE: Final = 4.0  # seconds; common servers wait 5 and more
_RESET: Final = 200  # milliseconds in which such a reset comes


class Deadline:
    """The deadlines of the threads that use one client, and how long its connections may idle."""

    def __init__(self, client: httpx2.Client) -> None:
        """Bind the client's connections: all that it will make keep to the deadlines."""
        self._thread = threading.local()
        self.idle = _IDLE
        self._worked = 0.0
        self._streams, self._lock, self._refuses = set["_Stream"](), threading.Lock(), False
        for transport in (client._transport, *client._mounts.values()):  # httpx2 has no public way to say it
            if isinstance(transport, httpx2.HTTPTransport):
                pool: Any = transport._pool
                pool._network_backend = _Backend(pool._network_backend, self)

    def keep_open(self, stream: "_Stream") -> None:
        """Keep an opened connection; raises ConnectError and closes it if the client was closed meanwhile."""
        with self._lock:
            if not self._refuses:
                self._streams.add(stream)
                return
        stream.close()
        raise httpcore2.ConnectError("the client was closed")

    def forget(self, stream: "_Stream") -> None:
        with self._lock:
            self._streams.discard(stream)

    def refuse_connections(self) -> None:
        """Close what is open and whatever a thread opens from now on: closing httpcore2's pool misses those."""
        with self._lock:
            self._refuses, streams = True, list(self._streams)
        for stream in streams:
            stream.close()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Give this thread so many seconds for what it does on the network within."""
        self._thread.until = monotonic() + seconds
        self._thread.stale = False
        try:
            yield
        finally:
            self._thread.until = None

    @property
    def passed(self) -> bool:
        until: float | None = getattr(self._thread, "until", None)
        return until is not None and monotonic() >= until

    @property
    def stale(self) -> bool:
        found, self._thread.stale = getattr(self._thread, "stale", False), False
        return bool(found)

    def lost_after(self, idle: float, stale: bool) -> None:
        self._thread.stale = stale
        if stale or idle > self._worked:
            self.idle_below(idle)

    def worked_after(self, idle: float) -> None:
        self._worked = max(self._worked, idle)

    def idle_below(self, seconds: float) -> None:
        self.idle = min(self.idle, seconds / 2)

    def left(self, timeout: float | None) -> float | None:
        """The seconds an operation may take; raises ReadTimeout when there are none."""
        until = getattr(self._thread, "until", None)
        if until is None:
            return timeout
        left: float = until - monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the deadline has passed")
        return left if timeout is None else min(left, timeout)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline
        self._read = 0.0  # when bytes came last; 0: never
        self._idled: float | None = None  # seconds before a request that has no byte of an answer yet
        self._unsent = False  # the end of a request
        deadline.keep_open(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = self._stream.read(max_bytes, self._deadline.left(timeout))
        except httpcore2.ReadError:
            self._end_connection(self._unsent)
            raise
        if not data:
            self._end_connection(self._idled is not None and (self._unsent or self._was_reset()))
        elif self._idled is not None:
            self._deadline.worked_after(self._idled)
        self._read, self._idled = monotonic(), None
        return data

    def _end_connection(self, stale: bool) -> None:
        """No byte came. Raises ConnectError if the connection had served before, and was closed before it was asked."""
        if self._idled is not None:
            self._deadline.lost_after(self._idled, stale)
            if stale:
                raise httpcore2.ConnectError("the server had closed the connection before it was asked") from None

    def _was_reset(self) -> bool:
        """Whether a reset came after the server had closed the connection; False on systems that do not tell."""
        connection = self._stream.get_extra_info("socket")
        if not isinstance(connection, socket.socket) or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(connection, 0)  # only for errors
        poll.poll(_RESET)
        return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EPIPE

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._read and self._idled is None:
            self._idled = monotonic() - self._read
        try:
            self._stream.write(buffer, self._deadline.left(timeout))
        except httpcore2.WriteError:
            self._unsent = True
            raise

    def close(self) -> None:
        self._deadline.forget(self)
        self._stream.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left(timeout))
        self._deadline.forget(self)  # its socket belongs to the encrypted stream now
        return _Stream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._read and monotonic() - self._read > self._deadline.idle:
            return True  # so httpcore2, which asks this only of idle connections, takes it as ended
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend, deadline: Deadline) -> None:
        self._backend, self._deadline = backend, deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = self._backend.connect_tcp(host, port, self._deadline.left(timeout), local_address, socket_options)
        return _Stream(stream, self._deadline)
