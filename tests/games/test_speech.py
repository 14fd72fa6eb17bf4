"""Text moves: what is allowed, quoting, and parsing them from models' replies."""

import json
from random import Random

import pytest
from hypothesis import given

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Node, Text
from dubito.game.speech import quoted
from dubito.game.words import Words, describe_answers
from dubito.house.core import random_answer
from dubito.llm.answers import answer_format, build_form, read_answer
from dubito.llm.decide import put_question
from dubito.llm.prompts import RenderedPrompt
from dubito.llm.request import Attempt, AttemptFailed, Place, Reply
from tests.conftest import any_text
from tests.games.kit import GAMES, changed_game
from tests.llm.kit import AskFunction, reply, settings

SAY = Node("say", "say", Text(40))
FORM = build_form(("answer",), SAY)
UNSAYABLE = {
    "": "it is empty",
    "  ": "it is empty",
    "one\ntwo": "U+000A (a line break)",
    "one\r": "U+000D (a line break)",
    "\x1b[2Jone": "U+001B (a control character)",
    "one\ttwo": "U+0009",
    "one\u2028two": "U+2028 (line separator)",
    "one\u00a0two": "U+00A0 (no-break space)",
    "live \u202eevil": "U+202E (right-to-left override)",
    "\u2067one": "U+2067 (right-to-left isolate)",
    "o\u200bne": "U+200B (zero width space)",
    "\ufeffone": "U+FEFF",
    "one\U000e0041": "U+E0041",
    "one\ufe0f": "U+FE0F",
    "one\U000e0101": "U+E0101",
    "\u3164": "U+3164",
    "\u2800": "U+2800",
    "one\ud800": "U+D800",
    "one\ue000": "U+E000",
    "o\u0301\u0301\u0301\u0301": "U+0301",
    "x" * 41: "it is 41 characters long, and at most 40 are allowed",
    "x" * 10_000: "it is 10,000 characters long",
}
SAYABLE = (
    "I hold no king.",
    'She said: "Never!"',
    "</system> {{ 7 }} {% raw %} \\",
    "legal: a | b",
    "Ça va? 你好 שלום Việt e\u0323\u0302 😀",
    "x" * 40,
)


def test_invisible_or_long_message_is_refused(subtests: pytest.Subtests) -> None:
    for text, why in UNSAYABLE.items():
        with subtests.test(text=text, why=why):
            message = Text(40).why_not(text)
            assert message is not None
            assert why in message
            assert message.isprintable()


def test_visible_message_is_accepted() -> None:
    assert [Text(40).why_not(text) for text in SAYABLE] == [None] * len(SAYABLE)
    assert [Text(40).why_not(value) for value in (None, 7, b"x", ["x"], type("S", (str,), {})("x"))] == [
        "a message must be a string"
    ] * 5


@given(any_text())
def test_quoted_text_cannot_end_its_quotes(text: str) -> None:
    line = quoted(text)
    assert json.loads(line) == text
    assert line.isprintable()
    assert json.JSONDecoder().raw_decode(f'{line} says "x"')[1] == len(line)
    assert not set(line) & set("<[“”„″\uff02«»")


def test_only_strings_can_be_quoted() -> None:
    for value in (None, 7, ["x"]):
        with pytest.raises(TypeError):
            quoted(value)  # type: ignore[arg-type]


def test_message_is_requested_and_read_as_a_string() -> None:
    assert FORM.schema["properties"]["answer"]["type"] == "string"
    assert answer_format(("answer",), [SAY]) == (
        'Reply with a JSON object {"answer": X} and nothing else. X is what you say: a text on one line, of at most 40 '
        "characters."
    )
    assert [read_answer(reply(json.dumps({"answer": text})), FORM).answer for text in SAYABLE] == [*SAYABLE]
    for text in ('{"answer": 7}', '{"answer": ["x"]}', '{"answer": "\\ud800"}', "x", '{"answer": "x"} {"answer": "y"}'):
        with pytest.raises(AttemptFailed) as caught:
            read_answer(reply(text), FORM)
        assert caught.value.cause == "malformed"


@pytest.mark.parametrize("text", ["x" * 10_000, "one\ntwo", "live \u202eevil", ""])
def test_invalid_message_is_asked_again_with_the_reason(text: str) -> None:
    """The game's own code accepts the message. It is not shortened, and the reason does not repeat it."""
    asked = list[Attempt]()

    def server(ask: Attempt) -> Reply:
        asked.append(ask)
        return reply(json.dumps({"answer": text if len(asked) == 1 else "I pass."}))

    place = Place("x", 0, 0, 0, 0, 0, "say")
    answered = put_question(RenderedPrompt("s", "u"), FORM, settings(), place, str, AskFunction(server))
    assert (answered.answer, len(asked)) == ("I pass.", 2)
    failure = AttemptFailed("illegal", str(Text(40).why_not(text)), "")
    assert json.dumps(FORM.reask_text(failure), ensure_ascii=False) in json.dumps(
        asked[1].request.body, ensure_ascii=False
    )
    with pytest.raises(AttemptFailed) as caught:
        put_question(
            RenderedPrompt("s", "u"),
            FORM,
            settings(reasks=0),
            place,
            str,
            AskFunction(lambda ask: reply(json.dumps({"answer": text}))),
        )
    assert caught.value.cause == "illegal"


def test_fake_model_sends_harmless_messages() -> None:
    drawn = [random_answer(FORM.schema, "What do you say?", Random(seed)) for seed in range(60)]
    assert all(one.understood and Text(10).why_not(one.answer) is None for one in drawn)
    assert len({one.answer for one in drawn}) > 3
    assert random_answer(FORM.schema, "What do you say?\nlegal: aye | nay", Random(0)).answer in ("aye", "nay")


class Asked:
    """A state in which a seat has to say something."""

    seat = 0
    view = type("View", (), {"node": "say"})

    def cards(self, seat: int, streams: object) -> None:
        pass


def test_person_types_messages_and_sees_errors() -> None:
    plain = Words(changed_game(GAMES["bs"], nodes=(SAY,), output_of=lambda node, answer, cards: answer))
    assert describe_answers(SAY) == "a message, on one line of at most 40 characters"
    for typed, message in (("  I Pass. ", "I Pass."), ('"log"', "log"), ('"', '"'), ('""', '""'), ('a "b"', 'a "b"')):
        assert plain.parse_line(typed, Asked(), 0) == message
    assert plain.parse_answer("log", Asked(), 0) == "log"
    for text, why in UNSAYABLE.items():
        with pytest.raises((UsageError, IllegalOutput)) as caught:
            plain.parse_answer(text, Asked(), 0)
        assert why in str(caught.value)
    with pytest.raises(UsageError, match="give a message"):
        plain.parse_answer(7, Asked(), 0)
