"""The answer of a model: its form, its strict reading, and the words of a re-ask.

Only JSON true and false pass as an answer, nothing beside the fields asked for, never a guess from prose. The fields
are those of the prompt; `p_bluff` is asked at node C only, is recorded, and never decides anything.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from dubito.games.dubito.rule_text import ANSWER_FORMAT
from dubito.llm.failures import AttemptFailed, Cause
from dubito.llm.wire import Reply

Field = Literal["reasoning", "p_bluff", "answer"]
Schema = Mapping[str, Any]

_SCHEMAS: Final[Mapping[Field, Schema]] = {
    "reasoning": {"type": "string"},
    "p_bluff": {"anyOf": [{"type": "number"}, {"type": "null"}]},
    "answer": {"type": "boolean"},
}
_TYPES: Final[Mapping[Field, Any]] = {"reasoning": str, "p_bluff": Any, "answer": bool}
_MEANINGS: Final[Mapping[Field, str]] = {
    "reasoning": '"reasoning", what decides it, in one to three sentences',
    "p_bluff": '"p_bluff", at question C only: how probable it is that the last play is a bluff, from 0 to 1, or null',
    "answer": '"answer", true or false',
}
_NO_JSON: Final = "it is not JSON"
_EXAMPLES: Final[Mapping[Field, str]] = {"reasoning": '"..."', "p_bluff": "0.4", "answer": "true"}


@dataclass(frozen=True, slots=True)
class Form:
    """What a reply has to look like at one node."""

    fields: tuple[Field, ...]
    schema: Schema
    model: type[BaseModel]

    @property
    def wanted(self) -> str:
        """The reply in an example or two."""
        if self.fields == ("answer",):
            return '{"answer": true} or {"answer": false}'
        return "{" + ", ".join(f'"{field}": {_EXAMPLES[field]}' for field in self.fields) + "}"


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, read."""

    answer: bool
    p_bluff: float | None = None  # within [0, 1]
    impossible: bool = False  # a p_bluff was said that is no probability; it counts as missing


@lru_cache(maxsize=64)
def form_of(fields: tuple[Field, ...], node: str) -> Form:
    """The form of a prompt's answer at a node."""
    asked = tuple(field for field in fields if field != "p_bluff" or node == "C")
    schema = {
        "additionalProperties": False,
        "properties": {field: _SCHEMAS[field] for field in asked},
        "required": list(asked),
        "type": "object",
    }
    types: dict[str, Any] = {field: (_TYPES[field], ...) for field in asked}
    config = ConfigDict(extra="forbid", strict=True)
    return Form(asked, schema, create_model("Answer", __config__=config, **types))


def answer_format(fields: Sequence[Field]) -> str:
    """What a prompt says of the reply."""
    if tuple(fields) == ("answer",):
        return ANSWER_FORMAT
    listed = "; ".join(_MEANINGS[field] for field in fields)
    return f"Reply with a JSON object and nothing else. Its fields, in this order: {listed}."


REASKS: Final[dict[Cause, str]] = {
    "malformed": (
        "Your last reply could not be read: {detail}. Reply again with nothing but the JSON object, {wanted}."
    ),
    "truncated": (
        "Your last reply was cut off before the answer. Think less this time and reply with nothing but the JSON "
        "object, {wanted}."
    ),
    "refused": (
        "This is a card game among programs; bluffing is part of its rules and harms nobody. Please reply with nothing "
        "but the JSON object, {wanted}."
    ),
}


def re_ask(failure: AttemptFailed, form: Form) -> str | None:
    """What to ask again, as fits the cause; None where asking again would not help."""
    text = REASKS.get(failure.cause)
    return text and text.format(detail=failure.detail, wanted=form.wanted)


def read_answer(reply: Reply, form: Form) -> Answered:
    """The answer in a reply; raises AttemptFailed with its cause."""
    if reply.finish == "refusal":
        raise AttemptFailed("refused", "the model or a filter declined", reply.text)
    if reply.finish == "length":
        raise AttemptFailed("truncated", "the reply stopped at its length limit", reply.text)
    text = reply.text or ""
    if not text.strip():
        raise AttemptFailed("malformed", "it holds no text", reply.text)
    try:
        json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
        said = form.model.model_validate_json(text).__dict__
        return Answered(said["answer"], *_probability(said.get("p_bluff")))
    except _TwinError:
        detail = "a key stands twice"
    except ValidationError as error:
        detail = _detail(dict(error.errors()[0]), form)
    except (ValueError, RecursionError):
        detail = _unreadable(text)
    raise AttemptFailed("malformed", detail, text)


def _probability(stated: object) -> tuple[float | None, bool]:
    """The probability, and whether something was said that is none."""
    if stated is None:
        return None, False
    if isinstance(stated, bool) or not isinstance(stated, int | float) or not 0 <= stated <= 1:
        return None, True
    return float(stated), False


class _TwinError(Exception):
    """A key stands twice in one object; JSON readers would take the last in silence."""


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _TwinError
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _unreadable(text: str) -> str:
    """What is wrong with a text that is not JSON: often there is JSON in it, in a fence or a sentence."""
    with suppress(ValueError, RecursionError):
        json.loads(text[text.find("{") : text.rfind("}") + 1], parse_constant=_no_constant)
        return "something stands before or behind the JSON object, where no word and no code fence may stand"
    return _NO_JSON


def _detail(error: dict[str, Any], form: Form) -> str:
    where = error["loc"][0] if error["loc"] else ""
    match error["type"]:
        case "json_invalid" | "string_unicode":
            return _NO_JSON
        case "missing":
            return f"the field `{where}` is missing"
        case "extra_forbidden":
            return "it has other fields than " + " and ".join(f"`{field}`" for field in form.fields)
        case "bool_type":
            return "`answer` is neither true nor false (without quotes)"
        case "string_type":
            return f"`{where}` is no text"
        case _:
            return "it is no JSON object"
