"""What the house has no fault for: replies and errors of a scripted server, and what must come of them."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.errors import RunStopped
from dubito.llm.request import AccountFault, Api
from tests.hostile.kit import Decided, Desk
from tests.llm.kit import PROTOCOLS, YES, Heard, Said, Server, reply_body, says

Answer = Callable[[Heard], Said]


class Scene:
    """A pipeline at a server that answers as the next decision needs it."""

    def __init__(self, folder: Path) -> None:
        self._answer: Answer = lambda heard: says(heard.protocol)
        self.server = Server(lambda heard: self._answer(heard))
        self.desk = Desk(folder, lambda api, _: self.server.base_url(api))

    def __call__(self, protocol: Api, answer: Answer, **settings: Any) -> Decided:
        """One decision; then `server.heard` is what was asked for it, and the clock has the waits for it."""
        self._answer = answer
        self.server.heard.clear()
        self.desk.clock.slept.clear()
        return self.desk.decide(protocol, **settings)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One for all tests."""
    scene = Scene(tmp_path_factory.mktemp("scene"))
    with scene.server, scene.desk:
        yield scene


def first(*answers: Said) -> Answer:
    """These answers in turn, then good ones."""
    left = list(answers)
    return lambda heard: left.pop(0) if left else says(heard.protocol)


def limited(**headers: str) -> Said:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(429, "", {"content-type": "application/json", **named})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_date_in_the_future_is_waited_for(decided: Scene, protocol: Api) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    answer = first(limited(retry_after=date))
    made = decided(protocol, answer, retry_after_cap=7200)
    assert (made.outcome, made.tries) == ("model", ("rate_limit", "received"))
    assert 3000 < sum(decided.desk.clock.slept) <= 3600
    assert set(decided.desk.clock.whys) == {"for house (no key) (rate limit)"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 520, 529, 599])
def test_an_error_page_passes(decided: Scene, protocol: Api, status: int) -> None:
    page = Said(status, "<html>Please wait</html>", {"content-type": "text/html"})
    made = decided(protocol, first(page, page))
    assert (made.outcome, len(made.tries)) == ("model", 3)


@pytest.mark.parametrize("asked", PROTOCOLS)
@pytest.mark.parametrize("spoken", PROTOCOLS)
def test_a_reply_in_another_protocol_is_no_answer(decided: Scene, asked: Api, spoken: Api) -> None:
    made = decided(asked, first(says(spoken)))
    assert made.tries == (("received",) if asked == spoken else ("server", "received"))


ODDITIES: Final[Mapping[Api, Mapping[str, tuple[dict[str, Any], str]]]] = {
    "responses": {
        "incomplete, nobody knows why": ({"status": "incomplete", "incomplete_details": {"reason": "?"}}, "malformed"),
        "filtered": ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        "cut off": ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "truncated"),
        "a call of a tool": ({"output": [{"type": "function_call", "arguments": YES}]}, "malformed"),
        "thoughts that are the answer": (
            {"output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": YES}]}]},
            "malformed",
        ),
    },
    "chat": {
        "a call of a tool": (
            {"choices": [{"finish_reason": "tool_calls", "message": {"content": YES}}]},
            "malformed",
        ),
        "an old call": ({"choices": [{"finish_reason": "function_call", "message": {"content": YES}}]}, "malformed"),
        "filtered": ({"choices": [{"finish_reason": "content_filter", "message": {"content": YES}}]}, "refused"),
        "cut off": ({"choices": [{"finish_reason": "length", "message": {"content": YES}}]}, "truncated"),
        "thoughts that are the answer": (
            {"choices": [{"finish_reason": "stop", "message": {"content": None, "reasoning_content": YES}}]},
            "malformed",
        ),
    },
    "messages": {
        "a pause": ({"stop_reason": "pause_turn"}, "malformed"),
        "a call of a tool": ({"stop_reason": "tool_use"}, "malformed"),
        "a refusal beside an answer": ({"stop_reason": "refusal"}, "refused"),
        "cut off": ({"stop_reason": "max_tokens"}, "truncated"),
        "a window too small": ({"stop_reason": "model_context_window_exceeded"}, "truncated"),
        "thoughts that are the answer": ({"content": [{"type": "thinking", "thinking": YES}]}, "malformed"),
    },
}


@pytest.mark.parametrize(
    ("protocol", "oddity"), [(protocol, oddity) for protocol in PROTOCOLS for oddity in ODDITIES[protocol]]
)
def test_an_end_other_than_a_good_one(decided: Scene, protocol: Api, oddity: str) -> None:
    """A good text does not make an answer of it."""
    changes, cause = ODDITIES[protocol][oddity]
    made = decided(protocol, lambda _: says(protocol, **changes))
    assert made.outcome == f"fallback:{cause}"


WORDS: Final = (None, "eos", "eos_token", "end", "COMPLETE", "", 7, ["stop"])  # for an end, that no protocol has


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("word", [*WORDS, "left out"])
def test_an_end_that_nobody_knows_is_none_of_an_answer_s_faults(decided: Scene, protocol: Api, word: Any) -> None:
    """Beside a complete answer; what is no answer is told by its text."""
    for text, outcome in ((YES, "model"), (YES[:-1], "model_after_reask")):
        body = ended(reply_body(protocol, text), protocol, word)
        made = decided(protocol, first(Said(body=json.dumps(body))))
        assert made.outcome == outcome
    assert decided.server.heard[1].conversation[-2]["content"] == YES[:-1], "it is quoted"


def ended(body: dict[str, Any], protocol: Api, word: Any) -> dict[str, Any]:
    """The body with that word for its end."""
    holder = body["choices"][0] if protocol == "chat" else body
    name = {"responses": "status", "chat": "finish_reason", "messages": "stop_reason"}[protocol]
    if word == "left out":
        del holder[name]
    else:
        holder[name] = word
    return body


STOPS: Final[Mapping[str, tuple[Said, str]]] = {
    "no such path": (Said(404, "<html>Not Found</html>", {"content-type": "text/html"}), "`base_url`"),
    "no such method": (Said(405, ""), "`base_url`"),
    "not allowed": (Said(403, ""), "refused the key (status 403)"),
    "too many": (Said(422, ""), "rejected the request (status 422)"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("said", STOPS)
def test_what_the_user_has_to_mend_stops_the_run(decided: Scene, protocol: Api, said: str) -> None:
    answer, words = STOPS[said]
    with pytest.raises(AccountFault, match=r"`\w+` in the entry of 'asker'") as stopped:
        decided(protocol, lambda _: answer)
    assert words in str(stopped.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_redirect_without_an_end_is_no_crash(decided: Scene, protocol: Api) -> None:
    def answer(heard: Heard) -> Said:
        return Said(307, "", {"location": heard.path})

    try:
        made = decided(protocol, answer, tries=2)
    except RunStopped:
        return
    assert made.outcome == "fallback:unreachable"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_re_ask_quotes_what_was_said_and_no_more_than_its_end(decided: Scene, protocol: Api) -> None:
    words = "\x1b[2J" + "x" * 5000 + ' I would say {"answer": true'
    decided(protocol, first(says(protocol, words)))
    said = decided.server.heard[1].conversation[-2]
    assert said["role"] == "assistant"
    assert said["content"] == words[-500:]
