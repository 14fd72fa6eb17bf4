"""Hand-written bots in pyspiel's games."""

from collections import deque
from random import Random
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms.evaluate_bots import evaluate_bots

from bots.base import BotBase
from bots.manual.defuse.medium import Medium
from dubito.errors import IllegalOutput, UsageError
from dubito.game import GameEvent
from dubito.games.defuse.engine import View
from dubito.games.dubito.cards import TurnData
from dubito.games.dubito.events import Event, GameStartEvent, PlayerWonEvent
from dubito.plugins.openspiel.spiel import SeatedBot
from tests.plugins.openspiel.training.kit import draw_step

DUBITO: Any = pyspiel.load_game("dubito(players=4)")


def play_bots(game: Any, bots: list[Any], seed: int = 0) -> Any:
    state, chance = game.new_initial_state(), np.random.RandomState(seed)
    evaluate_bots(state, bots, chance)
    return state


def test_bots_play_as_they_play_in_the_harness() -> None:
    """One bot is honest if possible, one never doubts, and one doubts whenever it can."""
    names = ["AlwaysTruthful", "MrNoDoubt", "MrDoubt", "StefaBot"]
    counts = {name: np.zeros(4) for name in names}
    for seed in range(4):
        state = play_bots(DUBITO, [SeatedBot(DUBITO, seat, name) for seat, name in enumerate(names)], seed)
        game = state.course.engine
        for seat, name in enumerate(names):
            own = game.counts[seat]
            counts[name] += own.bluffs, own.play_turns, own.doubts, own.not_first_turns
    truthful, never, always, _ = counts.values()
    assert never[2] == 0 < never[3]
    assert always[2] > 0.9 * always[3] > 10
    assert truthful[0] < 0.8 * truthful[1], "it bluffs only if it must"


def test_the_better_bot_wins_at_draw_and_defuse() -> None:
    """In the harness, Medium wins about three of four games against Scared as the second seat."""
    game: Any = pyspiel.load_game("dubito_defuse")
    seats = [SeatedBot(game, 0, "Scared", seed=1), SeatedBot(game, 1, "Medium", seed=1)]
    wins = sum(play_bots(game, seats, seed).returns()[1] > 0 for seed in range(60))
    assert 30 < wins < 58


def test_bots_finish_a_game_of_bs() -> None:
    game: Any = pyspiel.load_game("dubito_bs")
    state = play_bots(
        game, [SeatedBot(game, s, name) for s, name in enumerate(["ConMan", "Player1", "Jerk", "Player3"])]
    )
    assert sum(state.returns()) == 1


class Watcher(BotBase):
    """Records what it observes, with its hand at that time."""

    made: list["Watcher"] = []

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.seen: list[tuple[Event, int]] = []
        self.made.append(self)

    def observe(self, event: Event) -> None:
        self.seen.append((event, len(self.cards)))

    def bluff_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return self.rng.random() < 0.3

    def bluff_regular(self, p: TurnData) -> bool:
        return False


def test_a_bot_observes_what_its_seat_does() -> None:
    """A bot does not observe the last decision, because pyspiel informs bots before each decision."""
    missed = []
    for seed in range(4):
        Watcher.made = []
        state = play_bots(DUBITO, [SeatedBot(DUBITO, seat, Watcher) for seat in range(4)], seed)
        logged = [event for event in state.course.log.events if not event.silent]
        for watcher in Watcher.made:
            events = [event for event, _ in watcher.seen]
            won = [
                place for place, e in enumerate(logged) if isinstance(e, PlayerWonEvent) and e.player_id == watcher.id
            ]
            until = won[0] + 1 if won else len(logged)
            assert events == logged[: len(events)]
            assert 0 <= until - len(events) <= 3
            missed.append(len(logged) - until)
    assert max(missed) > 10


