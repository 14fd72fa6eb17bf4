"""R26: the events that a table observes, and when."""

import operator
import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import FrozenInstanceError
from typing import Final

import pytest
from pydantic import TypeAdapter

from dubito.game import GameEvent
from dubito.game.table import Entrant, Table, play_game, step
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.engine import State, WinRule
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)
from tests.engine.helpers import WIN_RULES, output, position, script, scripted, table

BOTH = pytest.mark.parametrize("win_rule", WIN_RULES)


def collect_events(at: Table) -> list[list[GameEvent]]:
    return [script(at, seat).observed[1:] for seat in range(len(at.players))]


def play(hands: str, win_rule: WinRule, *moves: str) -> tuple[Table[State], list[GameEvent]]:
    """Play these moves with scripted players and return all events."""
    at, events = table(position(hands, win_rule)), list[GameEvent]()
    for move in moves:
        script(at, at.state.seat).moves.append(move)
        events += step(at)[1]
    return at, events


@BOTH
def test_r26_everyone_observes_the_start(win_rule: WinRule) -> None:
    at = table(position("A2/345/6/7", win_rule))
    for seat in range(4):
        assert script(at, seat).observed == [GameStartEvent(CardList([0, 1, 2, 3]), CardList([2, 3, 1, 1]))]


@BOTH
def test_r26_everyone_observes_every_play(win_rule: WinRule) -> None:
    at, events = play("A2/34/567/89", win_rule, "A as 9", "3", "doubt", "56 as 5")
    assert len(events) == 4
    assert collect_events(at) == [events] * 4


class Peeking(PlayerAI):
    """Looks at its hand when it observes an event."""

    def __init__(self, id: int, *, moves: list[str]) -> None:
        super().__init__(id)
        self.moves, self.sizes = moves, list[int]()

    def play(self, p: TurnData) -> TurnOutput:
        return output(self.moves.pop(0))

    def observe(self, event: Event) -> None:
        self.sizes.append(len(self.cards))


def test_r26_the_cards_have_moved_when_the_table_observes() -> None:
    """R26: plays and doubts are observed after the cards have moved."""
    at = table(position("AA2/34/56"), Entrant("Peeking", Peeking, {"moves": ["AA as 9"]}), scripted("doubt"))
    step(at)
    step(at)
    player = at.players[0]
    assert isinstance(player, Peeking)
    assert player.sizes == [3, 1, 3]


def test_r26_the_order_within_a_turn() -> None:
    """R26: the doubt comes first, then all discards in ascending order, then all wins in order of place."""
    _, events = play("2/AAA222/34/5/A67", "contested", "2 as 2", "doubt")
    assert events[1:] == [
        DoubtResolvedEvent(1, 0, False, CardList([2]), CardList([2]), 2, 0),
        DiscardEvent(1, 2),
        PlayerWonEvent(0, 1),
    ]
    _, events = play("2A8/AAA222/34/56", "immediate", "2A as 9", "A", "doubt")
    discards = [DiscardEvent(1, 1), DiscardEvent(1, 2), PlayerWonEvent(1, 1)]
    assert events[2:] == [DoubtResolvedEvent(2, 1, True, CardList([1]), CardList([2, 1, 1]), 9, 0), *discards]
    _, events = play("2/222/34/56", "contested", "2 as 2", "doubt")
    assert events[2:] == [DiscardEvent(1, 2), PlayerWonEvent(0, 1), PlayerWonEvent(1, 2)]


def test_r26_winner_observes_nothing_after_its_win() -> None:
    at, events = play("A/34/56/78", "immediate", "A as 9", "3", "doubt")
    assert collect_events(at) == [events[:2], events, events, events]
    assert events[1] == PlayerWonEvent(0, 1)


def test_r26_pending_winner_observes_until_placed() -> None:
    at, events = play("A/34/56/78", "contested", "A as 9", "3", "5")
    assert events[2] == PlayerWonEvent(0, 1)
    assert collect_events(at) == [events[:3], events, events, events]


def test_r26_first_of_two_winners_does_not_observe_the_second() -> None:
    at, events = play("A/AAA/34/56", "contested", "A as A", "doubt")
    assert events[-2:] == [PlayerWonEvent(0, 1), PlayerWonEvent(1, 2)]
    assert collect_events(at) == [events[:-1], events, events, events]


