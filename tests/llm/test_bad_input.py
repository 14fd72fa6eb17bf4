"""Users' mistakes with models: one message each, with the place, a hint and the exit code."""

import re
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.house.server import House
from dubito.llm.settings import check_settings
from tests.cli.kit import Result as Ended
from tests.cli.kit import Shell
from tests.experiment.kit import experiment
from tests.llm.kit import contender, run_cli


def sentence(ended: Ended, code: int) -> str:
    """Return the only sentence on stderr of a failed command."""
    assert ended.code == code, ended.err
    (line,) = ended.err.splitlines()
    assert line.startswith("dubito: ")
    return line.removeprefix("dubito: ")


def refused(shell: Shell, *words: str, flags: tuple[str, ...] = (), **settings: Any) -> None:
    """Check that a player with these settings is rejected before anything starts, with all these words."""
    message = sentence(run_cli(shell, contender("Asker", **settings), flags=flags), 2)
    for word in words:
        assert word in message, message
    assert not Path("r").exists(), "nothing was started"


@pytest.mark.parametrize(("bot", "variable"), [("OpenAIBot", "OPENAI_API_KEY"), ("AnthropicBot", "ANTHROPIC_API_KEY")])
def test_missing_key_is_reported(shell: Shell, bot: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    advice = f"set the environment variable {variable}, or try it without a key using `base_url: house`"
    refused(shell, "Asker needs a key for https://api.", advice, bot=bot, base_url=None)
    monkeypatch.setenv(variable, "  ")
    refused(shell, advice, bot=bot, base_url=None)
    refused(shell, "environment variable MINE", bot=bot, base_url="https://models.example/v1", api_key_env="MINE")
    refused(shell, "environment variable MINE", bot=bot, base_url="house", api_key_env="MINE")


@pytest.mark.parametrize(
    ("bot", "key", "words"),
    [
        (
            *("OpenAIBot", "wrong-key"),
            (
                "house (MINE) refused the key (status 401): ",
                "; set MINE, or change `api_key_env` in the entry of 'Asker'",
            ),
        ),
        ("AnthropicBot", "broke-key", ("house (MINE) has no credit left", "top it up")),
    ],
)
def test_rejected_key_stops_the_run(
    shell: Shell, bot: str, key: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", key)
    message = sentence_after_no_game(run_cli(shell, contender("Asker", bot=bot, api_key_env="MINE")))
    for word in (*words, "0 of 2 games are saved in r"):
        assert word in message
    assert key not in message


def sentence_after_no_game(ended: Ended) -> str:
    """Return the message of a run that stopped before its first game was finished."""
    assert ended.code == 3
    *_, first, last = ended.err.splitlines()
    assert first == "No results yet: no games are finished."
    return last.removeprefix("dubito: ")


@pytest.mark.usefixtures("unhurried")
def test_unreachable_server_is_reported(shell: Shell) -> None:
    with House() as house:
        gone = house.openai_base_url
    down = contender("Asker", base_url=gone, tries=1)
    message = sentence_after_no_game(run_cli(shell, down))
    mend = "start the server, or correct `base_url` in the entry of 'Asker'"
    assert message.startswith(f"nothing answers at {gone} (connection refused); {mend}; 0 of 2 games are saved")
    message = sentence_after_no_game(run_cli(shell, down, games=30, flags=("--no-preflight", "--output", "s")))
    assert re.match(rf"{re.escape(gone)} \(no key\) cannot be reached: no answer for \d s; last error: ", message)
    assert "check that the server is up, `base_url`" in message


def test_unknown_model_is_reported(shell: Shell) -> None:
    known = "house-sharp, house-honest, house-random"
    ended = run_cli(shell, contender("Asker", "house-sharpp"))
    assert (ended.code, ended.err) == (
        2,
        f"dubito: Asker: the built-in server has no model 'house-sharpp'; it has {known}\n",
    )
    ended = run_cli(shell, contender("Asker", "house-writer"))
    assert (ended.code, ended.err) == (
        2,
        "dubito: Asker: house-writer writes bots and does not play; use it in `dubito forge`\n",
    )
    with House() as house:
        address = house.openai_base_url
        message = sentence_after_no_game(run_cli(shell, contender("Asker", "house-sharpp") | {"base_url": address}))
    assert message.startswith(f"{address} (no key) has no model 'house-sharpp' (status 404): ")
    assert "Available models: house-sharp, " in message, "the models of other games follow"
    assert "; change `model` in the entry of 'Asker'; 0 of 2 games are saved in r" in message


def test_unknown_prompt_is_reported(shell: Shell) -> None:
    refused(shell, "no prompt is named 'reasond': did you mean 'reasoned'?", prompt="reasond")
    refused(shell, "no such folder", "nowhere: use the path to a prompt's folder", prompt="./nowhere")


@pytest.mark.parametrize(
    ("fallback", "words"),
    [
        ("AdaptyBoi", "AdaptyBoi does not answer the nodes A-E separately; choose a hand-written bot that does"),
        ("OpenAIBot", "OpenAIBot does not answer the nodes A-E separately; choose a hand-written bot that does"),
        ("RandomBoy", "no bot is named 'RandomBoy': did you mean 'RandomBoi'?"),
    ],
)
def test_unsuitable_fallback_is_refused(shell: Shell, fallback: str, words: str) -> None:
    refused(shell, words, fallback=fallback)


@pytest.mark.parametrize("name", ["budget_tokens", "prompt_cache_key", "reasoning"])
def test_parameters_that_resemble_credentials_are_accepted(name: str) -> None:
    assert check_settings("x", {"api": "responses", "model": "m", "parameters": {name: 5}}).parameters == {name: 5}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"promt": "plain"}, "Asker: unknown setting 'promt': did you mean 'prompt'?"),
        ({"temperature": 0}, "Asker: unknown setting 'temperature': "),
        ({"reasks": "2"}, "Asker: reasks: must be a whole number"),
        ({"tries": 0}, "Asker: tries: must be at least 1"),
        ({"max_output": 1}, "Asker: max_output: must be at least 16"),
        ({"deadline": 1e9}, "Asker: deadline: must be at most 86400"),
        ({"base_url": "http://127.0.0.1:1/\0"}, "Asker: base_url: 'http://127.0.0.1:1/"),
        (
            {"base_url": "http://127.0.0.1:1/a b"},
            "Asker: base_url: 'http://127.0.0.1:1/a b' is not an address such as ",
        ),
        ({"model": ""}, "Asker: model: must not be empty"),
        ({"api": "chatty"}, "Asker: api: must be 'responses', 'chat', 'messages', 'decisions' or 'gemini'"),
        ({"output_limit": "max_tokens"}, "Asker: output_limit: only `api: chat` has this setting"),
        ({"response_format": "text"}, "Asker: response_format: only `api: chat` has this setting"),
        ({"parameters": [1]}, "Asker: parameters: must be a mapping"),
        (
            {"parameters": {"background": True, "background_options": {"completion_window": "2h"}}},
            "Asker: parameters.background: Dubito does not fetch background responses; remove it, or set `wait: batch`",
        ),
        *(({"wait": wait}, "Asker: wait: must be 'batch'") for wait in ("2h", "8h", "soon", True)),
        ({"parameters": {"text": "low"}}, "Asker: parameters.text: must be a mapping, such as {verbosity: low}"),
        ({"parameters": {"text": {"format": {}}}}, "Asker: parameters.text.format: Dubito sets this itself"),
        (
            {"parameters": {"text": {"verbosity": "low"}}, "api": "chat"},
            "Asker: parameters.text: only `api: responses` has this parameter; set `verbosity` without `text`",
        ),
        *(
            ({"base_url": address}, "Asker: base_url: must not contain credentials; ")
            for address in (
                *("http://me:sk-secret@127.0.0.1/v1", "http://sk-secret@127.0.0.1/v1"),
                *("https://x.example/v1?key=sk-secret", "https://x.example/v1?api-version=1&sig_token=sk-secret"),
            )
        ),
        *(
            ({"base_url": address}, "Asker: base_url")
            for address in (
                "127.0.0.1:8000/v1",
                "ftp://127.0.0.1/v1",
                "http://",
                "http://[::1",
                "http://a:b",
                "http://a/v1#b",
            )
        ),
        *(
            ({"parameters": parameters}, "Asker: parameters.")
            for parameters in (
                *({"api_key": "sk-secret"}, {"Authorization": "sk-secret"}, {"access_token": "sk-secret"}),
                {"extra_headers": {"Authorization": "sk-secret"}},
                {"tools": [{"type": "mcp", "authorization": "sk-secret"}]},
            )
        ),
        *(
            ({"parameters": {name: 1}}, f"Asker: parameters.{name}: Dubito sets this itself")
            for name in (
                *("model", "input", "messages", "store", "stream", "max_tokens", "max_output_tokens", "n", "best_of"),
                *("max_completion_tokens", "response_format", "system"),
            )
        ),
        *(
            (
                {"base_url": "https://models.example/v1", "api": api},
                "Asker: base_url: this server needs a separate key; ",
            )
            for api in ("responses", "chat", "messages")
        ),
    ],
)
def test_invalid_setting_is_reported(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_settings("Asker", {"model": "m", "api": "responses", "base_url": "house", **settings})
    assert str(refused.value).startswith(words)
    assert words != "Asker: base_url: " or "is not an address such as http://127.0.0.1:8000/v1" in str(refused.value)
    assert "sk-secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_missing_model_is_reported(shell: Shell) -> None:
    message = sentence(run_cli(shell, {"bot": "OpenAIBot", "base_url": "house"}), 2)
    assert message == "c.yaml: contenders.0: OpenAIBot: model: is needed"


def test_misspelt_key_is_reported_with_its_location(shell: Shell) -> None:
    bad = {"bot": "OpenAIBot", "name": "Asker", "modl": "house-random", "base_url": "house"}
    message = sentence(run_cli(shell, contender("fine"), bad, games=2), 2)
    assert message == "c.yaml: contenders.1: Asker: unknown setting 'modl': did you mean 'model'?"


def test_offline_needs_no_key(shell: Shell) -> None:
    message = sentence_after_no_game(run_cli(shell, contender("Asker", base_url=None), flags=("--offline",)))
    assert message.startswith("--offline: ")


@pytest.mark.parametrize(
    ("short", "bot", "model", "prompt"),
    [
        ("openai:gpt-6@plain", "OpenAIBot", "gpt-6", "plain"),
        ("anthropic:claude-x@plain", "AnthropicBot", "claude-x", "plain"),
        ("openai:ft:gpt-6:org::id@plain", "OpenAIBot", "ft:gpt-6:org::id", "plain"),
        ("openai:llama3:8b", "OpenAIBot", "llama3:8b", None),
        ("openai:org/model@2026@plain", "OpenAIBot", "org/model@2026", "plain"),
        ("openai:model@2026", "OpenAIBot", "model@2026", None),
        ("openai:model@./mine", "OpenAIBot", "model", "./mine"),
        ("openai:@cf/meta/llama@plain", "OpenAIBot", "@cf/meta/llama", "plain"),
        ("openai:workers-ai/@cf/meta/llama", "OpenAIBot", "workers-ai/@cf/meta/llama", None),
        ("anthropic:claude-sonnet-4@20250514", "AnthropicBot", "claude-sonnet-4@20250514", None),
    ],
)
def test_invalid_short_form_is_reported(short: str, bot: str, model: str, prompt: str | None) -> None:
    (game,) = experiment(games=1, bots=["StefaBot"], contenders=[short]).contenders
    assert (game.name, game.bot, game.settings["model"]) == (short, bot, model)
    assert game.settings.get("prompt") == prompt


@pytest.mark.parametrize(
    ("short", "message"),
    [
        (
            "openai:my-model@myy/short",
            "no prompt is named 'myy/short': did you mean 'my/short'? (for a model with @ in its",
        ),
        (
            "anthropic:claude-x@plainn",
            "no prompt is named 'plainn': did you mean 'plain'? (for a model with @ in its name, write",
        ),
        ("openai:my-model@reasoned2", "did you mean 'reasoned'? (for a model with @ in its name, write `"),
        ("openai:my-model@xyzzy", "write `{bot: OpenAIBot, model: 'my-model@xyzzy'}` in a config)"),
    ],
)
def test_misspelt_prompt_is_not_part_of_the_model_name(shell: Shell, short: str, message: str) -> None:
    Path("my/short").mkdir(parents=True)
    Path("my/short/prompt.yaml").touch()
    assert message in sentence(shell("run", "--bots", "StefaBot", "--contenders", short), 2)


def test_contenders_with_equal_names_are_refused(shell: Shell) -> None:
    message = sentence(run_cli(shell, contender("Asker"), contender("Asker", "house-sharp")), 2)
    assert message == "two players are named 'Asker'; rename one of them: {bot: ..., name: ...}"
    message = sentence(run_cli(shell, contender("StefaBot")), 2)
    assert message == "the contender 'StefaBot' has the same name as a different opponent; rename one of them"


@pytest.mark.parametrize("short", ["opnai:gpt-6", "OpenAI:gpt-6", "gpt-6@plain"])
def test_short_form_without_a_model_is_refused(shell: Shell, short: str) -> None:
    assert sentence(run_cli(shell, short), 2).startswith(f"c.yaml: contenders.0: no bot is named '{short}'")


def test_repeated_short_form_is_refused(shell: Shell) -> None:
    assert "two players are named 'openai:m'" in sentence(run_cli(shell, "openai:m", "openai:m"), 2)
    assert "model: must not be empty" in sentence(run_cli(shell, "openai:"), 2)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-0a1b2c3d4e5f",
        "two words",
        "",
        "9lives",
        "AIzaSyD4f8Gh2kLm9pQr5tUv",
        "gsk_4f8Gh2kLm9pQr5tUv7",
        "a" * 9 + "-",
    ],
)
def test_key_given_instead_of_its_variable_is_not_printed(shell: Shell, secret: str) -> None:
    ended = run_cli(shell, contender("Asker", base_url="https://example.invalid/v1", api_key_env=secret))
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "api_key_env" in ended.err
    assert not secret or secret not in ended.err
    assert not Path("r").exists()


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "_k", "my_openai_key_for_team_2", "KEY2", "AVERYLONGNAMEWITHOUTDIGITS"]
)
def test_variable_names_are_accepted(name: str) -> None:
    assert check_settings("x", {"model": "m", "api": "chat", "api_key_env": name}).api_key_env == name


@pytest.mark.parametrize("address", [" http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1 \n", "\thttp://127.0.0.1:1/v1"])
def test_spaces_around_an_address_are_stripped(address: str) -> None:
    checked = check_settings("Asker", {"model": "m", "api": "chat", "base_url": address})
    assert checked.base_url == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "127.0.0.2", "localhost"])  # noqa: S104, asked, not bound
def test_local_server_needs_no_key(host: str) -> None:
    assert check_settings("Asker", {"model": "m", "api": "chat", "base_url": f"http://{host}:1/v1"}).api_key_env is None
