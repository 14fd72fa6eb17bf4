"""Behaviour of real servers according to their documents: truncated prompts, visible thinking, rejected roles."""

import json
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dubito.llm.answers import find_last_object
from dubito.llm.context import PromptCounts
from dubito.llm.protocols import read_reply
from dubito.llm.request import AttemptFailed, RawReply, Request
from dubito.model_settings import Api
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import PROTOCOLS, Incoming, Response, Server, outcomes_of, player_at, reply_body, respond, run_cli

YES = '{"answer": true}'
BAD_REQUEST = {"error": {"message": "Bad request", "type": "invalid_request_error"}}


def texts_of(request: Incoming) -> str:
    return "".join(map(str, [request.body.get("system", ""), *(turn["content"] for turn in request.conversation)]))


def counting(window: int, cached: float = 0.0) -> Callable[[Incoming], Response]:
    """Start a server that counts one token per 3.5 characters and truncates prompts to its window."""

    def answer(request: Incoming) -> Response:
        tokens = int(len(texts_of(request)) / 3.5)
        read = int(tokens * cached)
        tokens = tokens if tokens < window else window // 2 + tokens % 40
        usages: dict[str, dict[str, Any]] = {
            "chat": {"prompt_tokens": tokens - read, "prompt_tokens_details": {"cached_tokens": read}},
            "responses": {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": read}},
            "messages": {"input_tokens": tokens - read, "cache_read_input_tokens": read},
        }
        outputs = {"completion_tokens": 5, "output_tokens": 5}
        return respond(request.protocol, usage=usages[request.protocol] | outputs)

    return answer


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["chat"]))
@pytest.mark.parametrize("window", in_gate([2900, 2048, 512], [2048]))
def test_preflight_detects_a_server_that_cuts_prompts(shell: Shell, protocol: Api, window: int) -> None:
    with Server(counting(window)) as server:
        ended = run_cli(shell, player_at(server, protocol), rules={"max_turns": 90}, table_sizes=[8])
    assert ended.code == 3
    assert "the server truncates prompts at about" in ended.err
    assert "Ollama `num_ctx`, llama.cpp `-c`" in ended.err
    assert outcomes_of(Path("r")) == {}


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["chat"]))
def test_prompt_cut_during_play_is_a_separate_fallback_cause(shell: Shell, protocol: Api) -> None:
    more = {"rules": {"max_turns": 60}, "games": 2, "on_unusable": "fallback"}
    with Server(counting(2700)) as server:
        ended = run_cli(shell, player_at(server, protocol), flags=["--no-preflight"], **more)
        replayed = shell("replay", "r")
    assert ended.code == 0, ended.err
    outcomes = outcomes_of(Path("r"))
    assert outcomes["fallback:cut"] > 0 < outcomes["model"]
    assert "fallback:cut %" in ended.out
    assert (replayed.code, "identical" in replayed.out) == (0, True)


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["messages"]))
@pytest.mark.parametrize("cached", in_gate([0.0, 0.3, 0.6, 0.9], [0.6]))
def test_server_with_a_prompt_cache_is_not_flagged(shell: Shell, protocol: Api, cached: float) -> None:
    with Server(counting(10**6, cached)) as server:
        ended = run_cli(shell, player_at(server, protocol), rules={"max_turns": 40}, games=1)
    assert ended.code == 0, ended.err
    assert set(outcomes_of(Path("r"))) == {"model"}


def always_counting(count: int, protocol: Api) -> Callable[[Incoming], Response]:
    input_tokens = "prompt_tokens" if protocol == "chat" else "input_tokens"
    usage = {input_tokens: count, "completion_tokens": 1, "output_tokens": 1}
    return lambda request: respond(protocol, usage=usage)


