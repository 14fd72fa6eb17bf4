"""The guide's Kuhn poker in OpenSpiel, through its training module."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pyspiel
import pytest
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

import dubito.plugins.openspiel.spiel
from dubito.errors import UsageError
from dubito.plugins.openspiel import course
from dubito.plugins.openspiel.spiel import SeatedBot
from tests.cli.kit import Shell
from tests.games.kit import KUHN, exchange, remove_parts, write_kuhn, write_stacks
from tests.plugins.openspiel.training.kit import draw_step
from tests.plugins.openspiel.training.test_training import EXAMPLES, PAGE

MODULE = Path("games/kuhn/training.py")
JACK, QUEEN, KING = range(3)
PASS, BET = range(2)


@pytest.fixture(autouse=True)
def kuhn(shell: Shell) -> None:
    write_kuhn(Path.cwd())


def loaded() -> Any:
    return dubito.plugins.openspiel.spiel.load_game("kuhn")


def after(*actions: int) -> Any:
    """Return the state after these cards and actions."""
    state = loaded().new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


def test_module_of_the_guide_is_short() -> None:
    assert "has 25 lines" in PAGE
    assert len(MODULE.read_text().splitlines()) <= 25


def test_loaded_game_is_registered_with_pyspiel() -> None:
    game = loaded()
    assert pyspiel.load_game("kuhn").get_type() == game.get_type()
    assert (game.num_players(), game.utility_sum(), game.get_parameters()) == (2, 0, {})
    pyspiel.random_sim_test(game, 10, serialize=True, verbose=False)


@pytest.mark.at_length
def test_solver_of_the_guide_finds_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    """OpenSpiel's regret minimisation finds the exact value: -1/18 of a chip for the first seat."""
    code = (EXAMPLES / "value.py").read_text()
    text: dict[str, Any] = {}
    exec(compile(code, "value.py", "exec"), text)  # noqa: S102, the project's own example
    assert 2 * text["worth"][0] == pytest.approx(-1 / 18, abs=0.001)
    assert capsys.readouterr().out.strip() == code.rstrip().rpartition("# ")[2]


def test_seats_get_chips_and_their_own_observations() -> None:
    assert after(KING, JACK, BET, BET).returns() == [1, -1]
    assert after(KING, JACK, PASS, BET, PASS).returns() == [-0.5, 0.5]
    state = after(QUEEN, JACK, PASS, BET)
    acts = "act pass; act: seat 0, act pass; act: seat 1, act bet"
    assert state.information_state_string(0) == f"deal; card: card queen; {acts}"
    assert state.course.recall(0)["log"][1] == [3, 2, 0]
    assert state.course.recall(0)["log"][3:] == [[4, 1, 4], [4, 2, 5]]
    assert state.observation_tensor(0) == [1, 0, 1, 0, 0, 1]
    assert (str(after(QUEEN)), state.action_to_string(BET)) == ("deal after 1", "bet")


def test_worlds_are_sampled_by_default() -> None:
    state = after(QUEEN, KING, PASS, BET)
    worlds = [state.resample_from_infostate(0, Random(seed).random) for seed in range(40)]
    assert {tuple(world.history()) for world in worlds} == {(1, 0, 0, 1), (1, 2, 0, 1)}


def test_failed_search_for_a_world_is_reported_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "_MAX_TRIALS", 3)
    state, chance = pyspiel.load_game("dubito_bs").new_initial_state(), Random(0)
    while state.is_chance_node():
        state.apply_action(draw_step(state, chance))
    with pytest.raises(UsageError, match=r"none of 3 random games of bs looks .*; override `world` in BSCourse"):
        course.Course.world(state.course, 0, Random(1))


def test_bots_of_the_guide_can_play() -> None:
    """Careful opens with a bet only if it holds the king."""
    game, chance = loaded(), Random(0)
    seats = [SeatedBot(game, seat, "Careful") for seat in (0, 1)]
    firsts = set()
    for _ in range(20):
        state = game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(draw_step(state, chance))
        evaluate_bots(state, seats, None)
        firsts.add((state.history()[0], state.history()[2]))
    assert firsts == {(JACK, PASS), (QUEEN, PASS), (KING, BET)}


@pytest.mark.filterwarnings("ignore:Agent's m.* observation space value is")  # shimmy sets no bounds
def test_pettingzoos_own_tests_pass() -> None:
    pytest.importorskip("shimmy", reason="shimmy is not installed, so a game of one's own was not PettingZoo's")
    from pettingzoo.test import api_test, seed_test

    from dubito.plugins.openspiel.environment import HarnessEnv

    api_test(HarnessEnv("kuhn"), num_cycles=40)
    seed_test(lambda: HarnessEnv("kuhn"), num_cycles=20)


