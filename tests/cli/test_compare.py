"""`dubito compare`: contenders of several runs are compared as in one run."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
import yaml

from dubito.cli.main import main
from dubito.files import read_yaml
from tests.cli.kit import Shell
from tests.llm.kit import Incoming, Response, Server, config_file, contender, respond

FIELD = "StefaBot,UsualBot,RandomBoi"

ENDS = ["games with fallbacks %", "Score %, worst", "Score %, best", "hard %, worst", "hard %, best"]


def run(shell: Shell, folder: str, contenders: str, *flags: str, games: int = 40, field: str = FIELD) -> str:
    """Play a run with these contenders and return the output."""
    words = ("--games", f"{games}", "--table-sizes", "3,4", "--output", folder, "--quiet", *flags)
    result = shell("run", "--bots", field, "--contenders", contenders, *words)
    assert result.code == 0, result.err
    return result.out


def change(folder: str, **identity: Any) -> None:
    """Change values in the identity in a run's manifest."""
    path = Path(folder, "manifest.yaml")
    manifest = read_yaml(path)
    manifest["identity"] |= identity
    path.write_text(yaml.safe_dump(manifest, sort_keys=False))


def execute(folder: str, statement: str) -> None:
    with closing(sqlite3.connect(Path(folder, "run.db"))) as connection, connection:
        connection.execute(statement)


def test_contenders_of_several_runs_compare_as_in_one_run(shell: Shell) -> None:
    run(shell, "a", "ClaudeBot,MrDoubt", games=80)
    run(shell, "b", "AdaptyBoi", games=40)
    whole = run(shell, "all", "AdaptyBoi,ClaudeBot,MrDoubt", games=120)
    result = shell("compare", "a", "b")
    assert (result.code, result.err) == (0, "")
    verdict, _, tables = result.out.partition("Contenders, in the same seat of the same deals\n")
    assert verdict.startswith("Preliminary (fewer than 100 deals): ")
    assert tables.count("\n") == 1 + 3 + 2 + 3 + 1, "three contenders, three pairs, and the number of deciding deals"
    assert shell("compare", "all").out in whole
    fewer = re.compile(r"\s+[Aa]bout\s+[0-9,]+\s+more\s+games|\s+")  # a deal has two games in `a`, otherwise three
    assert fewer.sub(" ", result.out) == fewer.sub(" ", shell("compare", "all").out)
    assert result.out != shell("compare", "all").out


def test_only_common_deals_are_compared(shell: Shell) -> None:
    run(shell, "long", "ClaudeBot", games=50)
    run(shell, "short", "AdaptyBoi", games=20)
    run(shell, "all", "ClaudeBot,AdaptyBoi", games=40)
    result = shell("compare", "long", "short")
    assert result.out == shell("compare", "all").out
    assert result.err == (
        "note: only the first 20 deals, common to all runs, are compared: long has 50, short has 20\n"
    )
    assert shell("export", "short", "short.zip").code == 0
    assert shell("compare", "long", "short.zip").err == result.err.replace("short has", "short.zip has")


def test_equal_names_are_distinguished_by_their_run(shell: Shell) -> None:
    run(shell, "a", "ClaudeBot,MrDoubt")
    run(shell, "b", "ClaudeBot", games=20)
    out = shell("compare", "a", "b").out
    _, _, tables = out.partition("Contenders, in the same seat of the same deals\n")
    first_words = [line.partition("  ")[0] for line in tables.splitlines()[1:4]]
    assert sorted(first_words) == ["ClaudeBot (a)", "ClaudeBot (b)", "MrDoubt"]
    (twins,) = [line for line in out.splitlines() if re.match(r"ClaudeBot \(a\) +hand-written +ClaudeBot \(b\)", line)]
    assert "+0.0 [-15.0, +15.0]  no: identical" in twins
    assert shell("export", "b", "b.zip").code == 0
    assert "ClaudeBot (b.zip)" in shell("compare", "a", "b.zip").out
    assert "ClaudeBot (b.zip, run 2)" in shell("compare", "b.zip", "b.zip").out


