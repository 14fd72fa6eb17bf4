"""Configs: error messages with suggestions, and the identity of a run."""

from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.experiment.call_options import call_options
from dubito.experiment.config import parse_config, read_config
from dubito.experiment.model_players import limit_paid_games
from dubito.experiment.resolve import resolve
from dubito.game.find import find_bots
from tests.experiment.kit import experiment, registry

THREE = ["StefaBot", "ClaudeBot", "SusBoi"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"gmaes": 3}, "test.yaml: unknown key 'gmaes': did you mean 'games'?"),
        ({"rules": {"jokrs": 1}}, "test.yaml: unknown key 'jokrs': dubito has no such rule; did you mean 'jokers'?"),
        ({"games": -1}, "test.yaml: games: must be at least 1, not -1"),
        ({"games": 10**30}, "test.yaml: games: must be at most 1000000000, not 1000000000000000000000000000000"),
        ({"output": ""}, "test.yaml: output: must not be empty"),
        ({5: 5}, "test.yaml: unknown key '5'; keys must be strings"),
        ({"games": "9"}, "test.yaml: games: must be a whole number, not '9'"),
        ({"seed": None}, "test.yaml: seed: must be a whole number, not None"),
        ({"table_sizes": [2]}, "test.yaml: table_sizes.0: must be at least 3, not 2"),
        ({"table_sizes": []}, "test.yaml: table_sizes: must not be empty"),
        ({"table_sizes": [3, 3]}, "test.yaml: table_sizes: a size is listed twice"),
        ({"bots": []}, "test.yaml: bots: must not be empty"),
        ({"bots": "StefaBot"}, "test.yaml: bots: must be a list, not 'StefaBot'"),
        ({"rules": 5}, "test.yaml: rules: must be a mapping, not 5"),
        ({"rules": {"jokers": 3}}, "test.yaml: rules.jokers: must be at most 2, not 3"),
        ({"rules": {"max_turns": 0}}, "test.yaml: rules.max_turns: must be at least 1, not 0"),
        ({"rules": {"win_rule": "x"}}, "test.yaml: rules.win_rule: must be 'immediate' or 'contested', not 'x'"),
        ({"on_bot_error": "no"}, "test.yaml: on_bot_error: must be 'stop', 'fallback' or 'forfeit', not 'no'"),
        ({"workers": 0}, "test.yaml: workers: must be at least 1, not 0"),
        ({"read": "x"}, "test.yaml: read: must be 'strict', 'last_object' or 'reasoning', not 'x'"),
        ({"preflight": "yes"}, "test.yaml: preflight: must be true or false, not 'yes'"),
        ({"stop": 5}, "test.yaml: stop: must be a mapping such as {within: 3, most: 1200}, not 5"),
        ({"stop": {"within": 3}}, "test.yaml: stop: most is required, as in {within: 3, most: 1200}"),
        ({"stop": {"withn": 3}}, "test.yaml: unknown key 'withn': did you mean 'within'?"),
    ],
)
def test_invalid_config_is_reported_in_one_sentence(content: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        experiment(**content) if all(isinstance(key, str) for key in content) else parse_config(content, "test.yaml")
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"bots": ["StefaBott"]}, "no bot is named 'StefaBott': did you mean 'StefaBot'?"),
        ({"bots": ["StefaBot", "StefaBot"]}, "two players are named 'StefaBot'"),
        ({"bots": [{"name": "x"}]}, "needs the key `bot`"),
        ({"bots": [{"bot": "StefaBot", "name": ""}]}, "a player's name must be a string"),
        ({"bots": [{"bot": "StefaBot", "risk": 1}]}, "StefaBot has no setting 'risk': it has no settings"),
        ({"games": 7, "contenders": THREE}, "games: 7 is not a multiple of 3 .3 contenders.*; use 6 or 9$"),
        ({"games": 2, "contenders": THREE}, "games: 2 is not a multiple of 3 .3 contenders.*; use 3$"),
        (
            {"bots": THREE, "contenders": [{"bot": "MrDoubt", "name": "SusBoi"}]},
            "has the same name as a different opponent",
        ),
    ],
)
def test_unplayable_config_is_refused(content: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        experiment(**content)


def test_text_of_flags_is_read_by_the_type_of_the_setting() -> None:
    typed = {"games": "7", "table_sizes": "3, 4", "bots": "StefaBot,MrDoubt", "bot_deadline": "1.5", "patience": "5"}
    config = parse_config({}, "f.yaml", typed | {"budget": "usd=5,calls=10", "seed": None, "offline": True})
    assert (config.games, config.table_sizes, config.bots) == (7, [3, 4], ["StefaBot", "MrDoubt"])
    assert (config.bot_deadline, config.patience, config.offline) == (1.5, "5", True)
    assert config.budget.model_dump() == {"usd": 5.0, "calls": 10, "tokens": None}


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("games", "9" * 5000, "--games: must be a whole number, not '99"),
        ("table_sizes", "3,x", "--table-sizes: must be a whole number, not 'x'"),
        ("table_sizes", ",", "--table-sizes: must not be empty"),
        ("bot_deadline", "0", "--bot-deadline: must be greater than 0, not 0"),
        ("max_output", "many", "--max-output: must be a whole number, not 'many'"),
        ("stop", "within=3", "--stop: most is required, as in {within: 3, most: 1200}"),
    ],
)
def test_a_flag_that_does_not_fit_its_setting_is_reported_in_one_sentence(key: str, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_config({}, "f.yaml", {key: text})
    assert str(caught.value).startswith(sentence)


def test_flags_override_the_file_and_are_named_in_errors() -> None:
    config = parse_config({"games": 5, "rules": {"jokers": 1}}, "f.yaml", {"games": 7, "win_rule": "contested"})
    assert (config.games, config.rules) == (7, {"jokers": 1, "win_rule": "contested"})
    with pytest.raises(UsageError, match=r"^--max-turns: must be at least 1, not 0$"):
        resolve(parse_config({}, "f.yaml", {"max_turns": 0}), registry())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"games: [1", r"x\.yaml, line 1: not valid YAML"),
        (b"seed: 1\nseed: 2\n", r"x\.yaml, line 2: not valid YAML: the key 'seed' is set twice"),
        (
            b'bots: ["half a \\ud83d character"]',
            r"x\.yaml, line 1: not valid YAML: a string contains half a character",
        ),
        (b"- games\n", "a config consists of `key: value` lines"),
        (b"\xff\xfe\x00", "not UTF-8 text|not readable"),
        (b"a: !!python/object:os.system {}\n", "could not determine a constructor"),
        (b"a: " + b"[" * 1000, "not valid YAML: maximum recursion depth exceeded"),
    ],
)
def test_an_unreadable_file_is_reported_in_one_sentence(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "x.yaml").write_bytes(text)
    with pytest.raises(UsageError, match=words) as caught:
        read_config(tmp_path / "x.yaml")
    assert "\n" not in str(caught.value)


