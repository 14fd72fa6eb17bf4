"""Answers with reasoning and a stated probability: the request, the parsed reply, and what has no effect."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.games.dubito.game import GAME
from dubito.llm.answers import Field, Form, ModelAnswer, answer_format, build_form, read_answer
from dubito.llm.request import AttemptFailed, RawReply, Reply

ALL: tuple[Field, ...] = ("reasoning", "p_bluff", "answer")
AT_C = build_form(ALL, GAME.node("C"))
AROUND = "there is text or a code fence before or after the JSON object"


def read(text: str, form: Form = AT_C) -> ModelAnswer:
    return read_answer(Reply(text, "stop", None, RawReply(200, "")), form)


def malformed(text: str, form: Form = AT_C) -> str:
    """Return why a reply is malformed."""
    with pytest.raises(AttemptFailed) as failed:
        read(text, form)
    assert (failed.value.cause, failed.value.text) == ("malformed", text)
    return failed.value.detail


def stating(p_bluff: str, answer: str = "true") -> str:
    return f'{{"reasoning": "So.", "p_bluff": {p_bluff}, "answer": {answer}}}'


def test_form_has_the_prompts_fields_and_p_bluff_only_at_c(subtests: pytest.Subtests) -> None:
    for node in "ABCDE":
        for fields in [("answer",), ("reasoning", "answer"), ("p_bluff", "answer"), ALL]:
            with subtests.test(node=node, fields=fields):
                form = build_form(fields, GAME.node(node))
                expected = [field for field in fields if field != "p_bluff" or node == "C"]
                assert list(form.fields) == expected
                assert list(form.schema["properties"]) == expected, "models write their fields in this order"
                assert form.schema["required"] == expected
                assert form.schema["additionalProperties"] is False
                assert form.schema["type"] == "object"


def test_the_types_of_the_fields() -> None:
    assert AT_C.schema["properties"] == {
        "reasoning": {"type": "string"},
        "p_bluff": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "answer": {"type": "boolean"},
    }


def test_fields_are_in_the_prompts_order() -> None:
    other: tuple[Field, ...] = ("p_bluff", "reasoning", "answer")
    assert list(build_form(other, GAME.node("C")).schema["properties"]) == list(other)
    assert answer_format(ALL, GAME.nodes).index('"reasoning"') < answer_format(ALL, GAME.nodes).index('"p_bluff"')
    assert answer_format(other, GAME.nodes).index('"p_bluff"') < answer_format(other, GAME.nodes).index('"reasoning"')


def test_prompt_describes_the_reply() -> None:
    assert "{" in answer_format(("answer",), GAME.nodes), "the text contains an example"
    text = answer_format(ALL, GAME.nodes)
    assert text.startswith("Reply with a JSON object and nothing else. Its fields, in this order: ")
    assert "at question C only" in text
    assert "p_bluff" not in answer_format(("reasoning", "answer"), GAME.nodes)


@pytest.mark.parametrize(("answer", "expected"), [("true", True), ("false", False)])
@pytest.mark.parametrize(
    ("stated", "kept"), [("null", None), ("0", 0.0), ("1", 1.0), ("0.37", 0.37), ("1e-3", 0.001), ("0.0", 0.0)]
)
def test_stated_probability_is_stored_but_decides_nothing(
    stated: str, kept: float | None, answer: str, expected: bool
) -> None:
    assert read(stating(stated, answer)) == ModelAnswer(expected, kept, impossible=False)


IMPOSSIBLE = {
    "above 1": "1.01",
    "a percentage": "37",
    "huge": "1e300",
    "beyond all numbers": "1e999",
    "a huge whole number": "9" * 400,
    "just negative": "-0.001",
    "negative": "-1",
    "true": "true",
    "false": "false",
    "a text": '"0.4"',
    "words": '"likely"',
    "an empty string": '""',
    "a list": "[0.4]",
    "an empty list": "[]",
    "an object": '{"value": 0.4}',
}


def test_impossible_probability_is_dropped_without_the_answer(subtests: pytest.Subtests) -> None:
    for answer in ["true", "false"]:
        for stated in IMPOSSIBLE.values():
            with subtests.test(answer=answer, stated=stated):
                assert read(stating(stated, answer)) == ModelAnswer(answer == "true", None, impossible=True)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"reasoning": "So.", "answer": true}', "the field `p_bluff` is missing"),
        ('{"p_bluff": 0.4, "answer": true}', "the field `reasoning` is missing"),
        ('{"reasoning": "So.", "p_bluff": 0.4}', "the field `answer` is missing"),
        (stating("NaN"), "it is not JSON"),
        (stating("Infinity"), "it is not JSON"),
        (stating("-Infinity"), "it is not JSON"),
        (stating("[NaN]"), "it is not JSON"),
        (stating("0.4", "null"), "`answer` is neither true nor false (without quotes)"),
        (stating("0.4", '"true"'), "`answer` is neither true nor false (without quotes)"),
        (stating('0.4, "p_bluff": 0.5'), "a key appears twice"),
        (
            stating('0.4, "confidence": 1'),
            "it has fields other than `reasoning` and `p_bluff` and `answer`",
        ),
        (f"<think>He lies.</think>{stating('0.4')}", AROUND),
    ],
)
def test_reply_with_other_fields_is_malformed(text: str, detail: str) -> None:
    assert malformed(text) == detail


@pytest.mark.parametrize("reasoning", ["null", "7", "true", '["So."]', '{"why": "So."}'])
def test_reasoning_must_be_a_string(reasoning: str) -> None:
    assert malformed(f'{{"reasoning": {reasoning}, "p_bluff": null, "answer": true}}') == "`reasoning` is not a text"


@pytest.mark.parametrize("reasoning", ["", "\n\t", 'He holds {three} aces; "answer": false. \U0001f0cf', "x" * 100_000])
def test_reasoning_may_contain_anything(reasoning: str) -> None:
    assert read(json.dumps({"reasoning": reasoning, "p_bluff": None, "answer": False})) == ModelAnswer(False)


@given(st.permutations([("reasoning", '"So."'), ("p_bluff", "0.5"), ("answer", "true")]))
def test_fields_of_a_reply_may_be_in_any_order(fields: list[tuple[str, str]]) -> None:
    text = ", ".join(f'"{name}": {value}' for name, value in fields)
    assert read(f"{{{text}}}") == ModelAnswer(True, 0.5)


@pytest.mark.parametrize("node", "ABDE")
def test_p_bluff_is_an_unknown_field_except_at_c(node: str) -> None:
    form = build_form(ALL, GAME.node(node))
    assert malformed(stating("0.4"), form) == "it has fields other than `reasoning` and `answer`"
    assert read('{"reasoning": "So.", "answer": false}', form) == ModelAnswer(False)


@pytest.mark.parametrize(
    ("fields", "node", "wanted"),
    [
        (ALL, "C", '{"reasoning": "...", "p_bluff": 0.4, "answer": true}'),
        (ALL, "D", '{"reasoning": "...", "answer": true}'),
        (("p_bluff", "answer"), "C", '{"p_bluff": 0.4, "answer": true}'),
        (("p_bluff", "answer"), "A", '{"answer": true} or {"answer": false}'),
    ],
)
def test_example_in_a_re_ask_is_readable(fields: tuple[Field, ...], node: str, wanted: str) -> None:
    form = build_form(fields, GAME.node(node))
    assert form.expected_reply == wanted
    assert wanted in (form.reask_text(AttemptFailed("malformed", "it is not JSON")) or "")
    assert read(wanted.partition(" or ")[0], form).answer is True
