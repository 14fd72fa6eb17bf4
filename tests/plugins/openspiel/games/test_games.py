"""OpenSpiel's games in the harness: supported games, names, and rejections."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game import Choice
from dubito.game.find import find_game
from dubito.game.reader import Reader
from dubito.game.streams import DealStreams
from tests.cli.kit import REPO
from tests.conftest import in_gate

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

from dubito.plugins.openspiel.engine import members  # noqa: E402
from dubito.plugins.openspiel.game import OpenSpielGame  # noqa: E402
from dubito.plugins.openspiel.state import (  # noqa: E402
    State,
    all_names,
    names_at,
)

OTHERS = ("python_", "dubito", "chat_game")  # Python games, which exist only after an import
LISTED = [one for one in members() if one.why_not is None and not one.name.startswith(OTHERS)]
PLAYED = [one.name for one in LISTED]
TWO = [one.name for one in LISTED if one.seats[0] == 2 and one.about != "nothing is hidden"]
NEED_PARAMETERS = {"efg_game", "nfg_game", "repeated_game", "repeated_poker"}


def test_a_game_that_needs_parameters_is_refused_without(subtests: pytest.Subtests) -> None:
    for name in NEED_PARAMETERS:
        with subtests.test(name=name), pytest.raises(UsageError, match=f"openspiel:{name}"):
            find_game(f"openspiel:{name}", REPO)


def test_a_hidden_game_of_two_starts_and_ends(subtests: pytest.Subtests) -> None:
    for name in sorted({*TWO} - NEED_PARAMETERS):
        with subtests.test(name=name):
            game = find_game(f"openspiel:{name}", REPO)
            rng = Random(1)
            state = game.deal(game.rules(), game.seats[0], DealStreams(0, 0).deck())
            while not state.over:
                state.apply(rng.choice([*state.view().names.values()]), announce=False)
            ending = state.ending()
            span, unit = game.results.measures[0].span, game.results.measures[0].scale
            assert span is not None
            least, most = span
            returns = [least + mark * (most - least) / unit for mark in ending.marks]
            assert returns == pytest.approx(state.state.returns(), abs=0.001)


@pytest.mark.parametrize("name", in_gate(PLAYED, PLAYED[::4]))
def test_names_of_a_list_are_those_of_the_moves(name: str) -> None:
    """If a schema lists a game's names, moves have no other names."""
    if name in (*NEED_PARAMETERS, "pathfinding"):  # these need parameters
        return
    game = find_game(f"openspiel:{name}", REPO)
    (node,) = game.nodes
    assert isinstance(game, OpenSpielGame)
    assert isinstance(node.answer, Choice)
    if node.answer.options is None:
        return
    assert len({*node.answer.options}) == len(node.answer.options)
    rng = Random(2)
    for _ in range(2):
        state = State(game.engine, rng)
        while not state.over and state.turns_played < 60:
            names = [*state.view().names.values()]
            assert {*names} <= {*node.answer.options}
            state.apply(rng.choice(names), announce=False)


def test_the_list_of_names_is_that_of_games_that_have_one() -> None:
    assert all_names(pyspiel.load_game("leduc_poker")) == ("fold", "call", "raise")
    assert all_names(pyspiel.load_game("dark_chess")) is None
    assert all_names(pyspiel.load_game("go_fish")) is None  # only its states list names


def test_moves_with_equal_names_are_distinguished() -> None:
    class Twins:
        def get_game(self) -> object:
            return pyspiel.load_game("tic_tac_toe")

        def legal_actions(self, seat: int) -> list[int]:
            return [3, 5]

        def action_to_string(self, seat: int, action: int) -> str:
            return " take\n it, "

    twins: Any = Twins()
    assert names_at(twins, 0) == {3: "take it #3", 5: "take it #5"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openspiel", "openspiel is a family of games; add the name of a game after a colon"),
        ("openspiel:", "openspiel is a family of games"),
        ("openspiel:kuhn", "OpenSpiel has no game 'kuhn': did you mean 'kuhn_poker'"),
        ("kuhn_poker", "unknown game 'kuhn_poker': did you mean 'openspiel:kuhn_poker'?"),
        ("kuhn_poker(players=3)", r"did you mean 'openspiel:kuhn_poker\(players=3\)'"),
        ("openspiel:nothing", "`dubito games --openspiel` lists its games"),
        ("openspiel:dark_chess(fen=x)", r"OpenSpiel refuses it \(Invalid FEN: x\)"),
        ("openspiel:kuhn_poker(playrs=3)", "no parameter 'playrs': did you mean 'players'"),
        ("openspiel:kuhn_poker(players=3", "close the parenthesis"),
        ("openspiel:kuhn_poker(players=three)", "OpenSpiel refuses it .*Expected type: kInt"),
        ("openspiel:goofspiel(num_cards=-1)", "OpenSpiel refuses it"),
        ("openspiel:normal_form_extensive_game(game=kuhn_poker())", "it wraps another game"),
        ("openspiel:mfg_garnet", "mean-field"),
        ("openspiel:negotiation", "its own random generator"),
        ("openspiel:2048", "it has only one player"),
        ("openspiel:zerosum", "it wraps another game"),
        ("defuse:kuhn_poker", "defuse is a single game"),
        ("openspeil:kuhn_poker", "unknown game 'openspeil': did you mean 'openspiel'"),
    ],
)
def test_unplayable_game_is_refused(name: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=message):
        find_game(name, REPO)
    assert capfd.readouterr().err == ""  # the engine also prints what it raises


