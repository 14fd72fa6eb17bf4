"""A solved duel of Dubito: exact losses of players, and a bot that cannot be exploited."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bots.manual.mr_no_doubt import MrNoDoubt
from dubito.game.position_file import dump_position, load_position
from dubito.games.dubito.knowledge import Knowledge
from tests.cli.kit import REPO, Shell
from tests.plugins.openspiel.policy.test_command import nash_conv_of

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

from dubito.errors import UsageError  # noqa: E402
from dubito.game.find import find_bots  # noqa: E402
from dubito.game.table import Entrant  # noqa: E402
from dubito.games.dubito.cards import TurnOutput  # noqa: E402
from dubito.games.dubito.game import GAME  # noqa: E402
from dubito.plugins.openspiel.bots.manual.solved import Solved  # noqa: E402
from dubito.plugins.openspiel.courses.dubito import DECLARE, DONE, describe_log  # noqa: E402
from dubito.plugins.openspiel.policy.regret import cfr_plus  # noqa: E402
from dubito.plugins.openspiel.policy.small import small_game  # noqa: E402
from dubito.plugins.openspiel.policy.solver import solve  # noqa: E402
from dubito.plugins.openspiel.policy.stated_policy import list_starts, read_bot_policy  # noqa: E402
from dubito.plugins.openspiel.policy.tree import Tree, seat_tables  # noqa: E402
from dubito.plugins.openspiel.policy.values import expected_values, nash_conv  # noqa: E402
from dubito.plugins.openspiel.spiel import SeatedBot  # noqa: E402
from tests.plugins.openspiel.policy.kit import DICE, KUHN, load, tree_of  # noqa: E402

RULES: dict[str, Any] = {"duel": True, "ranks": 2, "copies": 2, "jokers": 0, "win_rule": "contested", "max_turns": 2}
FLAGS = ("--duel", "--ranks", "2", "--copies", "2", "--jokers", "0", "--win-rule", "contested", "--max-turns", "2")


def small(**more: Any) -> Any:
    return small_game(GAME, GAME.rules(**{**RULES, **more}))


@pytest.mark.parametrize("name", [KUHN, DICE])
def test_cfr_plus_on_a_tree_matches_openspiel(name: str) -> None:
    ours, theirs = cfr_plus(tree_of(name), 30), solve(load(name), iterations=30).table
    for string, row in theirs.items():
        assert ours[string] == pytest.approx(row, abs=1e-9)


def test_best_response_of_a_worked_example(shell: Shell) -> None:
    """A player who is never doubted puts both cards down and wins.

    `house-honest` doubts last plays, so it loses nothing.
    """
    flags = ("--game", "dubito", *FLAGS, "--iterations", "50")
    result = shell("policy", "house:house-honest", "MrNoDoubt", *flags, "--quiet")
    assert result.code == 0, result.err
    assert nash_conv_of(result.out, "MrNoDoubt") == 1
    assert nash_conv_of(result.out, "house:house-honest") == 0


@pytest.mark.at_length
def test_a_duel_that_is_far_too_large_is_refused_before_it_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = small(ranks=3, max_turns=4).engine
    monkeypatch.delattr(type(engine.new_initial_state()), "child")  # solving needs this method
    with pytest.raises(UsageError, match=r"^dubito has more than 50,000 histories, so it is too large"):
        Tree(engine, 10**6)


@pytest.mark.parametrize(
    ("player", "more", "sentence"),
    [
        ("house:house-sharp@disguised", FLAGS, "prompt disguised describes the default rules of dubito"),
        ("StefaBot", (), "dubito has more than 100 moves in a game"),
        ("Solved", ("--duel", "--ranks", "2", "--copies", "4"), "dubito has more than 2,000 information states"),
    ],
)
def test_impossible_question_is_reported_in_one_sentence(
    shell: Shell, player: str, more: tuple[str, ...], sentence: str
) -> None:
    result = shell("policy", player, "--game", "dubito", *more, "--quiet")
    assert result.code == 2
    assert result.err.startswith(f"dubito: {sentence}")


def test_all_kinds_of_players_are_in_one_table(shell: Shell) -> None:
    """A bot that plays cards, one that answers questions, and a model are measured in the game of cards.

    A player who is never doubted loses 1.
    """
    players = ("Sherlock", "MrNoDoubt", "house:house-honest", "Solved")
    flags = ("--game", "dubito", *FLAGS, "--iterations", "50", "--draws", "20", "--json")
    result = shell("policy", *players, *flags)
    assert result.code == 0, result.err
    asked = "Sherlock: 180 questions\nMrNoDoubt: 180 questions\nhouse:house-honest: 620 questions\nSolved: 61 questions"
    assert f"with cards as actions: 61 information states\n{asked}" in result.err
    found = {one["name"]: one for one in json.loads(result.out)["players"]}
    losses = {name: round(one["nash_conv"], 3) for name, one in found.items()}
    assert losses == {"Sherlock": 0, "MrNoDoubt": 1, "house:house-honest": 0, "Solved": 0}
    assert found["Sherlock"] == {
        "name": "Sherlock",
        "kind": "hand-written",
        "nash_conv": 0,
        "draws": 20,
        "fallbacks": 0,
    }


def test_answers_are_followed_through_the_games_own_play() -> None:
    """An opening bluff of one card, under any number, has the probabilities with which the engine draws both."""
    game = small()
    (state,) = [one for one in Tree(game.engine).states if one.string.endswith("hand dealt: cards 1 2")]
    questions = game.questions(GAME, state)
    assert {answers: position.node for answers, position in questions.items()} == {(): "A", (False,): "B", (True,): "B"}
    yes, no = {True: 1.0}, {False: 1.0}
    # R24: one to three cards, of which the hand has two.
    moves = game.moves(state, {(): yes, (True,): no})
    one_card = {(DECLARE + number, card, DONE): pytest.approx(1 / 12) for number in (1, 2) for card in (1, 2)}
    assert moves == one_card | {(DECLARE + number, 1, 2, DONE): pytest.approx(1 / 3) for number in (1, 2)}
    assert game.moves(state, {(): no, (False,): yes}) == {(DECLARE + 1, 1, DONE): 1}


class LowCards(MrNoDoubt):
    """Answers that it bluffs with one card, and plays the lower of two."""

    def bluff_first_hand(self, p: Any) -> bool:
        return True

    def maximize_first_hand(self, p: Any) -> bool:
        return False

    def bluff(self, p: Any, *, maximize: bool) -> Any:
        return TurnOutput(False, 2, [min(self.cards)])


def test_a_bot_that_chooses_the_cards_of_its_bluffs_keeps_them() -> None:
    game = small()
    states = {one.string.rpartition("; ")[2]: one for one in Tree(game.engine).states if one.seat == 0}
    rows = read_bot_policy(Entrant("LowCards", LowCards), game, [*states.values()], 5, 0).rows
    assert rows[states["hand dealt: cards 1 2"].string] == {DECLARE + 1: 0, DECLARE + 2: 1}
    assert rows[states["declare declare 2"].string] == {1: 1, 2: 0}


def test_replayed_bots_score_as_their_strategies_predict(shell: Shell) -> None:
    """Both the strategies' exact value and 400 games of the duel say how often AdaptyBoi beats RandomBoi."""
    game = small(max_turns=3)
    tree, bots = Tree(game.engine), find_bots(REPO, "dubito")
    rows = {
        name: read_bot_policy(Entrant(name, bots.find(name).cls), game, tree.states, 200, 0).rows
        for name in ("AdaptyBoi", "RandomBoi")
    }
    seated = [seat_tables(tree, seat, rows["AdaptyBoi"], rows["RandomBoi"]) for seat in (0, 1)]
    values = [expected_values(tree, tables)[seat] for seat, tables in enumerate(seated)]
    assert sum(values) / 2 == pytest.approx(_played_mean(shell), abs=0.1)


