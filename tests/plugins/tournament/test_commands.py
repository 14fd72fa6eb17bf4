"""`dubito tournament` on the command line: all commands, example bots, and error messages."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dubito.errors import describe_signal
from dubito.plugins.tournament import check
from dubito.plugins.tournament.check import check_protocol, play_trial, start_partner
from dubito.plugins.tournament.pair import Pair
from dubito.plugins.tournament.plan import Pairing
from dubito.sandbox import warden
from tests.cli.kit import REPO, Shell, start
from tests.conftest import in_gate
from tests.plugins.tournament import kit
from tests.plugins.tournament.kit import GOOD, acting

EXAMPLES = REPO / "examples" / "tournament"


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, capsys, monkeypatch)


def test_example_can_be_played_ranked_and_replayed(shell: Shell, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "here")
    played = shell("tournament", "play", "here/tournament.yaml", "--matches", "1", "--quiet")
    assert played.code == 0
    assert "note: chance_seconds is 0, not 0.2 as announced" in played.err
    assert "Final order" in played.out
    assert "rounds of the instant run-off" not in played.out
    ranked = shell("tournament", "rank", "tournaments/tournament")
    assert "rounds of the instant run-off" in ranked.out
    assert ranked.out.splitlines()[-1] == "report: tournaments/tournament/report/index.html"
    pages = tmp_path / "tournaments" / "tournament" / "report"
    assert (
        "is the only bot left" in (pages / "game-0.html").read_text() or "share" in (pages / "game-0.html").read_text()
    )
    assert "Match 0: " in (pages / "matches" / "0.html").read_text()
    assert shell("tournament", "replay", "tournaments/tournament").out == "identical: 4 matches\n"
    output = shell("tournament", "replay", "tournaments/tournament", "--match", "3").out.splitlines()
    assert output[0].startswith("0. chance: ")
    assert shell("tournament", "replay", "tournaments/tournament", "--match", "4").code == 2
    path = tmp_path / "tournaments/tournament/matches/0-kuhn_poker/random--first.jsonl"
    path.write_text(
        re.sub(r'"returns":\[(-?)', lambda found: '"returns":[' + ("" if found[1] else "-"), path.read_text(), count=1)
    )
    differs = shell("tournament", "replay", "tournaments/tournament")
    assert differs.code == 1
    assert differs.out.startswith("differs: kuhn_poker, first against random, match 0: the returns are (")


@pytest.mark.parametrize("name", ["random_bot.py", "first.sh", "last.c", "announced.py"])
def test_example_bots_follow_the_protocol(tmp_path: Path, name: str) -> None:
    path = EXAMPLES / name
    if name.endswith(".c"):
        compiler = shutil.which("cc") or pytest.skip("no C compiler is installed")
        subprocess.run([compiler, "-O2", "-o", tmp_path / "last", path], check=True)
        path = tmp_path / "last"
    command = (sys.executable, str(path)) if name.endswith(".py") else (str(path),)
    config = kit.tournament(tmp_path, {"other": GOOD, "one": GOOD}, games=["leduc_poker"], prepare_seconds=20.0)
    config = replace(config, bots=(config.bots[0], replace(config.bots[1], command=command)))
    pair = Pair(config, Pairing(0, (0, 1)), tmp_path, kit.NOWHERE)
    for line in pair.play(range(2)):
        assert line.strikes == []
        assert line.exit == (0, 0)


CHECKS = {"check": ("--games", "kuhn_poker", "--move-seconds", "0.8", "--prepare-seconds", "1")}


@pytest.mark.parametrize("number", in_gate([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [signal.SIGTERM]))
def test_ctrl_c_saves_finished_matches(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM does too, which job queues send to all processes of a job."""
    (tmp_path / "t.yaml").write_text(
        "games: [phantom_ttt]\nmatches: 100\nchance_seconds: 0\nbots: {one: ./one.sh, two: ./two.sh}\n"
    )
    for name in ("one", "two"):
        kit.write(tmp_path, f"{name}.sh", f"{GOOD}# {name}\n")
    with start(tmp_path, "tournament", "play", "t.yaml", start_new_session=True) as process:
        assert process.stderr is not None
        assert next(line for line in process.stderr if " of 200 matches" in line)
        os.killpg(process.pid, number)
        output = process.stderr.read()
        assert process.wait() == 128 + number
    assert output.splitlines()[-1] == f"dubito: stopped by {describe_signal(number)}"
    # Or no match was in progress.
    assert "finishing 1 match; press Ctrl-C again to stop now" in output or output.count("\n") == 2
    (path,) = (tmp_path / "tournaments" / "t" / "matches").glob("*/*")
    assert 1 <= path.read_bytes().count(b"\n") < 200
    assert path.read_bytes().endswith(b"\n")
    assert warden.sweep(str(tmp_path / "tournaments" / "t")) == 0


