"""Google's Gemini API: requests, replies, token counts and errors, and whole games against the built-in server."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.errors import UsageError
from dubito.game import Bool, Node
from dubito.house.server import House
from dubito.llm.answers import build_form
from dubito.llm.client import Provider
from dubito.llm.protocols import build_request, conversation, detect_protocol, read_reply
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import AccountFault, Attempt, Place, RawReply, Reply, Request, Usage
from dubito.llm.settings import build_account, check_settings
from dubito.model_settings import Account, ModelSettings
from tests.cli.kit import Shell
from tests.conftest import in_gate

YES: Final = '{"answer": true}'
FORM: Final = build_form(("answer",), Node("C", "", Bool()))
USAGE: Final = {"promptTokenCount": 100, "candidatesTokenCount": 7, "totalTokenCount": 107}


def settings(**more: Any) -> ModelSettings:
    return check_settings("G", {"model": "gemini-x", "api": "gemini", "fallback": "MrDoubt", **more})


def request(reasks: tuple[tuple[str, str], ...] = (), **more: Any) -> Request:
    return build_request(settings(**more), Exchange("Rules.", "Yes?", FORM.schema, reasks), "key")


def candidate(*parts: dict[str, Any], finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    content = {"role": "model", **({"parts": [*parts]} if parts else {})}
    return {"content": content, "finishReason": finish, "index": 0, **more}


def body(*candidates: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [*candidates], "usageMetadata": USAGE, "modelVersion": "gemini-x-001", **more}


def read(reply: Any) -> Reply:
    return read_reply("gemini", RawReply(200, json.dumps(reply)))


def test_request_follows_the_reference() -> None:
    asked = request(reasks=(("Hm.", "Again."),), max_output=64, parameters={"generationConfig": {"seed": 1}})
    assert asked.path == "/v1beta/models/gemini-x:generateContent"
    assert asked.body == {
        "systemInstruction": {"parts": [{"text": "Rules."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Yes?"}]},
            {"role": "model", "parts": [{"text": "Hm."}]},
            {"role": "user", "parts": [{"text": "Again."}]},
        ],
        "generationConfig": {
            "seed": 1,
            "maxOutputTokens": 64,
            "responseMimeType": "application/json",
            "responseJsonSchema": FORM.schema,
        },
    }
    assert conversation(asked) == [("system", "Rules."), ("user", "Yes?"), ("assistant", "Hm."), ("user", "Again.")]
    assert asked.model == "gemini-x"


def test_rules_can_be_in_the_user_message() -> None:
    without = build_request(settings(system="user"), Exchange("Rules.", "Yes?", FORM.schema), "key")
    assert "systemInstruction" not in without.body
    assert conversation(without) == [("user", "Rules.\n\nYes?")]


@pytest.mark.parametrize(
    ("reply", "text", "finish", "problem"),
    [
        (body(candidate({"text": '{"answer"'}, {"text": ": true}"})), YES, "stop", ""),
        (body(candidate({"text": "Hm.", "thought": True}, {"text": YES})), YES, "stop", ""),
        (body(candidate({"text": YES}, finish="MAX_TOKENS")), YES, "length", ""),
        (body(candidate(finish="MAX_TOKENS")), None, "length", "the reply stopped at its length limit"),
        (body(candidate(finish="SAFETY")), None, "refusal", "the model declined"),
        (body(candidate({"text": YES}, finish="NEWER")), YES, "other", ""),
        (body(candidate(finish="OTHER")), None, "other", "it has no text (it ended with 'OTHER')"),
        (body(candidate({"functionCall": {"name": "f"}})), None, "other", "it calls a tool, but there are no tools"),
        (body(candidate({"text": YES}), candidate({"text": YES})), None, "other", "it has 2 candidates instead of one"),
        (body(), None, "other", "it has no candidates instead of one"),
        (
            {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}},
            None,
            "refusal",
            "a content filter of the server stopped the reply",
        ),
    ],
)
def test_text_and_finish_are_read(reply: Any, text: str | None, finish: str, problem: str) -> None:
    got = read(reply)
    assert (got.text, got.finish, got.problem, got.non_reply) == (text, finish, problem, None)


def test_reasoning_alone_is_not_an_answer() -> None:
    got = read(body(candidate({"text": "Hm.", "thought": True})))
    assert (got.text, got.thoughts) == (None, "Hm.")
    assert got.problem == "it has reasoning, but no text after it (it ended with 'STOP')"


def test_tokens_of_thoughts_and_tools_are_counted() -> None:
    counts = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "thoughtsTokenCount": 30}
    counts |= {"candidatesTokenCount": 7, "toolUsePromptTokenCount": 5, "totalTokenCount": 142}
    got = read(body(candidate({"text": YES}), usageMetadata=counts))
    assert got.usage == Usage(105, 60, 0, 37, 30)
    assert got.model == "gemini-x-001"
    assert read(body(candidate({"text": YES}), usageMetadata={"promptTokenCount": "9"})).usage is None
    assert read({"candidates": [candidate({"text": YES})]}).usage is None


def test_protocol_of_a_body_is_detected() -> None:
    assert detect_protocol(json.dumps(body(candidate({"text": YES})))) == "gemini"


def test_settings_of_other_protocols_are_refused() -> None:
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"wait": "batch"}, "the Gemini API has no batches"),
        ({"response_format": "text"}, "only `api: chat` has this setting"),
        ({"parameters": {"contents": []}}, "Dubito sets this itself"),
    ]
    for wrong, problem in wrongs:
        with pytest.raises(UsageError, match=problem):
            settings(**wrong)


def test_key_is_sent_only_in_googles_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-key")
    assert build_account(settings()).key_env == "GEMINI_API_KEY"
    sent: list[dict[str, str]] = []
    with House() as house, closing(provider(house, "a-key")) as client:
        sdk_client, _ = client._client
        sdk_client._client.event_hooks["request"].append(lambda request: sent.append(dict(request.headers)))
        reply = client.send(attempt(request(model="house-sharp")), 1, 20)
    assert reply.status == 200
    assert sent[0]["x-goog-api-key"] == "a-key"
    assert "authorization" not in sent[0]


def provider(house: House, key: str = "key") -> Provider:
    return Provider(Account("gemini", "house", None), house.base_url("gemini"), key, 1)


def attempt(asked: Request) -> Attempt:
    return Attempt(asked, "0", Place("G", 0, 0, 0, 0, 0, "C"))


@pytest.mark.parametrize(
    ("key", "model", "message"),
    [
        ("wrong", "house-sharp", "refused the key"),
        ("key", "house-other", "has no model 'house-other'"),
        ("broke", "house-sharp", "no credit"),
    ],
)
def test_errors_name_the_setting_to_correct(key: str, model: str, message: str) -> None:
    with House() as house, closing(provider(house, key)) as client, pytest.raises(AccountFault) as caught:
        client.send(attempt(request(model=model)), 1, 20)
    assert message in str(caught.value)


def test_unknown_field_is_named() -> None:
    asked = request(model="house-sharp", parameters={"temprature": 1})
    with (
        House() as house,
        closing(provider(house)) as client,
        pytest.raises(AccountFault) as caught,
    ):
        client.send(attempt(asked), 1, 20)
    assert caught.value.setting == "parameters.temprature"


@pytest.mark.parametrize("faults", in_gate(["", "?faults=storm:0.5"], 1))
def test_whole_games_are_repeated_by_a_replay(tmp_path: Path, shell: Shell, faults: str) -> None:
    config: dict[str, Any] = {
        "bots": ["MrDoubt", {"bot": "GeminiBot", "name": "G", "model": "house-sharp", "base_url": f"house{faults}"}],
        "table_sizes": [3],
        "games": 3,
    }
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    assert shell("run", "run.yaml", "--output", "r").code == 0
    assert "identical: 3 games" in shell("replay", "r").out
