"""Single HTTP calls through a provider's own SDK.

The SDKs' retries are off. Base URL, organisation and project are passed as arguments and never read from the
environment. Bodies are read raw, so that a parser's exception cannot lose a paid reply. Gzip bodies are checked for
completeness, which the HTTP client does not do.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl

import httpx2

from dubito.errors import DubitoError
from dubito.llm.connections import Deadline
from dubito.llm.protocols import find_protocol, read_reply
from dubito.llm.provider_errors import ErrorReader
from dubito.llm.redaction import Redaction
from dubito.llm.request import AccountFault, Attempt, RawReply, TryFailed
from dubito.llm.streamed import StreamedReply, text_callback
from dubito.model_settings import Account, is_on_this_machine

_LOGGED_HEADERS: Final = ("request-id", "x-request-id", "retry-after", "retry-after-ms")
_LOGGED_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-")
_HEADER_VARIABLES: Final = ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS")
_ENVIRONMENT: Final = threading.Lock()
_KEEP_ALIVE: Final = re.compile(r"\btimeout=(\d{1,6})\b")
_MAX_REPLY_BYTES: Final = 8 * 2**20
_MAX_BATCH_BYTES: Final = 2**29
_NOT_FOUND: Final = (404, 405, 410, 501)
# Statuses of servers and proxies that fail when they should stream. Overload has others.
_STREAM_FAULTS: Final = (406, 415, 500, 501, 502, 504)
_STREAM_WORD: Final = re.compile(r"\bstream", re.IGNORECASE)
_GZIP_SIZE_BYTES: Final = 4  # size of the content, at the end of a gzip body
# Replacements for bodies that were not kept, and descriptions of them.
_TOO_LARGE: Final = b"(a body of more than 8 MB, which was not kept)"
_CUT_SHORT: Final = b"(a stream that ended before its reply did)"
_UNUSABLE: Final = {_TOO_LARGE: "a body of more than 8 MB", _CUT_SHORT: "a stream that ended before its reply did,"}
# This thread's current call: the size limit of its body, and how to read it if it is streamed.
_MAX_BYTES: Final = ContextVar("most unpacked bytes of a body", default=_MAX_REPLY_BYTES)
_STREAM: Final = ContextVar[StreamedReply | None]("reader of a streamed reply", default=None)


class NotFound(DubitoError):
    """The server has nothing at this path."""


class Provider:
    """The client of one account, shared by all threads."""

    def __init__(
        self,
        account: Account,
        address: str,
        key: str,
        connections: int,
        call_fields: Callable[[int], Mapping[str, Any]] = lambda game: {},
    ) -> None:
        """Create the client.

        Args:
            account: The account.
            address: The base URL of the account, or of a server that the run started.
            key: The key.
            connections: The maximum number of connections.
            call_fields: Returns what the calls of a game add to the body, which does not change the request's digest.
        """
        self._wire, self._key, self._call_fields = find_protocol(account.api), key, call_fields
        # Azure's base URLs end with `?api-version=...`.
        self._address, _, query = address.partition("?")
        self._query = dict(parse_qsl(query))
        self._connections, self._is_local = connections, is_on_this_machine(address)
        self._preparing, self._can_stream, self._is_closed = threading.Lock(), True, False
        self._redaction = Redaction(key)
        self.errors = ErrorReader(account, self._address, self._redaction)

    def send(self, attempt: Attempt, number: int, deadline: float) -> RawReply:
        """Make one HTTP call. Raises TryFailed or AccountFault."""
        headers = {}
        if self._is_local:
            # Only for the built-in server's repeatable faults. Other servers must not see it.
            headers = {"x-dubito-draw": attempt.draw, "x-dubito-try": str(number)}
        options = {"headers": headers, "timeout": deadline}
        callback, reader = text_callback() if self._can_stream else None, self._wire.event_reader
        body, stream = {**attempt.request.body, **self._call_fields(attempt.place.game)}, None
        if callback and reader:
            body = {**body, **self._wire.stream_fields}
            stream = StreamedReply(reader(), callback, self._redaction)
        before = _STREAM.set(stream)
        try:
            return self._receive(
                attempt,
                deadline,
                # Do not use the SDK's typed method, which may change the body.
                lambda client: client.post(attempt.request.path, cast_to=httpx2.Response, body=body, options=options),
            )
        finally:
            _STREAM.reset(before)

    def get(self, attempt: Attempt, deadline: float, path: str) -> RawReply:
        """Download the content at a path, such as the file of a batch.

        Raises NotFound and, like `send`, TryFailed or AccountFault.
        """
        options = {"timeout": deadline}
        return self._receive_batch(
            attempt, deadline, lambda client: client.get(path, cast_to=httpx2.Response, options=options)
        )

    def post(self, attempt: Attempt, deadline: float, path: str, **content: Any) -> RawReply:
        """Post `content` to a path in the form that the SDK's `post` expects.

        Raises the same errors as `get`.
        """
        options = {"timeout": deadline, **content.pop("options", {})}
        return self._receive_batch(
            attempt, deadline, lambda client: client.post(path, cast_to=httpx2.Response, options=options, **content)
        )

    def _receive_batch(self, attempt: Attempt, deadline: float, call: Callable[[Any], Any]) -> RawReply:
        before = _MAX_BYTES.set(_MAX_BATCH_BYTES)
        try:
            return self._receive(attempt, deadline, call)
        finally:
            _MAX_BYTES.reset(before)

    def _receive(self, attempt: Attempt, deadline: float, call: Callable[[Any], Any]) -> RawReply:
        """Make a call and return the received body. Raises TryFailed or AccountFault."""
        client, bound = self._client
        # The provider may have been closed before it had a client.
        if self._is_closed:
            bound.refuse_connections()
        with bound.within(deadline):
            try:
                response = self._call_again_if_stale(client, bound, call)
            except self._sdk.APIStatusError as error:
                response = error.response
                # An error about the model's output is a reply, though an unusable one.
                if read_reply(attempt.request.protocol, RawReply(200, response.text)).finish != "invalid":
                    raise self._status_error(response, attempt) from None
            except self._sdk.APIConnectionError as error:
                failed = self.errors.read_connection_error(error, deadline, attempt, is_late=bound.has_passed)
                # Some proxies cannot stream. The retry of this call does not stream, and is logged like any other.
                self._can_stream &= not (_STREAM.get() and failed.billed)
                raise failed from None
            except UnicodeEncodeError:
                raise self.errors.blame(
                    attempt, "api_key_env", "was not asked, since the key cannot be encoded"
                ) from None

        if timeout := _KEEP_ALIVE.search(response.headers.get("keep-alive", "")):
            bound.limit_idle(float(timeout[1]))
        # If a server's streams cannot be read, later calls do not stream.
        is_stream_lost = _STREAM.get() and not _has_events(response) and not response.content.startswith(b"{")
        self._can_stream &= response.content != _CUT_SHORT and not is_stream_lost
        problem = _UNUSABLE.get(response.content) or ("" if _is_complete(response) else "a truncated gzip body")
        if problem:
            raise TryFailed("server", f"{problem} with status {response.status_code}", billed=True)
        raw = self._redaction.reply(response.content.decode("utf-8", "replace"))
        return RawReply(response.status_code, raw, self._logged_headers(response.headers))

    def _status_error(self, response: httpx2.Response, attempt: Attempt) -> Exception:
        if response.status_code in _NOT_FOUND and _MAX_BYTES.get() == _MAX_BATCH_BYTES:
            return NotFound(response.status_code)
        failed = self.errors.read_status(response.status_code, response.text, response.headers, attempt)
        if _STREAM.get() and _may_need_no_stream(response, failed):
            self._can_stream = False
            problem = f"status {response.status_code} to a request for a streamed reply"
            failed = TryFailed("server", problem, quote=failed.quote)
        if isinstance(failed, TryFailed):
            failed.headers = self._logged_headers(response.headers)
        return failed

    def prepare(self) -> None:
        """Build the SDK's client if it does not exist yet."""
        with self._preparing:
            _ = self._client

    def _logged_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            name.lower(): self._redaction.reply(value)
            for name, value in headers.items()
            if name.lower() in _LOGGED_HEADERS or name.lower().startswith(_LOGGED_PREFIXES)
        }

    def _call_again_if_stale(self, client: Any, bound: Deadline, call: Callable[[Any], Any]) -> Any:
        """Return the response.

        If the server had closed an idle connection, the request was not sent, so try the next connection.
        """
        while True:
            try:
                return call(client)
            except self._sdk.APIConnectionError:
                if not bound.pop_stale() or bound.has_passed:
                    raise

    def close(self) -> None:
        """Close all connections, including any that an abandoned call is about to open."""
        self._is_closed = True
        if "_client" in self.__dict__:
            client, deadline = self._client
            deadline.refuse_connections()
            client.close()

    @cached_property
    def _sdk(self) -> Any:
        return self._wire.import_sdk()[0]

    @cached_property
    def _client(self) -> tuple[Any, Deadline]:
        """The SDK's client and the deadlines of its connections."""
        _, client_class = self._wire.import_sdk()
        limits = httpx2.Limits(max_connections=self._connections, max_keepalive_connections=self._connections)
        try:
            if self._is_local:
                # The SDK's own client would use the environment's proxy. Loading the certificates takes a while.
                certificates = not self._address.startswith("http:") and httpx2.create_ssl_context()
                client = httpx2.Client(limits=limits, trust_env=False, verify=certificates)
            else:
                client = client_class(limits=limits, follow_redirects=False)
        except Exception as error:
            raise AccountFault(_describe_bad_environment(error)) from None
        # These read the body before the SDK, which has no size limit.
        client.event_hooks["response"] += [_keep_gzip_end, _read_body]
        arguments = {"api_key": self._key, "base_url": self._address, "max_retries": 0, "http_client": client}
        # Hide environment variables with headers that the SDKs would send, with any credentials, to any server.
        with _ENVIRONMENT:
            hidden = {name: os.environ.pop(name) for name in _HEADER_VARIABLES if name in os.environ}
            try:
                sdk_client = self._wire.build_client(self._sdk, **arguments, default_query=self._query)
            finally:
                os.environ.update(hidden)
        return sdk_client, Deadline(client)


