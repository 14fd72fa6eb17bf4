"""Misbehaving bot processes: the match continues, the log explains it, and no process is left."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dubito.plugins.tournament.log import MatchLine
from dubito.plugins.tournament.rules import StrikeKind
from dubito.sandbox.process import MAX_STDERR_BYTES
from tests.conftest import in_gate
from tests.plugins.tournament.kit import FIRST, GOOD, acting

Meet = Callable[..., list[MatchLine]]


def strikes(line: MatchLine, name: str) -> list[StrikeKind]:
    return [strike.kind for strike in line.strikes if line.seats[strike.seat] == name]


def ending(line: MatchLine, name: str) -> int | str:
    return line.exit[line.seats.index(name)]


def test_good_bots_exit_without_strikes(meet: Meet) -> None:
    for line in meet(GOOD):
        assert line.strikes == []
        assert line.exit == (0, 0)
        assert line.history[2:] == [0, 0]
        assert sorted(line.returns) == [-1.0, 1.0]


ANSWERS = {  # answers that a pipe could garble; test_match.py has more
    "NUL": r"printf '1\000\n'",
    "bad UTF-8": r"printf '\377\n'",
    "empty": "echo",
    "longer than the cap": "head -c 100000 /dev/zero | tr '\\0' 1; echo",
    "a line begun while pondering": "echo",
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_unlisted_answer_is_illegal(meet: Meet, answer: str) -> None:
    pondering = "printf 0" if "pondering" in answer else ":"
    for line in meet(acting(ANSWERS[answer], pondering=pondering)):
        assert set(strikes(line, "one")) == {"illegal"}
        assert strikes(line, "other") == []
        assert {node for node, _ in line.replaced} == {strike.node for strike in line.strikes}
        assert line.exit == (0, 0)


CRASHES = {
    "before the first line": "#!/bin/sh\nexit 3",
    "once it is asked": acting("exit 3"),
    "with half a line": acting("printf 0; exit 3"),
    "by a signal": acting("kill -SEGV $$"),
    "forking": "#!/bin/sh\nsleep 60 &\nexit 3",
    "forking into another session": "#!/bin/sh\nsetsid sleep 60 &\nexit 3",
    "closing its output and staying": "#!/bin/sh\nexec 1>&-\nexec sleep 60",
}
ALONE = "forking into another session"


@pytest.mark.parametrize(("how", "apart"), [*((how, True) for how in CRASHES), (ALONE, False)])
def test_exit_of_a_bot_is_detected_immediately(meet: Meet, how: str, apart: bool) -> None:
    """The test would not wait for the move time."""
    for line in meet(CRASHES[how], apart=apart, move_seconds=100.0):
        assert strikes(line, "one") == ["crash"]
        assert strikes(line, "other") == []
        assert ending(line, "one") in (3, "SIGSEGV", "SIGKILL")
        assert ending(line, "other") == 0


SILENT = {
    "never reading": "#!/bin/sh\nexec sleep 60",
    "never answering": acting(":"),
    "without a newline": acting("printf 0"),
    "deaf to SIGTERM": "#!/bin/sh\ntrap '' TERM HUP INT\nwhile :; do sleep 60; done",
    "late": acting(f"sleep 2; {FIRST}"),
}


@pytest.mark.parametrize("how", in_gate(SILENT, ["never answering", "deaf to SIGTERM", "late"]))
def test_a_bot_that_does_not_answer_in_time_is_shut_down(meet: Meet, how: str) -> None:
    for line in meet(SILENT[how]):
        assert strikes(line, "one")[-1] == "overrun"
        assert strikes(line, "other") == []
        assert ending(line, "one") == "SIGKILL"
        assert ending(line, "other") == 0
        assert line.has_failed(line.seats.index("one"))


def test_an_answer_just_before_the_deadline_counts(meet: Meet) -> None:
    for line in meet(acting(f"sleep 0.6; {FIRST}"), prepare_seconds=0.0, move_seconds=1.0):
        assert line.strikes == []
        assert max(line.times.think[line.seats.index("one")]) > 500_000


def test_time_to_prepare_is_added_to_the_first_move_only(meet: Meet) -> None:
    """In phantom tic-tac-toe, seat 1's first move is to a taken place, so it moves again at once."""
    slow = acting(FIRST, first="sleep 0.8")
    assert [line.strikes for line in meet(slow, games=["phantom_ttt"])] == [[], []]
    later = acting(f'[ -n "$again" ] && sleep 0.9; again=1; {FIRST}')
    for line in meet(later, games=["phantom_ttt"]):
        assert strikes(line, "one") == ["overrun"]
        assert line.strikes[0].node == 3 - line.seats.index("one")  # its second move


def test_second_line_is_out_of_turn(meet: Meet) -> None:
    for line in meet(acting(r"printf '0\n0\n'")):
        assert strikes(line, "one") == ["ponder"]
        assert line.history[2:] == [0, 0]
        assert line.replaced == []