def test_a_new_game_is_played_by_a_new_instance() -> None:
    Watcher.made = []
    bots = [SeatedBot(DUBITO, seat, Watcher) for seat in range(4)]
    first = play_bots(DUBITO, bots, 0)
    play_bots(DUBITO, bots, 0)
    assert len(Watcher.made) == 8
    assert Watcher.made[0].rng.random() != Watcher.made[4].rng.random()
    again = play_bots(DUBITO, [SeatedBot(DUBITO, seat, Watcher) for seat in range(4)], 0)
    assert str(again) == str(first), "randomness depends only on the seed and the game's number"


class Spy(Medium):
    """Records what it observes."""

    seen: list[tuple[int, GameEvent]] = []

    def observe(self, event: GameEvent) -> None:
        self.seen.append((self.id, event))


def test_bot_does_not_observe_private_events_of_others() -> None:
    Spy.seen = []
    game: Any = pyspiel.load_game("dubito_defuse")
    for seed in range(3):
        play_bots(game, [SeatedBot(game, seat, Spy) for seat in (0, 1)], seed)
    private = [(seat, event.only) for seat, event in Spy.seen if event.only is not None]
    assert len(private) > 20
    assert all(seat == only for seat, only in private)


class Counting(Watcher):
    """Looks at its hand at node C."""

    def should_doubt(self, p: TurnData) -> bool:
        assert len(self.cards) == p.my_n_cards
        return False


def test_bot_treats_clones_like_the_state() -> None:
    """A bot also plays two games without being told that a new one starts."""
    Watcher.made = []
    bot = SeatedBot(DUBITO, 0, Counting)
    for seed in (4, 5):
        state, chance = DUBITO.new_initial_state(), Random(seed)
        while not state.is_terminal():
            state.apply_action(bot.step(state.clone()) if state.current_player() == 0 else draw_step(state, chance))
    assert len(Watcher.made) == 2
    assert all(isinstance(watcher.seen[0][0], GameStartEvent) for watcher in Watcher.made)


@pytest.mark.parametrize("again", ["restart", "restart_at"])
def test_restarted_bot_forgets_the_game(again: str) -> None:
    Watcher.made = []
    bot, state, chance = SeatedBot(DUBITO, 0, Watcher), DUBITO.new_initial_state(), Random(4)
    while state.current_player() != 0:
        state.apply_action(draw_step(state, chance))
    first = bot.step(state)
    bot.restart() if again == "restart" else bot.restart_at(state)
    assert bot.step(state) == first
    assert len(Watcher.made) == 2


class Wrong(Medium):
    """Puts the bomb in a place outside the pile."""

    def defuse(self, view: View) -> int:
        return 40


def test_illegal_action_of_a_bot_is_refused() -> None:
    game: Any = pyspiel.load_game("dubito_defuse")
    bots = [SeatedBot(game, seat, Wrong) for seat in (0, 1)]
    with pytest.raises(IllegalOutput, match="the bomb goes to a place from 0"):
        deque(play_bots(game, bots, seed) for seed in range(20))


@pytest.mark.parametrize(
    ("bot", "says"),
    [
        ("StefaBott", "did you mean 'StefaBot'"),
        ("ConMan", "add `game: bs`"),
        ("OpenAIBot", "OpenAIBot asks a model, which is only possible in runs"),
    ],
)
def test_unsuitable_bots_are_refused(bot: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        SeatedBot(DUBITO, 0, bot)


def test_a_bot_that_chooses_its_cards_needs_moves_that_do() -> None:
    """Sherlock wins most of its games against three random players."""
    bots = ["Sherlock", "RandomBoi", "RandomBoi", "RandomBoi"]
    with pytest.raises(UsageError, match=r"Sherlock does not answer the nodes A-E.*dubito\(moves=cards\)"):
        play_bots(DUBITO, [SeatedBot(DUBITO, seat, name) for seat, name in enumerate(bots)])
    game: Any = pyspiel.load_game("dubito(players=4,moves=cards)")
    seats = [SeatedBot(game, seat, name) for seat, name in enumerate(bots)]
    assert sum(play_bots(game, seats, seed).returns()[0] for seed in range(4)) > 2
