"""`dubito tournament` from the shell: every command, the bots to start from, and bad input in one sentence."""

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

from dubito.errors import signal_in_words
from dubito.plugins.tournament import check
from dubito.plugins.tournament.check import findings, partner, trial_results
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


def test_the_example_from_play_to_replay(shell: Shell, tmp_path: Path) -> None:
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
    told = shell("tournament", "replay", "tournaments/tournament", "--match", "3").out.splitlines()
    assert told[0].startswith("0. chance: ")
    assert shell("tournament", "replay", "tournaments/tournament", "--match", "4").code == 2
    path = tmp_path / "tournaments/tournament/matches/0-kuhn_poker/random--first.jsonl"
    path.write_text(
        re.sub(r'"returns":\[(-?)', lambda found: '"returns":[' + ("" if found[1] else "-"), path.read_text(), count=1)
    )
    differs = shell("tournament", "replay", "tournaments/tournament")
    assert differs.code == 1
    assert differs.out.startswith("differs: kuhn_poker, first against random, match 0: the returns are (")


@pytest.mark.parametrize("name", ["random_bot.py", "first.sh", "last.c", "announced.py"])
def test_bots_to_start_from_keep_to_the_protocol(tmp_path: Path, name: str) -> None:
    path = EXAMPLES / name
    if name.endswith(".c"):
        compiler = shutil.which("cc") or pytest.skip("no C compiler here")
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
def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, number: signal.Signals) -> None:
    """And SIGTERM, which a queue of jobs sends to all its processes."""
    (tmp_path / "t.yaml").write_text(
        "games: [phantom_ttt]\nmatches: 100\nchance_seconds: 0\nbots: {one: ./one.sh, two: ./two.sh}\n"
    )
    for name in ("one", "two"):
        kit.write(tmp_path, f"{name}.sh", f"{GOOD}# {name}\n")
    with start(tmp_path, "tournament", "play", "t.yaml", start_new_session=True) as process:
        assert process.stderr is not None
        assert next(line for line in process.stderr if " of 200 matches" in line)
        os.killpg(process.pid, number)
        said = process.stderr.read()
        assert process.wait() == 128 + number
    assert said.splitlines()[-1] == f"dubito: stopped by {signal_in_words(number)}"
    assert "finishing 1 match; press Ctrl-C again to stop now" in said or said.count("\n") == 2  # or none was under way
    (path,) = (tmp_path / "tournaments" / "t" / "matches").glob("*/*")
    assert 1 <= path.read_bytes().count(b"\n") < 200
    assert path.read_bytes().endswith(b"\n")
    assert warden.sweep(str(tmp_path / "tournaments" / "t")) == 0


@pytest.mark.at_length
@pytest.mark.parametrize("number", in_gate([signal.SIGINT, signal.SIGKILL], 1))
def test_a_second_ctrl_c_stops_at_once_and_a_kill_leaves_no_message(tmp_path: Path, number: signal.Signals) -> None:
    """In a match that would take minutes; it does not count."""
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
    said = shell("tournament", "check", "./good.sh", *CHECKS["check"])
    assert said.code == 0, said.out
    assert said.out.splitlines()[0].startswith(
        "12 matches against 6 opponents: one that answers at random, one that takes 0.5 s"
    )
    assert [line[:2] for line in said.out.splitlines()[1:6]] == ["ok"] * 5


@pytest.fixture
def fewer_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PARTNERS", {kind: check.PARTNERS[kind] for kind in ("random", "gone")})


@pytest.mark.usefixtures("fewer_partners")
def test_check_says_what_is_wrong_and_where(shell: Shell, tmp_path: Path) -> None:
    kit.write(tmp_path, "bad.sh", acting("echo +1; echo too much", last="exit 3"))
    said = shell("tournament", "check", "./bad.sh", *CHECKS["check"])
    assert said.code == 1
    assert "FAILED    answers with listed actions" in said.out
    assert re.search(r"kuhn_poker, seat [01], against \w+: illegal '\+1'", said.out)
    assert "FAILED    prints nothing when it is not its turn" in said.out
    assert "ended with 3" in said.out


