"""Replies without a readable text: each cause has its own words, and `read` is named only if it would help."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.games.dubito.game import GAME
from dubito.llm.answers import build_form, find_helpful_part, read_answer
from dubito.llm.protocols import read_reply
from dubito.llm.request import AttemptFailed, RawReply, Reply
from dubito.model_settings import Api
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    YES,
    Incoming,
    NoWait,
    Response,
    Server,
    outcomes_of,
    player_at,
    rows,
    run_cli,
    run_games,
    small,
)

FORM: Final = build_form(("answer",), GAME.node("C"))
CALL: Final = {"id": "c", "type": "function", "function": {"name": "answer", "arguments": YES}}


def chat(content: Any = None, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    one = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return {"choices": [one]}


def responses(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": "completed", "output": [*output], **more}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def messages(*content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {"type": "message", "content": [*content], "stop_reason": stop}


CASES: dict[str, tuple[Api, dict[str, Any], str, str]] = {  # API, body, cause, detail
    "null": ("chat", chat(None), "malformed", "it has no text"),
    "empty": ("chat", chat(""), "malformed", "it has no text"),
    "reasoning only, LM Studio": (
        *("chat", chat("", reasoning_content="Hm.")),
        *("malformed", "it has reasoning, but no text after it"),
    ),
    "reasoning only, vLLM": (
        *("chat", chat(None, reasoning="Hm.")),
        *("malformed", "it has reasoning, but no text after it"),
    ),
    "cut in the reasoning": (
        *("chat", chat("", "length", reasoning="Hm.")),
        *("truncated", "the reply stopped at its length limit while reasoning, before any text"),
    ),
    "cut before the text": ("chat", chat("", "length"), "truncated", "the reply stopped at its length limit"),
    "a filter": (
        *("chat", chat("", "content_filter")),
        *("refused", "a content filter of the server stopped the reply"),
    ),
    "a refusal": ("chat", chat(None, refusal="No."), "refused", "the model declined"),
    "no choices": ("chat", {"choices": []}, "malformed", "it has no choices instead of one"),
    "two choices": (
        *("chat", {"choices": 2 * chat(YES)["choices"]}),
        *("malformed", "it has 2 choices instead of one"),
    ),
    "a tool call": (
        *("chat", chat(None, "tool_calls", tool_calls=[CALL])),
        *("malformed", "it calls a tool, but there are no tools"),
    ),
    "a tool call beside the text": (
        *("chat", chat(YES, "tool_calls", tool_calls=[CALL])),
        *("malformed", "it calls a tool, but there are no tools, beside its text"),
    ),
    "an unknown ending": (
        *("chat", chat(None, "malformed_function_call")),
        *("malformed", "it has no text (it ended with 'malformed_function_call')"),
    ),
    "text and refusal": ("chat", chat(YES, refusal="No."), "malformed", "it has both a text and a refusal"),
    "the user's": ("chat", chat(YES, role="user"), "malformed", "its role is 'user' instead of 'assistant'"),
    "two messages": (
        *("responses", responses(message("I think it is a bluff."), message(YES))),
        *("malformed", "it has 2 messages with a text instead of one"),
    ),
    "no output": ("responses", responses(), "malformed", "it has no text"),
    "reasoning only, Responses": (
        *("responses", responses(reasoning("Hm."))),
        *("malformed", "it has reasoning, but no text after it"),
    ),
    "incomplete": (
        *("responses", responses(message(YES), status="incomplete", incomplete_details={"reason": "a storm"})),
        *("malformed", "it is incomplete (a storm)"),
    ),
    "a pause": (
        *("messages", messages({"type": "text", "text": YES}, stop="pause_turn")),
        *("malformed", "it paused before its answer (pause_turn)"),
    ),
    "thinking only": (
        *("messages", messages({"type": "thinking", "thinking": "Hm."})),
        *("malformed", "it has reasoning, but no text after it"),
    ),
}


def parse(api: Api, body: dict[str, Any]) -> Reply:
    return read_reply(api, RawReply(200, json.dumps(body)))


@pytest.mark.parametrize("case", CASES)
def test_missing_text_is_described_by_its_cause(case: str) -> None:
    api, body, cause, detail = CASES[case]
    with pytest.raises(AttemptFailed) as failed:
        read_answer(parse(api, body), FORM)
    assert (failed.value.cause, failed.value.detail) == (cause, detail)


@pytest.mark.parametrize("finish", ["tool_calls", "function_call", "tool_use"])
def test_text_is_read_although_the_finish_reason_is_that_of_a_tool_call(finish: str) -> None:
    assert read_answer(parse("chat", chat(YES, finish)), FORM).answer is True
    assert read_answer(parse("chat", chat(YES, finish, tool_calls=[])), FORM).answer is True
    assert read_answer(parse("messages", messages({"type": "text", "text": YES}, stop=finish)), FORM).answer is True


@pytest.mark.parametrize(
    ("api", "body", "part"),
    [
        ("chat", chat("", reasoning_content=YES), "reasoning"),
        ("chat", chat(None, reasoning=f"I doubt it.</think>\n{YES}\n"), "reasoning"),
        ("responses", responses(reasoning(YES)), "reasoning"),
        ("messages", messages({"type": "thinking", "thinking": YES}), "reasoning"),
        ("chat", chat(f"Sure: {YES}"), "last_object"),
        ("responses", responses(message("I think it is a bluff."), message(YES)), "last_object"),
        ("chat", chat("", reasoning=f"{YES} or not?"), None),
        ("chat", chat("", reasoning='{"answer": "perhaps"}'), None),
        ("chat", chat("Hm.", reasoning=YES), None),
        ("chat", chat("", "length", reasoning=YES), None),
        ("chat", {"error": {"code": "json_validate_failed", "failed_generation": f"Sure: {YES}"}}, None),
    ],
)
def test_read_is_named_only_if_it_would_help(api: Api, body: dict[str, Any], part: str | None) -> None:
    assert find_helpful_part(parse(api, body), FORM) == part


def thinks(field: str, text: str = YES) -> Any:
    """Return a server that answers in its reasoning, streamed or not, like LM Studio and vLLM."""

    def answer(request: Incoming) -> Response:
        if "stream" not in request.body:
            return Response(body=json.dumps(chat("", **{field: text})))
        pieces = [{field: text[:9]}, {field: text[9:]}, {"content": ""}]
        chunks = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        events = "".join(f"data: {json.dumps(each)}\n\n" for each in [*chunks, end])
        return Response(body=f"{events}data: [DONE]\n\n", headers={"content-type": "text/event-stream"})

    return answer


@pytest.mark.parametrize("field", in_gate(["reasoning_content", "reasoning"], 1))
def test_answer_in_the_reasoning_is_read_and_counted_if_the_player_allows_it(shell: Shell, field: str) -> None:
    with Server(thinks(field)) as server:
        strict = run_cli(shell, player_at(server, "chat"))
        assert (strict.code, "set `read: reasoning` (--read reasoning)" in strict.err) == (3, True)
        lax = run_cli(shell, player_at(server, "chat", read="last_object"), flags=["--output", "lax"])
        assert (lax.code, "set `read: reasoning`" in lax.err) == (3, True)
        ended = run_cli(shell, player_at(server, "chat", read="reasoning"), flags=["--output", "read"])
        assert ended.code == 0, ended.err
    replayed = shell("replay", "read")
    assert set(outcomes_of(Path("read"))) == {"model:reasoning"}
    assert "model:reasoning" in shell("status", "read").out
    assert (replayed.code, "identical" in replayed.out) == (0, True)


def test_answer_in_a_streamed_reasoning_is_read(tmp_path: Path) -> None:
    with Server(thinks("reasoning")) as server:
        player = player_at(server, "chat", read="reasoning", parameters={"return_progress": True})
        run = run_games(small(player, games=1), tmp_path / "run", NoWait())
        assert all("stream" in request.body for request in server.requests)
    assert run.failure is None
    assert set(outcomes_of(tmp_path / "run")) == {"model:reasoning"}


def rejecting(request: Incoming) -> Response:
    """Reject the output of each question but its re-ask, as Groq does."""
    if request.re_asked:
        return Response(body=json.dumps(chat(YES)))
    error = {"message": "Failed to validate JSON.", "code": "json_validate_failed", "failed_generation": "Sure: {"}
    return Response(400, json.dumps({"error": error}))


def test_rejected_output_is_asked_again_with_the_servers_words_and_replays(shell: Shell) -> None:
    with Server(rejecting) as server:
        ended = run_cli(shell, player_at(server, "chat"))
        again = next(request for request in server.requests if request.re_asked)
    assert ended.code == 0, ended.err
    assert set(outcomes_of(Path("r"))) == {"model_after_reask"}
    assert again.conversation[-2]["content"] == "Sure: {"
    assert "could not be read: the server rejected it: Failed to validate JSON. Reply" in again.last
    assert {kind for (kind,) in rows(Path("r"), "SELECT kind FROM tries")} == {None}, "no try has failed"
    replayed = shell("replay", "r")
    assert (replayed.code, "identical" in replayed.out) == (0, True)


def test_rejected_output_without_a_re_ask_is_a_malformed_answer(shell: Shell) -> None:
    with Server(rejecting) as server:
        who = player_at(server, "chat", reasks=0)
        ended = run_cli(shell, who, on_unusable="fallback", flags=["--no-preflight"])
    assert ended.code == 0, ended.err
    assert set(outcomes_of(Path("r"))) == {"fallback:malformed"}
