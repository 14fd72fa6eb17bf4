"""Only JSON true and false pass, alone in their object; everything else is a named failure, never a guess."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dubito.llm.answers import REASKS, SCHEMA, Answer, read_answer
from dubito.llm.failures import CAUSES, AttemptFailed
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.wire import Finish, Protocol, Received, Reply
from tests.llm.kit import PROTOCOLS, settings


def said(text: str | None, finish: Finish = "stop") -> Reply:
    return Reply(text, finish, None, Received(200, ""))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"answer": true}', True),
        ('{"answer":false}', False),
        (' \r\n\t{ "answer" :\n true }\n\n', True),
        ('{"\\u0061nswer": false}', False),
    ],
)
def test_json_true_and_false_are_the_answer(text: str, answer: bool) -> None:
    assert read_answer(said(text)) is answer


NO_JSON = "it is not JSON"
NO_OBJECT = "it is no JSON object"
NO_BOOL = "`answer` is neither true nor false"
OTHERS = "it has other fields than `answer`"
MALFORMED = {
    "a text": ('{"answer": "true"}', NO_BOOL),
    "one": ('{"answer": 1}', NO_BOOL),
    "zero": ('{"answer": 0}', NO_BOOL),
    "a float": ('{"answer": 1.0}', NO_BOOL),
    "null": ('{"answer": null}', NO_BOOL),
    "a list of it": ('{"answer": [true]}', NO_BOOL),
    "an object of it": ('{"answer": {"answer": true}}', NO_BOOL),
    "a nested answer": ('{"answer": {"a": {"b": [true]}}}', NO_BOOL),
    "a field more": ('{"answer": true, "reason": "he lies"}', OTHERS),
    "twins": ('{"answer": true, "answer": false}', "a key stands twice"),
    "equal twins": ('{"answer": true, "answer": true}', "a key stands twice"),
    "twins by an escape": ('{"answer": true, "\\u0061nswer": false}', "a key stands twice"),
    "twins further in": ('{"answer": {"x": 1, "x": 2}}', "a key stands twice"),
    "another case": ('{"Answer": true}', "the field `answer` is missing"),
    "an empty object": ("{}", "the field `answer` is missing"),
    "a list": ('[{"answer": true}]', NO_OBJECT),
    "a bare bool": ("true", NO_OBJECT),
    "a bare text": ('"true"', NO_OBJECT),
    "a fence": ('```json\n{"answer": true}\n```', NO_JSON),
    "prose": ("Yes, I doubt it.", NO_JSON),
    "prose before": ('My answer: {"answer": true}', NO_JSON),
    "a text behind": ('{"answer": true} because he lies', NO_JSON),
    "two objects": ('{"answer": true}{"answer": true}', NO_JSON),
    "cut off": ('{"answer": tr', NO_JSON),
    "Python": ("{'answer': True}", NO_JSON),
    "a comma behind": ('{"answer": true,}', NO_JSON),
    "a byte order mark": ('\ufeff{"answer": true}', NO_JSON),
    "nothing": ("", NO_JSON),
    "blanks": (" \n ", NO_JSON),
    "no-break spaces": ('\u00a0{"answer": true}', NO_JSON),
    "a surrogate": ("\ud800", NO_JSON),
    "huge nesting": ("[" * 100_000 + "]" * 100_000, NO_JSON),
    "huge nesting of objects": ('{"answer":' * 100_000 + "true" + "}" * 100_000, NO_JSON),
}


@pytest.mark.parametrize(("text", "detail"), MALFORMED.values(), ids=MALFORMED)
def test_anything_else_is_malformed_and_says_why(text: str, detail: str) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(said(text))
    assert (failed.value.cause, failed.value.detail, failed.value.text) == ("malformed", detail, text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "9" * 5000, "1e999"])
def test_numbers_that_are_none_are_malformed(number: str) -> None:
    with pytest.raises(AttemptFailed, match=r"^malformed: .") as failed:
        read_answer(said(f'{{"answer": {number}}}'))
    assert failed.value.detail in (NO_BOOL, NO_JSON)


def test_a_lone_surrogate_inside_an_answer_is_malformed() -> None:
    with pytest.raises(AttemptFailed, match=r"^malformed: "):
        read_answer(said('{"answer": "\ud800"}'))
    with pytest.raises(AttemptFailed, match=r"^malformed: "):
        read_answer(said('{"answer": "\\ud800"}'))


@pytest.mark.parametrize(
    ("finish", "cause", "detail"),
    [
        ("refusal", "refused", "the model or a filter declined"),
        ("length", "truncated", "the reply stopped at its length limit"),
    ],
)
@pytest.mark.parametrize("text", [None, "I will not", '{"answer": true}'])
def test_how_the_model_finished_counts_before_its_text(
    finish: Finish, cause: str, detail: str, text: str | None
) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(said(text, finish))
    assert (failed.value.cause, failed.value.detail, failed.value.text) == (cause, detail, text)


@pytest.mark.parametrize("finish", ["stop", "other"])
def test_no_text_is_malformed(finish: Finish) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(said(None, finish))
    assert (failed.value.cause, failed.value.detail) == ("malformed", "the reply holds no text")


@given(st.text())
def test_a_text_is_the_answer_or_malformed(text: str) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(said(text))
    assert failed.value.cause == "malformed"


def no_answer(value: Any) -> bool:
    return not (isinstance(value, dict) and set(value) == {"answer"} and type(value["answer"]) is bool)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["answer", "x"]) | st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES.filter(no_answer))
def test_json_that_is_no_answer_is_malformed(value: Any) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(said(json.dumps(value)))
    assert failed.value.cause == "malformed"
    assert failed.value.detail


def test_the_schema_is_the_one_that_is_validated() -> None:
    assert SCHEMA == {
        "type": "object",
        "properties": {"answer": {"title": "Answer", "type": "boolean"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    assert set(SCHEMA["properties"]) == set(Answer.model_fields)
    with pytest.raises(ValidationError):
        Answer.model_validate({"answer": True, "more": 1})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_schema_is_sent_in_each_protocol(protocol: Protocol) -> None:
    body = build_request(settings(protocol), Exchange("system", "user"), "key").body
    if protocol == "responses":
        assert body["text"] == {
            "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA},
        }
    else:
        assert body["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}


def test_a_cause_that_asking_again_may_mend_has_its_words() -> None:
    assert set(REASKS) == set(CAUSES) - {"unreachable", "too_long"}
    assert "it is not JSON" in REASKS["malformed"].format(detail=NO_JSON)
    for words in REASKS.values():
        assert '{"answer": true} or {"answer": false}' in words.format(detail="x")
