"""The smallest JSON that fits a schema, and schemas that the providers reject."""

import json
from enum import Enum
from typing import Any, Literal, get_args

import pytest
from pydantic import BaseModel, ConfigDict

from dubito.house.request import Opinion, Refusal, RefusalKind, answer_text, check_schema
from dubito.house.wires import AnthropicWire, ChatWire, ResponsesWire


class Mood(Enum):
    """A definition that other types reference."""

    CALM = "calm"


class Inner(BaseModel):
    """A nested object."""

    model_config = ConfigDict(extra="forbid")

    answer: bool
    number: float


class Rich(BaseModel):
    """Every kind of field that an answer schema can have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reason: str
    answer: bool
    maybe: bool | None
    nothing: str | None
    number: int
    cards: list[int]
    inner: Inner
    mood: Mood
    word: Literal["a", "b"]
    always: Literal["x"]


YES = Opinion(answer=True, understood=True)


@pytest.mark.parametrize("answer", [True, False])
def test_the_text_fits_the_schema(answer: bool) -> None:
    schema = check_schema(Rich.model_json_schema(), "schema", requires_all=True)
    text = answer_text(schema, Opinion(answer, understood=True))
    rich = Rich.model_validate_json(text)
    assert (rich.answer, rich.maybe, rich.inner.answer) == (answer, answer, answer)
    assert (rich.nothing, rich.number, rich.cards, rich.mood, rich.word) == (None, 0, [], Mood.CALM, "a")
    assert rich.reason
    assert text == json.dumps(json.loads(text), separators=(",", ":")), "compact"
    assert list(json.loads(text)) == list(Rich.model_fields), "fields are in order, so models reason before they answer"


def test_optional_fields_are_omitted_except_the_answer() -> None:
    properties = {"answer": {"type": ["null", "boolean"]}, "note": {"type": "string"}}
    assert answer_text({"type": "object", "properties": properties}, YES) == '{"answer":true}'
    assert answer_text(None, Opinion(answer=False, understood=True)) == '{"answer":false}'


NUMBER, NULL = {"type": "number"}, {"type": "null"}


@pytest.mark.parametrize(
    ("form", "stated", "written"),
    [
        ({"anyOf": [NUMBER, NULL]}, 0.125, "0.125"),
        ({"anyOf": [NUMBER, NULL]}, None, "null"),
        ({"type": ["number", "null"]}, 1.0, "1.0"),
        (NUMBER, 0.125, "0.125"),
        (NUMBER, None, "0"),
        ({"type": "boolean"}, 0.125, "true"),
        (NULL, 0.125, "null"),
    ],
)
def test_stated_probability_fills_its_field(form: dict[str, Any], stated: float | None, written: str) -> None:
    properties = {"reasoning": {"type": "string"}, "p_bluff": form, **ANSWER}
    schema = check_schema({**CLOSED, "properties": properties, "required": [*properties]}, "schema", requires_all=True)
    text = answer_text(schema, Opinion(answer=True, understood=True, stated=stated))
    assert text == f'{{"reasoning":"The house has no reasons.","p_bluff":{written},"answer":true}}'


def test_probability_is_not_stated_without_a_field() -> None:
    asked = {**CLOSED, "properties": ANSWER, "required": ["answer"]}
    assert answer_text(asked, Opinion(answer=True, understood=True, stated=0.5)) == '{"answer":true}'


CLOSED = {"type": "object", "additionalProperties": False}
ANSWER = {"answer": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("schema", "requires_all", "reason"),
    [
        (None, False, "must be an object"),
        ({"type": "object"}, False, "additionalProperties"),
        ({**CLOSED, "properties": {"inner": {"type": "object"}}}, False, "additionalProperties"),
        ({"anyOf": [{"type": "null"}, {"type": "object"}]}, False, "additionalProperties"),
        ({**CLOSED, "$defs": {"inner": {"type": "object"}}}, False, "additionalProperties"),
        ({**CLOSED, "properties": ANSWER}, True, "'required' is required"),
        ({**CLOSED, "properties": {"answer": 7}}, False, "not a valid JSON schema"),
        ({"$ref": "#/$defs/absent"}, False, "not a valid JSON schema"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, False, "not a valid JSON schema"),
    ],
)
def test_invalid_schema_is_refused(schema: Any, requires_all: bool, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_schema(schema, "schema", requires_all)
    assert caught.value.kind == "bad_schema"
    assert reason in str(caught.value.facts["reason"])


def test_optional_properties_pass_where_not_all_must_be_required() -> None:
    schema = {**CLOSED, "properties": ANSWER}
    assert check_schema(schema, "schema", requires_all=False) == schema


def test_every_protocol_covers_every_refusal() -> None:
    for wire in (ResponsesWire, ChatWire, AnthropicWire):
        assert set(wire.problems) == set(get_args(RefusalKind))
