"""Ten thousand hostile replies in each protocol: no crash, and only exact answers are accepted.

A separate oracle, `json.loads` with a few checks, decides which texts are answers.
"""

import json
from functools import cache, lru_cache
from typing import Any, Final, NoReturn

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dubito.games.dubito.game import GAME
from dubito.llm.answers import Form, build_form, read_answer
from dubito.llm.protocols import read_reply
from dubito.llm.request import AttemptFailed, RawReply, Reply
from dubito.model_settings import Api
from tests.hostile.corpus import bodies, mutations, near_answers, near_bodies, texts
from tests.llm.kit import KEY, PROTOCOLS, Line, Response, ask, reply_body

PLAIN: Final = build_form(("answer",), GAME.node("C"))
REASONED: Final = build_form(("reasoning", "p_bluff", "answer"), GAME.node("C"))
GENERATED: Final = 600 if settings().max_examples > 100 else 40
REPEATS: Final = settings(max_examples=GENERATED, suppress_health_check=list(HealthCheck))
UNFINISHED: Final = ("incomplete", "failed", "cancelled", "queued", "in_progress")
CUT: Final = ("length", "max_tokens", "model_context_window_exceeded", "content_filter", "refusal")
WAITING: Final = ("tool_calls", "function_call", "tool_use", "pause_turn")
CAUSES: Final = {"length": "truncated", "refusal": "refused", "filter": "refused"}


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("twins")
    return dict(pairs)


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


@lru_cache(1)  # the same text is tested with each form in turn
def read_as_json(text: str | None) -> Any:
    """Return the JSON value in a text, or None."""
    try:
        document = json.loads(text or "", object_pairs_hook=_no_twins, parse_constant=_no_number)
        json.dumps(document, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    except (ValueError, RecursionError):
        return None
    return document


def oracle(text: str | None, form: Form) -> bool | None:
    """Return the answer in a text, or None."""
    value = read_as_json(text)
    if not isinstance(value, dict) or set(value) != set(form.fields):
        return None
    if type(value["answer"]) is not bool or not isinstance(value.get("reasoning", ""), str):
        return None
    answer: bool = value["answer"]
    return answer


def read(protocol: Api, raw: str) -> Reply:
    reply = read_reply(protocol, RawReply(200, raw))
    assert reply.usage is None or min(reply.usage.input, reply.usage.output) >= 0
    return reply


def answer_in(reply: Reply, form: Form) -> bool | str:
    """Return the answer in a reply, or the cause of its absence. Any other exception is a crash."""
    try:
        answered = read_answer(reply, form)
    except AttemptFailed as error:
        return error.cause
    assert type(answered.answer) is bool
    assert answered.stated is None or 0 <= answered.stated <= 1
    return answered.answer


def check_text(text: str, finish: str = "stop") -> None:
    """Check that a text in each protocol and form is an answer exactly if the oracle finds one, or else has a cause."""
    replies = {protocol: read(protocol, json.dumps(reply_body(protocol, text, finish))) for protocol in PROTOCOLS}
    for form in (PLAIN, REASONED):
        wanted = oracle(text, form)
        for protocol, reply in replies.items():
            found = answer_in(reply, form)
            if finish != "stop":
                assert found == CAUSES[finish], (protocol, text)
            elif wanted is None or deep(text):
                assert found == "malformed", (protocol, text)
            else:
                assert found is wanted, (protocol, text)


def deep(text: str) -> bool:
    return "[" * 200 in text


@cache
def corpus() -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts()))


def test_corpus_has_ten_thousand_replies() -> None:
    assert len(corpus()) > 9_500, "the corpus must include generated texts"
    assert sum(oracle(text, PLAIN) is not None or oracle(text, REASONED) is not None for text in corpus()) > 50


def test_every_text_of_the_corpus(at_length: bool) -> None:
    for text in corpus() if at_length else corpus()[::8]:
        check_text(text)


@pytest.mark.parametrize("finish", CAUSES)
def test_incomplete_text_is_not_an_answer(finish: str) -> None:
    for text in corpus()[::63]:
        check_text(text or "no", finish)


@REPEATS
@given(near_answers())
@example('{"answer": true, "answer": true}')
def test_generated_texts_are_read_or_refused(text: str) -> None:
    check_text(text)


def speakers(protocol: Api, body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: Any = {"responses": body.get("output"), "messages": [body], "chat": body.get("choices")}[protocol]
    found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [part.get("message", {}) for part in found if isinstance(part.get("message", {}), dict)] + found


def said_in(protocol: Api, body: Any) -> str | None:
    """Find the text of a complete body independently of the code under test, or return None."""

    def among(items: Any, kind: str) -> list[dict[str, Any]]:
        items = items if isinstance(items, list) else []
        return [item for item in items if isinstance(item, dict) and item.get("type") == kind]

    if not isinstance(body, dict) or body.get("error") or body.get("type") == "error":
        return None
    if any(item.get("role") not in (None, "assistant") for item in speakers(protocol, body)):
        return None
    if protocol == "responses":
        good = body.get("status") not in UNFINISHED and len(among(body.get("output"), "message")) < 2
        parts = [p for m in among(body.get("output"), "message") for p in among(m.get("content"), "output_text")]
        refused = any(among(m.get("content"), "refusal") for m in among(body.get("output"), "message"))
        why = body.get("incomplete_details")
        good = good and not refused and not (isinstance(why, dict) and why.get("reason") == "content_filter")
    elif protocol == "messages":
        good = body.get("stop_reason") not in (*CUT, *WAITING)
        parts = among(body.get("content"), "text")
    else:
        choices = (
            [c for c in body.get("choices", ()) if isinstance(c, dict)] if isinstance(body.get("choices"), list) else []
        )
        choice = choices[0] if len(choices) == 1 else {}
        message: Any = choice.get("message") if isinstance(choice.get("message"), dict) else {}
        good = choice.get("finish_reason") not in (*CUT, *WAITING, "error") and not message.get("refusal")
        content = message.get("content")
        parts = [{"text": content}] if isinstance(content, str) else among(content, "text")
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str)) if good else None


def check_body(protocol: Api, raw: str) -> None:
    """Check that a body of any shape is an answer exactly if its text is one, or else has a cause."""
    try:
        body = json.loads(raw, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError):
        body = None
    reply, text = read(protocol, raw), said_in(protocol, body)
    for form in (PLAIN, REASONED):
        found, wanted = answer_in(reply, form), oracle(text, form)
        assert found is wanted if wanted is not None else isinstance(found, str), raw


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_body_of_the_corpus(protocol: Api, at_length: bool) -> None:
    found = [*dict.fromkeys(bodies(protocol))]
    assert len(found) > 2500
    for raw in found if at_length else found[::3]:
        check_body(protocol, raw)


@REPEATS
@given(st.sampled_from(PROTOCOLS), near_bodies)
def test_generated_bodies_are_read_or_refused(protocol: Api, body: Any) -> None:
    check_body(protocol, json.dumps(body))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_real_sdk_returns_each_body_unchanged(protocol: Api) -> None:
    """For a sample of both corpora, the SDK returns exactly the bytes that were sent."""
    sample = [json.dumps(reply_body(protocol, text)) for text in corpus()[:: len(corpus()) // 25] if len(text) < 20_000]
    sample += list(mutations(json.dumps(reply_body(protocol)), ("\x00",)))[::48]
    with Line(KEY) as line:
        for raw in sample:
            received = line(Response(body=raw.encode()), ask(protocol=protocol))
            assert (received.status, received.raw) == (200, raw)
            check_body(protocol, received.raw)
    assert len(sample) >= 35