def test_r26_the_loser_of_a_doubt() -> None:
    assert DoubtResolvedEvent(2, 1, True, CardList([1]), CardList([1]), 9, 0).loser_id == 1
    assert DoubtResolvedEvent(2, 1, False, CardList([1]), CardList([1]), 1, 0).loser_id == 2


EVENTS: list[Event] = [
    GameStartEvent(CardList([0, 1, 2]), CardList([18, 18, 18])),
    CardsPlayedEvent(0, 9, 1),
    DoubtResolvedEvent(1, 0, True, CardList([1]), CardList([1]), 9, 0),
    DiscardEvent(0, 1),
    PlayerWonEvent(0, 1),
]


@pytest.mark.parametrize("event", EVENTS)
def test_r26_events_are_immutable(event: Event) -> None:
    """R26: the whole table shares the event objects."""
    for name in event.__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(event, name, None)
    assert hash(event) == hash(event)


CHANGES: Final[dict[str, Callable[[CardList], object]]] = {
    "append": lambda cards: cards.append(1),
    "extend": lambda cards: cards.extend([1]),
    "insert": lambda cards: cards.insert(0, 1),
    "remove": lambda cards: cards.remove(1),
    "pop": lambda cards: cards.pop(),
    "clear": lambda cards: cards.clear(),
    "sort": lambda cards: cards.sort(),
    "reverse": lambda cards: cards.reverse(),
    "set": lambda cards: operator.setitem(cards, 0, 2),
    "delete": lambda cards: operator.delitem(cards, slice(None)),
    "add in place": lambda cards: cards.__iadd__([1]),
    "repeat in place": lambda cards: cards.__imul__(2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_r26_card_lists_cannot_be_changed(change: str) -> None:
    cards = CardList([1, 2])
    with pytest.raises(TypeError, match="cannot be changed"):
        CHANGES[change](cards)
    assert cards == [1, 2]


def test_r26_card_lists_are_lists_whose_sums_are_plain_lists() -> None:
    cards = CardList([3, 1])
    assert isinstance(cards, list)
    for plain in (cards + [0], [0] + cards, cards[:], cards * 2, cards.copy()):  # noqa: RUF005, what bots write
        assert type(plain) is list
    assert (cards + [0], [0] + cards, sorted(cards)) == ([3, 1, 0], [0, 3, 1], [1, 3])  # noqa: RUF005
    for same in (pickle.loads(pickle.dumps(cards)), deepcopy(cards)):  # noqa: S301
        assert (type(same), same, hash(same)) == (CardList, cards, hash(cards))
    adapter = TypeAdapter(CardList)
    assert type(adapter.validate_json(adapter.dump_json(cards))) is CardList


def test_r26_events_and_turn_data_have_card_lists() -> None:
    at, events = play("AA2/34/56", "immediate", "AA as 9", "doubt")
    doubt = events[-1]
    assert isinstance(doubt, DoubtResolvedEvent)
    assert type(doubt.latest_cards) is type(doubt.board_cards) is CardList
    assert type(at.state.view().playing_cards) is CardList
    start = script(at, 0).observed[0]
    assert isinstance(start, GameStartEvent)
    assert type(start.player_ids) is type(start.initial_card_counts) is CardList


def test_r26_turn_data_is_new_each_turn() -> None:
    game = position("A2/34/56")
    one, other = game.view(), game.view()
    assert one == other
    assert one is not other
    assert one.me is not other.me


class Silent(PlayerAI):
    """A bot without `observe`."""

    def play(self, p: TurnData) -> TurnOutput:
        return self.bluff(p, maximize=False)


def test_events_are_built_only_on_demand() -> None:
    assert step(table(position("A2/34/56"), Silent, Silent, Silent))[1] == []
    assert step(table(position("A2/34/56"), Silent, Silent, Silent), announce=True)[1] != []
    assert step(table(position("A2/34/56"), Silent))[1] != []


def test_game_continues_after_its_last_observer_leaves() -> None:
    entrants = [scripted("A as 9"), *[Entrant("Silent", Silent)] * 3]
    at = table(position("A/34/56/78"), *entrants)
    step(at)
    assert at.watchers == []
    assert step(at)[1] == []
    assert play_game(at).over
    assert script(at, 0).observed[1:] == [CardsPlayedEvent(0, 9, 1), PlayerWonEvent(0, 1)]
