"""The commands that messages advise: the real parser reads them, and they set what the run or the cassette had."""

import ast
import json
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from dubito.cli.main import cli
from dubito.commands import build_command, repeat_command
from dubito.experiment.call_options import call_options
from dubito.experiment.config import SETTINGS, Config, parse_config, read_config
from dubito.experiment.model_players import model_words
from dubito.experiment.plan import plan_experiment
from dubito.experiment.saved_config import FREE_SETTINGS, load_stored_config
from dubito.files import read_yaml
from dubito.game.find import find_bots
from dubito.model_settings import ModelSettings
from dubito.settings import Setting
from dubito.store.folder import CONFIG, MANIFEST
from tests.cli.kit import REPO, Result, Shell
from tests.conftest import in_gate
from tests.llm.kit import Incoming, Response, Server, player_at, respond, run_cli

FIELD: Final = ("--bots", "StefaBot,ClaudeBot,RandomBoi", "--table-sizes", "3")
PRICE: Final = dict.fromkeys(("input", "cached_input", "cache_write", "output"), 1)
HOSTILE: Final = 'it\'s a $(touch x) `folder` & "more"; \\ *'


def advised(text: str) -> list[list[str]]:
    """Return the words of the commands that a text advises, in backquotes or at the end of a line after a colon."""
    found = re.findall(r"`(dubito [^`]+)`", text) + re.findall(r": (dubito [^`\n]+)$", text, re.MULTILINE)
    parts = [part for one in found for part in re.split(r",? or (?=dubito )", one)]
    return [shlex.split(part)[1:] for part in parts]


def parse(words: Sequence[str]) -> tuple[click.Command, dict[str, Any]]:
    """Parse a command with the real command line parser, without running it."""
    command: click.Command = cli
    context, rest = click.Context(cli, info_name="dubito"), [*words]
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        context, command = click.Context(found, info_name=name, parent=context), found
    command.parse_args(context, rest)
    return command, context.params


def mentioned() -> Iterator[tuple[Path, str]]:
    """Yield the commands in backquotes in all messages and help texts of the program."""
    for file in sorted((REPO / "dubito").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((file, one) for one in re.findall(r"`(dubito [^`]+)`", " ".join(node.value.split())))


def test_every_mentioned_command_exists_with_its_options() -> None:
    found = [*mentioned()]
    assert len(found) > 100
    for file, text in found:
        command: click.Command = cli
        context, words = click.Context(cli), text.split()[1:]
        while isinstance(command, click.Group) and words:
            if (inner := command.get_command(context, words[0])) is None:
                break
            command, words = inner, words[1:]
        assert command is not cli or text == "dubito --help", (file, text)
        options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        flags = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)}
        assert flags <= {*options, "--help"}, (file, text)


@pytest.mark.parametrize("word", ["plain", HOSTILE, "a b", "", "-x", "ä"])
def test_words_are_quoted_so_that_a_shell_returns_them(word: str) -> None:
    assert shlex.split(build_command("status", word))[2:] == [word]


def test_control_characters_are_shown_not_printed() -> None:
    assert "\x1b" not in build_command("status", "a\x1b[31m")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("budget", {"usd": 0.5, "calls": 3}),
        ("stop", {"within": 3.0, "most": 1200}),
        ("bots", ["A", "openai:m@p"]),
        ("table_sizes", [3, 4]),
        ("preflight", False),
        ("offline", True),
        ("base_url", "http://127.0.0.1:1/v1?a=b c"),
        ("seed", 7),
        ("patience", "90s"),
    ],
)
def test_words_of_a_setting_set_its_value(key: str, value: Any) -> None:
    words = SETTINGS[key].to_words(value)
    config = parse_config({}, "x", {k: v for k, v in parse(["run", *words])[1].items() if k in SETTINGS})
    parsed = getattr(config, key)
    assert (parsed.model_dump(exclude_none=True) if hasattr(parsed, "model_dump") else parsed) == value


# --- Stopped runs ---


