"""Dubito's players behind standard input and output see exactly what their seat sees."""

import io
from random import Random
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.table import Entrant
from dubito.plugins.openspiel.bots.manual.openspiel.first_legal import FirstLegal
from dubito.plugins.openspiel.state import observation_text
from dubito.plugins.tournament.our_player import ConsistentHistories, MatchSeat
from dubito.plugins.tournament.our_player import answer_lines as play
from dubito.plugins.tournament.rules import V1, load
from tests.cli.kit import Shell


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(numdice=1)", "phantom_ttt"])
@pytest.mark.parametrize("seat", [0, 1])
def test_consistent_histories_look_identical_to_the_seat(name: str, seat: int) -> None:
    engine, stream = load(name), Random(4)
    dialect = V1(engine)
    for _ in range(5):
        state, courses, nodes = engine.new_initial_state(), ConsistentHistories(engine, seat), 0
        while not state.is_terminal() and nodes < 6:
            legal = state.legal_actions() if state.current_player() == seat else None
            assert courses.add_node(dialect.node(state, seat, legal).decode()) == (legal or [])
            possible: Any = engine.new_initial_state()
            for action in courses.sample_history():
                possible.apply_action(action)
            assert observation_text(possible, seat) == observation_text(state, seat)
            chance = (
                [action for action, _ in state.chance_outcomes()] if state.is_chance_node() else state.legal_actions()
            )
            action = stream.choice(chance)
            if legal:
                courses.record_action(action)
            state.apply_action(action)
            nodes += 1


def test_impossible_line_is_refused() -> None:
    courses = ConsistentHistories(load("kuhn_poker"), 0)
    with pytest.raises(UsageError, match="the referee's line is impossible in this game"):
        courses.add_node("AAAA 0 1")


def lines_of_a_match(answers: int) -> str:
    state, dialect = load("kuhn_poker").new_initial_state(), V1(load("kuhn_poker"))
    lines = []
    for action in (2, 1, 0):
        lines.append(dialect.node(state, 0, [0, 1] if state.current_player() == 0 else None).decode())
        state.apply_action(action)
    assert len(lines) == 3
    return "".join(lines) + "end of game 1.0\n" * answers


def test_player_answers_on_its_turn() -> None:
    output = io.StringIO()
    play(
        Entrant("FirstLegal", FirstLegal),
        None,
        MatchSeat("kuhn_poker", 0, 1, 0),
        io.StringIO(lines_of_a_match(1)),
        output,
    )
    assert output.getvalue() == "0\n"


@pytest.mark.parametrize("lines", ["", "kuhn_poker\n", "kuhn_poker\n2\n", "kuhn_poker\nfirst\n"])
def test_invalid_opening_is_reported_in_one_sentence(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    shell = Shell(tmp_path, capsys, monkeypatch)
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    result = shell("tournament", "bot", "FirstLegal")
    assert (result.code, result.err[:47]) == (2, "dubito: standard input must come from a referee")


def test_model_plays_a_match(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(tmp_path, capsys, monkeypatch)
    monkeypatch.setattr("sys.stdin", io.StringIO("kuhn_poker\n0\n" + lines_of_a_match(1)))
    monkeypatch.setenv("DUBITO_DATA", str(tmp_path / "data"))
    result = shell("tournament", "bot", "house:house-random")
    assert result.code == 0, result.err
    assert result.out in ("0\n", "1\n")
    assert (tmp_path / "data" / "games" / "run.db").exists()
    assert (tmp_path / "data" / "cache").exists()
