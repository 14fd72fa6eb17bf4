"""Model addresses: short forms, `base_url: env`, and unused variables."""

from itertools import product
from pathlib import Path

import pytest
import yaml

from dubito.house.server import House
from tests.cli.kit import Result, Shell
from tests.conftest import in_gate
from tests.llm.kit import Server, respond

VARIABLES = {"OPENAI_BASE_URL": "openai", "ANTHROPIC_BASE_URL": "anthropic"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def run(shell: Shell, contender: str, *flags: str) -> Result:
    fixed = ("--bots", "StefaBot,UsualBot", "--table-sizes", "3", "--games", "2", "--max-turns", "5", "--no-report")
    return shell("run", "--contenders", contender, *fixed, "--output", "r", "--quiet", *flags)


def test_the_house_has_a_short_form(shell: Shell) -> None:
    result = run(shell, "house:house-sharp@reasoned")
    assert (result.code, result.err) == (0, "")
    (player,) = yaml.safe_load(Path("r/manifest.yaml").read_text())["identity"]["contenders"]
    assert (player["name"], player["bot"]) == ("house:house-sharp@reasoned", "OpenAIBot")
    text = {key: player["settings"][key] for key in ("model", "prompt", "base_url")}
    assert text == {"model": "house-sharp", "prompt": "reasoned", "base_url": "house"}
    refused = run(shell, "house:house-sharpp")
    assert refused.code == 2
    assert (
        "the built-in server has no model 'house-sharpp'; it has house-sharp, house-honest, house-random" in refused.err
    )


def test_short_form_can_use_another_protocol(shell: Shell) -> None:
    with House() as house:
        address = house.openai_base_url
        result = run(shell, "openai:house-random", "--base-url", address, "--api", "chat")
        paths = {call.path for call in house.calls}
    assert (result.code, result.err) == (0, "")
    assert paths == {"/v1/chat/completions"}


def test_unsupported_protocol_is_refused(shell: Shell) -> None:
    result = run(shell, "anthropic:claude-x", "--api", "chat")
    assert result.code == 2
    assert "anthropic:claude-x: anthropic does not support `api: chat`; set --base-url to a server" in result.err
    assert "--api: must be 'responses', 'chat', " in run(shell, "openai:x", "--api", "chatt").err


def test_address_without_tls_gets_a_hint(shell: Shell) -> None:
    with Server(lambda _: respond("responses")) as server:
        address = server.base_url("responses").replace("http:", "https:")
        output = run(shell, "openai:my-model", "--base-url", address).err
    assert f"dubito: no TLS at {address} (" in output
    hint = "if the server does not use TLS, its address begins with http://: correct `--base-url`"
    assert f"; {hint} (`base_url` in a config); 0 of 2 games are saved" in output


def test_a_server_of_another_protocol_names_the_flag(shell: Shell) -> None:
    with Server(lambda _: respond("chat")) as server:
        address = server.base_url("responses")
        result = run(shell, "openai:my-model", "--base-url", address)
    text = f"{address} answers in Chat Completions, but openai:my-model uses the Responses API; set `--api chat`"
    assert f"dubito: {text} (`api: chat` in a config); 0 of 2 games are saved" in result.err
    result = run(shell, "openai:my-model", "--base-url", address)  # nothing listens there any more
    text = (
        f"nothing answers at {address} (connection refused); start the server, or correct `--base-url` (`base_url` in"
    )
    assert f"dubito: {text} a config); 0 of 2" in result.err


@pytest.mark.parametrize(
    ("variable", "said_by"),
    in_gate(
        product(VARIABLES, ["flag", "env", "config"]), [("OPENAI_BASE_URL", "flag"), ("ANTHROPIC_BASE_URL", "config")]
    ),
)
def test_short_form_uses_the_given_server(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, variable: str, said_by: str
) -> None:
    """The run stores the address, never `env`."""
    with House() as house:
        address = house.openai_base_url if variable == "OPENAI_BASE_URL" else house.anthropic_base_url
        flags = ["--base-url", address]
        if said_by != "flag":
            monkeypatch.setenv(variable, address)
            flags = ["--base-url", "env"]
        if said_by == "config":
            Path("c.yaml").write_text("base_url: env\n")
            flags = ["c.yaml"]
        result = run(shell, f"{VARIABLES[variable]}:house-random", *flags)
        calls = len(house.calls)
    assert (result.code, result.err) == (0, "")
    assert calls > 2
    (player,) = yaml.safe_load(Path("r/manifest.yaml").read_text())["identity"]["contenders"]
    assert player["settings"]["base_url"] == address


def test_env_without_the_variable_is_refused(shell: Shell) -> None:
    result = run(shell, "openai:m", "--base-url", "env")
    problem = "the value is `env`, but the environment variable OPENAI_BASE_URL is not set"
    assert (result.code, result.err) == (2, f"dubito: --contenders: openai:m: base_url: {problem}\n")


def test_server_from_the_environment_gets_no_provider_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    result = run(shell, "openai:m", "--base-url", "env")
    assert result.code == 2
    assert "base_url: this server needs a separate key; name the variable with the key in `api_key_env`" in result.err
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:secret@models.example/v1")
    result = run(shell, "openai:m", "--base-url", "env")
    assert "base_url: must not contain credentials" in result.err
    assert "secret" not in result.err


@pytest.mark.parametrize("said_by", ["flag", "config"])
def test_other_server_gets_only_its_own_key(shell: Shell, monkeypatch: pytest.MonkeyPatch, said_by: str) -> None:
    """The provider's key is sent only if it is named explicitly. The built-in server gets none."""
    flags, base = ["--api-key-env", "OPENAI_API_KEY"], ["--base-url", "https://models.example/v1", "--offline"]
    if said_by == "config":
        Path("c.yaml").write_text("api_key_env: OPENAI_API_KEY\n")
        flags = ["c.yaml"]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = run(shell, "openai:m", *flags, *base[:2])
    assert "needs a key for https://models.example/v1; set the environment variable OPENAI_API_KEY" in result.err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    result = run(shell, "openai:m,house:house-random", *flags, *base)
    assert "--offline: the cache has no reply for openai:m" in result.err
    keys = {
        player["name"]: player["settings"]["api_key_env"]
        for player in yaml.safe_load(Path("r/manifest.yaml").read_text())["identity"]["contenders"]
    }
    assert keys == {"openai:m": "OPENAI_API_KEY", "house:house-random": None}


def test_unused_variable_is_reported_once(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    note = "note: OPENAI_BASE_URL is set but not used. To ask that server, set `base_url: env` or --base-url env"
    result = run(shell, "openai:m,openai:other", "--offline")
    assert result.err.count(note) == 1
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1/")
    assert "OPENAI_BASE_URL" not in run(shell, "openai:m,openai:other", "--offline").err
    assert "OPENAI_BASE_URL" not in run(shell, "house:house-random").err


@pytest.mark.parametrize("provider", ["house", "openai"])
def test_short_form_takes_settings_of_replies(shell: Shell, provider: str) -> None:
    flags = ("--read", "last_object", "--system", "user", "--max-output", "77")
    with Server(lambda request: respond(request.protocol)) as server:
        where = ("--base-url", server.base_url("responses")) if provider == "openai" else ()
        result = run(shell, f"{provider}:house-sharp", *flags, *where)
    assert (result.code, result.err) == (0, "")
    (asked,) = yaml.safe_load(Path("r/manifest.yaml").read_text())["identity"]["contenders"]
    settings = asked["settings"]
    assert (settings["read"], settings["system"], settings["max_output"]) == ("last_object", "user", 77)