@pytest.mark.parametrize("count", in_gate([0, 1, 10, 100], [1]))
def test_server_without_counts_is_not_flagged(shell: Shell, count: int) -> None:
    with Server(always_counting(count, "chat")) as server:
        ended = run_cli(shell, player_at(server, "chat"), rules={"max_turns": 40}, games=1)
    assert ended.code == 0, ended.err
    assert set(outcomes_of(Path("r"))) == {"model"}


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["chat"]))
@pytest.mark.parametrize("count", in_gate([257, 512, 1200, 2048, 8192], [2048]))
def test_preflight_finds_same_count_for_short_and_long_prompts(shell: Shell, protocol: Api, count: int) -> None:
    with Server(always_counting(count, protocol)) as server:
        ended = run_cli(shell, player_at(server, protocol), rules={"max_turns": 90}, table_sizes=[8])
    assert ended.code == 3
    assert f"the server truncates prompts at about {count:,} tokens" in ended.err
    assert outcomes_of(Path("r")) == {}


@pytest.mark.parametrize("count", in_gate([512, 2048, 4096], [4096]))
def test_same_count_for_growing_prompts_is_a_cut_in_play(shell: Shell, count: int) -> None:
    more = {"rules": {"max_turns": 60}, "games": 1, "on_unusable": "fallback"}
    with Server(always_counting(count, "chat")) as server:
        ended = run_cli(shell, player_at(server, "chat"), flags=["--no-preflight"], **more)
    assert ended.code == 0, ended.err
    assert outcomes_of(Path("r"))["fallback:cut"] > 0


@pytest.mark.parametrize(
    ("tokens", "cut"),
    [
        ([2000, 2300, 2600], False),
        ([2000, 2050, 2040], True),
        ([2000, 1900], True),
        ([1800, 800], True),
        ([800], True),
        ([1100], False),
        ([2000, 2000], True),
        ([100, 100, 100], False),
    ],
)
def test_token_counts_of_growing_prompts_reveal_a_cut(tokens: list[int], cut: bool) -> None:
    """The prompts have 7,000, 8,000 and 9,000 characters."""
    counts, causes = PromptCounts(), set[str]()
    for place, count in enumerate(tokens):
        usage = {"prompt_tokens": count, "completion_tokens": 1}
        reply = read_reply("chat", RawReply(200, json.dumps(reply_body("chat", usage=usage))))
        try:
            body = {"messages": [{"role": "user", "content": "x" * (7000 + 1000 * place)}]}
            counts.check(Request("chat", "/chat/completions", body), reply)
        except AttemptFailed as error:
            causes.add(error.cause)
    assert causes == ({"cut"} if cut else set())


AROUND = [
    '<think>It may be {"answer": false}.</think>\n\n{}',
    "```json\n{}\n```",
    "Sure, here it is: {}",
    "{}<|eot_id|>",
    "<thinking>{{</thinking>{}",
]


@pytest.mark.parametrize("around", in_gate(AROUND, 1))
def test_longer_reply_is_read_if_the_player_allows_it(shell: Shell, around: str) -> None:
    text = around.replace("{}", YES)
    with Server(lambda request: respond(request.protocol, text)) as server:
        strict = run_cli(shell, player_at(server, "chat"))
        assert (strict.code, "--read last_object" in strict.err) == (3, True)
        ended = run_cli(shell, player_at(server, "chat", read="last_object"), flags=["--output", "lax"])
        assert ended.code == 0, ended.err
        replayed = shell("replay", "lax")
    assert set(outcomes_of(Path("lax"))) == {"model:last_object"}
    assert "model:last_object" in shell("status", "lax").out
    assert (replayed.code, "identical" in replayed.out) == (0, True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (YES, YES),
        ('{"answer": true} {"answer": false}', '{"answer": false}'),
        ('{"a": {"answer": true}}', '{"a": {"answer": true}}'),
        ('<think>{"answer": true}', None),
        ('{"answer": tr', None),
        ("[1]", None),
        ("{" * 100_000, None),
        ('{"a":' * 100_000, None),
        ("x" * 10**6 + YES, YES),
    ],
)
def test_last_complete_object_is_read(text: str, found: str | None) -> None:
    assert find_last_object(text) == found


