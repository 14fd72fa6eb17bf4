"""`dubito watch`, `dubito replay` and `dubito bots` on the command line."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dubito.cli.main import Listing, cli
from tests.cli.kit import REPO, Shell

GAME = ("watch", "StefaBot", "ClaudeBot", "MrDoubt")


MOVER = """
import shutil
from bots.manual.stefa_bot import StefaBot


class Mover(StefaBot):
    def play(self, p):
        shutil.rmtree("there", ignore_errors=True)
        return super().play(p)
"""


def test_game_is_narrated_turn_by_turn(shell: Shell) -> None:
    result = shell(*GAME, "--seed", "3", "--deal", "4")
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0] == "The cards are dealt: StefaBot holds 18, ClaudeBot holds 18, MrDoubt holds 18."
    assert lines[1].startswith("   1. StefaBot plays ")
    assert any("doubts" in line and "who shows" in line for line in lines)
    assert lines[-1].endswith("free ones")
    assert shell(*GAME, "--seed", "3", "--deal", "4").out == result.out
    assert shell(*GAME, "--seed", "3", "--deal", "5").out != result.out
    assert shell(*GAME, "--seed", "4", "--deal", "4").out != result.out


def test_hands_are_shown_only_on_request(shell: Shell) -> None:
    hidden, shown = shell(*GAME).out, shell(*GAME, "--show-hands").out
    assert "holds ace" not in hidden
    assert "[really " not in hidden
    assert shown.splitlines()[1].startswith("   1. [StefaBot holds ")
    lines = [line.split(" [really")[0] for line in shown.splitlines() if ". [" not in line[:8]]
    assert lines == hidden.splitlines(), "the same game with more details"


def test_equal_names_are_distinguished_by_seat(shell: Shell) -> None:
    out = shell("watch", "StefaBot", "MrDoubt", "StefaBot").out
    assert out.startswith("The cards are dealt: StefaBot 0 holds 18, MrDoubt holds 18, StefaBot 2 holds 18.")


def test_a_saved_game_replays_identically(shell: Shell) -> None:
    for rule in ("immediate", "contested"):
        watched = shell(*GAME, "--win-rule", rule, "--save", f"{rule}.json")
        assert watched.out.endswith(f"record: {rule}.json\n")
        result = shell("replay", f"{rule}.json")
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith("identical: ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("watch", "StefaBot", "ClaudeBot"),
            "dubito: Dubito needs 3 to 8 players, not 2; two players need the `duel` variant\n",
        ),
        (("watch", *["StefaBot"] * 9), "dubito: Dubito needs 3 to 8 players, not 9\n"),
        (("watch", "StefaBot", "ClaudBot", "MrDoubt"), "dubito: no bot is named 'ClaudBot': did you mean "),
        ((*GAME, "OpenAIBot"), "dubito: OpenAIBot: model: is needed"),
        ((*GAME, "--jokers", "3"), "dubito: --jokers: must be at most 2, not 3\n"),
        (("replay", "none.json"), "dubito: none.json does not exist: no runs in runs either\n"),
        (("rank",), "dubito: No such command 'rank'; `dubito run` ranks players; `dubito rate` rates one"),
        (("replya", "x"), "dubito: No such command 'replya'."),
    ],
)
def test_mistakes_are_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    result = shell(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(sentence)
    assert result.err.count("\n") == 1


def test_unwritable_path_is_refused_before_the_game(shell: Shell) -> None:
    Path("folder").mkdir()
    for path, why in (
        ("no/such/game.json", "the folder no/such does not exist"),
        ("folder", "it is a folder"),
        ("x" * 255, "File name too long"),
    ):
        result = shell(*GAME, "--save", path)
        assert (result.code, result.out, result.err) == (2, "", f"dubito: cannot save {path}: {why}\n")
    assert [path.name for path in Path().iterdir()] == ["folder"]


def test_game_is_narrated_even_if_saving_fails(shell: Shell) -> None:
    Path("there").mkdir()
    shell.bot("mover.py", MOVER)
    result = shell("watch", "Mover", "StefaBot", "StefaBot", "--save", "there/game.json")
    assert result.code == 3
    assert "The game is over" in result.out
    assert result.err.startswith("dubito: the game is over, but cannot write there/game.json")


def test_bots_lists_every_bot_and_every_broken_file(shell: Shell) -> None:
    shell.bot("lost.py", "class Other: ...\n")
    shell.bot("mine.py", 'from bots.base import BotBase\nclass Mine(BotBase):\n    """Mine alone."""\n', kind="llms")
    result = shell("bots")
    assert result.code == 0
    assert result.out.startswith("18 bots\n")
    for file in (REPO / "bots" / "manual").glob("[a-z]*.py"):
        assert str(file) in result.out
    (line,) = [line for line in result.out.splitlines() if line.startswith("Mine ")]
    assert "Mine alone." in line
    assert line.endswith("bots/llms/mine.py")
    (broken,) = [line for line in result.out.splitlines() if line.startswith("broken: ")]
    assert broken.startswith("broken: bots/manual/lost.py: no class is a bot (classes found: Other)")
    (unfinished,) = [line for line in result.out.splitlines() if line.startswith("unfinished: ")]
    nodes = "A (bluff_first_hand), C (should_doubt), D (bluff_regular)"
    assert unfinished == f"unfinished: bots/llms/mine.py: missing {nodes}"


def test_dubito_without_arguments_prints_help(shell: Shell) -> None:
    result = shell()
    assert result.code == 0
    for command in ("run", "bots", "watch", "replay"):
        assert f"\n  {command} " in result.out


GROUPS = [(), ("cache",), ("games",), ("prompts",), ("leaderboard",), ("tournament",)]


@pytest.mark.parametrize("group", GROUPS)
def test_help_lists_each_command_on_one_line(shell: Shell, group: tuple[str, ...]) -> None:
    output = shell(*group, "--help").out
    listed = output.partition("\nCommands:\n" if group else "\nPlay:\n")[2].partition("Examples:")[0]
    rows = [line for line in listed.splitlines() if line.startswith("  ") and line.strip()]
    assert len(rows) >= (2 if group else 20)
    for row in rows:
        assert re.fullmatch(r"  [a-z]+ +[A-Z].*[^.]\.", row), row
        assert len(row) <= 80


def test_options_of_a_run_are_listed_in_groups(shell: Shell) -> None:
    output = shell("run", "--help").out
    headings = re.findall(r"^(\S.*):$", output, re.MULTILINE)
    assert headings == [
        "Players",
        "Games and rules",
        "Models",
        "Budget",
        "Statistics",
        "Output",
        "Cluster",
        "Programs",
        "Options",
    ]
    assert re.search(r"^Games and rules:\n(?:  .*\n)*  --jokers ", output, re.MULTILINE)
    assert output.partition("\nOptions:\n")[2] == "  -h, --help  Show this message and exit.\n"


def test_command_list_matches_each_help_text() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert Listing.summary_of(cli, context, name) == cli.summary_of(context, name)
    assert {"run", "watch"} < {*cli.list_commands(context)}


def test_similar_command_is_suggested(shell: Shell) -> None:
    assert shell("rum").err == "dubito: No such command 'rum'. Did you mean 'run'?\n"


@pytest.mark.parametrize("commands", [["--help"], ["bots", "bots --game bs", "games"]])
def test_listing_commands_load_no_heavy_library(commands: list[str]) -> None:
    script = (
        "import contextlib, sys; from dubito.cli.main import main\n"
        f"for command in {commands}:\n with contextlib.suppress(SystemExit): main(command.split())\n"
        "print(*sys.modules)"
    )
    completed = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in completed.stdout.splitlines()[-1].split()}
    assert {"click", "dubito"} < loaded
    assert not loaded & {"pydantic", "jinja2", "yaml", "rich", "openai", "anthropic", "httpx2", "multiprocessing"}


def test_run_of_bots_starts_no_process_and_loads_nothing_of_models(tmp_path: Path) -> None:
    script = (
        "import contextlib, sys; from multiprocessing import resource_tracker; from dubito.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(sys.argv[1:])\n"
        "print(resource_tracker._resource_tracker._pid, *sys.modules)"
    )
    words = ("run", "--bots", "StefaBot", "--games", "3", "--workers", "1", "--output", "r", "--no-report")
    completed = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "3 games" in completed.stdout
    tracker, *loaded = completed.stdout.splitlines()[-1].split()
    assert tracker == "None"
    assert [name for name in loaded if name.startswith(("dubito.llm", "jinja2", "diskcache", "httpx2"))] == []
    assert len([name for name in loaded if name.startswith("dubito.")]) <= 106  # two of each plugin


def test_misnamed_config_is_reported(shell: Shell) -> None:
    Path("first.yaml").write_text("games:20\nbots: [StefaBot]\n")
    assert "cannot read first.yml: No such file or directory: did you mean first.yaml?" in shell("run", "first.yml").err
    assert "first.yaml, line 1: not valid YAML: a space is missing after `games:`" in shell("run", "first.yaml").err
    output = shell("run", "--bots", "StefaBot,UsualBot,MrDoubt", "--contenders", "my-model").err
    assert output.endswith("; a model is `openai:my-model`\n")
