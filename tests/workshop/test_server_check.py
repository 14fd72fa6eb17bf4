"""`dubito models check`: what a server supports, and an entry with which a run of its model works."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dubito.house.server import House
from tests.cli.kit import Result, Shell
from tests.conftest import in_gate
from tests.foreign.limits import Window
from tests.foreign.server import Foreign, Habits
from tests.llm.kit import (
    YES,
    Incoming,
    Response,
    Server,
    Serves,
    config_file,
    error_body,
    outcomes_of,
    reply_body,
    respond,
)
from tests.llm.test_real_servers import counting

LIMIT: Final = "Count from one"
LISTED: Final = json.dumps({"object": "list", "data": [{"id": "org/only-model", "object": "model"}]})
NO_SUCH: Final = "dubito-no-such-model"


def text_of(request: Incoming) -> str:
    return request.raw.decode()


def answer(request: Incoming, **changes: Any) -> Response:
    """Answer each question of the check as a good server does."""
    if NO_SUCH in text_of(request):
        return Response(404, error_body("chat", "model_not_found", f"The model `{NO_SUCH}` does not exist"))
    if LIMIT in text_of(request):
        return respond("chat", '{"answer": "one two', "length", **changes)
    text = json.dumps({"answer": "kestrel"}) if "code word" in text_of(request) else YES
    if "reasoning" in text_of(request) and "`reasoning`" in text_of(request):
        text = json.dumps({"reasoning": "Nine is more.", "answer": True})
    return respond("chat", text, **changes)


def check(shell: Shell, server: Serves, *flags: str, model: str = "openai:m") -> tuple[Result, dict[str, Any]]:
    """Return the command's result, and its document with the checks by name."""
    ended = shell("models", "check", model, "--base-url", server.base_url("chat"), "--api", "chat", "--json", *flags)
    document = json.loads(ended.out) if ended.out else {}
    return ended, document | {one["check"]: one for one in document.get("checks", ())}


def test_good_server_passes_all_checks_and_its_entry_works_in_a_run(shell: Shell) -> None:
    with Server(lambda request: streamed(answer(request)) if request.body.get("stream") else answer(request)) as server:
        ended, found = check(shell, server)
        assert ended.code == 0, ended.out
        notes = {name: one for name, one in found.items() if isinstance(one, dict) and one.get("status") == "note"}
        assert notes.keys() == {"log-probabilities", "token counts"}, "this server has none, and counts no tokens"
        assert found["calls"] == len(server.requests)
        again = shell("models", "check", "openai:m", "--base-url", server.base_url("chat"), "--api", "chat")
        assert again.code == 0
        (line,) = [line for line in again.out.splitlines() if line.startswith("- {")]
        assert yaml.safe_load(line) == [found["entry"]]
        ran = shell("run", config_file(found["entry"]), "--output", "r", "--quiet", "--no-preflight")
        assert ran.code == 0, ran.err


def streamed(response: Response) -> Response:
    """Return a response as an event stream in three pieces."""
    if response.status != 200:
        return response
    body = json.loads(response.body)
    text = body["choices"][0]["message"]["content"]
    pieces = [text[:9], text[9:20], text[20:]]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": body["usage"]})
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return Response(body=f"{events}data: [DONE]\n\n", headers={"content-type": "text/event-stream"})


HOUSE: dict[str, tuple[int, dict[str, Any]]] = {  # fault -> exit code, and settings in the entry
    "fenced": (0, {"read": "last_object"}),
    "reasoning_only": (0, {"read": "reasoning"}),
    "refusal": (1, {}),
    "reasoning_cut": (1, {}),
    "wrong_string": (1, {}),
    "html": (3, {}),
    "server_error": (3, {}),
    "rate_limit": (3, {}),
}


@pytest.mark.parametrize("fault", in_gate(HOUSE, ["fenced", "reasoning_only", "refusal", "html"]))
def test_faults_of_the_built_in_server_are_found(shell: Shell, fault: str) -> None:
    code, settings = HOUSE[fault]
    server = f"house?faults={fault}:1"
    ended = shell("models", "check", "openai:house-sharp", "--base-url", server, "--api", "chat", "--json")
    assert ended.code == code, ended.err
    if code == 3:
        assert ended.err.startswith("dubito: ")
        return
    document = json.loads(ended.out)
    usual = {"bot": "OpenAIBot", "name": "house-sharp", "model": "house-sharp", "api": "chat", "base_url": server}
    assert document["entry"] == usual | settings
    assert document["checks"][0]["status"] == ("failed" if code else "note")