def test_json_config_and_merged_mappings_are_read(tmp_path: Path) -> None:
    """JSON escapes an emoji as two surrogates. A merged key may be overridden and has no name of its own."""
    (tmp_path / "x.yaml").write_text('{"bots": [{"bot": "StefaBot", "name": "\\ud83c\\udccf"}]}')
    assert read_config(tmp_path / "x.yaml") == {"bots": [{"bot": "StefaBot", "name": "\U0001f0cf"}]}
    (tmp_path / "x.yaml").write_text("bots: [{bot: StefaBot, name: one}, {<<: {bot: StefaBot, name: one}, name: two}]")
    bots = [{"bot": "StefaBot", "name": "one"}, {"bot": "StefaBot", "name": "two"}]
    assert read_config(tmp_path / "x.yaml") == {"bots": bots}


def test_settings_are_checked_against_the_signature(tmp_path: Path) -> None:
    folder = tmp_path / "bots" / "manual"
    folder.mkdir(parents=True)
    (folder / "picky.py").write_text(
        "from bots.base import BotBase\n"
        "class Picky(BotBase):\n"
        "    def __init__(self, id, *, risk, bold=False):\n"
        "        super().__init__(id)\n"
    )
    found = find_bots(tmp_path)

    def game(entry: dict[str, Any]) -> None:
        resolve(parse_config({"bots": [entry, "StefaBot"]}, "f"), found)

    game({"bot": "Picky", "risk": 0.5})
    with pytest.raises(UsageError, match="Picky needs the setting 'risk'"):
        game({"bot": "Picky"})
    with pytest.raises(UsageError, match=r"Picky has no setting 'rsk': did you mean 'risk'\?"):
        game({"bot": "Picky", "rsk": 1})
    with pytest.raises(UsageError, match="Picky's settings must be numbers, strings"):
        game({"bot": "Picky", "risk": float("nan")})


