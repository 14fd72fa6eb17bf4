"""One HTTP call through a provider's own SDK, and every way it can fail put under its right name.

The SDKs' retries are off; base URL, organisation and project are told, never read from the environment.
A body is taken raw, so that a reply that was paid for is never lost to a parser's exception.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from dubito.errors import one_line
from dubito.llm.failures import AccountFault, TryFailed
from dubito.llm.settings import Account, is_loopback
from dubito.llm.wire import Ask, Received

_KEPT_HEADERS: Final = ("request-id", "x-request-id", "retry-after", "retry-after-ms")
_KEPT_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-")
_HEADER_VARIABLES: Final = ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS")
_ENVIRONMENT: Final = threading.Lock()
_RATE_LIMIT: Final = (408, 409, 429)
_TOO_LONG: Final = ("context_length_exceeded", "prompt is too long", "request_too_large", "context window")
_NO_MONEY: Final = (
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit",
    "credit balance",
    "spend limit",
    "spend_limit",
)


class Provider:
    """The client of one account; shared by all threads."""

    def __init__(self, account: Account, address: str, key: str, connections: int) -> None:
        """`address` is the account's base URL, with the house's port where it is the house."""
        self._account, self._address, self._key = account, address, key
        self._connections = connections

    def __call__(self, ask: Ask, number: int, deadline: float) -> Received:
        """Make one try; raises TryFailed or AccountFault."""
        headers = {}
        if is_loopback(self._address):  # for the house's repeatable faults; nobody else is told
            headers = {"x-dubito-draw": ask.draw, "x-dubito-try": str(number)}
        try:
            response = self._create(dict(ask.request.body), headers, deadline)
        except self._errors.APIStatusError as error:
            raise self._status(error.response, ask.request.body) from None
        except self._errors.APIConnectionError as error:
            raise TryFailed("connection", self._scrubbed(f"{type(error).__name__}: {error}")) from None
        except UnicodeEncodeError:
            raise self._fault("was not asked: key or request cannot be written", "check the key") from None
        raw = self._without_key(response.content.decode("utf-8", "replace"))
        return Received(response.status_code, raw, _kept(response.headers))

    def close(self) -> None:
        """Close the connections, if any were made."""
        if "_client" in self.__dict__:
            self._client.close()

    @cached_property
    def _errors(self) -> Any:
        """The SDK's module, which holds its errors. Imported late: it takes a second."""
        if self._account.api == "messages":
            import anthropic

            return anthropic
        import openai

        return openai

    @cached_property
    def _client(self) -> Any:
        import httpx2

        limits = httpx2.Limits(
            max_connections=self._connections, max_keepalive_connections=self._connections, keepalive_expiry=60
        )
        sdk, messages = self._errors, self._account.api == "messages"
        if is_loopback(self._address):  # the SDKs' own clients would put the environment's proxy between
            client = httpx2.Client(limits=limits, trust_env=False, follow_redirects=True)
        else:
            client = (sdk.DefaultHttpxClient if messages else sdk.DefaultHttpx2Client)(limits=limits)
        common = {"api_key": self._key, "base_url": self._address, "max_retries": 0, "http_client": client}
        with _without_custom_headers():
            if messages:
                return sdk.Anthropic(**common, auth_token=None)
            none = {"OpenAI-Organization": sdk.Omit(), "OpenAI-Project": sdk.Omit()}
            return sdk.OpenAI(**common, default_headers=none)

    def _create(self, body: dict[str, Any], headers: Mapping[str, str], deadline: float) -> Any:
        """The raw HTTP response. What is sent is the body to the letter: the SDK gets the rest as `extra_body`."""
        options = {"extra_headers": headers, "timeout": deadline}
        model = body.pop("model")
        if self._account.api == "messages":
            messages, most = body.pop("messages"), body.pop("max_tokens")
            raw = self._client.messages.with_raw_response.create(
                model=model, messages=messages, max_tokens=most, extra_body=body, **options
            )
        else:
            raw = self._client.responses.with_raw_response.create(
                model=model, input=body.pop("input"), extra_body=body, **options
            )
        return raw.http_response

    def _status(self, response: Any, body: Mapping[str, Any]) -> TryFailed | AccountFault:
        status, text = response.status_code, response.text
        said = self._scrubbed(text)
        folded = text.lower()
        if status in (400, 413) and any(words in folded for words in _TOO_LONG):
            return TryFailed("too_long", f"status {status}: {said}")
        if status == 402 or (status in (400, 403, 429) and any(words in folded for words in _NO_MONEY)):
            return self._fault(
                f"has no money left (status {status})", "top it up, then run the same config into a new --output"
            )
        if status in _RATE_LIMIT:
            return TryFailed("rate_limit", f"status {status}: {said}", _retry_after(response.headers))
        if status >= 500:
            return TryFailed("server", f"status {status}: {said}", _retry_after(response.headers))
        if status in (401, 403):
            return self._fault(f"refused the key (status {status})", f"check {self._account.key_env or 'base_url'}")
        if status == 404:
            return self._fault(
                f"has no model {one_line(str(body.get('model')), 80)!r}, or is no such server: {said}",
                "check `model` and `base_url`",
            )
        return self._fault(f"rejected the request (status {status}): {said}", "check `parameters` and `model`")

    def _fault(self, what: str, then: str) -> AccountFault:
        return AccountFault(f"{self._account} {what}; {then}")

    def _scrubbed(self, text: str) -> str:
        return one_line(self._without_key(text), 240)

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***")


@contextmanager
def _without_custom_headers() -> Iterator[None]:
    """Hide the variables from which the SDKs would take headers, credentials too, for any server at all."""
    with _ENVIRONMENT:
        hidden = {name: os.environ.pop(name) for name in _HEADER_VARIABLES if name in os.environ}
        try:
            yield
        finally:
            os.environ.update(hidden)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name.lower(): value
        for name, value in headers.items()
        if name.lower() in _KEPT_HEADERS or name.lower().startswith(_KEPT_PREFIXES)
    }


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `retry-after-ms` or `retry-after` in seconds."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None
