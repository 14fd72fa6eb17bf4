"""`dubito fork`: which moments can be played on, and that forks have the results that they must have."""

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.stored import open_recorded_run
from dubito.game.moves import output_of
from dubito.game.workshop import ForkStart
from dubito.show.moment import RunMoment, find_moment
from dubito.show.person import Setup
from dubito.show.run import ReplayedGames
from dubito.stats.tally import build_outcome
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import Shell

BOTS = ("--bots", "UsualBot,AdaptyBoi,SusBoi,Sherlock", "--games", "6", "--output", "bots", "--quiet")
DUEL = {"duel": True, "ranks": 2, "copies": 2, "jokers": 0, "win_rule": "contested", "max_turns": 3}
GAME_NUMBER = 1
MODELS = """
game: dubito
bots: [UsualBot]
contenders: [house:house-sharp@reasoned]
table_sizes: [3]
rules: {max_turns: 30}
games: 2
"""


def forked(shell: Shell, *words: str) -> dict[str, Any]:
    result = shell("fork", *words, "--json", "--quiet")
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


@pytest.fixture
def bots(shell: Shell) -> Shell:
    assert shell("run", *BOTS).code == 0
    return shell


def test_forks_are_repeatable_and_paired(bots: Shell) -> None:
    """Repeated forks are identical, and each player's forks do not depend on which other players there are."""
    document = forked(bots, "bots:3:9", "--player", "SusBoi", "--player", "MrDoubt", "--count", "12")
    assert document == forked(bots, "bots:3:9", "--player", "SusBoi", "--player", "MrDoubt", "--count", "12")
    first, sus, doubt = document["players"]
    assert [first["difference"] is None, sus["name"], doubt["name"]] == [True, "SusBoi", "MrDoubt"]
    assert forked(bots, "bots:3:9", "--player", "MrDoubt", "--count", "12")["players"][1] == doubt
    assert document["players"] != forked(bots, "bots:3:9", "--seed", "1", "--count", "12")["players"]
    assert bots("export", "bots", "bots.zip").code == 0
    exported = forked(bots, "bots.zip:3:9", "--player", "SusBoi", "--player", "MrDoubt", "--count", "12")
    assert exported == document | {"run": "bots.zip"}
    for one in document["players"]:
        assert sum(one["results"].values()) == sum(one["moves"].values()) == 12
    assert sus["difference"]["value"] == pytest.approx(sus["score"]["value"] - first["score"]["value"])


def test_the_moves_of_a_forked_turn_are_those_of_its_player(bots: Shell) -> None:
    """MrDoubt doubts where he may. A bot without randomness makes the move that it made in the run."""
    document = forked(bots, "bots:3:9", "--player", "MrDoubt", "--count", "5")
    assert document["played"] == "Seat 2 plays 3 cards as 7s. (bluff)"
    assert document["players"][0]["moves"] == {"Seat 2 plays 3 cards as 7s. (bluff)": 5}
    (turn,) = [k for k in range(1, 9) if "doubts" in forked(bots, f"bots:3:{k}", "--count", "2")["played"]][:1]
    moves = forked(bots, f"bots:3:{turn}", "--player", "MrDoubt", "--count", "5")["players"][-1]["moves"]
    assert [(": " in move, n) for move, n in moves.items()] == [(True, 5)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bots:3:900"], "game 3 of bots has no turn 900; its turns are 1 to 91"),
        (["bots:3:0"], "game 3 of bots has no turn 0; its turns are 1 to 91"),
        (["bots:99:1"], "game 99 does not exist; bots has games 0 to 5"),
        (["bots:3"], "bots:3 is not a moment; write RUN:GAME:TURN, such as runs/first:12:7"),
        (["bots:3:x"], "bots:3:x is not a moment; write RUN:GAME:TURN, such as runs/first:12:7"),
        (["none:3:1"], "none does not exist"),
        (["bots:3:9", "--player", "Sapper"], "unknown player 'Sapper'; choose from AdaptyBoi, "),
        (["bots:3:9", "--set", "cards=1"], "--set cards=1: unknown; known: hand=2,2,7,0 (0 is a joker)"),
        (["bots:3:9", "--set", "hand=1,2"], "hand: seat 2 cannot hold these cards; give 9, separated by commas"),
        (["bots:3:9", "--set", "hand=2,2,2,2,6,7,9,10,13"], "hand: seat 2 cannot hold these cards; give 9"),
        (["bots:3:9", "--set", "hand=a,2,2,1,6,7,9,10,13"], "hand: seat 2 cannot hold these cards; give 9"),
        (["bots:3:9", "--set", f"hand={'9' * 5000}"], "hand: seat 2 cannot hold these cards; give 9"),
    ],
)
def test_impossible_fork_is_reported_in_one_sentence(bots: Shell, words: list[str], sentence: str) -> None:
    result = bots("fork", *words, "--quiet")
    assert result.code == 2
    assert result.err.startswith(f"dubito: {sentence}"), result.err
    assert len(result.err.splitlines()) == 1


def test_only_games_that_can_sample_do(shell: Shell) -> None:
    assert shell("run", "--game", "bs", "--games", "2", "--output", "bs", "--quiet").code == 0
    result = shell("fork", "bs:1:2", "--worlds", "sampled", "--quiet")
    assert (result.code, result.err) == (2, "dubito: the hidden cards of bs cannot be sampled; use --worlds same\n")
    result = shell("fork", "bs:1:2", "--set", "hand=1", "--quiet")
    assert (result.code, result.err) == (2, "dubito: --set hand=1: unknown; bs has nothing to set\n")
    assert forked(shell, "bs:1:2", "--count", "3")["players"][0]["results"]


