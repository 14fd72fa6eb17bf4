"""What the tests of the house share: a small policy of their own, the two real SDKs, one question for both."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import anthropic
import openai
from pydantic import BaseModel, ConfigDict

from dubito.house.core import Policy
from dubito.house.server import House


class Answer(BaseModel):
    """The answer as a harness would have it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answer: bool


SCHEMA: Final[Mapping[str, Any]] = Answer.model_json_schema()
FORMATS: Final[Mapping[str, Any]] = {
    "responses": {"text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
}
SEEN: list[str] = []  # the prompts that the policy below has got


def _play(model: str, prompt: str, chance: Random) -> tuple[bool, bool]:
    SEEN.append(prompt)
    if model == "house-random":
        return chance.random() < 0.5, False
    return "say yes" in prompt, True


POLICY: Final = Policy(("house-random", "house-honest"), _play)


@contextmanager
def openai_at(house: House, key: str = "any") -> Iterator[openai.OpenAI]:
    """OpenAI's SDK, pointed at the house."""
    with openai.OpenAI(base_url=house.openai_base_url, api_key=key, max_retries=0, timeout=30) as client:
        yield client


@contextmanager
def anthropic_at(house: House, key: str = "any") -> Iterator[anthropic.Anthropic]:
    """Anthropic's SDK, pointed at the house."""
    with anthropic.Anthropic(base_url=house.anthropic_base_url, api_key=key, max_retries=0, timeout=30) as client:
        yield client


class Asker:
    """Both SDKs behind one question; gives back status and answer, for the tests in which both do the same."""

    def __init__(self, house: House, key: str = "any") -> None:
        self._openai = openai.OpenAI(base_url=house.openai_base_url, api_key=key, max_retries=0, timeout=30)
        self._anthropic = anthropic.Anthropic(base_url=house.anthropic_base_url, api_key=key, max_retries=0, timeout=30)

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._openai.close()
        self._anthropic.close()

    def __call__(
        self, protocol: str, prompt: str = "?", *, model: str = "house-random", draw: int = 0, attempt: int = 1
    ) -> tuple[int, str]:
        """Status and body of one try; for an error the body is the error's type."""
        headers = {"x-dubito-draw": str(draw), "x-dubito-try": str(attempt)}
        messages: Any = [{"role": "user", "content": prompt}]
        try:
            if protocol == "responses":
                reply: Any = self._openai.responses.with_raw_response.create(
                    model=model, input=messages, extra_headers=headers, **FORMATS[protocol]
                )
            else:
                reply = self._anthropic.messages.with_raw_response.create(
                    model=model, max_tokens=100, messages=messages, extra_headers=headers, **FORMATS[protocol]
                )
        except (openai.APIStatusError, anthropic.APIStatusError) as error:
            return error.status_code, str(error.type)
        return reply.status_code, reply.http_response.text


def answer_in(body: str) -> bool:
    """The answer in the body of a reply of either protocol."""
    reply = json.loads(body)
    text = reply["output"][0]["content"][0]["text"] if "output" in reply else reply["content"][0]["text"]
    return Answer.model_validate_json(text).answer
