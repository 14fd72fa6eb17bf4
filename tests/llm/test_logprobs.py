"""`belief: logprobs`: the probability of the answer's token is the stated probability."""

import json
from collections.abc import Callable, Mapping, Sequence
from math import log
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.llm.logprobs import read_yes_probability
from dubito.llm.protocols.chat import ChatEvents
from dubito.llm.redaction import Redaction
from dubito.llm.streamed import StreamedReply
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import Incoming, Response, Server, player_at, reply_body, respond, rows, run_games, small

Tokens = Sequence[tuple[str, Mapping[str, float]]]
# As llama.cpp's server (xllamacpp 2026.10) gave them for SmolLM2: tokens that the grammar refused are listed as well,
# and spaces belong to the words.
LLAMA = [
    ("```", {"The": -2.12, "```": -2.29}),
    ("json", {"json": -0.39}),
    ("\n", {"\n": -0.0003}),
    ("{", {"{": -0.04, '{"': -3.56}),
    ("\n ", {"\n ": -0.61}),
    (' "', {' "': -0.03}),
    ("answer", {"response": -2.36, "answer": -2.38}),
    ('":', {'":': -0.04}),
    (" true", {" true": -0.94, " false": -1.36, ' "': -1.64, " {": -2.33}),
    ("\n", {"\n": -0.1}),
    ("}", {"}": -0.1}),
]


def body(tokens: Tokens) -> dict[str, Any]:
    content = [
        {"token": token, "logprob": alternatives[token], "bytes": None,
         "top_logprobs": [{"token": each, "logprob": p, "bytes": None} for each, p in alternatives.items()]}
        for token, alternatives in tokens
    ]  # fmt: skip
    text = "".join(token for token, _ in tokens)
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": content}}]}


def sure(*tokens: str) -> Tokens:
    return [(token, {token: 0.0}) for token in tokens]


@pytest.mark.parametrize(
    ("tokens", "field", "probability"),
    [
        (LLAMA, "answer", 0.604),
        # The value begins inside a token, or is cut into several.
        ([*sure('{"answer'), ('":true', {'":true': -0.5, '":false': -1.5})], "answer", 0.731),
        ([*sure('{"answer":'), ("fa", {"tr": -2.0, "fa": -0.2}), *sure("lse", "}")], "answer", 0.142),
        # Values in an earlier text do not count.
        ([*sure('<think>{"answer":', "false", '}</think>{"answer":'), ("true", {"true": -0.1})], "answer", 1.0),
        ([*sure('{"reasoning":"\\"answer\\": false","answer":'), ("true", {"true": -1, "false": -1})], "answer", 0.5),
        # Several questions in one reply.
        ([*sure('{"C":'), ("true", {"true": -1, "false": -1}), *sure(',"D":', "false", "}")], "C", 0.5),
        ([*sure('{"C":'), ("true", {"true": -1, "false": -1}), *sure(',"D":', "false", "}")], "D", 0.0),
        # The reply does not have the field, or its value is not a boolean.
        (sure('{"answer":', "0.5", "}"), "answer", None),
        (LLAMA, "C", None),
    ],
)
def test_probability_of_yes_is_that_of_the_answers_token(tokens: Tokens, field: str, probability: float | None) -> None:
    share = read_yes_probability(json.dumps(body(tokens)), field)
    assert share == (None if probability is None else pytest.approx(probability, abs=0.001))


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": "true"},
        {"content": [5]},
        {"content": [{"token": "true", "logprob": "-"}]},
        {"content": [{"token": '{"answer":true', "logprob": float("nan"), "top_logprobs": 7}]},
    ],
)
def test_damaged_log_probabilities_count_as_missing(logprobs: Any) -> None:
    raw = json.dumps({"choices": [{"message": {"content": '{"answer":true}'}, "logprobs": logprobs}]})
    assert read_yes_probability(raw, "answer") is None


def answering(yes: float) -> Callable[[Incoming], Response]:
    """Answer each question with the likelier value, given the probability of yes."""

    def answer(incoming: Incoming) -> Response:
        assert (incoming.body["logprobs"], incoming.body["top_logprobs"]) == (True, 5)
        alternatives = {"true": log(yes), "false": log(1 - yes)}
        tokens = [*sure('{"answer":'), (str(yes > 0.5).lower(), alternatives), *sure("}")]
        return Response(body=json.dumps(reply_body("chat") | body(tokens)))

    return answer


def run_with(folder: Path, yes: float, **settings: Any) -> Path:
    with Server(answering(yes)) as server:
        return run_games(small(player_at(server, "chat", belief="logprobs", **settings), turns=20), folder).folder


def test_probability_is_kept_where_the_node_states_one(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", 0.2)
    assert rows(run, "SELECT DISTINCT p_bluff FROM decisions WHERE node = 'C'") == [(pytest.approx(0.2),)]
    assert rows(run, "SELECT DISTINCT p_bluff FROM decisions WHERE node != 'C'") == [(None,)]
    assert rows(run, "SELECT DISTINCT answer FROM decisions") == [(0,)]


def test_drawn_answers_follow_the_probability(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", 0.4, play="drawn")
    counts = dict(rows(run, "SELECT answer, count(*) FROM decisions GROUP BY answer"))
    assert set(counts) == {0, 1}
    assert 0.2 < counts[1] / sum(counts.values()) < 0.6


@pytest.mark.parametrize("prompt", in_gate(["plain", "plan"], ["plan"]))
def test_house_gives_the_odds_of_its_answers(tmp_path: Path, shell: Shell, prompt: str) -> None:
    player = {"bot": "OpenAIBot", "name": "x", "model": "house-sharp", "base_url": "house", "api": "chat"}
    config = small({**player, "belief": "logprobs", "prompt": prompt, "play": "drawn"}, turns=20)
    run = run_games(config, tmp_path / "run").folder
    stated = [p for (p,) in rows(run, "SELECT p_bluff FROM decisions WHERE node = 'C'")]
    assert all(0 <= p <= 1 for p in stated)
    assert any(0 < p < 1 for p in stated)
    assert shell("replay", str(run)).code == 0


def test_server_without_log_probabilities_stops_the_preflight(tmp_path: Path) -> None:
    with Server(lambda incoming: respond("chat")) as server:
        run = run_games(small(player_at(server, "chat", belief="logprobs")), tmp_path / "run", preflight=True)
    assert "got no log-probabilities" in str(run.failure)
    assert "`belief`" in str(run.failure)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"api": "responses"}, "belief: only `api: chat` has this setting"),
        ({"prompt": "reasoned"}, "belief: the prompt reasoned already asks for probabilities"),
        ({"prompt": "mixed"}, "belief: the prompt mixed already asks for probabilities"),
        ({"parameters": {"top_logprobs": 3}}, "Dubito sets this itself"),
    ],
)
def test_player_without_a_belief_is_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    player = {"bot": "OpenAIBot", "name": "x", "model": "house-sharp", "base_url": "house", "api": "chat"}
    with pytest.raises(UsageError, match=message):
        run_games(small({**player, "belief": "logprobs", **settings}), tmp_path / "run")


def test_streamed_log_probabilities_add_up() -> None:
    chunks: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": token}, "finish_reason": None,
                      "logprobs": {"content": [{"token": token, "logprob": alternatives[token]}]}}]}
        for token, alternatives in LLAMA[3:]
    ]  # fmt: skip
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "logprobs": None}]})
    events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    whole = StreamedReply(ChatEvents(), lambda text: None, Redaction("sk-0123456789")).read(events)
    assert whole is not None
    assert read_yes_probability(whole.decode(), "answer") == 1.0
