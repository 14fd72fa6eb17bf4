"""Each game passes pyspiel's own tests and agrees with its engine."""

import subprocess
import sys
from collections import Counter
from math import exp, factorial, log
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pyspiel
import pytest

from dubito.errors import IllegalOutput, UsageError
from dubito.games.bs.cards import TakeEvent
from dubito.games.dubito.engine import Result
from dubito.games.dubito.events import DiscardEvent
from tests.conftest import in_gate
from tests.plugins.openspiel.training.kit import SHORT, WHOLE, draw_step, new, states

DISCARD, TAKE = 5, 8  # kinds of rows at Dubito and BS
GOLDEN = Path(__file__).parent / "playthroughs"


@pytest.mark.parametrize("name", in_gate(SHORT, SHORT[::3]))
def test_pyspiels_own_test_of_a_game_passes(name: str) -> None:
    pyspiel.random_sim_test(pyspiel.load_game(name), 1, serialize=True, verbose=False)


@pytest.mark.at_length
@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.txt")))
def test_playthrough_is_unchanged(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an intended change, `python -m tests.plugins.openspiel.training.golden` rewrites it."""
    other = "open_spiel.python.mfg.games.linear_quadratic"  # a game without a playthrough that needs SciPy
    if other not in sys.modules:
        monkeypatch.setitem(sys.modules, other, ModuleType(other))
    from open_spiel.python.algorithms.generate_playthrough import playthrough

    golden = file.read_text()
    name = golden.partition("\n")[0].removeprefix("game: ")
    actions = [int(line.removeprefix("action: ")) for line in golden.splitlines() if line.startswith("action: ")]
    assert playthrough(name, action_sequence=actions, seed=0) == golden


def test_each_game_has_a_playthrough() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {"dubito", "dubito_cards", "dubito_bs", "dubito_defuse"}


@pytest.mark.parametrize("name", WHOLE)
def test_returns_match_the_engine(name: str) -> None:
    for seed in range(3):
        *_, state = states(name, seed)
        engine = state.course.engine
        if name.startswith("dubito("):
            worth = {Result.HARD_WIN: 1.0, Result.SOFT_WIN: 0.5}
            scores = [worth.get(engine.result(seat), 0.0) for seat in range(state.num_players())]
            more = [scores[0] - scores[1], scores[1] - scores[0]]
            assert state.returns() == (more if len(scores) == 2 else scores)
        else:
            others = -1.0 if name == "dubito_defuse" else 0.0
            assert state.returns() == [1.0 if seat == engine.winner else others for seat in range(state.num_players())]
        assert not any(new(name).returns())


@pytest.mark.parametrize("name", WHOLE)
def test_a_seat_remembers_all_it_saw(name: str) -> None:
    """A seat's text starts with its earlier text, and the tensor distinguishes whatever the text does."""
    names: dict[bytes, str] = {}
    for seed in range(2 if name == "dubito_defuse" else 1):
        known: dict[int, str] = {}
        for state in states(name, seed):
            for seat in range(state.num_players()) if state.is_terminal() else [state.current_player()]:
                text = state.information_state_string(seat)
                assert text.startswith(known.get(seat, ""))
                known[seat] = text
                tensor = np.asarray(state.information_state_tensor(seat), np.float32).tobytes()
                if not state.is_terminal():
                    assert names.setdefault(tensor, text) == text
    assert len(names) > 40


def test_winner_of_dubito_observes_nothing_more() -> None:
    *_, state = states("dubito(players=6)")
    for place in (1, 2, 3):
        seat = state.course.engine.places.index(place)
        assert state.information_state_string(seat).endswith(f"player won: player_id {seat}, position {place}")
        assert str(state).count("won") == 4


def test_the_tensor_of_dubito_has_the_sets_that_are_gone() -> None:
    *_, state = states("dubito")
    gone = {event.card_number for event in state.course.log.events if isinstance(event, DiscardEvent)}
    seat = state.course.engine.places.index(None)
    discards = [row for row in state.course.recall(seat)["log"] if row[0] == DISCARD]
    assert {number - 1 for _, _, number, *_ in discards} == gone != set()


@pytest.mark.parametrize(
    "name", ["dubito(max_turns=8)", "dubito(moves=cards,max_turns=8)", "dubito_bs(max_rounds=2)", "dubito_defuse"]
)
def test_recall_returns_a_copy(name: str) -> None:
    """The recall is also the same for a copy of the game, which computes it from scratch."""
    *_, state = states(name)
    tensor = state.information_state_tensor(0)
    for part in state.course.recall(0).values():
        part.clear()
    assert state.information_state_tensor(0) == tensor == state.clone().information_state_tensor(0)


def test_picked_up_pile_of_bs_reveals_its_cards() -> None:
    """The rows of the tensor end with the numbers of the cards, without their copies."""
    learnt, at = 0, 0
    for state in states("dubito_bs(max_rounds=12)"):
        new_events, at = state.course.log.events[at:], len(state.course.log.events)
        for event in new_events:
            if isinstance(event, TakeEvent):
                numbers: Any = event.cards
                rows = state.course.recall(event.only)["log"]
                last = max(place for place, row in enumerate(rows) if row[0] == TAKE)
                n, *cards = [number for row in rows[last:] for number in row[1:]]
                assert cards[: int(n)] == [1 + int(number) for number in numbers]
                learnt += 1
    assert learnt > 20


def test_other_hands_are_not_revealed_in_bs() -> None:
    """Seats 1 and 2 hold each other's card. Nobody accuses, so seats 0 and 3 cannot know."""
    compared = 0
    for seed in range(3):
        here, there, chance = new("dubito_bs(max_rounds=4)"), new("dubito_bs(max_rounds=4)"), Random(seed)
        deck = chance.sample([card % 13 for card in range(52)], 52)
        other = deck[:]
        swap = next(n for n in range(13) if deck[13 + n] != deck[26 + n])
        other[13 + swap], other[26 + swap] = other[26 + swap], other[13 + swap]
        for one, card in zip(deck, other, strict=True):
            here.apply_action(one)
            there.apply_action(card)
        while not here.is_terminal():
            if 14 in here.legal_actions():
                action = 14
            else:
                action = chance.choice(sorted({*here.legal_actions()} & {*there.legal_actions()}))
            here.apply_action(action)
            there.apply_action(action)
            assert str(here) != str(there)
            for seat in (0, 3):
                for show in ("information_state_string", "observation_string", "information_state_tensor"):
                    assert getattr(here, show)(seat) == getattr(there, show)(seat)
                    compared += 1
    assert compared > 200


@pytest.mark.parametrize(("players", "kept"), [(3, 0.685), (8, 0.990)])
def test_all_deals_without_a_set_are_equally_likely(players: int, kept: float) -> None:
    """Count the deals without a set: their share of all deals is known (R2)."""
    for seed in range(8):
        state, chance, chances = new(f"dubito(players={players})"), Random(seed), 0.0
        while state.is_chance_node() and state.course.engine is None:
            odds = dict(state.chance_outcomes())
            card = draw_step(state, chance)
            state.apply_action(card)
            chances += log(odds[card])
        hands = [Counter(hand.cards) for hand in state.course.engine.hands]
        ways = 13 * log(factorial(4)) + log(2) - sum(log(factorial(n)) for hand in hands for n in hand.values())
        all_deals = log(factorial(54)) - sum(log(factorial(hand.total())) for hand in hands)
        assert exp(ways - all_deals - chances) == pytest.approx(kept, abs=0.001)
        assert max(count for hand in state.course.engine.hands for count in hand.counts) < 4


def test_a_card_that_would_make_a_set_is_not_dealt() -> None:
    state = new("dubito(players=3)")
    for card in (1, 1, 1):
        state.apply_action(card)
    assert 1 not in dict(state.chance_outcomes())
    assert 2 in dict(state.chance_outcomes())


@pytest.mark.parametrize("name", WHOLE)
def test_illegal_action_is_refused_and_changes_nothing(name: str) -> None:
    refused = 0
    for state in states(name, seed=1):
        if state.is_terminal():
            with pytest.raises(IllegalOutput, match=r"any seat after the end here: nothing is"):
                state.apply_action(0)
            continue
        before, legal = state.history(), state.legal_actions()
        for action in set(range(state.num_distinct_actions())) - set(legal):
            with pytest.raises(IllegalOutput, match=rf"{action} is not legal for seat {state.current_player()} here"):
                state.apply_action(action)
            refused += 1
        assert (state.history(), state.legal_actions()) == (before, legal)
    with pytest.raises(IllegalOutput, match="99 is not legal for chance here"):
        new(name).apply_action(99)
    assert refused > 100 or "moves" not in name  # at Dubito's nodes every action is legal


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dubito(players=9)", "Dubito needs 3 to 8 players, not 9"),
        ("dubito(players=2)", "Dubito needs 3 to 8 players, not 2; two players need the `duel` variant"),
        ("dubito(duel=true)", "a duel needs 2 players, not 3; seat 2, or leave out `duel`"),
        ("dubito(players=6,ranks=2,copies=2,jokers=1)", "the deck has 5 cards, too few for 6 players"),
        ("dubito(win_rule=late)", "win_rule: must be 'immediate' or 'contested', not 'late'"),
        ("dubito(moves=any)", "moves: 'any' is neither 'nodes' nor 'cards'"),
        ("dubito(max_turns=0)", "max_turns: must be at least 1, not 0"),
        ("dubito_bs(max_rounds=0)", "max_rounds: must be at least 1, not 0"),
    ],
)
def test_rules_that_no_game_has_are_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        pyspiel.load_game(name)


@pytest.mark.parametrize(("missing", "extra"), in_gate([("pyspiel", "openspiel"), ("shimmy", "pettingzoo")], 1))
def test_missing_extra_names_the_package_to_install(missing: str, extra: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; import dubito.plugins.openspiel.environment"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(f" is not installed: pip install 'dubito[{extra}]'")


def test_a_parameter_of_another_name_is_refused() -> None:
    with pytest.raises(pyspiel.SpielError, match="seats"):
        pyspiel.load_game("dubito(seats=4)")


def test_observers_of_other_kinds_are_refused() -> None:
    game: Any = pyspiel.load_game("dubito")
    public = pyspiel.IIGObservationType(perfect_recall=False, private_info=pyspiel.PrivateInfoType.NONE)
    assert game.make_py_observer(public) is None
    with pytest.raises(ValueError, match="leave out colour"):
        game.make_py_observer(None, {"colour": 1})
