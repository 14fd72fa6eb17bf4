"""Whole tournaments of small bots: parallel pairs, interruptions, and the log."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.plugins.tournament.log import (
    MANIFEST,
    SECRET,
    LogWriter,
    MatchLine,
    open_log,
    read_log_manifest,
    read_secret,
)
from dubito.plugins.tournament.pages import ballot_table, write_result_pages
from dubito.plugins.tournament.pair import Pair
from dubito.plugins.tournament.plan import BotConfig, Pairing, SeedSource, Tournament, load_bots
from dubito.plugins.tournament.replay import find_match_difference, list_differences
from dubito.plugins.tournament.rules import folder_name, load, short_names
from dubito.plugins.tournament.standings import compute_standings
from dubito.plugins.tournament.tournament import play_tournament
from dubito.sandbox import warden
from tests.plugins.tournament import kit
from tests.plugins.tournament.kit import FIRST, GOOD, acting, tournament

LAST = acting('echo "${legal##* }"')
DRAWN = acting(
    'echo "$DUBITO_SEED $legal" | cksum | { read -r sum rest; set -- $legal; '
    '[ $((sum % 2)) = 0 ] && echo "$1" || eval "echo \\${$#}"; }'
)
LEARNS = acting(  # counts its matches, and plays the first action in every third
    '[ $((n % 3)) = 0 ] && echo "${legal%% *}" || echo "${legal##* }"',
    first='n=0; [ -e "$DUBITO_DATA/n" ] && read -r n < "$DUBITO_DATA/n"; echo $((n + 1)) > "$DUBITO_DATA/n"',
)
BOTS = {"learns": LEARNS, "drawn": DRAWN, "rude": acting("echo no")}


def silent(_: str) -> None:
    pass


def texts(folder: Path) -> dict[str, list[str]]:
    """Return the log's contents without times."""
    found = {}
    for path in sorted(folder.glob("matches/*/*.jsonl")):
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        found[str(path.relative_to(folder))] = [json.dumps({**line, "times": None}) for line in lines]
    return found


@pytest.mark.at_length
def test_logs_do_not_depend_on_parallel_pairs(tmp_path: Path) -> None:
    logs = []
    for pairs in (1, 2):
        folder = tmp_path / str(pairs)
        log = play_tournament(tournament(tmp_path, BOTS, matches=1, pairs=pairs, move_seconds=60.0), folder, silent)
        assert [len(lines) for _, lines in log.read_lines()] == [2] * 3
        logs.append(texts(folder))
    assert logs[0] == logs[1]
    found = compute_standings(open_log(tmp_path / "1"), resamples=50)
    assert found.missing == 0
    assert found.damaged == []
    rude = found.games[0].conduct[2]
    assert (rude.matches, rude.failed, rude.answers) == (4, 0, rude.strikes["illegal"])
    assert sorted(found.places) == [0, 1, 2]


KILLED = """
import sys
from pathlib import Path
from dubito.plugins.tournament.tournament import play_tournament
from tests.plugins.tournament import kit
from tests.plugins.tournament.kit import tournament
from tests.plugins.tournament.test_tournament import PATIENT, STUBBORN, silent
if __name__ == "__main__":
    home = Path(sys.argv[1])
    of = tournament(home, STUBBORN, matches=2, pairs=2, **PATIENT)
    play_tournament(of, home / "run", silent, lambda n: print(n, flush=True))
"""
PATIENT = {"move_seconds": 5.0, "grace_seconds": 5.0}  # long enough for a slow machine
STUBBORN = {
    "first": acting(FIRST, first="trap '' TERM HUP INT; (trap '' HUP; exec setsid sleep 600 >&2) &"),
    "last": LAST,
    "drawn": DRAWN,
}


@pytest.fixture
def referee(tmp_path: Path) -> Iterator[list[str]]:
    yield [sys.executable, "-c", KILLED, str(tmp_path)]
    warden.sweep(str(tmp_path / "run"))