def without_system(request: Incoming) -> Response:
    if request.conversation[0]["role"] == "system":
        return Response(400, error_body("chat", "some_error", "System role not supported"))
    return answer(request)


def with_another_limit(request: Incoming) -> Response:
    if "max_tokens" in request.body:
        message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        return Response(400, error_body("chat", "unsupported_parameter", message))
    return answer(request)


def without_schemas(request: Incoming) -> Response:
    if request.body.get("response_format", {}).get("type") == "json_schema":
        return Response(400, error_body("chat", "some_error", "This response_format type is unavailable now"))
    return answer(request)


def lm_studio(request: Incoming) -> Response:
    """Put each answer into the reasoning."""
    response = answer(request)
    if response.status != 200:
        return response
    body = json.loads(response.body)
    message = body["choices"][0]["message"]
    message |= {"content": "", "reasoning_content": message["content"]}
    return Response(body=json.dumps(body))


@pytest.mark.parametrize(
    ("server", "settings"),
    [
        (without_system, {"system": "user"}),
        (with_another_limit, {"output_limit": "max_completion_tokens"}),
        (without_schemas, {"response_format": "json_object"}),
        (lm_studio, {"read": "reasoning"}),
    ],
)
def test_settings_that_help_are_applied_and_printed(
    shell: Shell, server: Callable[[Incoming], Response], settings: dict[str, str]
) -> None:
    with Server(server) as running:
        ended, found = check(shell, running)
        ((key, value),) = settings.items()
        assert ended.code == 0, ended.out
        assert found["answer"]["finding"] == f"a real question, with `{key}: {value}`"
        assert found["entry"][key] == value
        config = config_file(found["entry"])
        assert shell("run", config, "--output", "r", "--quiet", "--no-preflight").code == 0
    assert {outcome.partition(":")[0] for outcome in outcomes_of(Path("r"))} == {"model"}


