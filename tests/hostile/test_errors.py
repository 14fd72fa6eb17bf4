"""Every known provider error, through the real SDKs and the whole pipeline, in each protocol."""

import gzip
import json
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from openai.types.responses import ResponseError

from dubito.llm.cache import ReplyCache
from dubito.llm.request import AccountFault
from dubito.model_settings import Api
from tests.conftest import in_gate
from tests.hostile.errors import BODIES, CONTRADICTIONS, RESPONSE_ERRORS, STATUSES, ErrorCase, _message, openai
from tests.hostile.kit import Answer, Decided, Scene, first
from tests.llm.kit import PROBE, PROTOCOLS, YES, Response, reply_body, respond


def to_answer(wrong: ErrorCase) -> Response:
    return Response(wrong.status, wrong.body if isinstance(wrong.body, str) else json.dumps(wrong.body))


STOPS = {
    "money": "has no credit left",
    "key": "refused the key",
    "access": r"does not serve this country|has no provider that your privacy settings allow",
    "model": "has no model",
    "request": "has a lower output limit",
    "size": r"does not accept a request of this size, .* lower `max_output` in the entry of 'asker'",
    "quota": "has reached a daily or longer limit",
}


def check(scene: Scene, protocol: Api, wrong: ErrorCase) -> Decided | None:
    """Make one decision whose first call gets this response and all others a good one.

    Return None if it stops the run.
    """
    if wrong.meaning in STOPS:
        with pytest.raises(AccountFault, match=STOPS[wrong.meaning]) as stopped:
            scene(protocol, first(to_answer(wrong)), tries=2)
        assert len(scene.server.requests) == 1
        if wrong.meaning == "quota":
            check_resume(str(stopped.value), wrong.wait)
        return None
    if wrong.meaning == "stray":
        check_stray(scene, protocol, wrong)
        return None
    made = scene(protocol, first(to_answer(wrong)), tries=2, retry_after_cap=5000)
    if wrong.meaning == "too_long":
        assert (made.outcome, made.tries) == ("fallback:too_long", ("too_long",))
    elif wrong.meaning == "refused":
        assert (made.outcome, made.tries) == ("model_after_reask", ("refused", "received"))
        assert not any(message["role"] == "assistant" for message in scene.server.requests[1].conversation)
    else:
        assert (made.outcome, made.tries) == ("model", (wrong.meaning, "received"))
    if wrong.wait is not None:
        assert sum(scene.desk.clock.slept) == pytest.approx(wrong.wait)
    return made


def check_resume(message: str, wait: float | None) -> None:
    """Check that the error states when to resume: in the server's words, as a duration and as a clock time."""
    if wait is None:
        assert message.endswith(("resume when it is renewed", "resume in 48.0 h, at " + message[-16:]))
        return
    _, _, moment = message.rpartition(" at ")
    at = datetime.strptime(moment, "%Y-%m-%d %H:%M")
    assert abs((at - datetime.now()).total_seconds() - wait) < 61
    assert f"resume in {round(wait / 60)} min, at " in message


def check_stray(scene: Scene, protocol: Api, wrong: ErrorCase) -> None:
    """Check that the request is sent again once or twice. If the error persists, the request is at fault."""
    for times in (1, 2):
        made = scene(protocol, first(*[to_answer(wrong)] * times), tries=1)
        assert (made.outcome, made.tries) == ("model", ("account",) * times + ("received",))
    with pytest.raises(AccountFault, match=r"rejected the request \(status \d+.*\): [^;]*$"):
        scene(protocol, lambda _: to_answer(wrong), tries=1)
    assert len(scene.server.requests) == 3


def test_an_error_with_a_status(scene: Scene, at_length: bool, subtests: pytest.Subtests) -> None:
    for number, name in enumerate(STATUSES):
        with subtests.test(number=number, name=name):
            for protocol in PROTOCOLS if at_length else [PROTOCOLS[number % 3]]:
                made = check(scene, protocol, STATUSES[name])
                assert made is None or set(made.assumed) == {False}, "rejected requests cost nothing"


EACH_BODY = [(protocol, name) for protocol in PROTOCOLS for name in BODIES[protocol]]


def choose_protocol(name: str) -> Api:
    protocols = [each for each in PROTOCOLS if name in BODIES[each]]
    return protocols[len(name) % len(protocols)]


@pytest.mark.parametrize(
    ("protocol", "name"), in_gate(EACH_BODY, [(choose_protocol(name), name) for _, name in EACH_BODY])
)
def test_an_error_with_status_200(scene: Scene, protocol: Api, name: str) -> None:
    wrong = BODIES[protocol][name]
    made = check(scene, protocol, wrong)
    if made is None:
        return
    assert made.errors[0].startswith("status 200 with an error in the body: ")
    begun = isinstance(wrong.body, dict) and (wrong.body.get("output") or "choices" in wrong.body)
    shaped = isinstance(wrong.body, dict) and ("output" in wrong.body or "choices" in wrong.body)
    if isinstance(wrong.body, dict) and wrong.body.get("usage"):
        assert not made.assumed[0]
    elif wrong.meaning == "server":
        assert made.assumed[0] == shaped, "part of an answer may have been generated at unknown cost"
    elif not begun:
        assert not made.assumed[0]


def test_each_sdk_status_code_is_classified() -> None:
    assert set(get_args(ResponseError.model_fields["code"].annotation)) == set(RESPONSE_ERRORS)