def _describe_bad_environment(error: Exception) -> str:
    """Return which variables prevent a client from being built. A proxy address may contain a password."""
    if isinstance(error, OSError):
        names = _variables_set("SSL_CERT_FILE", "SSL_CERT_DIR") or "this system's certificates"
        return f"cannot read the certificates ({error.strerror or 'no certificate in it'}): correct or unset {names}"
    names = _variables_set("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY") or "the system's proxy"
    if isinstance(error, ImportError):
        return f"a SOCKS proxy needs the extra `socks`: pip install 'dubito[socks]', or unset {names}"
    return f"cannot use the proxy settings ({type(error).__name__}): correct or unset {names}"


def _variables_set(*names: str) -> str:
    return " and ".join(name for each in names for name in (each, each.lower()) if os.environ.get(name))


def _may_need_no_stream(response: httpx2.Response, failed: TryFailed | AccountFault) -> bool:
    """Return whether the same request without streaming could be answered.

    OpenAI streams some models only to verified organizations, and some proxies fail without naming the reason.
    """
    if isinstance(failed, TryFailed) and failed.kind != "server":
        return False
    is_unexplained = isinstance(failed, AccountFault) and failed.is_unexplained
    return is_unexplained or response.status_code in _STREAM_FAULTS or _STREAM_WORD.search(response.text) is not None