def test_rules_and_seats_are_parameters() -> None:
    game = Path("games/kuhn/game.py")
    parameters = 'ante: int = Field(default=1, ge=1, description="Chips.")\n    names: tuple[str, ...] = ()\n'
    exchange(
        game,
        ("class KuhnGame(", f"class KuhnRules(CheckedModel):\n    {parameters}\n\nclass KuhnGame("),
        (
            "    def deal(self",
            "    def rules(self, **settings):\n        return KuhnRules(**settings)\n\n    def deal(self",
        ),
        ("seats = (2, 2)", "seats = (2, 3)"),
        ("import NoRules\n", "import CheckedModel, NoRules\nfrom pydantic import Field\n"),
    )
    assert dubito.plugins.openspiel.spiel.load_game("kuhn(ante=2,players=3)").get_parameters() == {
        "ante": 2,
        "players": 3,
    }
    assert dubito.plugins.openspiel.spiel.load_game("kuhn").num_players() == 2
    with pytest.raises(UsageError, match=r"^ante: .* at least 1, not 0$"):
        dubito.plugins.openspiel.spiel.load_game("kuhn(ante=0)")
    with pytest.raises(UsageError, match=r"^kuhn needs 2 to 3 players, not 4$"):
        dubito.plugins.openspiel.spiel.load_game("kuhn(players=4)")


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("class KuhnCourse(", "class Kuhn(", "importing it raises ImportError: cannot import name 'KuhnCourse'"),
        ("class KuhnCourse(", "class KuhnCourse((", "importing it raises SyntaxError: "),
        ("class KuhnCourse(", "raise SystemExit\n\nclass KuhnCourse(", "importing it raises SystemExit; correct it"),
        (
            "class KuhnCourse(Course):",
            "class KuhnCourse:",
            "KuhnCourse is not a subclass of Course, so OpenSpiel cannot load kuhn",
        ),
        ("longest = 5", "longest = 2", "`longest` is 2"),
        ("most_rows, width = 7", "most_rows, width = 1", "rows, but `most_rows` is 1"),
        ('Feature("bets", 1', 'Feature("bets", 2', "the feature 'bets' has 2 numbers, not 4"),
        (
            "kinds = drawn = CARDS",
            "kinds = drawn = range(3)",
            "of an event is missing from `kinds`, `drawn`, `done`",
        ),
        ("zero_sum = GAME, True", 'short_name = GAME, "kuhn_poker"', "set another `short_name`"),
        ("(first, second)", "(first,)", "a random game raises IndexError: "),
    ],
)
def test_flaws_of_the_module_are_reported_in_one_sentence(before: str, after: str, sentence: str) -> None:
    source = (KUHN / MODULE).read_text()
    assert source.count(before) == 1
    MODULE.write_text(source.replace(before, after))
    with pytest.raises(UsageError, match=f"^games/kuhn/training.py.*{re.escape(sentence)}"):
        loaded()


def test_missing_module_and_unknown_game_are_refused() -> None:
    MODULE.unlink()
    with pytest.raises(UsageError, match=r"^games/kuhn/training.py: importing it raises ModuleNotFoundError: "):
        loaded()
    remove_parts(Path("games/kuhn/game.py"), "courses")
    with pytest.raises(UsageError, match=r"^kuhn does not define `courses`, so OpenSpiel cannot load it"):
        loaded()
    with pytest.raises(UsageError, match="unknown game 'kuhm': did you mean 'kuhn'"):
        dubito.plugins.openspiel.spiel.load_game("kuhm")


def test_shipped_games_load_the_same_way() -> None:
    for name, calls in (("bs(max_rounds=3)", "dubito_bs"), ("dubito_bs", "dubito_bs"), ("defuse", "dubito_defuse")):
        assert dubito.plugins.openspiel.spiel.load_game(name).get_type().short_name == calls


STACKS = """
from dubito.plugins.openspiel.course import Course, draw
from dubito.plugins.openspiel.features import hand_feature, node_feature
from games.stacks.game import GAME, State

class StacksCourse(Course):
    game, kinds, drawn = GAME, range(1, 7), range(7)
    done = [[card] for card in kinds]
    observed = (node_feature(["lay"]), hand_feature(kinds))
    longest, most_rows = 24 + 9, 2 + 9 + 3 * 3

    def hand(self, seat):
        return self.engine.hands[seat]

    def deal(self):
        left, deck = [*range(1, 7)] * 4, []
        while left:
            deck.append((yield draw("deal", left)))
            left.remove(deck[-1])
        self.finish_deal(State(deck, self.players))
"""


COURSES = """
    @property
    def courses(self):
        from games.stacks.training import StacksCourse

        return {"": StacksCourse}
"""


def test_a_game_for_three_whose_cards_are_drawn_unseen() -> None:
    write_stacks(Path.cwd())
    Path("games/stacks/training.py").write_text(STACKS)
    exchange("games/stacks/game.py", ("    def deal(self", f"{COURSES}\n    def deal(self"))
    game, chance = dubito.plugins.openspiel.spiel.load_game("stacks(players=3)"), Random(2)
    pyspiel.random_sim_test(game, 3, serialize=True, verbose=False)
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(draw_step(state, chance))
    state.apply_action(state.legal_actions()[0])
    world = state.resample_from_infostate(1, Random(0).random)
    assert world.information_state_string(1) == state.information_state_string(1)
    assert str(world) != str(state)
    bots = ("Highest", "Lowest", "Lowest")
    evaluate_bots(state, [SeatedBot(game, seat, name) for seat, name in enumerate(bots)], None)
    assert state.information_state_tensor(1) != state.information_state_tensor(2)
    assert set(state.returns()) <= {0, 1}
