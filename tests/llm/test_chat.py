"""Chat Completions replies of OpenAI and other servers."""

import json
from typing import Any

import pytest

from dubito.llm.protocols import read_reply
from dubito.llm.request import Finish, RawReply, Reply
from tests.llm.kit import YES, reply_body


def read(message: Any, finish: Any = "stop") -> Reply:
    body = reply_body("chat", choices=[{"index": 0, "message": message, "finish_reason": finish}])
    return read_reply("chat", RawReply(200, json.dumps(body)))


@pytest.mark.parametrize(
    ("message", "finish", "text", "read_as"),
    [
        ({"content": YES}, "stop", YES, "stop"),
        ({"content": YES, "refusal": None}, "stop", YES, "stop"),
        ({"content": '{"ans'}, "length", '{"ans', "length"),
        ({"content": None}, "stop", None, "stop"),
        ({"content": "I was about"}, "content_filter", "I was about", "refusal"),
        ({"content": None, "refusal": "I cannot."}, "stop", "I cannot.", "refusal"),
        ({"content": "As I said:", "refusal": "I cannot."}, "stop", None, "other"),
        ({"content": None, "refusal": {"why": 1}}, "stop", "{'why': 1}", "refusal"),
        ({"content": None, "reasoning_content": f"So {YES}"}, "stop", None, "stop"),
        ({"reasoning_content": YES}, "stop", None, "stop"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls", None, "other"),
        ({"content": YES}, "something new", YES, "other"),
        ({"content": YES}, None, YES, "other"),
        ({"content": 7}, "stop", None, "stop"),
        (None, "stop", None, "other"),
    ],
)
def test_text_and_end_of_a_reply_are_read(message: Any, finish: Any, text: str | None, read_as: Finish) -> None:
    reply = read(message, finish)
    assert (reply.text, reply.finish) == (text, read_as)


def test_content_in_parts_is_one_text() -> None:
    """Mistral's models send text in parts, with thoughts in between."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": '{"answer"'},
        {"type": "text", "text": ": true}"},
    ]
    assert read({"content": parts}).text == YES
    assert read({"content": parts[:1]}).text is None
    assert read({"content": []}).text is None


def test_reply_with_several_choices_is_not_read() -> None:
    no = {"index": 1, "message": {"content": '{"answer": false}'}, "finish_reason": "length"}
    first = reply_body("chat")["choices"][0]
    body = reply_body("chat", choices=[first, no])
    reply = read_reply("chat", RawReply(200, json.dumps(body)))
    assert (reply.text, reply.finish) == (None, "other")


@pytest.mark.parametrize("choices", [[], None, {}, "stop", [None], [7], [[]]])
def test_a_body_without_a_choice_has_no_text(choices: Any) -> None:
    reply = read_reply("chat", RawReply(200, json.dumps(reply_body("chat", choices=choices))))
    assert (reply.text, reply.finish) == (None, "other")
