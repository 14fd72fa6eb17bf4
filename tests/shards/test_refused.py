"""What `dubito merge` and `--shard` reject, and the names in their messages."""

import json
import shutil
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dubito.experiment import play as chunk
from dubito.report.documents import MergeObject
from dubito.store.run_db import RunDb
from dubito.store.spend import Caps
from tests.cli.kit import Result, Shell
from tests.cli.test_json import printed
from tests.experiment.kit import experiment
from tests.llm.kit import config_file, contender, rows
from tests.shards.kit import play_shards

BOTS = ["RandomBoi", "StefaBot"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play three shards of a run of six games, `1-of-3` to `3-of-3`."""
    folder = tmp_path_factory.mktemp("shards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk, "DEALS_PER_CHUNK", 2)
        play_shards(experiment(bots=BOTS, games=6, table_sizes=[3]), folder, 3)
    return folder


@pytest.fixture
def shards(played: Path, shell: Shell, short_chunks: int) -> Callable[..., Result]:
    shutil.copytree(played, shell.folder, dirs_exist_ok=True)
    return lambda *folders: shell("merge", *folders, "--no-report")


def altered(name: str, key: str, value: object) -> str:
    """Copy a shard with a changed value in its manifest and return its name."""
    shutil.copytree(name, "altered")
    manifest = yaml.safe_load(Path("altered/manifest.yaml").read_text())
    part = manifest
    *path, last = key.split(".")
    for step in path:
        part = part[int(step) if step.isdigit() else step]
    part[last] = value
    Path("altered/manifest.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    return "altered"


def test_all_shards_merge_into_a_finished_run(shards: Callable[..., Result], shell: Shell) -> None:
    result = shards("3-of-3", "1-of-3", "2-of-3")
    assert (result.code, result.err) == (0, "")
    folder = result.out.splitlines()[-1].removeprefix("run folder: ")
    again = shell("run", "--bots", ",".join(BOTS), "--games", "6", "--table-sizes", "3", "--output", folder)
    assert again.out == result.out
    assert "this run is already finished in" in again.err
    assert shell("replay", folder, "--quiet", "--workers", "1").out.startswith("identical: 6 games")
    assert "state: finished" in shell("status", folder).out


def test_merge_prints_json(played: Path, shell: Shell, short_chunks: int) -> None:
    shutil.copytree(played, shell.folder, dirs_exist_ok=True)
    merged = printed(shell, MergeObject, "merge", "3-of-3", "1-of-3", "2-of-3", "--output", "whole", "--no-report")
    assert merged["shards"] == ["1-of-3", "2-of-3", "3-of-3"]
    run = shell("run", "--bots", ",".join(BOTS), "--games", "6", "--table-sizes", "3", "--output", "whole", "--json")
    assert merged["run"] == json.loads(run.out)


@pytest.mark.parametrize(
    ("folders", "why"),
    [
        ("1-of-3 3-of-3", "shard 2 of 3 is missing"),
        ("3-of-3", "2 of the 3 shards are missing (1, 2)"),
        ("1-of-3 2-of-3 3-of-3 2-of-3", "2-of-3 and 2-of-3 are both shard 2"),
        ("1-of-3 nowhere", "nowhere is not a run folder"),
    ],
)
def test_gaps_duplicates_and_non_runs_are_named(shards: Callable[..., Result], folders: str, why: str) -> None:
    result = shards(*folders.split())
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"dubito: {why}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("identity.seed", 7, "seed is 0 in 1-of-3 and 7 in altered"),
        ("identity.rules.max_turns", 7, "rules.max_turns is 1000 in 1-of-3 and 7 in altered"),
        ("identity.bots.1.source", "ffff", "bots.StefaBot.source is "),
        ("identity.bots.1.prompt", "ffff", "bots.StefaBot.prompt is "),
        ("identity.shard.of", 4, "the number of shards is 3 in 1-of-3 and 4 in altered"),
        ("identity.shard.games", 8, "the number of games in the whole run is 6 in 1-of-3 and 8 in altered"),
        ("identity.rules_version", 3, "rules_version is "),
        ("versions.dubito", "9.9", "the version of dubito is "),
    ],
)
def test_shards_of_another_run_or_version_are_named(
    key: str, value: object, why: str, shards: Callable[..., Result]
) -> None:
    result = shards("1-of-3", altered("2-of-3", key, value), "3-of-3")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"dubito: 1-of-3 and altered are not shards of the same run: {why}")


def test_a_shard_that_begins_elsewhere_is_damaged(shards: Callable[..., Result]) -> None:
    result = shards("1-of-3", altered("2-of-3", "identity.shard.first_game", 4), "3-of-3")
    assert result.err.startswith("dubito: altered/run.db is damaged (games, chunks and sums do not match)")


def test_shards_that_do_not_join_are_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, size in ((1, 1), (2, 2)):
        monkeypatch.setattr(chunk, "DEALS_PER_CHUNK", size)
        words = ("--bots", ",".join(BOTS), "--games", "6", "--table-sizes", "3", "--output", f"{number}")
        assert shell("run", *words, "--shard", f"{number}/2").code == 0
    result = shell("merge", "1", "2", "--no-report")
    assert (result.code, result.err) == (2, "dubito: 2 is damaged: its first game is 2 but should be 3\n")


def test_a_half_finished_shard_is_named(shards: Callable[..., Result]) -> None:
    result = shards("1-of-3", altered("2-of-3", "games", 4), "3-of-3")
    assert result.err.startswith(
        "dubito: altered is unfinished: 2 of 4 games are counted; finish it with the command that started it"
    )


def test_whole_run_is_not_a_shard(shards: Callable[..., Result], shell: Shell) -> None:
    shards("1-of-3", "2-of-3", "3-of-3")
    (whole,) = Path().glob("run-*")
    assert shards(f"{whole}").err.startswith(f"dubito: {whole} is a whole run, not a shard")
    result = shards("1-of-3", "2-of-3", "3-of-3")
    assert (result.code, result.err) == (2, f"dubito: {whole} already exists; choose another --output\n")


def test_a_game_changed_by_hand_leaves_nothing_behind(shards: Callable[..., Result]) -> None:
    with RunDb.create(Path("2-of-3/run.db")) as db, db.writing() as connection:
        connection.execute("UPDATE games SET outcome = x'0162' WHERE game = 3")
    before = sorted(Path().iterdir())
    result = shards("1-of-3", "2-of-3", "3-of-3")
    assert (result.code, result.err) == (2, "dubito: 2-of-3/run.db: games 2 to 3 were changed or are damaged\n")
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("shard", "why"),
    [
        ("0/16", "--shard 0/16: must be from 1/16 to 16/16"),
        ("17/16", "--shard 17/16: must be from 1/16 to 16/16"),
        ("3/0", "--shard: must be a number such as 3/16, the third of sixteen, not '3/0'"),
        ("x", "--shard: must be a number such as 3/16, the third of sixteen, not 'x'"),
        (
            "1/2",
            "--shard 1/2: this run has 60 deals, and each chunk of 1,000 is played on one machine: it cannot be split",
        ),
    ],
)
def test_invalid_shards_are_refused(shard: str, why: str, shell: Shell) -> None:
    result = shell("run", "--games", "60", "--shard", shard)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"dubito: {why}")
    assert not Path("runs").exists()


def test_shard_has_its_own_folder_and_label(shell: Shell, short_chunks: int) -> None:
    words = ("run", "--bots", ",".join(BOTS), "--games", "6", "--table-sizes", "3", "--quiet")
    for number in (1, 2):
        assert shell(*words, "--shard", f"{number}/2").code == 0
    one, two = sorted(Path("runs").iterdir())
    assert (one.name[-13:], two.name[-13:]) == ("-shard-1-of-2", "-shard-2-of-2")
    assert shell("status", f"{two}").out.startswith(
        "shard: 2 of 2, starting with game 2\ngames: 4 of 4 counted\nstate: finished"
    )
    assert shell("merge", f"{one}", f"{two}", "--no-report").out.endswith(f"run folder: {str(one)[:-13]}\n")
    result = shell(*words)
    assert "this run is already finished in" in result.err
    assert shell("export", f"{two}", "two.zip").code == 0
    assert shell("replay", "two.zip", "--quiet", "--workers", "1").out.startswith("identical: 4 games")
    assert shell("replay", f"{two}", "--game", "1").err == f"dubito: game 1 does not exist; {two} has games 2 to 5\n"
    result = shell(*words, "--output", f"{one}")
    assert result.err == f"dubito: {one} contains a shard, but this is a whole run: choose another --output\n"
    longer = shell(*words[:4], "8", *words[5:], "--shard", "2/2")
    assert "shard.games is 6 there and 8 here" in longer.err


def test_budget_is_divided_among_shards(shell: Shell, short_chunks: int) -> None:
    config = config_file(contender("one"), games=6, budget={"usd": 0.5, "calls": 200})
    result = shell("run", config, "--shard", "1/2", "--offline", "--output", "r")
    assert (result.code, result.out) == (3, ""), "the cache is empty, and no request may be sent"
    first, *_ = result.err.splitlines()
    assert first == "note: this shard's share of the run's budget is $0.1667, 66 calls"


@given(st.integers(0, 10**15), st.lists(st.integers(1, 3000), min_size=1, max_size=20))
def test_the_shares_of_a_cap_sum_to_it(cap: int, games: list[int]) -> None:
    ends = [*accumulate(games)]
    shares = [Caps(usd=cap).share(end - own, end, ends[-1]) for end, own in zip(ends, games, strict=True)]
    assert sum(share.usd or 0 for share in shares) == cap
    assert all(share.calls is None for share in shares)
    assert all(abs((share.usd or 0) - cap * own / ends[-1]) <= 1 for share, own in zip(shares, games, strict=True))


def test_merge_reports_spending_and_the_remaining_budget(shell: Shell, short_chunks: int) -> None:
    config = config_file(contender("one"), games=6)

    def play(number: int, budget: str) -> Result:
        words = ("--shard", f"{number}/2", "--budget", budget, "--output", f"{number}", "--quiet", "--no-preflight")
        return shell("run", config, *words)

    assert play(1, "calls=9").code == 3, "the shard's part is 3"
    assert play(2, "calls=900").code == 0
    ((used,), (other,)) = (rows(Path(each), "SELECT count(*) FROM tries")[0] for each in "12")
    tokens = sum(rows(Path(each), "SELECT sum(tokens) FROM tries")[0][0] for each in "12")
    assert used == 3
    spent = f"spent by 2 of 2 shards: {used + other} calls, {tokens:,} tokens"
    lines = shell("merge", "1", "2", "--no-report").err.splitlines()
    assert lines[:-1] == [spent]
    assert lines[-1].startswith("dubito: 1 is unfinished: ")
    lines = shell("merge", "1", "2", "--budget", "calls=500", "--no-report").err.splitlines()
    left = 500 - used - other
    whole = 3 * (used + left)  # a third of this is the shard's
    share = f"to finish 1 with its share ({left} calls): --shard 1/2 --budget calls={whole} "
    share += "(--budget applies to all 2 shards together; this run still spends at most 500 calls)"
    assert lines[:-1] == [spent, f"left of the budget: {left} calls", share]
    assert shell("merge", "2", "--budget", "calls=500").err.splitlines()[1].startswith("name all shards")
    assert play(1, f"calls={whole}").code == 0
    ended = shell("merge", "1", "2", "--budget", "calls=500", "--output", "whole", "--no-report")
    ((all_calls,),) = rows(Path("whole"), "SELECT count(*) FROM tries")
    assert ended.code == 0
    assert ended.err.splitlines()[1] == f"left of the budget: {500 - all_calls} calls"