def test_identity_has_exactly_what_can_change_a_result() -> None:
    one = experiment(bots=THREE, games=30)
    same = [
        experiment(bots=THREE, games=60),
        experiment(bots=THREE, workers=2),
        experiment(bots=THREE, output="elsewhere"),
        experiment(bots=THREE, table_sizes=[8, 7, 6, 5, 4, 3]),
    ]
    others = [
        experiment(bots=THREE, seed=1),
        experiment(bots=THREE, table_sizes=[3]),
        experiment(bots=THREE[::-1]),
        experiment(bots=[*THREE[:2], {"bot": "SusBoi", "name": "Other"}]),
        experiment(bots=THREE, contenders=["SusBoi"]),
        experiment(bots=THREE, rules={"win_rule": "contested"}),
        experiment(bots=THREE, on_bot_error="fallback"),
    ]
    assert {other.digest() for other in same} == {one.digest()}
    assert len({one.digest(), *(other.digest() for other in others)}) == 1 + len(others)


def test_changed_bot_file_changes_the_identity(tmp_path: Path) -> None:
    digests = set()
    for text in ("honest", "honester"):
        folder = tmp_path / text / "bots" / "manual"
        folder.mkdir(parents=True)
        (folder / "mine.py").write_text(f'from bots.base import BotBase\nclass Mine(BotBase):\n    """{text}"""\n')
        digests.add(resolve(parse_config({"bots": ["Mine"]}, "f"), find_bots(tmp_path / text)).experiment.digest())
    assert len(digests) == 2


def test_default_opponents_are_the_eleven_bots() -> None:
    eleven = [name for name, bot in sorted(registry().bots.items()) if "isBre/Dubito" in bot.cls.origin]
    assert [player.name for player in experiment().bots] == eleven


def test_config_of_the_source_project_is_translated_with_a_note() -> None:
    content = {"n_experiments": 100_000, "available_players": [3, 4], "output_file": "all.yaml", "output_dir": "site"}
    config = parse_config(content, "experiment.yaml", {"games": "12"})
    assert (config.games, config.table_sizes, config.output) == (12, [3, 4], None)
    assert config.sources.translation == (
        "experiment.yaml is translated from isBre/Dubito: n_experiments is now games: 100000; available_players is now "
        "table_sizes: [3, 4]; output_file and output_dir left out, since the run folder has all_games.yaml and the "
        "report; bots is not set, so all hand-written bots in bots/manual play"
    )
    assert parse_config({"games": 12, "bots": THREE}, "experiment.yaml").sources.translation == ""


def test_our_key_wins_over_the_source_projects() -> None:
    config = parse_config({"n_experiments": 9, "games": 6, "bots": THREE}, "experiment.yaml")
    assert config.games == 6
    assert config.sources.translation.endswith(": n_experiments is ignored, since games is set")


def test_value_of_a_translated_key_is_checked() -> None:
    with pytest.raises(UsageError, match=r"^experiment\.yaml: games: must be a whole number, not 'many'$"):
        parse_config({"n_experiments": "many"}, "experiment.yaml")


def limited(**config: Any) -> int:
    """Return the number of games of a config after the limit for paid models."""
    checked = parse_config(config, "test.yaml")
    options = call_options(checked, Path.cwd())
    return limit_paid_games(resolve(checked, registry()), checked, options).experiment.games


PAID = {"bot": "OpenAIBot", "name": "paid", "model": "m"}
FREE = PAID | {"name": "free", "base_url": "house", "model": "house-sharp"}


@pytest.mark.parametrize(
    ("config", "games"),
    [
        ({"contenders": [PAID]}, 20),
        ({"contenders": [PAID, "ClaudeBot", "StefaBot"]}, 21),
        ({"bots": ["StefaBot", PAID]}, 20),
        ({"contenders": [PAID | {"base_url": "http://127.0.0.1:8000/v1", "api": "chat"}]}, 20),
        (
            {"contenders": [PAID], "prices": {"m": {"input": 0, "cached_input": 0, "cache_write": 0, "output": 0}}},
            10_000,
        ),
        ({"contenders": [FREE]}, 10_000),
        ({"contenders": ["ClaudeBot", "StefaBot", "MrDoubt"]}, 10_002),
        ({"contenders": [PAID], "games": 500}, 500),
        ({"contenders": [PAID], "budget": {"calls": 9}}, 10_000),
        ({"contenders": [PAID], "offline": True}, 10_000),
        ({"contenders": [PAID, "ClaudeBot"], "stop": {"within": 5, "most": 60}}, 120),
    ],
)
def test_paid_model_without_a_limit_plays_few_games(config: dict[str, Any], games: int) -> None:
    assert limited(**config) == games
