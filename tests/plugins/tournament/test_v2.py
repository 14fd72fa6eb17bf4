"""Dialect v2, the protocol of OpenSpiel's own referee."""

import re
from base64 import b64decode
from collections import Counter
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.plugins.tournament.log import MatchLine
from dubito.plugins.tournament.pair import V2Pair
from dubito.plugins.tournament.plan import Pairing
from dubito.plugins.tournament.rules import V2, load
from dubito.sandbox import warden
from tests.plugins.tournament import kit

SLOWLY = {"ponder_seconds": 5.0}  # for busy machines


def bot(act: str = 'echo "${legal%% *}"', pondering: str = "echo ponder", over: str = "echo 'match over'") -> str:
    """Return a bot that works like OpenSpiel's sample: one process for all matches of a seat."""
    return f"""#!/bin/sh
read game; read seat
echo ready
echo start
while read -r public private legal; do
    if [ "$public $private" = "tournament over" ]; then echo "$public $private"; exit 0
    elif [ "$public $private" = "match over" ]; then echo "$$ $legal" >&2; {over}; echo start
    elif [ -n "$legal" ]; then {act}
    else {pondering}
    fi
done
"""


def met(folder: Path, one: str, other: str, **config: object) -> list[MatchLine]:
    tournament = kit.tournament(folder, {"one": one, "other": other}, dialect="v2", **{**SLOWLY, **config})
    lines = list(V2Pair(tournament, Pairing(0, (0, 1)), folder / "run", kit.NOWHERE).play(range(6)))
    assert warden.sweep(str(folder / "run")) == 0
    return lines


def strikes(line: MatchLine, name: str) -> list[str]:
    return [strike.kind for strike in line.strikes if line.seats[strike.seat] == name]


def test_process_plays_all_matches_of_a_seat(tmp_path: Path) -> None:
    lines = met(tmp_path, bot(), bot())
    assert [line.match for line in lines] == [0, 2, 4, 1, 3, 5]
    assert all(line.strikes == [] and line.exit == ("running", "running") for line in lines)
    text_lines = [line.stderr[line.seats.index("one")].split() for line in lines]
    assert [score for _, score in text_lines] == [str(int(line.returns[line.seats.index("one")])) for line in lines]
    assert list(Counter(pid for pid, _ in text_lines).values()) == [3, 3]


def test_observations_are_packed_like_openspiels_referee(tmp_path: Path) -> None:
    state = load("kuhn_poker").new_initial_state()
    dialect = V2(load("kuhn_poker"))
    for action in (2, 0):
        state.apply_action(action)
    public, private, *legal = dialect.node(state, 0, [0, 1]).split()
    assert legal == [b"0", b"1"]
    assert b64decode(public) == bytes([1, 0b11])  # both players have bet one chip
    assert b64decode(private)[0] == 1
    assert dialect.node(state, 1, None).count(b" ") == 1
    assert dialect.closing_line(-1.5) == b"match over -1\n"


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        (bot(act="echo 17"), {"illegal"}),
        (bot(pondering="echo 0"), {"ponder"}),
        (bot(act="exit 1"), {"crash"}),
        (bot(pondering="exit 1"), {"crash"}),
    ],
)
def test_shut_down_bot_is_restarted(tmp_path: Path, script: str, kinds: set[str]) -> None:
    for line in met(tmp_path, script, bot()):
        assert set(strikes(line, "one")) == kinds
        assert strikes(line, "other") == []
        assert line.exit[line.seats.index("other")] == "running"


def test_late_ponder_is_a_strike_and_keeps_lines_in_order(tmp_path: Path) -> None:
    late = bot(pondering="sleep 0.2; echo ponder")
    for line in met(tmp_path, late, bot(), ponder_seconds=0.1, move_seconds=5.0, games=["leduc_poker"]):
        assert set(strikes(line, "one")) <= {"ponder"}
        assert len(strikes(line, "one")) >= 2
        assert line.history[2:] or line.returns


def test_fourth_strike_shuts_a_bot_down(tmp_path: Path) -> None:
    for line in met(tmp_path, bot(act="echo 99", pondering="echo 99"), bot(), games=["leduc_poker"]):
        assert len(strikes(line, "one")) == 4
        assert line.exit[line.seats.index("one")] == "SIGKILL"


def test_answer_that_is_not_a_number_shuts_a_bot_down(tmp_path: Path) -> None:
    for line in met(tmp_path, bot(act="echo nonsense"), bot(), games=["leduc_poker"]):
        assert strikes(line, "one") == ["illegal"]
        assert line.exit[line.seats.index("one")] == "SIGKILL"


@pytest.mark.parametrize("over", [":", "echo what"])
def test_bot_that_does_not_confirm_the_end_is_restarted(tmp_path: Path, over: str) -> None:
    lines = met(tmp_path, bot(over=over), bot())
    assert all(strikes(line, "one") == [] for line in lines)
    assert {line.exit[line.seats.index("one")] for line in lines} == {"SIGKILL"}


def test_game_without_two_observations_is_refused() -> None:
    with pytest.raises(UsageError, match=r"liars_dice\(\) does not separate public and private obs") as error:
        V2(load("liars_dice"))
    hidden, open_ = str(error.value).split("Hidden-information games: ")[1].split(". Others: ")
    for name in ("dark_chess", "leduc_poker", "rbc"):
        assert name in hidden
    for name in re.split(", | and ", hidden):
        V2(load(name))
    assert {"chess", "goofspiel", "go", "tic_tac_toe"} <= set(re.split(", | and ", open_))
