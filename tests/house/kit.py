"""Helpers for tests of the built-in model server: a small policy, both SDKs, and one question for all protocols."""

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import anthropic
import httpx2
import openai
from pydantic import BaseModel, ConfigDict

from dubito.games.dubito.game import GAME
from dubito.house.core import Call, Policy, house_policy
from dubito.house.request import Opinion
from dubito.house.server import House
from dubito.model_settings import Api


class Answer(BaseModel):
    """A parsed response, whatever the protocol."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answer: bool


SCHEMA: Final[Mapping[str, Any]] = Answer.model_json_schema()
FORMATS: Final[Mapping[str, Any]] = {
    "responses": {"text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}}},
    "chat": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    },
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
}
PROTOCOLS: Final[Sequence[Api]] = ("responses", "chat", "messages")
SEEN: list[str] = []  # the prompts that the policy below received


def _play(model: str, prompt: str, chance: Random, schema: Mapping[str, Any] | None) -> Opinion:
    SEEN.append(prompt)
    if model == "house-random":
        return Opinion(chance.random() < 0.5, understood=False)
    return Opinion("say yes" in prompt, understood=True)


_HOUSE: Final = house_policy([GAME])


def opinion(model: str, prompt: str, chance: Random, schema: Mapping[str, Any] | None = None) -> Opinion:
    return _HOUSE.answer(model, prompt, chance, schema)


POLICY: Final = Policy(("house-random", "house-honest"), _play)


def _client_options() -> dict[str, Any]:
    return {"max_retries": 0, "timeout": 30, "http_client": httpx2.Client(verify=False)}


@contextmanager
def openai_at(house: House, key: str = "any") -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=house.openai_base_url, api_key=key, **_client_options()) as client:
        yield client


@contextmanager
def anthropic_at(house: House, key: str = "any") -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=house.anthropic_base_url, api_key=key, **_client_options()) as client:
        yield client


class Asker:
    """Asks through both SDKs, for tests in which all protocols behave the same."""

    def __init__(self, house: House, key: str = "any") -> None:
        self._openai = openai.OpenAI(base_url=house.openai_base_url, api_key=key, **_client_options())
        self._anthropic = anthropic.Anthropic(base_url=house.anthropic_base_url, api_key=key, **_client_options())

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._openai.close()
        self._anthropic.close()

    def __call__(
        self, protocol: str, prompt: str = "?", *, model: str = "house-random", draw: int = 0, attempt: int = 1
    ) -> tuple[int, str]:
        """Return the status and body of one try.

        For errors the body is their type; without a response the status is 0.
        """
        headers = {"x-dubito-draw": str(draw), "x-dubito-try": str(attempt)}
        messages: Any = [{"role": "user", "content": prompt}]
        try:
            if protocol == "responses":
                reply: Any = self._openai.responses.with_raw_response.create(
                    model=model, input=messages, extra_headers=headers, **FORMATS[protocol]
                )
            elif protocol == "chat":
                reply = self._openai.chat.completions.with_raw_response.create(
                    model=model, messages=messages, extra_headers=headers, **FORMATS[protocol]
                )
            else:
                reply = self._anthropic.messages.with_raw_response.create(
                    model=model, max_tokens=100, messages=messages, extra_headers=headers, **FORMATS[protocol]
                )
        except (openai.APIStatusError, anthropic.APIStatusError) as error:
            return error.status_code, str(error.type)
        except (openai.APIConnectionError, anthropic.APIConnectionError) as error:
            return 0, type(error).__name__
        return reply.status_code, reply.http_response.text


def answer_in(body: str) -> bool:
    return Answer.model_validate_json(text_and_end(body)[0] or "").answer


def text_and_end(body: str) -> tuple[str | None, str]:
    """Return the text in a reply of any protocol, even a refusal's, and the finish reason."""
    reply = json.loads(body)
    if "choices" in reply:
        choice = reply["choices"][0]
        refusal = choice["message"]["refusal"]
        return (refusal, "refusal") if refusal else (choice["message"]["content"], choice["finish_reason"])
    if "content" in reply:
        texts = [block["text"] for block in reply["content"] if block["type"] == "text"]
        return (texts[0] if texts else None), reply["stop_reason"]
    parts = [part for item in reply["output"] if item["type"] == "message" for part in item["content"]]
    if not parts:
        return None, (reply["incomplete_details"] or {"reason": reply["status"]})["reason"]
    if parts[0]["type"] == "refusal":
        return parts[0]["refusal"], "refusal"
    return parts[0]["text"], (reply["incomplete_details"] or {"reason": reply["status"]})["reason"]


def usage_in(body: str) -> tuple[int, int, int]:
    """Return the input tokens (including cached ones), output tokens and cached tokens in a reply of any protocol."""
    usage = json.loads(body)["usage"]
    if "prompt_tokens" in usage:
        return usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"]["cached_tokens"]
    if "input_tokens_details" in usage:
        return usage["input_tokens"], usage["output_tokens"], usage["input_tokens_details"]["cached_tokens"]
    cached = usage["cache_read_input_tokens"]
    return usage["input_tokens"] + cached, usage["output_tokens"], cached


@contextmanager
def bare(house: House, draw: int = 0) -> Iterator[socket.socket]:
    """Open a connection and send one request without an SDK."""
    body = b'{"model":"house-honest","input":"say yes"}'
    head = f"POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer any\r\nx-dubito-draw: {draw}\r\n"
    head += "connection: close\r\n"
    with socket.create_connection(("127.0.0.1", house.port)) as connection:
        connection.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        yield connection


def rest(connection: socket.socket) -> bytes | None:
    """Return all remaining bytes, or None if the connection was reset."""
    received = b""
    try:
        while more := connection.recv(2**16):
            received += more
    except ConnectionResetError:
        return None
    return received


def wait_for_calls(house: House, count: int) -> list[Call]:
    """Return the log as soon as it contains this many calls."""
    for _ in range(10**7):
        if len(house.calls) >= count:
            return house.calls
    raise AssertionError(f"only {len(house.calls)} of {count} calls came to the log")
