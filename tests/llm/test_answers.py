"""Only JSON true and false as the object's only value are accepted; anything else has a named cause."""

import pytest

from dubito.games.dubito.game import GAME
from dubito.llm.answers import REASKS, ModelAnswer, build_form, read_answer
from dubito.llm.request import CAUSES, AttemptFailed, Cause, Finish, RawReply, Reply

PLAIN = build_form(("answer",), GAME.node("C"))


def make_reply(text: str | None, finish: Finish = "stop") -> Reply:
    return Reply(text, finish, None, RawReply(200, ""))


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
    read = read_answer(make_reply(text), PLAIN)
    assert read == ModelAnswer(answer, None, impossible=False)
    assert type(read.answer) is bool


NO_JSON = "it is not JSON"
NO_OBJECT = "it is not a JSON object"
AROUND = "there is text or a code fence before or after the JSON object"
EMPTY = "it has no text"
NO_BOOL = "`answer` is neither true nor false (without quotes)"
OTHERS = "it has fields other than `answer`"
MALFORMED = {
    "a text": ('{"answer": "true"}', NO_BOOL),
    "a field more": ('{"answer": true, "reason": "he lies"}', OTHERS),
    "twins": ('{"answer": true, "answer": false}', "a key appears twice"),
    "another case": ('{"Answer": true}', "the field `answer` is missing"),
    "a bare bool": ("true", NO_OBJECT),
    "a fence": ('```json\n{"answer": true}\n```', AROUND),
    "prose": ("Yes, I doubt it.", NO_JSON),
    "cut off": ('{"answer": tr', NO_JSON),
    "nothing": ("", EMPTY),
    "a surrogate": ("\ud800", NO_JSON),
}


def test_other_text_is_malformed_with_a_reason(subtests: pytest.Subtests) -> None:
    for text, detail in MALFORMED.values():
        with subtests.test(text=text, detail=detail):
            with pytest.raises(AttemptFailed) as failed:
                read_answer(make_reply(text), PLAIN)
            assert (failed.value.cause, failed.value.detail, failed.value.text) == ("malformed", detail, text)


@pytest.mark.parametrize(
    ("finish", "cause", "detail"),
    [
        ("refusal", "refused", "the model or a filter declined"),
        ("length", "truncated", "the reply stopped at its length limit"),
    ],
)
@pytest.mark.parametrize("text", [None, "I will not", '{"answer": true}'])
def test_finish_reason_takes_precedence_over_the_text(
    finish: Finish, cause: str, detail: str, text: str | None
) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(make_reply(text, finish), PLAIN)
    assert (failed.value.cause, failed.value.detail, failed.value.text) == (cause, detail, text)


@pytest.mark.parametrize("finish", ["stop", "other"])
def test_no_text_is_malformed(finish: Finish) -> None:
    with pytest.raises(AttemptFailed) as failed:
        read_answer(make_reply(None, finish), PLAIN)
    assert (failed.value.cause, failed.value.detail) == ("malformed", "it has no text")


def test_schema_of_a_form_with_only_an_answer() -> None:
    assert PLAIN.schema == {
        "type": "object",
        "properties": {"answer": {"type": "boolean"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    assert PLAIN.fields == ("answer",)


def asked_again(cause: Cause) -> str | None:
    return PLAIN.reask_text(AttemptFailed(cause, NO_JSON))


def test_each_cause_worth_a_re_ask_has_a_text() -> None:
    assert (
        {cause for cause in CAUSES if asked_again(cause)}
        == set(REASKS)
        == (set(CAUSES) - {"unreachable", "too_long", "rejected", "cut"})
    )
    assert NO_JSON in (asked_again("malformed") or "")
    for cause in REASKS:
        assert '{"answer": true} or {"answer": false}' in (asked_again(cause) or "")


def test_reply_may_contain_braces() -> None:
    failure = AttemptFailed("malformed", "it has {0} {detail} {", "{}")
    assert "it has {0} {detail} {" in (PLAIN.reask_text(failure) or "")