@pytest.fixture
def moment(bots: Shell) -> Any:
    with open_recorded_run(Path("bots")) as run:
        yield find_moment(run, 3, 9)


def start_of(moment: RunMoment, setup: Setup) -> ForkStart:
    return ForkStart(lambda: setup.deal_game(moment.game)[0], [output_of(moment.game, kept) for kept in setup.begun])


def hands(start: ForkStart) -> list[Counter[int]]:
    state: Any = start.replay()[0]
    return [Counter(hand.cards) for hand in state.hands]


def test_sampled_worlds_look_the_same_to_the_seat(moment: RunMoment) -> None:
    """The seat has seen the same events and holds the same cards; the other hands differ, and so do the samples."""
    starts = [start_of(moment, moment.set_up(sample=f"{k}")) for k in range(5)]
    before = [*moment.start.replay()[1].of(moment.seat)]
    for start in starts:
        assert [*start.replay()[1].of(moment.seat)] == before
        assert hands(start)[moment.seat] == hands(moment.start)[moment.seat]
    assert len({str(hands(start)) for start in starts}) == 5


def test_a_changed_hand_is_held_and_the_moves_stay(moment: RunMoment) -> None:
    start = start_of(moment, moment.set_up(["hand=1,1,2,6,6,7,9,10,7"]))
    assert hands(start)[moment.seat] == Counter([1, 1, 2, 6, 6, 7, 9, 10, 7])
    assert [*start.moves] == [*moment.start.moves]
    assert sum(hands(start), Counter[int]()) == sum(hands(moment.start), Counter[int]())
    assert [*start.replay()[1].of(-1)] == [*moment.start.replay()[1].of(-1)]


def test_a_model_is_asked_what_it_was_asked_in_the_run(shell: Shell) -> None:
    """The first request of each fork is the recorded one of that turn, byte for byte."""
    Path("m.yaml").write_text(MODELS)
    assert shell("run", "m.yaml", "--output", "m", "--quiet").code == 0
    with open_recorded_run(Path("m")) as run:
        log = run.model_log
        decisions = log.decisions(1)
        seat, number = [key for key, one in decisions.items() if one.node == "C"][3]
        recorded = log.attempts(1)[seat, number][0].request
        session, *_ = ReplayedGames(run).replay(1)
        turn = [move.turn for move in session if move.seat == seat][decisions[seat, number].turn - 1]
    result = shell("fork", f"m:1:{turn}", "--count", "3", "--quiet", "--player", "UsualBot")
    assert result.code == 0, result.err
    assert "These are fake models" in result.err
    with RunDb.open(Path("games") / "run.db") as db:
        asked = ModelLog(db)
        games = [game for (game,) in db.read("SELECT DISTINCT game FROM attempts WHERE decision = 0")]
        first = [asked.attempts(game)[seat, 0][0].request for game in games if game >= 0]
    assert first == [recorded] * 3


def dealt_hands(state: Any) -> list[list[int]]:
    return [[*hand.cards] for hand in state.hands]


def exact_value(course: Any, seat: int, moves: Callable[[Any], Mapping[tuple[int, ...], float]]) -> float:
    """Return the mean of the first measure from here on, if the players make these moves, or parts of moves."""
    if course.engine.over:
        results = course.game.results
        outcome = build_outcome(course.engine, [0, 1], None, [0, 0])
        bucket = outcome.buckets(results)[seat]
        return float(results.measure_values(bucket, outcome.counts[seat])[0] / results.measures[0].scale)
    total = 0.0
    for actions, weight in moves(course).items():
        child = deepcopy(course)
        for action in actions:
            child.apply(action)
        total += weight * exact_value(child, seat, moves)
    return total


@pytest.mark.parametrize("turn", [2, 3])
def test_forks_of_a_solved_position_agree_with_its_exact_value(shell: Shell, turn: int) -> None:
    """Solved and RandomBoi play a small duel on from the same hidden cards."""
    pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")
    from dubito.games.dubito.game import GAME
    from dubito.plugins.openspiel.bots.manual.solved import FOLDER, _solution
    from dubito.plugins.openspiel.courses.dubito import CardsCourse

    players = "bots: [RandomBoi]\ncontenders: [{bot: Solved, iterations: 50}]"
    Path("duel.yaml").write_text(f"{players}\ntable_sizes: [2]\ngames: 8\nrules: {json.dumps(DUEL)}\n")
    result = shell("run", "duel.yaml", "--output", "duel", "--quiet")
    assert result.code == 0, result.err
    rules = GAME.rules(**DUEL).engine_rules
    course = CardsCourse(2, rules)
    with open_recorded_run(Path("duel")) as run:
        moment = find_moment(run, GAME_NUMBER, turn)
        table, _ = run.player.build_table(GAME_NUMBER)
        course.deal_cards(dealt_hands(table.state))
        for output in moment.start.moves:
            course.make(output, deque())
    solved = _solution(tuple(rules.stored_form().items()), FOLDER, 50).table

    def moves(course: Any) -> Mapping[tuple[int, ...], float]:
        if moment.players[course.player] == "Solved":
            return {(action,): share for action, share in solved[course.information(course.player)].items()}
        holds = course.engine.hands[course.player].counts[course.engine.number]
        yes = {"B": 0, "C": 1 / 3 if holds else 1 / 2, "E": 0}  # R24
        return dict(course.follow(lambda node, _: {True: yes.get(node, 1 / 2), False: 1 - yes.get(node, 1 / 2)}))

    exact = exact_value(course, moment.seat, moves)
    found, *_ = forked(shell, f"duel:{GAME_NUMBER}:{turn}", "--count", "600")["players"]
    assert 0.05 < exact < 0.95, "the position is already decided"
    assert found["score"]["low"] <= exact <= found["score"]["high"], (exact, found)
