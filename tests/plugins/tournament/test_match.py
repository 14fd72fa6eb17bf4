"""The state machine of a match: strikes, replacements, chance, and the order of moves."""

from random import Random
from typing import Any

import pytest

from dubito.plugins.tournament.match import Match, MatchStreams, draw_outcome
from dubito.plugins.tournament.rules import StrikeKind, load


class Plain:
    """A dialect that shows nothing."""

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        return b"-" if legal is None else " ".join(map(str, legal)).encode()


def match(game: str, strikes: int = 3) -> Match:
    draws = MatchStreams(1, (2, 3))
    return Match(load(game).new_initial_state(), Plain(), draws, strikes)


def play_match(one: Match, answer: bytes = b"") -> list[tuple[bytes | None, bytes | None]]:
    """Play to the end with this answer or the first legal one, and return the lines that were sent."""
    lines = []
    while turn := one.turn():
        lines.append(turn.lines)
        for seat in list(one.waiting):
            one.receive(seat, answer or (turn.lines[seat] or b"").split()[0])
    return lines


def kinds(one: Match) -> list[tuple[int, StrikeKind]]:
    return [(strike.seat, strike.kind) for strike in one.strikes]


def test_both_seats_see_every_node_but_one_has_to_act() -> None:
    one = match("kuhn_poker")
    assert play_match(one) == [(b"-", b"-"), (b"-", b"-"), (b"0 1", b"-"), (b"-", b"0 1")]
    assert one.history[2:] == [0, 0]
    assert not one.strikes


def test_seat_1_can_move_first() -> None:
    one = match("dark_chess")
    one.turn()
    assert one.waiting == [1]


def test_both_seats_answer_simultaneous_nodes() -> None:
    one = match("goofspiel(imp_info=True,points_order=descending,num_cards=3)")
    one.turn()
    assert one.waiting == [0, 1]
    one.receive(1, b"2")
    one.receive(1, b"0")
    one.receive(0, b"1")
    assert one.waiting == []
    one.turn()
    assert one.history == [[1, 2]]
    assert kinds(one) == [(1, "ponder")]


@pytest.mark.parametrize(
    "answer", [b"", b"3.0", b"+1", b" 1 ", b"01", b"1\0", b"\xff", b"1" + b"0" * 30, b"7", b"I pass"]
)
def test_only_listed_actions_are_legal(answer: bytes) -> None:
    one = match("kuhn_poker")
    for _ in range(3):
        one.turn()
    one.receive(0, answer)
    assert kinds(one) == [(0, "illegal")]
    assert one.replaced == [(2, 0)]
    one.turn()
    assert one.history[2] in (0, 1)


def test_windows_line_endings_are_accepted() -> None:
    one = match("kuhn_poker")
    play_match(one, b"0\r")
    assert not one.strikes


def test_the_third_illegal_answer_shuts_a_bot_down() -> None:
    one = match("phantom_ttt")
    lines = play_match(one, b"nonsense")
    assert sorted(kinds(one)) == [(0, "illegal")] * 3 + [(1, "illegal")] * 3
    assert one.down == [True, True]
    assert lines[5] != (None, None)
    assert lines[6:] == [(None, None)] * (len(lines) - 6)
    assert one.state.is_terminal()


def test_strikes_are_counted_by_kind() -> None:
    one = match("phantom_ttt")
    while len(one.strikes) < 4 and one.turn():
        for seat in list(one.waiting):
            one.receive(seat, one_legal(one) if seat else b"nonsense")
            if seat == 0:
                one.receive(0, b"too much")
    assert kinds(one) == [(0, "illegal"), (0, "ponder")] * 2
    assert one.down == [False, False]


def one_legal(one: Match) -> bytes:
    return b"%d" % one.state.legal_actions()[0]


@pytest.mark.parametrize("kind", ["overrun", "crash"])
def test_one_overrun_or_crash_shuts_a_bot_down(kind: StrikeKind) -> None:
    one = match("phantom_ttt")
    one.turn()
    if kind == "overrun":
        one.time_out(0)
    else:
        one.handle_crash(0)
    one.receive(0, b"late")  # too late to matter
    assert kinds(one) == [(0, kind)]
    turn = one.turn()
    assert turn is not None
    assert turn.lines[0] is None
    assert one.waiting == [1]


def test_replacements_do_not_change_other_draws() -> None:
    histories = []
    for culprit in (None, 0):
        one = match("leduc_poker")
        while turn := one.turn():
            for seat in list(one.waiting):
                one.receive(seat, b"x" if seat == culprit else (turn.lines[seat] or b"").split()[-1])
        histories.append(one.history)
    assert histories[0][:2] == histories[1][:2]


def test_chance_draws_by_probability() -> None:
    stream = Random(1)
    times = [draw_outcome([(7, 0.25), (8, 0.0), (9, 0.75)], stream) for _ in range(4000)]
    assert 900 < times.count(7) < 1100
    assert 8 not in times
    assert draw_outcome([(5, 0.0)], stream) == 5