def probed(error: Response) -> Answer:
    return lambda request: respond(request.protocol) if PROBE in request.raw else error


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, 1))
def test_non_reply_with_status_200_is_never_cached(tmp_path: Path, protocol: Api) -> None:
    scene = Scene(tmp_path)
    page = Response(body="<!DOCTYPE html><html><body>502 Bad Gateway</body></html>")
    with scene.server, scene.desk:
        for error in (Response(body=json.dumps(openai("server_error", "no"))), page):
            made = scene(protocol, probed(error), tries=2)
            assert (made.outcome, set(made.tries)) == ("fallback:unreachable", {"server"})
            assert scene(protocol, first(error)).outcome == "model"
    with closing(ReplyCache(tmp_path / "cache")) as cache:
        assert len(cache) == 2, "only decisions are cached, not probes"


@pytest.mark.parametrize(
    ("protocol", "name"), [(protocol, name) for protocol in PROTOCOLS for name in CONTRADICTIONS[protocol]]
)
def test_contradictory_body_is_not_an_answer(scene: Scene, protocol: Api, name: str) -> None:
    changes = CONTRADICTIONS[protocol][name]
    made = scene(protocol, lambda _: respond(protocol, **changes))
    assert (made.outcome, made.tries) == ("fallback:malformed", ("received", "received"))
    assert set(made.assumed) == {False}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_duplicate_key_makes_a_body_unreadable(scene: Scene, protocol: Api) -> None:
    body = json.dumps(reply_body(protocol))
    for key in ("usage", "role", "text", "content"):
        if f'"{key}": ' in body:
            twins = Response(body=body.replace(f'"{key}": ', f'"{key}": 1, "{key}": ', 1))
            made = scene(protocol, first(twins, twins))
            assert made.outcome == "fallback:malformed"
            assert set(made.assumed) == {True}


COMMENTARY = _message("I think it is a bluff.", phase="commentary")


@pytest.mark.parametrize(
    "output",
    [
        [COMMENTARY, _message(phase="final_answer")],
        [_message(phase="final_answer"), COMMENTARY],
        [COMMENTARY, COMMENTARY, {"type": "reasoning", "summary": []}, _message()],
        [_message("", content=[]), _message()],
        [{"type": "web_search_call", "status": "completed"}, _message(phase=None)],
    ],
)
def test_only_the_final_answer_counts(scene: Scene, output: list[dict[str, Any]]) -> None:
    made = scene("responses", lambda _: respond("responses", output=output))
    assert (made.outcome, made.answer) == ("model", True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_truncated_gzip_body_is_not_a_reply(scene: Scene, protocol: Api) -> None:
    """Truncate the body anywhere: in the text, in the last block, or in the checksum."""
    packed = gzip.compress(json.dumps(reply_body(protocol)).encode(), mtime=0)
    headers = {"content-type": "application/json", "content-encoding": "x-gzip" if protocol == "chat" else "gzip"}
    made = scene(protocol, first(Response(body=packed, headers=headers)))
    assert (made.outcome, made.tries) == ("model", ("received",))
    for cut in (1, 8, 9, len(packed) // 2, len(packed) - 1):
        lost = Response(body=packed[:-cut], headers=headers)
        made = scene(protocol, first(lost))
        assert (made.outcome, made.tries) == ("model", ("server", "received")), cut
        assert made.errors[0].startswith("a truncated gzip body with status 200")


CALL: Final = {"id": "c", "type": "function", "function": {"name": "answer", "arguments": "{}"}}
TOOLS: Final[dict[Api, dict[str, Any]]] = {
    "responses": {"output": [{"type": "function_call", "call_id": "c", "name": "answer", "arguments": "{}"}]},
    "chat": {
        "choices": [
            {"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}
        ]
    },
    "messages": {
        "content": [{"type": "tool_use", "id": "c", "name": "answer", "input": {}}],
        "stop_reason": "tool_use",
    },
}


@pytest.mark.parametrize("protocol", TOOLS)
def test_tool_call_is_named_in_the_error(scene: Scene, protocol: Api) -> None:
    made = scene(protocol, first(Response(body=json.dumps(reply_body(protocol) | TOOLS[protocol]))))
    assert made.outcome == "model_after_reask"
    assert "it calls a tool, but there are no tools" in str(made.asked_again)


WORDS = (None, "eos", "COMPLETE", "", 7, ["stop"], *["left out"] * 3)  # finish reasons that no protocol defines


@pytest.mark.parametrize(("protocol", "word"), [(PROTOCOLS[number % 3], word) for number, word in enumerate(WORDS)])
def test_unknown_finish_reason_is_not_an_answer_fault(scene: Scene, protocol: Api, word: Any) -> None:
    """The text alone decides whether the reply is an answer."""
    for text, outcome in ((YES, "model"), (YES[:-1], "model_after_reask")):
        body = with_end(reply_body(protocol, text), protocol, word)
        made = scene(protocol, first(Response(body=json.dumps(body))))
        assert made.outcome == outcome
    assert scene.server.requests[1].conversation[-2]["content"] == YES[:-1], "the re-ask quotes the answer"


def with_end(body: dict[str, Any], protocol: Api, word: Any) -> dict[str, Any]:
    """Return the body with this finish reason."""
    holder = body["choices"][0] if protocol == "chat" else body
    name = {"responses": "status", "chat": "finish_reason", "messages": "stop_reason"}[protocol]
    if word == "left out":
        del holder[name]
    else:
        holder[name] = word
    return body


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_re_ask_quotes_only_the_end_of_the_reply(scene: Scene, protocol: Api) -> None:
    words = "\x1b[2J" + "x" * 5000 + ' I would say {"answer": true'
    scene(protocol, first(respond(protocol, words)))
    text = scene.server.requests[1].conversation[-2]
    assert text["role"] == "assistant"
    assert text["content"] == words[-500:]