def _has_events(response: httpx2.Response) -> bool:
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


@dataclass(slots=True)
class _BoundedBody:
    """The decompressed pieces of a body, up to a size limit."""

    response: httpx2.Response
    is_too_large: bool = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self.response.iter_bytes():
            size += len(piece)
            if size > _MAX_BYTES.get():
                self.is_too_large = True
                self.response.close()
                return
            yield piece


def _read_body(response: httpx2.Response) -> None:
    """Read the body in pieces, up to a limit. If the request asked for events, assemble the body from them."""
    pieces, stream = _BoundedBody(response), _STREAM.get() if _has_events(response) else None
    content = b"".join(pieces) if stream is None else stream.read(pieces) or _CUT_SHORT
    # httpx2 has no public way to set this.
    response._content = _TOO_LARGE if pieces.is_too_large else content


def _is_complete(response: httpx2.Response) -> bool:
    """Return whether the whole body was received. Only gzip bodies contain their size."""
    stream = response.stream
    if not isinstance(stream, _StreamWithEnd) or (_STREAM.get() and _has_events(response)):
        return True
    size = int.from_bytes(stream.end, "little")
    return size == len(response.content) & 0xFFFFFFFF


def _keep_gzip_end(response: httpx2.Response) -> None:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("gzip", "x-gzip"):
        # httpx2 does not support the old name.
        response.headers["content-encoding"] = "gzip"
        assert isinstance(response.stream, httpx2.SyncByteStream)
        response.stream = _StreamWithEnd(response.stream)


@dataclass(eq=False)
class _StreamWithEnd(httpx2.SyncByteStream):
    """A stream that remembers its last bytes."""

    stream: httpx2.SyncByteStream
    end: bytes = b""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.stream:
            self.end = (self.end + piece[-_GZIP_SIZE_BYTES:])[-_GZIP_SIZE_BYTES:]
            yield piece

    def close(self) -> None:
        self.stream.close()