def test_server_with_only_another_api_is_checked_with_that_api(shell: Shell) -> None:
    def only_chat(request: Incoming) -> Response:
        return answer(request) if request.protocol == "chat" else Response(404, '{"detail": "Not Found"}')

    with Server(only_chat) as server:
        ended = shell("models", "check", "openai:m", "--base-url", server.base_url("chat"), "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["entry"]["api"] == "chat"


def odd(part: str, response: Response) -> Callable[[Incoming], Response]:
    """Return a server that answers the requests with `part` in this way."""
    return lambda request: response if part in text_of(request) else answer(request)


LONG: Final = json.dumps({"answer": "one " * 900})
ODD: dict[str, tuple[Callable[[Incoming], Response], str, str, str]] = {  # server, check, status, finding
    "cut prompts": (counting(1500), "whole prompt", "failed", "prompts are cut at about "),
    "no usage": (lambda request: answer(request, usage=None), "token counts", "note", "none are reported"),
    "no limit": (
        odd(LIMIT, respond("chat", LONG, usage={"prompt_tokens": 40, "completion_tokens": 900})),
        *("output limit", "failed", "it is ignored: 900 tokens instead of at most 32"),
    ),
    "no schema": (
        odd("Answer the question.", respond("chat", "Yes, it is.")),
        *("schema", "note", "it is ignored: Yes, it is."),
    ),
    "no streams": (odd('"stream"', Response(502, "no")), "streaming", "note", "it fails, so `watch` shows"),
    "any model": (odd(NO_SUCH, respond("chat", YES)), "errors", "note", "any model name is accepted"),
    "a wrong status": (odd(NO_SUCH, Response(500, "no")), "errors", "note", "a misspelt name would be retried"),
    "thoughts in the text": (
        odd("larger than seven", respond("chat", f"<think>Hm.</think>{YES}")),
        *("reasoning", "note", "it is in the text"),
    ),
    "unknown endings": (
        odd("larger than seven", Response(body=json.dumps(reply_body("chat") | {"choices": [
            {"message": {"role": "assistant", "content": YES}, "finish_reason": "eos"}]}))),
        *("finish reasons", "note", "9 of "),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_behaviour_of_a_server_is_found(shell: Shell, name: str) -> None:
    message, which, status, finding = ODD[name]
    with Server(message) as server:
        ended, found = check(shell, server)
    assert ended.code == (1 if status == "failed" else 0), ended.err
    assert (found[which]["status"], found[which]["finding"][: len(finding)]) == (status, finding)


def test_server_with_limits_at_once_is_found(shell: Shell) -> None:
    with Foreign(Habits(latency=(0.05, 0.05), at_once=1)) as server:
        ended, found = check(shell, server)
    assert ended.code == 0, ended.err
    assert found["parallel calls"]["status"] == "note"
    assert found["parallel calls"]["advice"] == "lower `in_flight` (--in-flight)"


def test_foreign_server_passes(shell: Shell) -> None:
    with Foreign(Habits(latency=(0.0, 0.01), requests=[Window(100, 60)], headers="openai")) as server:
        ended, found = check(shell, server)
    assert ended.code == 0, ended.err
    assert found["parallel calls"]["status"] == "ok"


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (Response(401, error_body("chat", "invalid_api_key", "Incorrect API key provided")), "refused the key"),
        (Response(402, error_body("chat", "x", "Insufficient credits")), "has no credit left (status 402): Insuffic"),
        (Response(403, error_body("chat", "x", "Your organization must be verified to use the model")), "verified"),
        (Response(404, error_body("chat", "model_not_found", "The model `m` does not exist")), "has no model 'm'"),
    ],
)
def test_account_that_cannot_be_used_ends_the_check_with_the_servers_words(
    shell: Shell, response: Response, words: str
) -> None:
    with Server(lambda _: response) as server:
        ended, _ = check(shell, server)
        assert len(server.requests) == 1
    assert (ended.code, ended.out) == (3, "")
    assert words in ended.err


def test_key_goes_only_to_the_given_address(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-the-key-of-somebody")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key-of-somebody")
    with Server(answer) as other, Server(lambda _: Response(307, "", {"location": f"{other.address}/v1"})) as server:
        ended, _ = check(shell, server, "--api-key-env", "MY_KEY")
        assert (ended.code, other.requests) == (3, [])
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-the-key-of-somebody"}
    with Server(answer) as server:
        assert check(shell, server)[0].code == 0
        assert not any("sk-another" in str(request.headers) for request in server.requests), "no key was named"


def test_only_model_of_a_server_is_found_and_of_several_one_is_asked_for(shell: Shell) -> None:
    """As vLLM, llama.cpp and LM Studio list them."""
    with House() as house:
        ended = shell("models", "check", "--base-url", house.openai_base_url, "--api", "chat")
        assert (ended.code, ended.out) == (2, "")
        assert "the server has 16 models; give one of them: openai:house-careful, openai:house-follower" in ended.err
    with Server(
        lambda request: Response(body=LISTED) if request.path.endswith("/models") else answer(request)
    ) as server:
        ended = shell("models", "check", "--base-url", server.base_url("chat"), "--api", "chat", "--json")
        assert json.loads(ended.out)["entry"]["model"] == "org/only-model"
    with Server(lambda request: Response(404, "no")) as server:
        ended = shell("models", "check", "--base-url", server.base_url("chat"), "--api", "chat")
        assert (ended.code, "the server lists no models" in ended.err) == (3, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "give MODEL, such as openai:NAME, or --base-url"),
        (("m",), "does not start with a provider"),
        (("openai:m", "--api", "decisions"), "needs an API whose replies are texts"),
        (("openai:m", "--prompt", "nope"), "nope"),
        (("house:nope",), "has no model 'nope'"),
        (("openai:m", "--base-url", "https://far.example/v1"), "this server needs a separate key"),
    ],
)
def test_bad_input_starts_nothing(
    shell: Shell, words: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key-of-somebody")
    ended = shell("models", "check", *words)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