@pytest.mark.at_length
@pytest.mark.parametrize("number", in_gate([signal.SIGINT, signal.SIGKILL], 1))
def test_second_ctrl_c_stops_immediately(tmp_path: Path, number: signal.Signals) -> None:
    """The match would take minutes, and does not count."""
    (tmp_path / "t.yaml").write_text(
        "games: [kuhn_poker]\nmatches: 1\nmove_seconds: 600\nbots: {one: ./one.sh, two: ./two.sh}\n"
    )
    for name in ("one", "two"):
        kit.write(tmp_path, f"{name}.sh", acting("sleep 600", first=f"mkdir $DUBITO_DATA/{name}"))
    began = [tmp_path / f"tournaments/t/data/{name}/kuhn_poker/{name}" for name in ("one", "two")]
    with start(tmp_path, "tournament", "play", "t.yaml") as process:
        assert process.stderr is not None
        while not all(path.exists() for path in began):
            with suppress(subprocess.TimeoutExpired):
                assert process.wait(0.05) is None
        process.send_signal(signal.SIGINT)
        assert any("finishing 1 match; press Ctrl-C again to stop now" in line for line in process.stderr)
        process.send_signal(number)
        interrupted = number == signal.SIGINT
        assert process.stderr.read().strip() == ("dubito: stopped by Ctrl-C" if interrupted else "")
        assert process.wait() == (130 if interrupted else -signal.SIGKILL)
    assert all(path.read_bytes() == b"" for path in (tmp_path / "tournaments/t").glob("matches/*/*.jsonl"))


def test_check_passes_a_good_bot(shell: Shell, tmp_path: Path) -> None:
    kit.write(tmp_path, "good.sh", GOOD)
    result = shell("tournament", "check", "./good.sh", *CHECKS["check"])
    assert result.code == 0, result.out
    assert result.out.splitlines()[0].startswith(
        "12 matches against 6 opponents: one that answers at random, one that takes 0.5 s"
    )
    assert [line[:2] for line in result.out.splitlines()[1:6]] == ["ok"] * 5


@pytest.fixture
def fewer_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PARTNERS", {kind: check.PARTNERS[kind] for kind in ("random", "gone")})


@pytest.mark.usefixtures("fewer_partners")
def test_check_lists_violations_with_places(shell: Shell, tmp_path: Path) -> None:
    kit.write(tmp_path, "bad.sh", acting("echo +1; echo too much", last="exit 3"))
    result = shell("tournament", "check", "./bad.sh", *CHECKS["check"])
    assert result.code == 1
    assert "FAILED    answers with listed actions" in result.out
    assert re.search(r"kuhn_poker, seat [01], against \w+: illegal '\+1'", result.out)
    assert "FAILED    prints nothing when it is not its turn" in result.out
    assert "exited with 3" in result.out