@pytest.mark.parametrize("status", [400, 500])
def test_error_for_a_model_without_system_role_names_the_setting(shell: Shell, status: int) -> None:
    def answer(request: Incoming) -> Response:
        if request.conversation[0]["role"] != "user":
            return Response(status, json.dumps({"error": {"message": "System role not supported", "code": status}}))
        return respond(request.protocol)

    with Server(answer) as server:
        refused = run_cli(shell, player_at(server, "chat"))
        assert refused.code == 3
        assert "set `system: user` in the entry of 'asker'" in refused.err
        ended = run_cli(shell, player_at(server, "chat", system="user"), flags=["--output", "asked"])
    assert ended.code == 0, ended.err
    assert set(outcomes_of(Path("asked"))) == {"model"}


def test_rejected_re_ask_fails_only_itself(shell: Shell) -> None:
    def answer(request: Incoming) -> Response:
        if len(request.conversation) > 2:
            return Response(400, json.dumps(BAD_REQUEST))
        return respond(request.protocol, "Yes." if "node: C" in texts_of(request) else YES)

    with Server(answer) as server:
        ended = run_cli(shell, player_at(server, "chat"), flags=["--no-preflight"], games=2)
        replayed = shell("replay", "r")
    assert ended.code == 0, ended.err
    outcomes = outcomes_of(Path("r"))
    assert outcomes.keys() == {"model", "fallback:rejected"}
    assert (replayed.code, "identical" in replayed.out) == (0, True)


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["messages"]))
@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, {"error": {"message": "Invalid model name passed in model=nope", "code": "400"}}, "has no model"),
        (404, {"error": {"message": "model 'nope' not found"}}, "has no model"),
        (404, {"error": "Not Found", "message": "Cannot POST /v1/chat/completions", "status": 404}, "has no /"),
        (404, {"detail": "Not Found"}, "has no /"),
        (404, {"error": {"message": "Not Found", "code": "not_found"}}, "has no /"),
        (400, {"error": {"message": "No connected db.", "code": "400"}}, "api_key_env"),
    ],
)
def test_error_names_the_unsupported_field(
    shell: Shell, status: int, body: dict[str, object], message: str, protocol: Api
) -> None:
    with Server(lambda request: Response(status, json.dumps(body))) as server:
        ended = run_cli(shell, player_at(server, protocol))
    assert ended.code == 3
    assert message in ended.err


MOVE = '{"answer": "pass"}'
FAKES = {
    "fakellm": ("serve",),
    "mockllm": ("start", "--responses", "responses.yml", "--host", "127.0.0.1"),
    "llmock": ("serve", *("--error-rate", "429=0.15", "--error-rate", "503=0.1", "--error-rate", "500=0.1")),
}
FILES = {
    "fakellm.yaml": json.dumps(
        {"version": 1, "rules": [{"name": "a", "when": {"messages_contain": "e"}, "respond": {"content": MOVE}}]}
    ),
    "responses.yml": f"responses: {{}}\ndefaults: {{unknown_response: '{MOVE}'}}\n",
}


@pytest.mark.at_length
@pytest.mark.parametrize("name", FAKES)
def test_fake_server_of_another_project_plays_whole_run(shell: Shell, name: str) -> None:
    """See docs/servers.md for the packages. llmock is configured to fail a third of the calls."""
    pytest.importorskip("pyspiel")
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    for file, text in FILES.items():
        (shell.folder / file).write_text(text)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, *FAKES[name], "--port", f"{port}"]
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=shell.folder, **how) as server:
        try:
            assert server.stdout is not None
            while "startup complete" not in server.stdout.readline():
                assert server.poll() is None
            at = ("--base-url", f"http://127.0.0.1:{port}/v1", "--api", "chat", "--contenders", "openai:gpt-4o-mini")
            ended = shell("run", "--game", "openspiel:kuhn_poker", *at, "--games", "4", "--no-report", "--output", "r")
        finally:
            server.terminate()
    assert ended.code == 0, ended.err
    assert outcomes_of(Path("r")) == {"model": 4}
