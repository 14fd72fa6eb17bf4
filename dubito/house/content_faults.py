"""What can be wrong with a reply that arrives in full, with status 200: its text, its shape, or its bytes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, AnyStr, Final

from dubito.house.request import JsonBody, canonical
from dubito.house.wire_base import ModelOutput

PAGE: Final = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
_DEEP_TEXT: Final = 2_000  # Python's own reader gives up at half of it, and it fits the usual limit on output
_DEEP_BODY: Final = 100_000
_REFUSAL: Final = "I'm sorry, but I can't help with that."
_ESCAPES: Final = "\x1b[2J\x1b]0;house\x07\x1b[31m\r\x00\u202e"  # what would clear, name and colour a terminal


@dataclass(frozen=True, slots=True)
class ContentFault:
    """What is written in place of the text, and what is sent in place of the body; `size` of `pack` is in bytes."""

    write: Callable[[str], ModelOutput] = ModelOutput
    pack: Callable[[JsonBody, int], bytes] = lambda body, size: canonical(body)
    media: str = "application/json"
    counted: bool = True  # whether a reader finds the usage in it


def _said(text: Callable[[str], str]) -> ContentFault:
    """A fault that changes what the model writes."""
    return ContentFault(write=lambda said: ModelOutput(text(said)))


def _sent(pack: Callable[[JsonBody, int], bytes]) -> ContentFault:
    """A fault that changes the body, in which no usage is to be found then."""
    return ContentFault(pack=pack, counted=False)


CONTENT_FAULTS: Final[Mapping[str, ContentFault]] = {
    "fenced": _said(lambda text: f"```json\n{text}\n```"),
    "prose": _said(lambda text: f"I have thought about it. My answer is {text}. I hope this helps!"),
    "wrong_string": _said(lambda text: _answering(text, _as_text(_answer(text)))),
    "wrong_number": _said(lambda text: _answering(text, _as_number(_answer(text)))),
    "wrong_null": _said(lambda text: _answering(text, None)),
    "nan": _said(lambda text: _answering(text, float("nan"))),
    "no_answer": _said(lambda text: "{}"),
    "duplicate_keys": _said(lambda text: f'{text[:-1]},"answer":{json.dumps(not _answer(text))}}}'),
    "extra_fields": _said(lambda text: f'{text[:-1]},"confidence":"high"}}'),
    "surrogate": _said(lambda text: f'{text[:-1]},"mood":"\ud83d"}}'),
    "escapes": _said(lambda text: f"{_ESCAPES}{text}"),
    "deep": _said(lambda text: f'{{"answer":{"[" * _DEEP_TEXT}{"]" * _DEEP_TEXT}}}'),
    "empty_text": _said(lambda text: ""),
    "no_output": ContentFault(write=lambda text: ModelOutput(None)),
    "reasoning_only": ContentFault(write=lambda text: ModelOutput(None, "stop", f"I would say {text}")),
    "reasoning_cut": ContentFault(write=lambda text: ModelOutput(None, "length", f"I would say {text}, but then")),
    "cut_off": ContentFault(write=lambda text: ModelOutput(_half(text), "length")),
    "refusal": ContentFault(write=lambda text: ModelOutput(_REFUSAL, "refused")),
    "content_filter": ContentFault(write=lambda text: ModelOutput(_half(text), "filtered")),
    "unknown_fields": ContentFault(pack=lambda body, size: canonical(_with_unknown(body))),
    "huge": ContentFault(pack=lambda body, size: canonical({**body, "padding": "x" * size})),
    "no_usage": _sent(lambda body, size: canonical({name: body[name] for name in body if name != "usage"})),
    "bad_usage": _sent(lambda body, size: canonical({**body, "usage": dict.fromkeys(body["usage"], -1)})),
    "deep_body": _sent(lambda body, size: canonical(body)[:-1] + b',"deep":' + _nested(_DEEP_BODY) + b"}"),
    "truncated_json": _sent(lambda body, size: _half(canonical(body))),
    "broken_json": _sent(lambda body, size: canonical(body).replace(b'"', b"'")),
    "wrong_shape": _sent(lambda body, size: canonical([body])),
    "empty_body": _sent(lambda body, size: b""),
    "html": ContentFault(pack=lambda body, size: PAGE, media="text/html", counted=False),
}

NO_REPLIES: Final = frozenset({"truncated_json", "broken_json", "deep_body", "wrong_shape", "empty_body", "html"})


def _answer(text: str) -> Any:
    """The answer in the text; whether any in it is true, where it stands deeper or is yes or no."""
    said = json.loads(text)
    answer = said.get("answer") if isinstance(said, dict) else None
    return '"answer":true' in text if answer is None or isinstance(answer, bool) else answer


def _as_text(answer: Any) -> str:
    """A text that is no answer of its kind."""
    return f"{answer}!" if isinstance(answer, str) else json.dumps(answer)


def _as_number(answer: Any) -> float:
    """A number that is no answer of its kind."""
    if isinstance(answer, bool):
        return int(answer)
    return answer + 0.5 if isinstance(answer, int) else 1


def _answering(text: str, value: object) -> str:
    """The text with that for an answer."""
    said = json.loads(text)
    return json.dumps({**(said if isinstance(said, dict) else {}), "answer": value}, separators=(",", ":"))


def _half(text: AnyStr) -> AnyStr:
    return text[: len(text) // 2]


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _with_unknown(value: object) -> object:
    """The value with a field that nobody knows in each of its objects."""
    if isinstance(value, list):
        return [_with_unknown(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_unknown(item) for name, item in value.items()} | {"house_novelty": {"since": 2027}}
    return value