def stopped_run(shell: Shell, *flags: str, **config: Any) -> Result:
    """Start a run of a fake model that stops because its budget is used up."""
    text = {"games": 12, "table_sizes": [3], "preflight": False, "budget": {"calls": 20}} | config
    Path("c.yaml").write_text(yaml.safe_dump(text))
    return shell("run", "c.yaml", "--bots", "StefaBot,ClaudeBot,house:house-random@plain", "--quiet", *flags)


def config_of(words: Sequence[str]) -> Config:
    command, params = parse(words)
    assert command.name == "run"
    return load_stored_config(params["config"], {key: value for key, value in params.items() if key in SETTINGS})


def test_stopped_run_names_the_command_that_continues_it(shell: Shell) -> None:
    folder = 'it\'s a $(touch x) & "more"; *'
    result = stopped_run(shell, "--output", folder, "--seed", "5", "--jokers", "1", "--in-flight", "2")
    assert result.code == 3
    ((*words,),) = [one for one in advised(result.err) if one[0] == "run"]
    status = shell("status", folder)
    line = next(line for line in status.out.splitlines() if line.startswith("to continue: "))
    assert line == f"to continue: {build_command(*words)}"
    assert json.loads(shell("status", folder, "--json").out)["resume"] == build_command(*words)
    assert words == ["run", folder]
    config = config_of(words)
    assert (config.seed, config.in_flight, config.games, config.budget.calls) == (5, 2, 12, 20)
    assert config.rules == {"jokers": 1}
    assert config.bots == ["StefaBot", "ClaudeBot", "house:house-random@plain"]


def test_continued_run_is_the_one_that_never_stopped(shell: Shell) -> None:
    assert stopped_run(shell, "--output", "stopped", rules={"max_turns": 30}).code == 3
    assert shell("run", "stopped", "--budget", "calls=9999", "--quiet").code == 0
    whole = shell("run", "c.yaml", "--bots", "StefaBot,ClaudeBot,house:house-random@plain", "--budget", "calls=9999",
                  "--output", "whole", "--quiet")  # fmt: skip
    again = shell("run", "stopped", "--quiet")
    digest = re.compile(r"^results digest: .*$", re.MULTILINE)
    assert digest.findall(again.out) == digest.findall(whole.out) != []
    assert "already finished in stopped" in again.err


def test_run_is_extended_by_name(shell: Shell) -> None:
    assert shell("run", *FIELD, "--games", "30", "--seed", "9", "--quiet").code == 0
    (folder,) = Path("runs").iterdir()
    assert shell("run", folder.name, "--games", "60", "--quiet").code == 0
    assert shell("run", *FIELD, "--games", "60", "--seed", "9", "--quiet", "--output", "whole").code == 0
    read = [read_yaml(one / "all_games.yaml") for one in (folder, Path("whole"))]
    assert read[0] == read[1]
    assert read_config(folder / CONFIG)["games"] == 60


def test_new_bot_file_does_not_join_a_started_run(shell: Shell) -> None:
    """Without `bots`, all bots that were there at the start play."""
    assert shell("run", "--games", "8", "--output", "r", "--quiet").code == 0
    text = (REPO / "bots" / "manual" / "usual_bot.py").read_text()
    shell.bot("mine.py", text.replace("class UsualBot", "class Mine"))
    assert shell("run", "r", "--games", "16", "--quiet").code == 0


def own_bot(shell: Shell, name: str = "Mine") -> Path:
    text = (REPO / "bots" / "manual" / "usual_bot.py").read_text()
    shell.bot("mine.py", text.replace("class UsualBot", f"class {name}"))
    return shell.folder / "bots" / "manual" / "mine.py"


def test_changed_bot_is_named_and_nothing_is_played(shell: Shell) -> None:
    file = own_bot(shell)
    assert shell("run", "--bots", "Mine,StefaBot,RandomBoi", "--games", "9", "--output", "r", "--quiet").code == 0
    before = {path.name: path.read_bytes() for path in Path("r").iterdir()}
    file.write_text(file.read_text() + "\n# changed\n")
    result = shell("run", "r", "--games", "18", "--quiet")
    assert result.code == 2
    assert result.err == (
        "dubito: r cannot be continued: Mine's file has changed; undo the change, or start a new run; nothing was "
        "played\n"
    )
    assert {name: (Path("r") / name).read_bytes() for name in before} == before
    file.unlink()
    assert "no bot is named 'Mine'" in shell("run", "r").err


