"""A solved duel of Dubito: exact losses of players, and a bot that cannot be exploited."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.game.position_file import dump_position, load_position
from dubito.games.dubito.knowledge import Knowledge
from tests.cli.kit import REPO, Shell
from tests.plugins.openspiel.policy.test_command import nash_conv_of

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

from dubito.errors import UsageError  # noqa: E402
from dubito.game.find import find_bots  # noqa: E402
from dubito.game.table import Entrant  # noqa: E402
from dubito.games.dubito.game import GAME  # noqa: E402
from dubito.plugins.openspiel.bots.manual.solved import Solved  # noqa: E402
from dubito.plugins.openspiel.policy.regret import cfr_plus  # noqa: E402
from dubito.plugins.openspiel.policy.small import small_game  # noqa: E402
from dubito.plugins.openspiel.policy.solver import solve  # noqa: E402
from dubito.plugins.openspiel.policy.stated_policy import read_bot_policy  # noqa: E402
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
    said = shell("policy", "house:house-honest", "MrNoDoubt", *flags, "--quiet")
    assert said.code == 0, said.err
    assert nash_conv_of(said.out, "MrNoDoubt") == 1
    assert nash_conv_of(said.out, "house:house-honest") == 0


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
    said = shell("policy", player, "--game", "dubito", *more, "--quiet")
    assert said.code == 2
    assert said.err.startswith(f"dubito: {sentence}")


def test_bots_that_play_cards_are_replayed(shell: Shell) -> None:
    """With cards as actions, too, a player who is never doubted loses 1. Other bots can be measured beside them."""
    said = shell(
        "policy", "Sherlock", "MrNoDoubt", "--game", "dubito", *FLAGS, "--iterations", "50", "--draws", "20", "--json"
    )
    assert said.code == 0, said.err
    assert (
        "with cards as actions: 61 information states\nSherlock: 1,220 questions\nMrNoDoubt: 1,220 questions"
        in said.err
    )
    found = {one["name"]: one for one in json.loads(said.out)["players"]}
    assert found["MrNoDoubt"]["nash_conv"] == 1
    assert found["Sherlock"] == {
        "name": "Sherlock",
        "kind": "hand-written",
        "nash_conv": 0,
        "draws": 20,
        "fallbacks": 0,
    }


def test_replayed_bots_score_as_their_strategies_predict(shell: Shell) -> None:
    """Both the strategies' exact value and 400 games of the duel say how often AdaptyBoi beats RandomBoi."""
    small_game_of_cards = small_game(GAME, GAME.rules(**{**RULES, "max_turns": 3}), cards=True)
    tree, bots = Tree(small_game_of_cards.engine), find_bots(REPO, "dubito")
    rows = {
        name: read_bot_policy(Entrant(name, bots.find(name).cls), small_game_of_cards, tree.states, 200, 0).rows
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


def test_models_are_not_mixed_with_bots_that_play_cards(shell: Shell) -> None:
    said = shell("policy", "Sherlock", "house:house-honest", "--game", "dubito", *FLAGS, "--quiet")
    assert said.code == 2
    assert said.err.startswith("dubito: models answer questions, but one of these bots plays cards of its choice")


def test_solved_bot_cannot_be_beaten(shell: Shell) -> None:
    game = small(max_turns=3)
    tree = Tree(game.engine)
    rows = read_bot_policy(Entrant("Solved", Solved, {"iterations": 100}), game, tree.states, 1, 0).rows
    assert nash_conv(tree, rows) < 0.001
    assert list(Path("cache/solved").glob("dubito-*.json"))


def test_solved_bot_uses_its_observations(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each question, what it computes from its log equals the information state."""
    known, told = list[str](), 0
    monkeypatch.setattr(Solved, "_answer", lambda self: _noted(self, known))
    game = pyspiel.load_game("dubito(players=2,duel=true,ranks=3,copies=3,jokers=1,win_rule=contested,max_turns=30)")
    for seed in range(20):
        bots, chance = [SeatedBot(game, seat, Solved, seed=seed) for seat in (0, 1)], Random(seed)
        state, seen = game.new_initial_state(), list[str]()
        known.clear()
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(chance.choices(*zip(*state.chance_outcomes(), strict=True))[0])
            else:
                seat = state.current_player()
                seen.append(state.information_state_string(seat))
                state.apply_action(bots[seat].step(state))
        assert known == seen
        told += len(seen)
    assert told > 200


def _noted(bot: Any, known: list[str]) -> bool:
    known.append(bot.information())
    return bool(bot.rng.random() < 0.4)


def test_model_is_asked_the_questions_of_a_game() -> None:
    """A position of the tree passes the file check, which compares events, turn data, hand and answers."""
    game = small(max_turns=3)
    for state in Tree(game.engine).states[::7]:
        position = game.position(GAME, state)
        assert load_position(GAME, dump_position(GAME, position)) == position
        assert state.string.endswith(
            "".join(f"; {node} {'yes' if yes else 'no'}" for node, yes in position.known(Knowledge).answers.items())
        )


def test_certain_knowledge_with_a_small_deck() -> None:
    """With two cards per number, a player who holds one knows that a play of two is a bluff."""
    game = small()
    states = {state.string: state for state in Tree(game.engine).states}
    dealt = "game start: player_ids 0 1, initial_card_counts 2 2; hand dealt: cards 1 2"
    known = f"{dealt}; cards played: player_id 0, declared_number 1, n_cards"
    seen = {n: GAME.facts.facts(game.position(GAME, states[f"{known} {n}"])) for n in (1, 2)}
    assert [seen[n]["sure_bluff"] for n in (1, 2)] == [False, True]