def test_killed_tournament_leaves_no_bots_and_resumes(tmp_path: Path, referee: list[str], at_length: bool) -> None:
    kept = 0
    for _ in range(2 if at_length else 1):
        with subprocess.Popen(referee, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            seen = [int(next(process.stdout)) for _ in range(4)]
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read()  # child processes hold the pipe too, so they have exited
        assert seen[0] == kept or kept == 0
        log = open_log(tmp_path / "run")
        kept = sum(len(lines) for _, lines in log.read_lines())
        assert seen[-1] <= kept < 12
        assert rest.count("\n") < 16
        wait_for_warden(str(tmp_path / "run"))
        assert warden.sweep(str(tmp_path / "run")) == 0
    play_tournament(tournament(tmp_path, STUBBORN, matches=2, pairs=2, **PATIENT), tmp_path / "run", silent)
    play_tournament(tournament(tmp_path, STUBBORN, matches=2, pairs=1, **PATIENT), tmp_path / "whole", silent)
    assert texts(tmp_path / "run") == texts(tmp_path / "whole")


def wait_for_warden(mark: str) -> None:
    """Wait until the guard of a referee that has exited is done."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[-2:-1] == [mark.encode()] and words[-3].endswith(b"warden.py"):
                guard = os.pidfd_open(int(entry.name))
                select.select([guard], [], [], 30)
                os.close(guard)
        except OSError:
            continue


TWO = {"first": GOOD, "last": LAST}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    play_tournament(tournament(folder, TWO, matches=2), folder / "run", silent)
    return folder / "run"


@pytest.mark.at_length
def test_damaged_line_is_reported_and_skipped(finished: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    path = open_log(run).path(Pairing(0, (0, 1)))
    lines = path.read_text().splitlines()
    lines[1] = lines[1][: len(lines[1]) // 2]
    path.write_text("\n".join(lines) + "\n" + '{"half')
    again = open_log(run)
    assert [line.match for line in again.lines(Pairing(0, (0, 1)))] == [0, 2, 3]
    (sentence,) = again.damaged
    assert sentence.startswith("matches/0-kuhn_poker/first--last.jsonl, line 2 is damaged and was skipped (")
    assert compute_standings(again).missing == 1
    play_tournament(tournament(finished.parent, TWO, matches=2), run, silent)
    final = open_log(run)
    assert [line.match for line in final.lines(Pairing(0, (0, 1)))] == [0, 1, 2, 3]
    assert '{"half' not in path.read_text()


BROKEN = {
    "seats": (["last", "first"], "belongs to another game or other bots"),
    "match": (4, "is match 4, which is not scheduled,"),
    "returns": ([float("inf"), -1.0], "is damaged"),
    "strikes": ([{"node": 2, "seat": 2, "kind": "ponder", "said": ""}], "is damaged"),
    "replaced": ([[2, -1]], "is damaged"),
    "seeds": ({"chance": [1]}, "is damaged"),
    "history": ([1, 2, [0]], "is damaged"),
}


@pytest.mark.parametrize("key", BROKEN)
def test_impossible_line_is_skipped(finished: Path, tmp_path: Path, key: str) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    log = open_log(run)
    path = log.path(Pairing(0, (0, 1)))
    first, *rest = path.read_text().splitlines()
    value, message = BROKEN[key]
    path.write_text("\n".join([json.dumps({**json.loads(first), key: value}), *rest]) + "\n")
    assert compute_standings(log, resamples=0).missing == 1
    (sentence,) = log.damaged
    assert f"line 1 {message}" in sentence
    assert "skipped" in sentence


@pytest.mark.parametrize("entry", [[0, 1], 7])
def test_impossible_actions_are_a_difference(finished: Path, entry: int | list[int]) -> None:
    line = open_log(finished).lines(Pairing(0, (0, 1)))[0]
    wrong = line.model_copy(update={"history": [*line.history[:2], entry]})
    assert str(find_match_difference(load("kuhn_poker").new_initial_state(), wrong)).startswith("node 2: ")


def test_replay_detects_foreign_seeds(finished: Path) -> None:
    for secret, text in (("of the tests alone", None), ("another", "its seeds do not belong to the tournament")):
        assert {wrong for _, wrong in list_differences(open_log(finished), SeedSource(0, secret))} == {text}


@pytest.mark.parametrize("key", ["identity", "matches", "notes", "versions", "programs"])
def test_manifest_with_a_missing_key_is_damaged(finished: Path, tmp_path: Path, key: str) -> None:
    manifest = json.loads((finished / MANIFEST).read_text())
    del manifest[key]
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match=r"tournament.json is damaged or incomplete"):
        open_log(tmp_path)


def test_tournament_of_another_format_is_refused(finished: Path, tmp_path: Path) -> None:
    manifest = json.loads((finished / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(manifest | {"format": 0}))
    words = r"tournament.json was written by another version of Dubito \(format 0; this one reads 1\): "
    with pytest.raises(UsageError, match=words):
        open_log(tmp_path)


@pytest.mark.at_length
def test_tournament_can_be_extended_but_not_changed(finished: Path, tmp_path: Path) -> None:
    home, run = finished.parent, shutil.copytree(finished, tmp_path / "run")
    before = texts(run)
    play_tournament(tournament(home, TWO, matches=3), run, silent)
    for path, lines in texts(run).items():
        assert lines[:4] == before[path]
        assert len(lines) == 6
    with pytest.raises(UsageError, match="already has a tournament of 3 matches; set at least as many"):
        play_tournament(tournament(home, TWO, matches=2), run, silent)
    with pytest.raises(UsageError, match="contains another tournament: seed is 0 there and 1 here"):
        play_tournament(tournament(home, TWO, matches=3, seed=1), run, silent)
    with pytest.raises(UsageError, match="its bots are in the order first, last; use this order"):
        play_tournament(tournament(home, dict(reversed(TWO.items())), matches=3), run, silent)
    moved = tournament(home, TWO, matches=3)
    moved = replace(moved, bots=tuple(replace(bot, home=tmp_path / "elsewhere") for bot in moved.bots))
    with pytest.raises(UsageError, match="contains another tournament: homes is "):
        play_tournament(moved, run, silent)
    with pytest.raises(UsageError, match="exists and is not a tournament; choose another --output"):
        play_tournament(tournament(home, TWO), tmp_path, silent)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a tournament of three bots in two games. `gone` is disqualified."""
    folder = tmp_path_factory.mktemp("three")
    bots = {"first": GOOD, "last": LAST, "gone": acting("echo oh >&2; exit 1")}
    games = ["kuhn_poker", "leduc_poker"]
    play_tournament(tournament(folder, bots, matches=1, games=games), folder / "run", silent)
    return folder / "run"


@pytest.mark.at_length
def test_unfinished_tournament_is_ranked(three: Path, tmp_path: Path) -> None:
    run = shutil.copytree(three, tmp_path / "run")
    damaged = run / "matches/0-kuhn_poker/first--last.jsonl"
    damaged.write_text("damaged\n" + damaged.read_text().splitlines()[1] + "\n")
    (run / "matches/0-kuhn_poker/last--gone.jsonl").unlink()
    shutil.rmtree(run / "matches/1-leduc_poker")
    found = compute_standings(open_log(run), resamples=5)
    assert sorted(found.places) == [0, 1]
    assert [game.ranking is None for game in found.games] == [False, True]
    assert "the order may change: 3 of 12 matches are finished" in found.warnings(read_log_manifest(run))
    assert len(found.damaged) == 1
    assert write_result_pages(run, open_log(run), found, read_log_manifest(run)).exists()
    honest = run / "matches/0-kuhn_poker/first--gone.jsonl"
    honest.write_text(re.sub(r'"strikes":\[\{[^]]*', '"strikes":[', honest.read_text()))
    partial = compute_standings(open_log(run), resamples=5)
    assert sorted(partial.places) == [0, 1, 2]
    ballots = ballot_table(partial, 0)
    assert [row[2] is None for row in ballots.rows] == [False, True, True]
    assert len(ballots.rows) == 3
    shutil.rmtree(run / "matches/0-kuhn_poker")
    with pytest.raises(UsageError, match="no match is finished yet; play them with `dubito tournament play`"):
        compute_standings(open_log(run))


def test_frequent_overruns_disqualify_from_all_games(three: Path) -> None:
    found = compute_standings(open_log(three))
    assert found.disqualified == {
        2: "gone is disqualified: 4 of 4 matches of kuhn_poker were overrun or crashed, more than 1 %; it printed: oh"
    }
    assert sorted(found.places) == [0, 1]
    for game in found.games:
        assert game.ranking is not None
        assert sorted(game.ranking.ballots) == [0, 1]


def test_bot_has_a_data_folder_per_game(tmp_path: Path) -> None:
    keeps = acting(FIRST, last='printf x >> "$DUBITO_DATA/kept"; exit 0')
    play_tournament(tournament(tmp_path, {"keeps": keeps, "first": GOOD}, matches=2), tmp_path / "run", silent)
    assert (tmp_path / "run" / "data" / "keeps" / "kuhn_poker" / "kept").read_text() == "xxxx"
    lines: list[MatchLine] = open_log(tmp_path / "run").lines(Pairing(0, (0, 1)))
    assert [line.data[line.seats.index("keeps")] for line in lines] == [1, 2, 3, 4]


def test_games_with_a_common_prefix_have_separate_folders() -> None:
    long = "goofspiel(" + ",".join(f"imp_info=True{' ' * n}" for n in range(9))
    names = ["kuhn_poker", "liars_dice(numdice=1)", "liars_dice[numdice=1]", long, long + " "]
    folders = [folder_name(name) for name in names]
    assert len(set(folders)) == len(names)
    assert folders[0] == "kuhn_poker"


def test_games_have_short_names_if_unique() -> None:
    names = ["kuhn_poker", "goofspiel(imp_info=True)", "liars_dice(numdice=1)", "liars_dice[numdice=1]"]
    assert short_names(names) == ["kuhn_poker", "goofspiel", *names[2:]]


def test_enforced_limits_are_logged(tmp_path: Path) -> None:
    script = "cat /proc/self/limits | grep 'Max data' >&2; cat /proc/net/dev >&2; env >&2"
    os.environ["DUBITO_TEST_SECRET"] = "x"  # noqa: S105
    try:
        play_tournament(
            tournament(tmp_path, {"prying": acting(FIRST, last=script + "; exit 0"), "first": GOOD}, matches=1),
            tmp_path / "run",
            silent,
        )
    finally:
        del os.environ["DUBITO_TEST_SECRET"]
    events = [json.loads(text) for text in (tmp_path / "run" / "run.log").read_text().splitlines()]
    (facts,) = [event for event in events if event["event"] == "enforced"]
    assert read_log_manifest(tmp_path / "run")["enforced"].items() <= facts.items()
    text = open_log(tmp_path / "run").lines(Pairing(0, (0, 1)))[0].stderr[0]
    if facts["memory"]:
        assert "17179869184" in text
    if facts["no network"]:
        assert re.findall(r"^ *(\w+): ", text, re.MULTILINE) == ["lo"]
    assert "DUBITO_TEST_SECRET" not in text
    assert "DUBITO_DATA=" in text


@pytest.mark.at_length
def test_secret_is_generated_with_private_permissions(tmp_path: Path) -> None:
    script = acting(FIRST, last="env >&2; exit 0")
    for name in ("one", "other"):
        play_tournament(
            tournament(tmp_path, {"prying": script, "first": GOOD}, matches=1, secret=None), tmp_path / name, silent
        )
    path = tmp_path / "one" / SECRET
    assert path.stat().st_mode & 0o777 == 0o600
    secret = read_secret(tmp_path / "one")
    assert len(secret) == 32
    assert secret != read_secret(tmp_path / "other")
    (one, _), (other, _) = (open_log(tmp_path / name).lines(Pairing(0, (0, 1))) for name in ("one", "other"))
    assert one.seeds.bots == other.seeds.bots
    assert one.seeds.chance != other.seeds.chance
    assert secret not in one.stderr[0] + (tmp_path / "one" / MANIFEST).read_text()
    play_tournament(
        tournament(tmp_path, {"prying": script, "first": GOOD}, matches=1, secret=None), tmp_path / "one", silent
    )
    assert read_secret(tmp_path / "one") == secret
    with pytest.raises(UsageError, match="contains another tournament with a different secret"):
        play_tournament(tournament(tmp_path, {"prying": script, "first": GOOD}, matches=2), tmp_path / "one", silent)
    path.unlink()
    with pytest.raises(UsageError, match="cannot read "):
        play_tournament(
            tournament(tmp_path, {"prying": script, "first": GOOD}, matches=3, secret=None), tmp_path / "one", silent
        )


def test_partial_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "matches" / "file.jsonl"
    LogWriter(path).close()
    path.write_bytes(b"x" * 5000 + b"\n" + b"y" * 9000)
    LogWriter(path).close()
    assert path.read_bytes() == b"x" * 5000 + b"\n"
    path.write_bytes(b"y" * 9000)
    LogWriter(path).close()
    assert path.read_bytes() == b""


def test_changed_program_voids_the_match(tmp_path: Path) -> None:
    """During a match, between two sessions, and if its folder contains more than the command names."""
    (tmp_path / "bots").mkdir()
    kit.write(tmp_path / "bots", "other.sh", acting(FIRST, first=f"echo x >> {tmp_path}/bots/weights"))
    (tmp_path / "bots/weights").write_text("1")
    entered = tournament(tmp_path, TWO, matches=2)
    content = entered.config.model_copy(update={"bots": {"first": "./first.sh", "other": "bots/other.sh"}})
    entered = replace(entered, config=content, bots=load_bots(content, tmp_path, "the test"))
    folder = tmp_path / "run"
    programs = {bot.name: bot.digests() for bot in entered.bots}
    assert {name: sorted(files) for name, files in programs.items()} == {
        "first": ["first.sh"],
        "other": ["bots/other.sh", "bots/weights"],
    }
    pair = Pair(replace(entered, programs=programs), Pairing(0, (0, 1)), tmp_path / "void", kit.NOWHERE)
    message = (
        r"the program of other has changed \(bots/weights\), so match 0 of kuhn_poker is void, against first; restore"
    )
    with pytest.raises(RunStopped, match=message):
        list(pair.play(range(2)))
    kit.write(tmp_path / "bots", "other.sh", LAST)
    play_tournament(entered, folder, silent)
    assert read_log_manifest(folder)["programs"] == {bot.name: bot.digests() for bot in entered.bots}
    os.utime(tmp_path / "bots/weights", (1, 1))
    (tmp_path / "first.sh").write_text(GOOD + "# other\n")
    with pytest.raises(UsageError, match=r"the program of first has changed since .*: first\.sh; restore it"):
        play_tournament(entered, folder, silent)


def test_program_is_verified_before_a_match(tmp_path: Path) -> None:
    entered = tournament(tmp_path, TWO)
    entered = replace(entered, programs={bot.name: bot.digests() for bot in entered.bots})
    (tmp_path / "last.sh").write_text(GOOD)
    pair = Pair(entered, Pairing(0, (0, 1)), tmp_path / "run", kit.NOWHERE)
    with pytest.raises(RunStopped, match=r"of last has changed \(last.sh\), so match 1 of kuhn_poker was not played"):
        list(pair.play([1]))


def test_copies_of_a_program_are_refused_by_default(tmp_path: Path) -> None:
    """Whatever the file is called. Copies with different arguments are allowed."""
    twice = {"first": GOOD, "again": GOOD}
    with pytest.raises(
        UsageError, match="the bots first and again are the same program, which would play against itse"
    ):
        play_tournament(tournament(tmp_path, twice, matches=1), tmp_path / "run", silent)
    play_tournament(tournament(tmp_path, twice, matches=1, copies=True), tmp_path / "run", silent)
    entered = tournament(tmp_path, twice, matches=1)
    one, other = entered.bots
    play_tournament(
        replace(entered, bots=(one, replace(other, command=(*one.command, "--bold")))), tmp_path / "bold", silent
    )


def test_programs_with_different_other_files_are_distinct(tmp_path: Path) -> None:
    """A kit can start several programs, each with its own player file."""
    for name, player in (("one", GOOD), ("two", LAST)):
        (tmp_path / name).mkdir()
        kit.write(tmp_path / name, "main.sh", '#!/bin/sh\nexec "${0%main.sh}player.sh"\n')
        kit.write(tmp_path / name, "player.sh", player)
    content = tournament(tmp_path, TWO, matches=1).config
    for other, refused in (("two/main.sh", False), ("one/main.sh", True)):
        entered = content.model_copy(update={"bots": {"one": "one/main.sh", "two": other}})
        event = Tournament(entered, load_bots(entered, tmp_path, "the test"))
        with pytest.raises(UsageError, match="one and two are the same program") if refused else nullcontext():
            play_tournament(event, tmp_path / f"run-{refused}", silent)


def test_data_folders_are_not_part_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "bots").mkdir()
    kit.write(tmp_path / "bots", "one.sh", acting(FIRST, first='echo x >> "$DUBITO_DATA/x"'))
    kit.write(tmp_path / "bots", "two.sh", LAST)
    content = tournament(tmp_path, TWO, matches=1).config.model_copy(
        update={"bots": {"one": BotConfig(command="bots/one.sh", data="bots/kept"), "two": "bots/two.sh"}}
    )
    entered = Tournament(content, load_bots(content, tmp_path, "the test"))
    for matches in (1, 2):
        longer = replace(entered, config=content.model_copy(update={"matches": matches}))
        play_tournament(longer, tmp_path / "bots/run", silent)
    assert sorted(read_log_manifest(tmp_path / "bots/run")["programs"]["two"]) == ["bots/one.sh", "bots/two.sh"]


def test_dubitos_own_games_can_be_played(tmp_path: Path) -> None:
    for line in kit.pair(tmp_path, GOOD, LAST, games=["dubito_defuse"]).play(range(2)):
        assert line.strikes == []
        assert sorted(line.returns) == [-1.0, 1.0]
        assert find_match_difference(load("dubito_defuse").new_initial_state(), line) is None