@pytest.mark.usefixtures("fewer_partners")
def test_check_shows_the_error_output_of_a_failing_bot(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module")
    outputs = shell("tournament", "check", f"{sys.executable} broken.py", *CHECKS["check"]).out.splitlines()
    assert outputs[1] == "FAILED    starts, and runs until the end of the match"
    assert "No module named 'no_such_module'" in outputs[2]
    assert [line[:8] for line in outputs[1:] if line[:1] != " "] == ["FAILED  ", *["skipped "] * 4]


def test_qualify_accepts_spaces_and_needs_two_matches_for_an_interval(shell: Shell, tmp_path: Path) -> None:
    kit.write(tmp_path, "good.sh", GOOD)
    few = ("--matches", "1", "--chance-seconds", "0", "--quiet")
    result = shell("tournament", "qualify", "./good.sh", "--games", "kuhn_poker, leduc_poker", *few)
    assert re.search(r"leduc_poker +2 +[+-]\d\.\d{3}, too few for an interval +", result.out), result.err


def test_qualify_prints_the_interval(shell: Shell, tmp_path: Path) -> None:
    # With few matches, all pairs can end with the same score by chance, which has no interval.
    kit.write(tmp_path, "bad.sh", acting("exit 1"))
    result = shell(
        "tournament",
        "qualify",
        "./bad.sh",
        "--games",
        "kuhn_poker",
        "--matches",
        "12",
        "--quiet",
        "--chance-seconds",
        "0",
    )
    assert result.code == 1
    assert result.out.splitlines()[-1] == "not qualified"
    assert re.search(r"kuhn_poker +24 +[+-]\d\.\d{3} \[[+-]\d\.\d{3}, [+-]\d\.\d{3}\] +no", result.out)
    assert "kuhn_poker: more than 1 % of the matches were overrun or crashed" in result.err


def config(folder: Path, text: str) -> str:
    for name in ("one", "two"):
        kit.write(folder, f"{name}.sh", GOOD)
    (folder / "plain.sh").write_text(GOOD)
    kit.write(folder, "gone.sh", "#!/no/such/interpreter\n")
    kit.write(folder, "env.sh", "#!/usr/bin/env no-such-python\n")
    kit.write(folder, "bare.sh", "echo 0\n")
    kit.write(folder, "windows.sh", GOOD.replace("\n", "\r\n"))
    (folder / "t.yaml").write_text(text)
    return "t.yaml"


KUHN = "games: [kuhn_poker]\n"
TWO = "bots: {one: ./one.sh, two: ./two.sh}\n"
BAD = {
    KUHN + "bots: {one: ./one.sh, two: ./plain.sh}": "t.yaml: bots: two: ./plain.sh is not executable: "
    "run `chmod +x ./plain.sh`, or write `python3 ./plain.sh`",
    KUHN + "bots: {one: ./one.sh, two: no-such-python two.py}": "t.yaml: bots: two: the program "
    "no-such-python is not installed",
    KUHN + "bots: {one: ./one.sh, two: two.sh}": "the program two.sh is not installed: to use the file "
    "next to the config, write ./two.sh",
    KUHN + "bots: {one: ./one.sh, two: ./gone.sh}": "the first line of ./gone.sh needs /no/such/interpreter",
    KUHN
    + "bots: {one: ./one.sh, two: ./env.sh}": "the first line of ./env.sh needs no-such-python, which is not installed",
    KUHN + "bots: {one: ./one.sh, two: ./missing.sh}": "missing.sh does not exist",
    KUHN + "bots: {one: ./one.sh, two: python3 -u two.py}": "two.py does not exist",
    KUHN
    + "bots: {one: ./one.sh, two: sh}": "t.yaml: bots: two: sh has no script to run: add the bot's file to the command",
    KUHN + "bots: {one: ./one.sh, two: ./bare.sh}": "bare.sh is neither a program for this machine nor a script",
    KUHN + "bots: {one: ./one.sh, two: ./windows.sh}": "the first line of ./windows.sh has a Windows line ending",
    KUHN + "bots:\n  one: ./one.sh\n  one: ./two.sh": "the key 'one' is set twice",
    KUHN
    + "bots: {one: ./one.sh, One: ./two.sh}": "t.yaml: bots: One: two bot names differ only in upper and lower case",
    KUHN + "bots: {one: ./one.sh}": "t.yaml: bots: a tournament needs at least two bots",
    KUHN + "bots: {one: ./one.sh, ../two: ./two.sh}": "a bot cannot be called '../two'",
    KUHN
    + "bots: {one: ./one.sh, b--c: ./two.sh}": "a bot cannot be called 'b--c': two dashes in a row are not allowed",
    KUHN + 'bots: {one: ./one.sh, two: "./two.sh \\0"}': "it contains a null character",
    f"memory_gb: .inf\n{KUHN}{TWO}": "t.yaml: memory_gb: must be at most 1000000, not inf",
    f"memory_gb: 1.0e+12\n{KUHN}{TWO}": "t.yaml: memory_gb: must be at most 1000000, not 1000000000000.0",
    f"games: ['kuhn_poker(players=3)']\n{TWO}": "is a game for 3 players, but tournaments need two: "
    "write kuhn_poker(players=2)",
    f"games: [battleship]\n{TWO}": "battleship has no observation tensor",
    f"games: [kuhn_pokr]\n{TWO}": "OpenSpiel has no game 'kuhn_pokr': did you mean 'kuhn_poker'?",
    f"games: [kuhn_poker]\ndialect: v3\n{TWO}": "t.yaml: unknown dialect 'v3'",
    f"games: [kuhn_poker]\nmatch: 3\n{TWO}": "t.yaml: unknown key 'match': did you mean 'matches'?",
    f"games: [kuhn_poker]\nmatches: 0\n{TWO}": "t.yaml: matches: must be at least 1, not 0",
    TWO: "t.yaml: games is missing",
}


def test_bad_input_gets_one_sentence(shell: Shell, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text in BAD:
        with subtests.test(text=text):
            result = shell("tournament", "play", config(tmp_path, text))
            assert result.code == 2
            assert result.err.startswith("dubito: ")
            assert BAD[text] in result.err
            assert result.err.count("\n") == 1
            assert not (tmp_path / "tournaments").exists()


def test_folder_without_tournament_is_refused(shell: Shell, tmp_path: Path) -> None:
    for command in ("rank", "replay"):
        assert (
            shell("tournament", command, ".").err == "dubito: . is not a tournament because it has no tournament.json\n"
        )


TABLES = {
    "s.yaml": "G1: {A: {B: 2, C: 3}, B: {A: -2, C: -1}, C: {A: -3, B: 1}}\n"
    "G2: {A: {B: -1, C: 2}, B: {A: 1, C: 5}, C: {A: -2, B: -5}}\n",
    "s.csv": "Game,Bot,Against,Score\nG1,A,B,2\nG1,A,C,3\nG1,C,B,1\nG2,A,B,-1\nG2,A,C,2\nG2,B,C,5\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_rank_accepts_a_table_of_scores(shell: Shell, tmp_path: Path, name: str) -> None:
    """In the announcement's example of two games, A and B share first place."""
    (tmp_path / name).write_text(TABLES[name])
    result = shell("tournament", "rank", name)
    assert (result.code, result.err) == (0, "")
    final = result.out.split("Final order\n")[1].splitlines()[1:4]
    assert [line.split()[:6] for line in final] == [
        ["1", "A", "2", "1", "1", "2"],
        ["1", "B", "2", "1", "2", "1"],
        ["3", "C", "3", "3", "3", "3"],
    ]


def test_rank_accepts_a_cross_table(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "G1.csv").write_text(",A,B,C\nA,,0.1,3\nB,-0.1,,-1\nC,-3,1,-\n")
    output = shell("tournament", "rank", "G1.csv").out
    assert "G1: mean score per match of row against column" in output
    assert [line.split()[:2] for line in output.split("Final order\n")[1].splitlines()[1:4]] == [
        ["1", "A"],
        ["2", "B"],
        ["3", "C"],
    ]


BAD_TABLES = {
    "name,score\nA,2\nB,3\n": "s.csv is not a table of scores between bots; supported formats are game: bot: opponent",
    ",A,B\nA,,x\nB,1,\n": "s.csv, row 2: 'x' is not a number; set the score of A against B",
    ",A,B\nA,,inf\nB,1,\n": "s.csv, row 2: 'inf' is not a number; set the score of A against B",
    ",A,B\nA,1\nB,1,\n": "s.csv, row 2 has 2 cells, but the first row has 3",
    "bot,against,score\nA,B,1\nA,B,2\n": "s.csv, row 3: the score of A against B is set twice",
    "": "s.csv has no scores between bots",
}


@pytest.mark.parametrize("text", BAD_TABLES)
def test_invalid_table_is_reported_in_one_sentence(shell: Shell, tmp_path: Path, text: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    result = shell("tournament", "rank", "s.csv")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith(f"dubito: {BAD_TABLES[text]}")


@pytest.mark.at_length
def test_partners_behave_as_described(tmp_path: Path) -> None:
    """The partners are found as if they were users' bots."""
    content = {"games": ["kuhn_poker"], "matches": 1, "move_seconds": 0.8, "chance_seconds": 0.0}
    found = {}
    for kind in ("chatty", "gone"):
        log = play_trial(start_partner(kind), ["slow"], tmp_path / kind, content, print)
        found[kind] = [finding.requirement.split()[0] for finding in check_protocol(log, 0.8) if finding.violations]
    assert found["gone"] == ["starts,"]
    assert "prints" in found["chatty"]
    assert "starts," not in found["chatty"]