@pytest.mark.usefixtures("fewer_partners")
def test_check_says_what_a_bot_that_does_not_start_said(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module")
    said = shell("tournament", "check", f"{sys.executable} broken.py", *CHECKS["check"]).out.splitlines()
    assert said[1] == "FAILED    starts, and runs until the end of the match"
    assert "No module named 'no_such_module'" in said[2]
    assert [line[:8] for line in said[1:] if line[:1] != " "] == ["FAILED  ", *["skipped "] * 4]


def test_qualify_takes_spaces_and_knows_no_interval_of_one(shell: Shell, tmp_path: Path) -> None:
    kit.write(tmp_path, "good.sh", GOOD)
    few = ("--matches", "1", "--chance-seconds", "0", "--quiet")
    said = shell("tournament", "qualify", "./good.sh", "--games", "kuhn_poker, leduc_poker", *few)
    assert re.search(r"leduc_poker +2 +[+-]\d\.\d{3}, too few for an interval +", said.out), said.err


def test_qualify_prints_the_interval(shell: Shell, tmp_path: Path) -> None:
    kit.write(tmp_path, "bad.sh", acting("exit 1"))
    said = shell(
        "tournament",
        "qualify",
        "./bad.sh",
        "--games",
        "kuhn_poker",
        "--matches",
        "3",
        "--quiet",
        "--chance-seconds",
        "0",
    )
    assert said.code == 1
    assert said.out.splitlines()[-1] == "not qualified"
    assert re.search(r"kuhn_poker +6 +[+-]\d\.\d{3} \[[+-]\d\.\d{3}, [+-]\d\.\d{3}\] +no", said.out)
    assert "kuhn_poker: more than 1 % of the matches overrun or crashed" in said.err


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
    "`chmod +x` it, or name what runs it: `python3 ./plain.sh`",
    KUHN + "bots: {one: ./one.sh, two: no-such-python two.py}": "t.yaml: bots: two: there is no program "
    "no-such-python on this machine",
    KUHN + "bots: {one: ./one.sh, two: two.sh}": "there is no program two.sh on this machine: for the file "
    "beside the config write ./two.sh",
    KUHN + "bots: {one: ./one.sh, two: ./gone.sh}": "./gone.sh wants /no/such/interpreter (its first line)",
    KUHN + "bots: {one: ./one.sh, two: ./env.sh}": "./env.sh wants no-such-python (its first line)",
    KUHN + "bots: {one: ./one.sh, two: ./missing.sh}": "there is no file ",
    KUHN + "bots: {one: ./one.sh, two: python3 -u two.py}": "two.py, which python3 is to run",
    KUHN + "bots: {one: ./one.sh, two: sh}": "t.yaml: bots: two: sh has nothing to run: name the bot's file behind it",
    KUHN + "bots: {one: ./one.sh, two: ./bare.sh}": "bare.sh is no program for this machine, and no script that says",
    KUHN + "bots: {one: ./one.sh, two: ./windows.sh}": "the first line of ./windows.sh ends as in Windows",
    KUHN + "bots:\n  one: ./one.sh\n  one: ./two.sh": "the key 'one' stands twice",
    KUHN + "bots: {one: ./one.sh, One: ./two.sh}": "t.yaml: bots: One: the names of two bots",
    KUHN + "bots: {one: ./one.sh}": "t.yaml: bots: a tournament needs at least two bots",
    KUHN + "bots: {one: ./one.sh, ../two: ./two.sh}": "a bot cannot be called '../two'",
    KUHN + "bots: {one: ./one.sh, b--c: ./two.sh}": "a bot cannot be called 'b--c': use no two dashes together",
    KUHN + 'bots: {one: ./one.sh, two: "./two.sh \\0"}': "is no command: it has a character of number 0",
    f"memory_gb: .inf\n{KUHN}{TWO}": "t.yaml: memory_gb: must be at most 1000000, not inf",
    f"memory_gb: 1.0e+12\n{KUHN}{TWO}": "t.yaml: memory_gb: must be at most 1000000, not 1000000000000.0",
    f"games: ['kuhn_poker(players=3)']\n{TWO}": "is a game for 3: a tournament is held in games for two: "
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
            said = shell("tournament", "play", config(tmp_path, text))
            assert said.code == 2
            assert said.err.startswith("dubito: ")
            assert BAD[text] in said.err
            assert said.err.count("\n") == 1
            assert not (tmp_path / "tournaments").exists()


def test_a_folder_that_is_no_tournament_is_refused(shell: Shell, tmp_path: Path) -> None:
    for command in ("rank", "replay"):
        assert (
            shell("tournament", command, ".").err == "dubito: . is not a tournament, since it has no tournament.json\n"
        )


TABLES = {
    "s.yaml": "G1: {A: {B: 2, C: 3}, B: {A: -2, C: -1}, C: {A: -3, B: 1}}\n"
    "G2: {A: {B: -1, C: 2}, B: {A: 1, C: 5}, C: {A: -2, B: -5}}\n",
    "s.csv": "Game,Bot,Against,Score\nG1,A,B,2\nG1,A,C,3\nG1,C,B,1\nG2,A,B,-1\nG2,A,C,2\nG2,B,C,5\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_rank_takes_a_bare_table_of_scores(shell: Shell, tmp_path: Path, name: str) -> None:
    """The announcement's two games: A and B share the first place."""
    (tmp_path / name).write_text(TABLES[name])
    said = shell("tournament", "rank", name)
    assert (said.code, said.err) == (0, "")
    final = said.out.split("Final order\n")[1].splitlines()[1:4]
    assert [line.split()[:6] for line in final] == [
        ["1", "A", "2", "1", "1", "2"],
        ["1", "B", "2", "1", "2", "1"],
        ["3", "C", "3", "3", "3", "3"],
    ]


def test_rank_takes_a_cross_table_of_one_game(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "G1.csv").write_text(",A,B,C\nA,,0.1,3\nB,-0.1,,-1\nC,-3,1,-\n")
    said = shell("tournament", "rank", "G1.csv").out
    assert "G1: mean score per match of row against column" in said
    assert [line.split()[:2] for line in said.split("Final order\n")[1].splitlines()[1:4]] == [
        ["1", "A"],
        ["2", "B"],
        ["3", "C"],
    ]


BAD_TABLES = {
    "name,score\nA,2\nB,3\n": "s.csv is no table of scores of bots against each other: rank takes game: bot: opponent",
    ",A,B\nA,,x\nB,1,\n": "s.csv, row 2: 'x' is no score of A against B: write a number",
    ",A,B\nA,,inf\nB,1,\n": "s.csv, row 2: 'inf' is no score of A against B: write a number",
    ",A,B\nA,1\nB,1,\n": "s.csv, row 2 has 2 cells, and the first row has 3",
    "bot,against,score\nA,B,1\nA,B,2\n": "s.csv, row 3: the score of A against B stands there twice",
    "": "s.csv has no scores of bots against each other",
}


@pytest.mark.parametrize("text", BAD_TABLES)
def test_a_table_that_says_something_else_gets_one_sentence(shell: Shell, tmp_path: Path, text: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    said = shell("tournament", "rank", "s.csv")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert said.err.startswith(f"dubito: {BAD_TABLES[text]}")


@pytest.mark.at_length
def test_a_partner_of_every_kind_is_what_it_says(tmp_path: Path) -> None:
    """Findings of them as if they were users' bots."""
    content = {"games": ["kuhn_poker"], "matches": 1, "move_seconds": 0.8, "chance_seconds": 0.0}
    found = {}
    for kind in ("chatty", "gone"):
        log = trial_results(partner(kind), ["slow"], tmp_path / kind, content, print)
        found[kind] = [finding.what.split()[1] for finding in findings(log, 0.8) if finding.wrong]
    assert found["gone"] == ["starts,"]
    assert "says" in found["chatty"]
    assert "ends" not in found["chatty"]
