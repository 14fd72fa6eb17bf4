"""A seat of BS sees the current public facts and its own hand, and nothing else."""

import gc
from collections.abc import Sequence
from typing import Any

import pytest

from bots.manual.bs.calculating_liar import CalculatingLiar
from bots.manual.bs.player1 import Player1
from bots.manual.bs.player3 import Player3
from dubito.errors import BotError
from dubito.game import GameEvent
from dubito.game.streams import DealStreams
from dubito.game.table import play_game
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card, DealEvent, Hand, HandView, PlayEvent, RoundEvent, TurnEvent, WinEvent
from dubito.games.bs.engine import State
from dubito.games.bs.game import GAME
from dubito.games.bs.table import Table
from tests.games.bs.kit import deal_game, play_deal, seat_bots, turn, with_hands

FACTS = ("node", "number", "mover", "n_cards", "pile", "hands", "order", "round")


def facts(table: Table) -> tuple[Any, ...]:
    return tuple(getattr(table, name) for name in FACTS)


def test_table_shows_the_current_game() -> None:
    game = deal_game()
    table = game.view()
    assert facts(table) == ("cards", 0, 0, 0, 0, (13, 13, 13, 13), (0, 1, 2, 3), 1)
    game.apply(game.hands[0].cards[:3])
    assert facts(table) == facts(game.view()) == ("bs", 0, 0, 3, 3, (10, 13, 13, 13), (0, 1, 2, 3), 1)
    for _ in range(3):
        game.apply(False)
    assert facts(table) == facts(game.view()) == ("cards", 1, 1, 0, 3, (10, 13, 13, 13), (0, 1, 2, 3), 1)


@pytest.mark.parametrize("name", FACTS)
def test_table_is_read_only(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(deal_game().view(), name, 0)


def test_view_gives_no_access_to_other_hands() -> None:
    game = deal_game()
    while game.turns_played < 8:
        seat = game.seat
        views = (game.view(), game.cards(seat, DealStreams(0, 0).seat(seat)))
        for view in views:
            reached = reachable(view)
            assert game.hands[seat] in reached
            assert not [one for one in reached if one in (game, game.pile, *without(game.hands, seat), *game.counts)]
            assert not [one for one in reached if isinstance(one, Card) and one not in game.hands[seat].cards]
        game.apply(game.hands[seat].cards[:1] if views[0].node == "cards" else seat == 3)


def without(hands: list[Hand], seat: int) -> list[Hand]:
    return [hand for other, hand in enumerate(hands) if other != seat]


def reachable(root: object) -> list[object]:
    """Return all objects reachable from this one, except types and what they refer to."""
    found, todo = [], [root]
    seen = set()
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, type):
            seen.add(id(one))
            found.append(one)
            todo += gc.get_referents(one)
    return found


def test_events_contain_only_sizes() -> None:
    kinds = {DealEvent, PlayEvent, TurnEvent, RoundEvent, WinEvent}
    seen: list[GameEvent] = [event for event in deal_game().start if not event.silent]
    play_deal([CalculatingLiar, Player1, Player1, CalculatingLiar], 2, watch=seen.extend)
    assert {type(event) for event in seen} == kinds
    assert all(type(one) in (int, tuple) for event in seen for one in reachable(event)[1:])


def test_hand_is_live_and_in_the_order_drawn() -> None:
    game = with_hands([5, 0, 0, 5], [1, 6], [2, 7], [3, 8])
    view = HandView(game.hands[0])
    assert [card.number for card in view] == [5, 0, 0, 5]
    assert (len(view), view[1], view[-1], view.first(2)) == (4, Card(0, 0), Card(5, 1), [Card(5, 0), Card(0, 0)])
    assert (view.of(5), view.count(5), view.of(6), view.count(6)) == ([Card(5, 0), Card(5, 1)], 2, [], 0)
    assert repr(view) == "HandView([5, 0, 0, 5])"
    turn(game, view.of(5), 2)  # a caught lie: the cards that seat 0 picks up come last
    assert [card.number for card in view] == [0, 0, 5, 5]


class Diary(BSBot):
    """Records its questions and events."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.entries: list[tuple[Any, ...]] = []

    def initialize(self, table: Table) -> None:
        self.entries.append(("initialize", facts(table)))

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        self.entries.append(("request_cards", number))
        return self.cards.first(1)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        self.entries.append(("bs", seat, number, n_cards))
        return False

    def update(self, table: Table) -> None:
        self.entries.append(("update", facts(table)))


def test_b7_a_bot_is_called_as_the_source_calls_it() -> None:
    game = with_hands([0, 4], [1, 6], [2, 7], [3, 8])
    table = seat_bots(game, [Player3, Diary, Player3, Player3], DealStreams(0, 0))
    play_game(table)
    bot = table.players[1]
    assert isinstance(bot, Diary)
    order = (0, 1, 2, 3)
    assert bot.entries == [
        ("initialize", ("cards", 0, 0, 0, 0, (2, 2, 2, 2), order, 1)),
        ("bs", 0, 0, 1),
        ("request_cards", 1),
        ("bs", 2, 2, 1),
        ("bs", 3, 3, 1),
        ("update", ("cards", 4, 0, 0, 4, (1, 1, 1, 1), order, 1)),
        ("bs", 0, 4, 1),
        ("update", ("cards", 5, 0, 0, 5, (0, 1, 1, 1), order, 2)),
    ]


def test_table_accepts_no_answer_between_questions() -> None:
    tables: list[Table] = []

    class Keeper(Player1):
        def update(self, table: Table) -> None:
            tables.append(table)

    play_deal([Keeper, Player1, Player1, Player1], 0, max_rounds=1)
    assert tables[0].why_illegal([Card(0, 0)]) == "this view is between two questions, so it accepts no answer"


def test_events_are_sent_only_to_observers() -> None:
    class Observer(Player1):
        def observe(self, event: GameEvent) -> None:
            super().observe(event)

    assert [bot.needs_events() for bot in (BSBot, Player1, CalculatingLiar, Diary, Observer)] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_unanswered_nodes_of_a_bot_are_listed() -> None:
    class Half(BSBot):
        def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
            return False

    class Own(BSBot):
        def play(self, view: Table) -> Any:
            return False

    assert GAME.missing(BSBot) == ["cards (request_cards)", "bs (bs)"]
    assert [*map(GAME.missing, (Half, Own, Player1))] == [["cards (request_cards)"], [], []]
    with pytest.raises(BotError, match="Half does not implement request_cards yet"):
        play_deal([Half] * 4, 0)


def test_game_needs_only_the_stream_it_was_dealt_from() -> None:
    games: list[State] = [play_deal([CalculatingLiar] * 4, 6), play_deal([CalculatingLiar] * 4, 6)]
    assert games[0].ending() == games[1].ending()