def _played_mean(shell: Shell) -> float:
    """Return AdaptyBoi's mean return of games against RandomBoi, from -1 to 1."""
    flags = ("--duel", "--ranks", "2", "--copies", "2", "--jokers", "0", "--win-rule", "contested", "--max-turns", "3")
    ran = shell(
        "run",
        "--contenders",
        "AdaptyBoi",
        "--bots",
        "RandomBoi",
        "--games",
        "400",
        *flags,
        "--output",
        "r",
        "--json",
        "--quiet",
    )
    assert ran.code == 0, ran.err
    rates = {one["name"]: one["rates"]["score"]["value"] for one in json.loads(ran.out)["ranking"]}
    return float(rates["AdaptyBoi"] - rates["RandomBoi"])


def test_solved_bot_cannot_be_beaten(shell: Shell) -> None:
    game = small(max_turns=3)
    tree = Tree(game.engine)
    rows = read_bot_policy(Entrant("Solved", Solved, {"iterations": 100}), game, tree.states, 1, 0).rows
    assert nash_conv(tree, rows) < 0.001
    assert list(Path("cache/solved").glob("dubito-*.json"))


def test_solved_bot_uses_its_observations(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each turn, what it computes from its log equals the information state."""
    known, progress = list[str](), 0
    monkeypatch.setattr(Solved, "play", lambda self, p: _play_by_chance(self, p, known))
    rules = "ranks=3,copies=3,jokers=1,win_rule=contested,max_turns=30"
    game: Any = pyspiel.load_game(f"dubito(players=2,duel=true,{rules},moves=cards)")
    for seed in range(20):
        bots, chance = [SeatedBot(game, seat, Solved, seed=seed) for seat in (0, 1)], Random(seed)
        state, seen = game.new_initial_state(), list[str]()
        known.clear()
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(chance.choices(*zip(*state.chance_outcomes(), strict=True))[0])
            else:
                seat = state.current_player()
                if not state.course.script:
                    seen.append(state.information_state_string(seat))
                state.apply_action(bots[seat].step(state))
        assert known == seen
        progress += len(seen)
    assert progress > 150


def _play_by_chance(bot: Any, p: Any, known: list[str]) -> Any:
    known.append(describe_log(bot._seating.log.latest()))
    return bot.doubt(p) if p.can_doubt and bot.rng.random() < 0.4 else bot.bluff(p, maximize=bot.rng.random() < 0.5)


def test_model_is_asked_the_questions_of_a_game() -> None:
    """A position of the tree passes the file check, which compares events, turn data, hand and answers."""
    game = small(max_turns=3)
    for state in list_starts(game, Tree(game.engine).states)[::5]:
        for answers, position in game.questions(GAME, state).items():
            assert load_position(GAME, dump_position(GAME, position)) == position
            assert answers == tuple(position.known(Knowledge).answers.values())


def test_certain_knowledge_with_a_small_deck() -> None:
    """With two cards per number, a player who holds one knows that a play of two is a bluff."""
    game = small()
    states = {state.string: state for state in Tree(game.engine).states}
    dealt = "game start: player_ids 0 1, initial_card_counts 2 2; hand dealt: cards 1 2"
    known = f"{dealt}; cards played: player_id 0, declared_number 1, n_cards"
    seen = {n: GAME.facts.facts(game.questions(GAME, states[f"{known} {n}"])[()]) for n in (1, 2)}
    assert [seen[n]["sure_bluff"] for n in (1, 2)] == [False, True]