def test_changed_prompt_is_named_and_nothing_is_asked(shell: Shell) -> None:
    shutil.copytree(REPO / "prompts" / "plain", "prompts/mine", ignore=shutil.ignore_patterns("golden"))
    shutil.copytree(REPO / "prompts" / "shared", "prompts/shared")
    words = ("--bots", "StefaBot,ClaudeBot,house:house-random@mine", "--table-sizes", "3", "--no-preflight", "--quiet")
    assert shell("run", *words, "--games", "2", "--output", "r").code == 0
    prompt = Path("prompts/mine/user.jinja")
    prompt.write_text(prompt.read_text() + "More.\n")
    result = shell("run", "r", "--games", "4")
    assert result.code == 2
    assert "r cannot be continued: house:house-random@mine's prompt has changed: " in result.err
    assert "user.jinja" in result.err


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (("seed: 0", "seed: 1"), "seed is 0 there and 1 here"),
        (("on_bot_error: stop", "on_bot_error: fallback"), "on_bot_error is"),
    ],
)
def test_other_identity_is_refused(shell: Shell, edit: tuple[str, str], named: str) -> None:
    assert shell("run", *FIELD, "--games", "9", "--seed", "0", "--on-bot-error", "stop", "--output", "r").code == 0
    file = Path("r") / CONFIG
    file.write_text(file.read_text().replace(*edit))
    result = shell("run", "r", "--games", "18")
    assert (result.code, named in result.err) == (2, True), result.err


REFUSED: Final = {
    "--seed": "1",
    "--bots": "StefaBot",
    "--contenders": "StefaBot",
    "--table-sizes": "4",
    "--game": "bs",
    "--base-url": "http://127.0.0.1:1",
    "--api": "chat",
    "--output": "other",
    "--jokers": "3",
    "--shard": "1/2",
    "--stop": "within=3,most=60",
    "--provider-errors": "suspend",
    "--on-bot-error": "fallback",
    "--max-output": "100",
}


@pytest.mark.parametrize("flag", in_gate(REFUSED, 4))
def test_other_settings_beside_a_run_are_refused_in_one_sentence(shell: Shell, flag: str) -> None:
    assert shell("run", *FIELD, "--games", "9", "--output", "r", "--quiet").code == 0
    result = shell("run", "r", flag, REFUSED[flag])
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"dubito: {flag} cannot change r, which has started with its own settings; ")
    assert result.err.count("\n") == 1


