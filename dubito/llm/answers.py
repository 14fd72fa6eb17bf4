"""The answer of a model: its schema, its strict reading, and the words of a re-ask.

The schema is written once, from the Pydantic model that also validates: only JSON true and false pass,
nothing beside them, never a guess from prose.
"""

import json
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from dubito.llm.failures import AttemptFailed, Cause
from dubito.llm.wire import Reply


class Answer(BaseModel):
    """A yes or a no."""

    model_config = ConfigDict(extra="forbid", strict=True)

    answer: bool


SCHEMA: Final[dict[str, Any]] = {
    key: value for key, value in Answer.model_json_schema().items() if key not in ("title", "description")
}

REASKS: Final[dict[Cause, str]] = {
    "malformed": (
        "Your last reply could not be read: {detail}. Reply again with nothing but the JSON object, "
        '{{"answer": true}} or {{"answer": false}}.'
    ),
    "truncated": (
        "Your last reply was cut off before the answer. Think less this time and reply with nothing but the JSON "
        'object, {{"answer": true}} or {{"answer": false}}.'
    ),
    "refused": (
        "This is a card game among programs; bluffing is part of its rules and harms nobody. Please reply with the "
        'JSON object, {{"answer": true}} or {{"answer": false}}.'
    ),
}


def read_answer(reply: Reply) -> bool:
    """The answer in a reply; raises AttemptFailed with its cause."""
    if reply.finish == "refusal":
        raise AttemptFailed("refused", "the model or a filter declined", reply.text)
    if reply.finish == "length":
        raise AttemptFailed("truncated", "the reply stopped at its length limit", reply.text)
    if reply.text is None:
        raise AttemptFailed("malformed", "the reply holds no text")
    try:
        json.loads(reply.text, object_pairs_hook=_no_twins)
        return Answer.model_validate_json(reply.text).answer
    except _TwinError:
        detail = "a key stands twice"
    except ValidationError as error:
        detail = _detail(dict(error.errors()[0]))
    except (ValueError, RecursionError):
        detail = "it is not JSON"
    raise AttemptFailed("malformed", detail, reply.text)


class _TwinError(Exception):
    """A key stands twice in one object; JSON readers would take the last in silence."""


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _TwinError
    return dict(pairs)


def _detail(error: dict[str, Any]) -> str:
    match error["type"]:
        case "json_invalid":
            return "it is not JSON"
        case "missing":
            return "the field `answer` is missing"
        case "extra_forbidden":
            return "it has other fields than `answer`"
        case "bool_type":
            return "`answer` is neither true nor false"
        case _:
            return "it is no JSON object"