def test_game_has_one_canonical_name() -> None:
    one = find_game("openspiel:liars_dice(numdice=1,dice_sides=3)", REPO)
    assert one is find_game("openspiel:liars_dice(dice_sides=3,numdice=1)", Path("elsewhere"))
    assert one.name == "openspiel:liars_dice(dice_sides=3,numdice=1)"
    assert find_game("openspiel:kuhn_poker()", REPO).name == "openspiel:kuhn_poker"
    assert one.words.summarize_rules(one.rules()) == "dice_sides 3, numdice 1"
    assert find_game("openspiel:kuhn_poker", REPO).words.summarize_rules(None) == ""


def test_moves_are_hidden_until_all_are_made() -> None:
    """In goofspiel, the second bidder sees what the first one saw, whatever the first one bids."""
    game = find_game("openspiel:goofspiel(imp_info=True,num_cards=4,points_order=descending)", REPO)
    seen = []
    for bid in ("[P0]Bid: 1", "[P0]Bid: 4"):
        state = game.deal(game.rules(), 2, DealStreams(3, 0).deck())
        assert state.seat == 0
        state.apply(bid)
        assert state.seat == 1
        view = state.view()
        seen.append((view.sees, view.names, view.history, view.tensor))
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("name", "about", "begins"),
    [
        ("tic_tac_toe", "The board, as OpenSpiel writes it", "..."),
        ("chess", "The board, as OpenSpiel writes it", "rnbqkbnr\npppppppp\n........\n"),
        ("universal_poker", "", "Round 0\nPlayer: 0\nPot: 200\n"),
        ("skat", "", "PlPos:0\nPhase:bidding\n"),
        ("battleship", "What the seat sees, as OpenSpiel writes it", ""),
        ("nim", "The board, as OpenSpiel writes it", ""),
    ],
)
def test_engine_text_is_shown_as_fields_or_a_board(name: str, about: str, begins: str) -> None:
    """If nothing is hidden, the text is a public board and moves are announced.

    Otherwise each seat has its own text.
    """
    game = find_game(f"openspiel:{name}", REPO)
    state = game.deal(game.rules(), game.seats[0], DealStreams(1, 0).deck())
    teller, move = game.words.teller(state, Reader()), next(iter(state.view().names.values()))
    panel = teller.panels()[0]
    assert (panel.public or panel.truth).startswith(begins)
    assert bool(panel.folded) == (not begins)
    assert about in (panel.title, panel.folded[0] if panel.folded else "")
    is_open = panel.seat is None
    (line,) = teller.describe_move(0, move, state.apply(move))
    assert (line.sentence, line.truth) == ((f"seat 0: {move}", "") if is_open else ("seat 0 moves.", f"chose {move}"))


def test_chance_outcomes_come_from_the_deal() -> None:
    game = find_game("openspiel:leduc_poker", REPO)
    drawn = [game.deal_to_json(game.deal(game.rules(), 2, DealStreams(0, deal).deck())) for deal in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1]
    assert len({str(one) for one in drawn}) == 3


def test_only_the_engines_own_bots_receive_the_state() -> None:
    game = find_game("openspiel:gin_rummy", REPO)
    view = game.deal(game.rules(), 2, DealStreams(0, 0).deck()).view()

    class Spy(pyspiel.Bot):  # type: ignore[misc, name-defined]
        def step(self, state: object) -> int:
            raise AssertionError("the bot received the state")

    assert view.asked_of(pyspiel.make_simple_gin_rummy_bot(view.parameters, view.seat)) in view.names
    with pytest.raises(TypeError, match="the engine's own bots"):
        view.asked_of(Spy())