def test_settings_that_can_be_set_again_are_those_that_change_no_result() -> None:
    values: dict[str, Any] = {"in_flight": 3, "patience": "1h", "on_unusable": "fallback", "preflight": False}
    values |= {
        "cache": "elsewhere",
        "offline": True,
        "budget": {"usd": 1},
        "prices": {"m": dict.fromkeys(("input", "cached_input", "cache_write", "output"), 1)},
    }
    values |= {"api_key_env": "SOME_KEY", "workers": 3}
    registry = find_bots(REPO)
    content = {"bots": ["StefaBot", "ClaudeBot", "openai:gpt-5-mini"], "games": 9, "offline": True}

    def digest(**changes: Any) -> str:
        config = parse_config(content | changes, "x")
        return plan_experiment(config, None, registry, call_options(config, REPO))[0].experiment.digest()

    assert {digest(), *(digest(**{key: value}) for key, value in values.items())} == {digest()}
    assert {*FREE_SETTINGS} == {*values, "executor", "scheduler"}
    others = {"seed": 2, "base_url": "http://127.0.0.1:1", "max_output": 99, "provider_errors": "suspend"}
    assert digest() not in {digest(**{key: value}) for key, value in others.items()}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing",), "nothing does not exist: no runs in runs either"),
        (("nothing.yaml",), "nothing.yaml"),
        (("empty",), "empty is not a run folder: it has no manifest.yaml"),
        (("folder",), "folder is a folder of runs; name one of them, such as folder/r"),
        (("r.zip",), "r.zip is an exported run, which cannot be continued; dubito replay r.zip"),
        (("bare",), "bare has no config.yaml, so it cannot be continued"),
        (("folder/r", "--games", "3"), "folder/r already has 9 games; set --games to at least as many"),
        (("folder/r", "--games", "x"), "--games"),
    ],
)
def test_what_is_no_run_is_refused_in_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    assert shell("run", *FIELD, "--games", "9", "--output", "folder/r", "--quiet").code == 0
    assert shell("export", "folder/r", "r.zip").code == 0
    Path("empty").mkdir()
    shutil.copytree("folder/r", "bare")
    Path("bare", CONFIG).unlink()
    result = shell("run", *words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_shard_continues_as_a_shard(shell: Shell) -> None:
    words = (*FIELD, "--games", "2000", "--quiet")
    assert shell("run", *words, "--shard", "2/2", "--output", "s").code == 0
    result = shell("run", "s", "--quiet")
    assert (result.code, "already finished in s" in result.err) == (0, True)
    assert shell("run", "s", "--games", "4000").code == 2


def test_rating_is_continued_by_its_own_command(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ("--book", "kuhn-1", "--output", "rated", "--budget", "calls=5", "--quiet", "--no-preflight")
    result = shell("rate", "house:house-random@plain", *flags)
    if "needs the plugin" in result.err or "openspiel" in result.err.lower():
        pytest.skip("OpenSpiel is not installed")
    assert result.code == 3, result.err
    assert build_command("rate", "house:house-random@plain", *flags) in result.err
    part = Path("rated/field")
    assert build_command("rate", "house:house-random@plain", *flags) in shell("status", str(part)).out
    refused = shell("run", str(part))
    assert (refused.code, "is continued by another command; dubito rate" in refused.err) == (2, True)


def test_latest_run_is_not_a_part_of_a_rating(shell: Shell) -> None:
    assert shell("run", *FIELD, "--games", "9", "--output", "runs/mine", "--quiet").code == 0
    shutil.copytree("runs/mine", "runs/rate-x/field")
    manifest = Path("runs/rate-x/field") / MANIFEST
    content = read_yaml(manifest)
    content["identity"]["book"] = {"name": "x", "digest": "0" * 64, "part": "field"}
    manifest.write_text(yaml.safe_dump(content, sort_keys=False))
    assert "the latest run: runs/mine" in shell("status").err
    shutil.rmtree("runs/mine")
    refused = shell("status")
    assert (refused.code, "runs has only parts of ratings; name one, such as runs/rate-x/field" in refused.err) == (
        2,
        True,
    )


# --- Cassettes ---


def answer(request: Incoming) -> Response:
    return respond(request.protocol, text='{"answer": true}')


SERVERS: Final = {
    "chat": ("--api", "chat", "--response-format", "text", "--read", "last_object"),
    "responses": ("--max-output", "77", "--parameters", '{"reasoning": {"effort": "low"}}'),
    "messages": ("--api", "messages", "--system", "user", "--reasks", "0"),
}


@pytest.mark.parametrize("protocol", in_gate(SERVERS, ["responses", "messages"]))
def test_advised_recording_asks_the_same_server_the_same_way(
    shell: Shell, protocol: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key for the provider in the environment must not be sent anywhere."""
    shutil.copytree(REPO / "prompts" / "plain", "own prompt", ignore=shutil.ignore_patterns("golden"))
    shutil.copytree(REPO / "prompts" / "shared", "shared")
    positions = Path("my positions")
    positions.mkdir()
    for file in sorted((REPO / "prompts" / "positions").glob("*.json"))[::13]:
        shutil.copy2(file, positions)
    with Server(answer) as server:
        how = ("--model", "openai:m", "--base-url", server.base_url(protocol), "--no-preflight", *SERVERS[protocol])
        words = ("./own prompt", *how, "--positions", str(positions), "--record", "my cassette.yaml")
        assert shell("prompts", "test", *words, "--quiet").code == 0
        prompt = Path("own prompt/user.jinja")
        prompt.write_text(prompt.read_text() + "Think.\n")
        result = shell("prompts", "test", "./own prompt", "--cassette", "my cassette.yaml")
        assert result.code == 1
        ((*command,),) = advised(result.err)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-provider")
        server.requests.clear()
        again = shell(*command, "--no-preflight", "--quiet", "--output", "again")
        assert again.code == 0, again.err
        assert len(server.requests) == len([*positions.iterdir()])
        assert "sk-of-the-provider" not in str([(one.headers, one.body) for one in server.requests])
    assert shell("prompts", "test", "./own prompt", "--cassette", "my cassette.yaml").code == 0
    first, second = (parse(["prompts", "test", *one])[1] for one in (words, command[2:]))
    ignored = {"record", "preflight", "quiet", "model"}
    kept = {key: value for key, value in first.items() if key not in ignored and value is not None}
    assert {key: second[key] for key in kept} == kept


def test_cassette_of_a_run_is_recorded_again_at_its_positions(shell: Shell) -> None:
    with Server(answer) as server:
        player = player_at(server, "chat", name="mine")
        assert run_cli(shell, player, bots=["Sherlock", "ClaudeBot"]).code == 0
        assert shell("prompts", "cassette", "r", "k.yaml", "--count", "4").code == 0
        shutil.copytree(REPO / "prompts" / "plain", "changed", ignore=shutil.ignore_patterns("golden"))
        shutil.copytree(REPO / "prompts" / "shared", "shared")
        Path("changed/user.jinja").write_text(Path("changed/user.jinja").read_text() + "Think.\n")
        result = shell("prompts", "test", "./changed", "--cassette", "k.yaml")
        ((*command,),) = advised(result.err)
        assert command[-2:] == ["--positions", "k.yaml"]
        server.requests.clear()
        assert shell(*command, "--no-preflight", "--quiet").code == 0
        assert len(server.requests) == 4
    assert shell("prompts", "test", "./changed", "--cassette", "k.yaml").code == 0


MODELS: Final = [
    {"model": "m", "api": "responses"},
    {"model": "m", "api": "messages", "base_url": "https://example.com", "api_key_env": "SOME_KEY"},
    {"model": "m:7b@q4", "api": "chat", "base_url": "http://localhost:8000/v1", "response_format": "json_object"},
    {"model": "house-random", "api": "responses", "base_url": "house"},
    {"model": "house-random", "api": "chat", "base_url": "house?faults=length:0.5", "belief": "logprobs"},
    {"model": "m", "api": "responses", "sample": 3, "tries": 9, "deadline": 5.5, "play": "drawn", "reasks": 0},
    {"model": "m", "api": "chat", "base_url": "http://[::1]:1/v1", "output_limit": "max_tokens", "system": "user"},
    {"model": "m", "api": "responses", "parameters": {"reasoning": {"effort": "hi'gh"}}, "retry_after_cap": 3.0},
]


@pytest.mark.parametrize("content", MODELS)
def test_words_of_a_model_give_it_the_same_settings(content: dict[str, Any]) -> None:
    from dubito.cli.call_options import settings_of_model

    settings = ModelSettings.model_validate(content)
    _, params = parse(shlex.split(build_command("prompts", "test", "plain", *model_words(settings)))[1:])
    again = settings_of_model(
        params["model"], {key: value for key, value in params.items() if key != "game"}, find_bots(REPO).game
    )
    defaults = {key: Setting(key, ModelSettings.model_fields[key]).field.default for key in ("prompt", "fallback")}
    assert again.model_copy(update=defaults) == settings.model_copy(update=defaults)


def test_repeated_command_is_what_was_typed(shell: Shell) -> None:
    shell("status", HOSTILE, "--json")
    assert shlex.split(repeat_command())[1:] == ["status", HOSTILE, "--json"]
