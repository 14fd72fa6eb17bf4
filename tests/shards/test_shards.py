"""Merged shards equal the run of one machine, to the last row."""

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from dubito.experiment import replay
from dubito.experiment.compare import check_comparable
from dubito.experiment.run import find_finished_run, play
from dubito.experiment.shards import cut_shard
from dubito.experiment.stored import open_recorded_run, read_replayable_run
from dubito.report.site import write_report
from dubito.workshop.recordings import record_from_run
from tests.experiment.kit import REPO, experiment, means, resolved
from tests.llm.kit import contender, rows, run_games, small
from tests.shards.kit import everything_in, merged, play_shards, read_result_files

BOTS = ["RandomBoi", "StefaBot"]
ASKED = ("tries", "attempts", "texts")  # times and durations may differ


@pytest.mark.parametrize("contenders", [[], ["AdaptyBoi", "ClaudeBot"]])
def test_merged_shards_are_the_run_of_one_machine(contenders: list[str], short_chunks: int, tmp_path: Path) -> None:
    of = experiment(bots=BOTS, contenders=contenders, games=14 if not contenders else 18, table_sizes=[3, 4])
    whole = run_games(of, tmp_path / "whole")
    folder = merged(play_shards(of, tmp_path, 3), tmp_path / "merged")
    assert everything_in(folder) == everything_in(tmp_path / "whole")
    assert read_result_files(folder) == read_result_files(tmp_path / "whole")
    again = find_finished_run(resolved(of), folder)
    assert again is not None
    assert again.results_digest == whole.results_digest


def test_shards_are_whole_chunks_of_nearly_equal_size(short_chunks: int) -> None:
    of = experiment(bots=BOTS, contenders=["AdaptyBoi", "ClaudeBot"], games=42)  # 21 deals in 11 chunks
    shards = [cut_shard(of, number, 4) for number in range(1, 5)]
    assert [[*shard.deal_numbers] for shard in shards] == [
        [*range(4)],
        [*range(4, 10)],
        [*range(10, 16)],
        [*range(16, 21)],
    ]
    assert [game for shard in shards for game in shard.game_numbers] == [*range(42)]
    assert {shard.digest() for shard in shards} == {of.digest()}
    assert len({str(shard.identity()) for shard in shards}) == 4
    assert all(shard.unsharded == of for shard in shards)


def test_shard_resumes_replays_and_reports_like_any_run(short_chunks: int, tmp_path: Path) -> None:
    of = cut_shard(experiment(bots=BOTS, games=12, table_sizes=[3]), 2, 2)
    how = means(tmp_path / "cut", progress=lambda games: how.stop.set() if games == short_chunks else None)
    assert play(resolved(of), tmp_path / "cut", how).interrupted
    assert run_games(of, tmp_path / "cut").tally.games == run_games(of, tmp_path / "whole").tally.games == 6
    assert everything_in(tmp_path / "cut") == everything_in(tmp_path / "whole")
    found = replay_of(tmp_path / "cut")
    assert (found.difference, found.games) == (None, 6)
    kept = read_replayable_run(tmp_path / "cut", REPO)
    with kept.db:
        assert {one.source.game for one in record_from_run(kept, ["A", "C"], 12) if one.source} == {*range(6, 12)}
    pages = write_report(tmp_path / "cut", REPO).parent
    assert {page.stem for page in (pages / "games").glob("*.html")} == {f"{game}" for game in range(6, 12)}


def replay_of(folder: Path) -> replay.ReplayResult:
    kept = read_replayable_run(folder, REPO)
    with kept.db:
        return replay.replay(kept, 1, lambda games: None)


def test_merged_shards_of_models_are_one_run_and_replay_offline(short_chunks: int, tmp_path: Path) -> None:
    """Failed calls and unusable answers are the same in both. Each shard has its own preflight."""
    of = small(contender("one", base_url="house?faults=prose:0.3,server_error:0.1"), games=6, turns=5)
    whole = run_games(of, tmp_path / "whole", preflight=True, cache=tmp_path / "cache-of-the-whole")
    folders = play_shards(of, tmp_path, 3, preflight=True)
    folder = merged(folders, tmp_path / "merged")
    assert everything_in(folder, but=ASKED) == everything_in(tmp_path / "whole", but=ASKED)
    assert read_result_files(folder) == read_result_files(tmp_path / "whole")
    query = "SELECT {} FROM {} WHERE game >= 0 ORDER BY game, seat, decision, attempt"
    for columns, table in (
        ("game, seat, decision, attempt, request, draw, reply, raw, cause", "attempts"),
        ("state, kind, usage, tokens, picodollars", "tries"),
    ):
        assert rows(folder, query.format(columns, table)) == rows(tmp_path / "whole", query.format(columns, table))
    every = Counter(row for one in folders for row in rows(one, "SELECT raw, tokens, picodollars FROM tries"))
    assert Counter(rows(folder, "SELECT raw, tokens, picodollars FROM tries")) == every
    # The fault also affects the question of each preflight, which is asked again.
    asked = rows(folder, "SELECT attempt, try FROM tries WHERE game = -1 ORDER BY attempt, try")
    assert asked == [*product((0, 1), (1, 2, 3))]
    found = replay_of(folder)
    assert (found.difference, found.results_digest) == (None, whole.results_digest)


def test_a_stopped_shard_of_models_counts_its_own_games(short_chunks: int, tmp_path: Path) -> None:
    of = cut_shard(small(contender("one"), games=6, turns=5), 3, 3)
    run = run_games(of, tmp_path / "run")
    assert (run.counts.finished, run.counts.counted) == (2, 2)


def test_shards_of_other_deals_are_not_compared(short_chunks: int, tmp_path: Path) -> None:
    of = experiment(bots=BOTS, contenders=["AdaptyBoi"], games=4, table_sizes=[3])
    two, one = play_shards(of, tmp_path, 2)
    with (
        open_recorded_run(one) as first,
        open_recorded_run(two) as second,
        pytest.raises(Exception, match=r"the first game is 0 in .* and 2"),
    ):
        check_comparable([first, second])