@pytest.mark.parametrize("pondering", ["echo 0", "echo"])
def test_three_lines_out_of_turn_shut_a_bot_down(meet: Meet, pondering: str) -> None:
    """The partner moves slowly, so the lines arrive before the next turn."""
    partner = acting(f"sleep 0.1; {FIRST}")
    for line in meet(acting(FIRST, pondering=pondering), partner, games=["phantom_ttt"]):
        assert strikes(line, "one").count("ponder") == 3
        assert ending(line, "one") == "SIGKILL"
        assert strikes(line, "other") == []


def test_a_flood_of_lines_shuts_a_bot_down(meet: Meet) -> None:
    for line in meet(acting(FIRST, first="exec yes 0")):
        assert strikes(line, "one").count("ponder") == 3
        assert ending(line, "one") == "SIGKILL"


def test_endless_line_counts_as_one_line(meet: Meet) -> None:
    for line in meet("#!/bin/sh\nexec cat /dev/zero", games=["phantom_ttt"], prepare_seconds=0.1):
        assert strikes(line, "one") in (["ponder", "overrun"], ["illegal", "overrun"])
        assert strikes(line, "other") == []


def test_three_illegal_answers_shut_a_bot_down(meet: Meet) -> None:
    for line in meet(acting("echo 99"), games=["phantom_ttt"]):
        assert strikes(line, "one") == ["illegal"] * 3
        assert ending(line, "one") == "SIGKILL"


def test_end_of_standard_error_is_saved(meet: Meet) -> None:
    """The bot writes more than fits into a pipe, and continues after the match."""
    loud = acting(f"head -c 1000000 /dev/zero >&2; {FIRST}", last="echo the end >&2; exit 0")
    for line in meet(loud):
        assert line.strikes == []
        text = line.stderr[line.seats.index("one")]
        assert text.endswith("\0the end\n")
        assert len(text) == MAX_STDERR_BYTES


def test_endless_standard_error_ends_with_the_match(meet: Meet) -> None:
    for line in meet(acting(FIRST, first="yes >&2 &")):
        assert strikes(line, "one") == []
        assert ending(line, "one") == 0


@pytest.mark.parametrize(
    ("last", "status"), [("exit 4", 4), (":", "SIGTERM"), ("trap '' TERM; sleep 60; sleep 60", "SIGKILL")]
)
def test_bot_that_does_not_exit_is_killed(meet: Meet, last: str, status: int | str) -> None:
    for line in meet(acting(FIRST, last=last)):
        assert line.strikes == []
        assert ending(line, "one") == status
        assert ending(line, "other") == 0


LEAVING = "(setsid sh -c 'sleep 60; sleep 60' &)"


@pytest.mark.parametrize(("child", "apart"), [("sleep 60 &", True), (LEAVING, True), (LEAVING, False)])
def test_grandchild_with_open_pipes_does_not_delay_the_match(meet: Meet, child: str, apart: bool) -> None:
    for line in meet(acting(FIRST, first=child), apart=apart, grace_seconds=100.0):
        assert line.strikes == []
        assert line.exit == (0, 0)


def test_early_answer_counts_once(meet: Meet, tmp_path: Path) -> None:
    """An answer sent before the question is out of turn; sent after it, it is the answer. Nothing is shifted.

    Both bots see two dice rolls, then each other's questions. The partner moves only when all of them were answered.
    """
    answers, two_dice = tmp_path / "answers", "watched=-2"
    racing = acting(
        f"wait; {FIRST}; echo >> {answers}",
        first=two_dice,
        pondering="watched=$((watched + 1)); case $watched in 1) echo 99 & ;; 2) { sleep 0.05; echo 99; } & esac",
        last=f"rm -f {answers}; exit 0",
    )
    until_answered = f'until [ "$(cat {answers} 2>/dev/null | wc -l)" -ge $watched ]; do sleep 0.01; done'
    partner = acting(f"{until_answered}; {FIRST}", first=two_dice, pondering="watched=$((watched + 1))")
    for line in meet(racing, partner, games=["liars_dice(numdice=1)"], move_seconds=60.0):
        mine = [strike for strike in line.strikes if line.seats[strike.seat] == "one"]
        assert {strike.kind for strike in mine} <= {"ponder", "illegal"}
        assert 1 <= len(mine) <= 4
        assert {strike.line for strike in mine if strike.kind == "illegal"} <= {"99"}
        assert strikes(line, "other") == []


GIGABYTE = "head -c 1073741824 /dev/zero"


@pytest.mark.at_length
@pytest.mark.parametrize("to", ["", ">&2"])
def test_a_gigabyte_of_output_does_not_stop_the_match(meet: Meet, to: str) -> None:
    for line in meet(acting(f"{GIGABYTE} {to}; echo; {FIRST}"), move_seconds=100.0):
        assert {"illegal"} <= set(strikes(line, "one")) <= {"illegal", "ponder"}
        assert strikes(line, "other") == []
        assert line.exit[line.seats.index("other")] == 0