def flawed(request: Incoming) -> Response:
    lost = request.body["model"] == "flawed" and int(sha256(request.raw).hexdigest(), 16) % 12 == 0
    return respond("responses", "I would rather not say." if lost else '{"answer": true}')


def test_bounds_of_opponents_are_shown(shell: Shell) -> None:
    with Server(flawed) as server:
        url = server.base_url("responses")
        field = [contender("flawed", "flawed", base_url=url, reasks=0), "StefaBot"]
        alone = config_file(*field, games=6, name="alone.yaml", bots=["UsualBot"], rules={"max_turns": 24})
        seated = config_file(games=4, name="seated.yaml", bots=field, rules={"max_turns": 24})
        outputs = [shell("run", config, "--quiet").out for config in (alone, seated)]
    title = "Fallbacks in all seats: results if games with fallbacks counted as losses or hard wins"
    assert "Fallbacks of contenders: " in outputs[0]
    assert [title in out for out in outputs] == [False, True], "the contenders' table already has it"
    header, row = outputs[1].split(f"{title}\n")[1].splitlines()[:2]
    assert re.split("  +", header)[3:] == ENDS
    name, _, games, share, low, high, *hard = re.split("  +", row)
    results = read_yaml(next(Path("runs").glob("seated-*/all_games.yaml")))
    assert (name, int(games)) == ("flawed", results["flawed"]["total"]["games"])
    assert 0 < float(share) <= 100
    assert [low, high] == hard, "there are no soft wins with three players"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play two comparable runs, `a` and `b`."""
    home = tmp_path_factory.mktemp("two")
    for folder in ("a", "b"):
        words = ("--games", "40", "--table-sizes", "3,4", "--output", str(home / folder), "--quiet")
        with pytest.raises(SystemExit):
            main(("run", "--bots", FIELD, "--contenders", "ClaudeBot,MrDoubt", "--no-report", *words))
    return home


@pytest.fixture
def pair(two: Path, shell: Shell) -> Shell:
    for folder in ("a", "b"):
        copytree(two / folder, folder)
    return shell


def swap(folder: str, make: Callable[[], None]) -> None:
    rmtree(folder)
    make()


OTHER_CARDS = "a and b do not have the same cards, so their contenders cannot be compared: "


@pytest.mark.parametrize(
    ("identity", "sentence"),
    [
        ({"seed": 7}, "seed is 0 in a and 7 in b"),
        ({"table_sizes": [3]}, "table_sizes is [3, 4] in a and [3] in b"),
        ({"bots": [{"name": "x"}]}, "the number of opponents is 3 in a and 1 in b"),
        ({"rules": {"jokers": 0}}, "rules.jokers is 2 in a and 0 in b"),
    ],
)
def test_runs_with_other_deals_are_refused(pair: Shell, identity: dict[str, Any], sentence: str) -> None:
    change("b", **identity)
    result = pair("compare", "a", "b")
    assert (result.code, result.out, result.err) == (2, "", f"dubito: {OTHER_CARDS}{sentence}\n")


@pytest.mark.parametrize(
    ("break_it", "sentence"),
    [
        (lambda: Path("b/manifest.yaml").unlink(), "b is not a run folder: it has no manifest.yaml"),
        (lambda: rmtree("b"), "b does not exist: no runs in runs either"),
        (lambda: swap("b", Path("b").touch), "b is not a run; give a run folder or an exported run"),
        (lambda: Path("b/run.db").write_text("text" * 100), "b/run.db is damaged or not a run store"),
        (lambda: Path("b/manifest.yaml").write_text("a: ["), "b/manifest.yaml is damaged: it is not valid YAML"),
        (lambda: change("b", seed="x"), "b/manifest.yaml is damaged: identity.seed: Input is not valid"),
        (lambda: change("b", contenders=[]), "b has no contenders; "),
        (lambda: execute("b", "DELETE FROM chunks"), "b has no finished deals to compare"),
        (lambda: execute("b", "UPDATE games SET outcome = x'0102' WHERE game = 5"), "b(: |/)run.db"),
        (
            lambda: execute("b", "DROP TABLE decisions"),
            "b/run.db is damaged or not a run store: no column",
        ),
        (lambda: swap("b", lambda: Path("b").symlink_to("a")), "b is listed twice"),
    ],
)
def test_incomparable_runs_are_reported_in_one_sentence(
    pair: Shell, break_it: Callable[[], object], sentence: str
) -> None:
    break_it()
    result = pair("compare", "a", "b")
    assert (result.code, result.out) == (2, "")
    assert re.match(f"dubito: {sentence}", result.err)
    assert result.err.count("\n") == 1


def test_a_manifest_of_another_run_is_refused(shell: Shell) -> None:
    shell("run", "--bots", FIELD, "--games", "10", "--output", "a", "--quiet")
    change("a", contenders=[{"name": "x"}])
    result = shell("compare", "a")
    assert (result.code, result.out, result.err) == (
        2,
        "",
        "dubito: a: manifest.yaml and run.db are not from the same run\n",
    )


def test_compare_needs_a_run(shell: Shell) -> None:
    result = shell("compare")
    assert (result.code, result.err) == (
        2,
        "dubito: no runs in runs yet: start one with `dubito demo` or `dubito run CONFIG`\n",
    )


def field_of(folder: str) -> list[dict[str, Any]]:
    bots: list[dict[str, Any]] = read_yaml(Path(folder, "manifest.yaml"))["identity"]["bots"]
    return bots


def test_other_opponents_and_rules_are_compared_with_a_caveat(pair: Shell) -> None:
    untouched = pair("compare", "a", "b")
    stefa, usual, random = field_of("b")
    change(
        "b",
        bots=[stefa | {"source": "0" * 64, "settings": {"x": 1}}, usual, random | {"name": "Mr\x1b[2J"}],
        rules={"jokers": 2, "win_rule": "contested", "max_turns": 1000, "yet_to_come": True},
        on_bot_error="fallback",
        bot_deadline=2.0,
        provider_errors="suspend",
    )
    change("a", provider_errors="fallback", of_a_later_version="x")
    result = pair("compare", "a", "b")
    assert (result.code, result.out) == (0, untouched.out)
    same = "note: the rules differ, although the cards are the same: "
    assert result.err.splitlines() == [
        "note: the opponents differ, although the cards are the same: StefaBot has a different settings and source, "
        "RandomBoi in a is Mr\\x1b[2J in b",
        f"{same}bot_deadline is None in a and 2.0 in b",
        f"{same}on_bot_error is stop in a and fallback in b",
        f"{same}provider_errors is fallback in a and suspend in b",
        f"{same}rules.win_rule is immediate in a and contested in b",
    ]


def test_unfinished_run_is_labelled(pair: Shell) -> None:
    path = Path("b/manifest.yaml")
    path.write_text(path.read_text().replace("games: 40\n", "games: 1000\n"))
    result = pair("compare", "a", "b")
    assert (result.code, result.err) == (0, "note: b is unfinished: 40 of 1,000 games are counted\n")


def test_compare_lists_arms_and_their_lies(shell: Shell) -> None:
    contenders = "house:house-sharp@plain,house:house-sharp@hud,house:house-honest@must-not-lie"
    words = ("--bots", "StefaBot,UsualBot", "--table-sizes", "3", "--games", "6", "--max-turns", "18", "--quiet")
    assert shell("run", "--contenders", contenders, *words, "--output", "r").code == 0
    output = shell("compare", "r").out
    arms = output.partition("Prompt of each contender; voluntary bluffs")[2].splitlines()
    assert arms[0].startswith(" in all seats of the first 6 games, ")
    assert [re.split("  +", row)[2] for row in arms[2:5]] == ["plain", "hud", "must-not-lie"]
    assert re.search(r"Plain, plus: do not lie where you can avoid .*\d+ +0\.0 \[", arms[4])
    assert arms[5].startswith("must-not-lie adds: You must not lie where you can avoid it.")
    assert "Pairs: differences in points on 2 common deals" in output
    assert shell("run", "--contenders", "ClaudeBot,MrDoubt", *words, "--output", "s").code == 0
    assert "Arms" not in shell("compare", "s").out
