"""`dubito watch`: live games of bots and models, and games of a run."""

import os
import pty
import re
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import yaml

from dubito.cli.narrator import PACES, make_pause
from dubito.cli.watch import print_new_games
from dubito.errors import UsageError
from dubito.game import Bool, Node, Text
from dubito.show.opponents import Thought
from dubito.show.run import FollowedRun
from dubito.store.lock import lock_folder
from tests.cli.kit import Shell
from tests.llm.kit import (
    KEY,
    Incoming,
    Server,
    contender,
    error_body,
    forget_last_reply,
    player_at,
    respond,
    run_games,
    small,
)
from tests.llm.kit import Response as Answer
from tests.play.conftest import Play

GAME = ("watch", "StefaBot", "house:house-sharp@reasoned", "MrDoubt")
ESCAPE = "\033["
OnATerminal = Callable[[Callable[[], object]], str]


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> OnATerminal:
    """Capture the output on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(does: Callable[[], object]) -> str:
        ours, theirs = pty.openpty()
        got: list[bytes] = []

        def read() -> None:
            try:
                while chunk := os.read(ours, 1 << 16):
                    got.append(chunk)
            except OSError:  # the other end is closed
                return

        reader = threading.Thread(target=read)
        reader.start()
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", terminal)
            does()
        reader.join()
        os.close(ours)
        return b"".join(got).decode().replace("\r\n", "\n")

    return shown


def test_models_reasons_are_shown_before_its_move(shell: Shell) -> None:
    result = shell(*GAME, "--show-hands")
    lines = result.out.splitlines()
    house = "These are fake models: a built-in server on this machine answers for house:house-sharp@reasoned.\n"
    assert (result.code, result.err) == (0, house)
    first = next(place for place, line in enumerate(lines) if ": Doubt? " in line)
    name = "house:house-sharp@reasoned"
    why = "I hold two 3s, and think a bluff is 74 % likely, but playing my own cards is worth more."
    assert lines[first] == f"   2.   {name}: Doubt? No. Stated: 74 % a bluff; it was a bluff. “{why}”"
    assert lines[first - 1].startswith(f"   2. [{name} holds ")
    assert next(line for line in lines[first:] if line.startswith(f"   2. {name} ")).endswith("honest]")
    assert all(re.match(r" *\d+\. |The |\d", line) for line in lines), "one record per line"
    assert shell(*GAME, "--show-hands").out == result.out, "the output from the cache is the same"
    assert (Path("games") / "run.db").exists()


def test_saved_game_is_narrated_as_played(shell: Shell) -> None:
    """The model's answers are included if their database is next to the file.

    Otherwise a note explains their absence.
    """
    Path("games").mkdir()
    then = shell(*GAME, "--show-hands", "--save", "games/g.json").out
    assert "“I hold two 3s" in then
    assert shell("watch", "games/g.json", "--show-hands").out == then.replace("record: games/g.json\n", "")
    Path("games/g.json").rename("g.json")
    alone = shell("watch", "g.json", "--show-hands")
    assert alone.out.splitlines() == [line for line in then.splitlines() if not re.match(r" *\d+\.   |record", line)]
    assert alone.err == "Model requests cannot be shown: there is no run.db next to the file.\n"


def test_on_a_terminal_a_game_is_in_colour_and_wrapped(shell: Shell, on_a_terminal: OnATerminal) -> None:
    output = on_a_terminal(lambda: shell(*GAME, "--pace", "at-once", "--show-hands"))
    assert f"{ESCAPE}1;31ma bluff{ESCAPE}0m" in output
    assert "Open with a bluff? " in output, "questions reveal nothing"
    assert f"{ESCAPE}1;36mStefaBot{ESCAPE}0m" in output
    assert " is thinking ..." in output
    plain = re.sub(r"\033\[[\d;]*[mK]", "", re.sub(r"[^\n]*\r\033\[2K", "", output))
    assert max(map(len, plain.splitlines())) <= 80
    piped = shell(*GAME, "--show-hands").out
    assert plain.split() == piped.split(), "only the line breaks differ"
    assert plain.index("“I hold ") < plain.index("The game is over")


def test_no_color_is_respected(shell: Shell, on_a_terminal: OnATerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    output = on_a_terminal(lambda: shell("watch", "StefaBot", "ClaudeBot", "MrDoubt", "--pace", "0"))
    assert "doubts" in output
    assert ESCAPE not in output


def test_play_is_in_colour_on_a_terminal(play: Play, on_a_terminal: OnATerminal) -> None:
    result = on_a_terminal(lambda: play("--seed", "4", "--seat", "1", "--pace", "0", typed="2 2\n"))
    assert f"{ESCAPE}1mYour hand:{ESCAPE}0m {ESCAPE}1;30;47m 2 {ESCAPE}0m" in result
    assert f"{ESCAPE}1;36mClaudeBot{ESCAPE}0m plays 3 cards as aces." in result


def test_pace_is_a_name_or_seconds_and_zero_in_a_pipe(shell: Shell) -> None:
    slept: list[float] = []
    for pace in (None, 0.0, PACES["fast"]):
        make_pause(pace, slept.append)()
    assert slept == [PACES["fast"]]
    for wrong in ("quick", "-1", "nan"):
        result = shell("watch", "StefaBot", "ClaudeBot", "MrDoubt", "--pace", wrong)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert "slow, normal, fast, at-once or a number of seconds" in result.err


@pytest.mark.parametrize(
    ("outcome", "asked", "words"),
    [
        ("model", 1, "Yes. Stated: 80 % a full house; it was less. “It looked \\x1b[2J odd.”"),
        (
            "model_after_reask",
            2,
            "Yes (asked 2 times). Stated: 80 % a full house; it was less. “It looked \\x1b[2J odd.”",
        ),
        ("fallback:truncated", 2, "No answer (asked 2 times) because its reply was cut off. Its fallback says yes."),
        ("fallback:refused", 1, "No answer because it declined. Its fallback says yes."),
    ],
)
def test_thought_is_one_line(outcome: str, asked: int, words: str) -> None:
    thought = Thought(1, "C", True, outcome, asked, 0.8, "It looked\n \x1b[2J odd.")
    node = Node("C", "should_doubt", Bool(), truths=("a full house", "less"))
    assert thought.to_line("ada", "Doubt?", node, False) == f"ada: Doubt? {words}"


def test_models_words_stay_in_quotes() -> None:
    node, text = Node("say", "say", Text(40)), 'Yes. eve: "No."'
    line = Thought(1, "say", text, "model", 1, None, "").to_line("ada", "What?", node, None)
    assert line == 'ada: What? "Yes. eve: \\"No.\\""'


@pytest.mark.parametrize(("status", "words"), [(401, "SOME_KEY"), (503, "continues it")])
def test_unreachable_model_ends_the_game_with_one_sentence(
    status: int, words: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)

    def fails(request: Incoming) -> Answer:
        return Answer(status, error_body(request.protocol, "some_error", "not now"))

    with Server(fails) as model:
        players = {"bots": [player_at(model, name="asker", api_key_env="SOME_KEY", tries=1)], "preflight": False}
        Path("c.yaml").write_text(yaml.safe_dump(players))
        result = shell("watch", "asker", "MrDoubt", "StefaBot", "--config", "c.yaml")
    assert result.code == 3
    assert words in result.err
    assert result.err.count("\n") == 1
    assert KEY not in result.out + result.err


def test_fallback_is_described(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with Server(lambda request: respond(request.protocol, "I would doubt it.")) as model:
        players = {"bots": [player_at(model, name="asker", api_key_env="SOME_KEY")], "preflight": False}
        Path("c.yaml").write_text(yaml.safe_dump(players))
        result = shell("watch", "asker", "MrDoubt", "StefaBot", "--config", "c.yaml", "--max-turns", "3")
    reason = "because its reply could not be read. Its fallback says "
    assert result.out.splitlines()[1].startswith(
        f"   1.   asker: Open with a bluff? No answer (asked 2 times) {reason}"
    )


RUN = ("run", "--bots", "StefaBot,UsualBot,ClaudeBot", "--table-sizes", "3", "--output", "runs/r")


def test_run_is_followed_to_its_end_without_being_changed(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell(*RUN, "--games", "2", "--quiet")
    manifest = Path("runs/r/manifest.yaml")
    with ExitStack() as playing:
        playing.enter_context(lock_folder(Path("runs/r")))

        def goes_on() -> None:
            playing.close()
            shell(*RUN, "--games", "6", "--quiet")

        with closing(FollowedRun(Path("runs/r"), Path.cwd())) as followed:
            print_new_games(followed, lambda: None, False, goes_on)
    out, err = capsys.readouterr()
    assert out.startswith("Game 5: ")  # the run's own shell has read the earlier output
    assert out.count("The game is over") == 1
    assert err.splitlines()[0] == "3 games skipped"
    before = [(path, path.read_bytes()) for path in (manifest, Path("runs/r/run.db"))]
    result = shell("watch", "runs/r")
    assert result.out == out
    assert result.err == "The run is finished: 6 of 6 games finished.\n"
    assert [(path, path.read_bytes()) for path, _ in before] == before


def test_finished_game_is_announced_before_it_is_saved(tmp_path: Path) -> None:
    """Game 1 lacks its last reply, so later games are not saved yet. Game 2 has already ended."""
    of = small(contender("one"), games=3)
    whole = run_games(of, tmp_path / "whole").folder
    forget_last_reply(whole, 1, tmp_path / "cache")
    cut = run_games(of, tmp_path / "cut", offline=True, in_flight=1).folder
    with closing(sqlite3.connect(cut / "run.db")) as db:
        db.execute("ATTACH ? AS whole", (str(whole / "run.db"),))
        for table in ("attempts", "decisions", "ended"):
            db.execute(f"INSERT INTO {table} SELECT * FROM whole.{table} WHERE game = 2")  # noqa: S608
        db.execute("INSERT OR IGNORE INTO texts SELECT * FROM whole.texts")
        db.commit()
    with closing(FollowedRun(cut, tmp_path)) as followed, closing(FollowedRun(whole, tmp_path)) as finished:
        assert followed.finished() == {0, 2}
        assert followed.games.play(2) == finished.games.play(2)
        with pytest.raises(UsageError, match=r"game 1 does not exist; .*/cut has games 0 to 0"):
            followed.games.play(1)


def test_runs_models_are_shown_as_recorded(shell: Shell) -> None:
    shell(*RUN, "--contenders", "house:house-sharp@reasoned", "--games", "1", "--quiet", "--cache", "c")
    result = shell("watch", "--show-hands")
    assert result.out.startswith("Game 0: ")
    assert re.search(r"Doubt\? (Yes|No)\. Stated: \d+ % a bluff; it was (honest|a bluff)\. “I", result.out)
    assert result.err == "the latest run: runs/r\nThe run is finished: 1 of 1 games finished.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--seed", "3"), "--seed only works for a new game; name its bots"),
        ((), "no runs in runs yet: "),
        (("runs/x",), "runs/x does not exist: no runs in runs either"),
        (("dubito-1a2b",), "dubito-1a2b does not exist: no runs in runs either"),
        ((".",), ". is not a run folder: it has no manifest.yaml"),
        (("StefaBot", "ClaudeBot", "--web", "--port", "0"), "Dubito needs 3 to 8 players, not 2"),
        (("--web", "--pace", "3"), "--pace cannot be used with --web; choose the pace on the page"),
        (("notes.txt",), "notes.txt: this is not a game record: "),
        (("StefaBot,ClaudeBot",), "separate players with spaces, not commas: StefaBot ClaudeBot"),
        (("StefaBot", "ClaudBot"), "no bot is named 'ClaudBot': did you mean 'ClaudeBot'?"),
    ],
)
def test_unwatchable_game_is_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    Path("notes.txt").write_text("notes")
    result = shell("watch", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"dubito: {sentence}")
