"""Helpers for BS tests: seated bots, whole games, and games with chosen hands."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

from dubito.game import GameEvent, Player
from dubito.game.events import EVERYTHING
from dubito.game.log import Log, Position
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.games.bs.cards import Card
from dubito.games.bs.engine import State, deal
from dubito.games.bs.facts import random_answer
from dubito.games.bs.knowledge import BSRules
from dubito.games.bs.table import PublicState

Bot = type[Player]


def seat_bots(game: State, bots: Sequence[Bot], streams: DealStreams) -> Table[State]:
    return Table(game, [Entrant(bot.__name__, bot) for bot in bots], streams)


def play_deal(
    bots: Sequence[Bot],
    seed: int,
    number: int = 0,
    watch: Callable[[Sequence[GameEvent]], None] | None = None,
    max_rounds: int = 1000,
) -> State:
    """Deal and play one game. `watch` is called with the events of every move."""
    streams = DealStreams(seed, number)
    game = deal(max_rounds, streams.deck())
    table = seat_bots(game, bots, streams)
    while not game.over:
        _, events = step(table, announce=watch is not None)
        if watch is not None:
            watch(events)
    return game


def deal_game(seed: int = 0, max_rounds: int = 1000) -> State:
    return deal(max_rounds, Random(seed))


def questions(deal: int) -> Iterator[tuple[State, Position[BSRules]]]:
    """Yield the questions of a random game, each with the engine's state."""
    game, chance = deal_game(deal), Random(deal)
    log = Log(game.start)
    while not game.over:
        yield game, Position(BSRules(), game.public.node, log.of(game.seat))
        log.add(game.apply(random_answer(game.view(), game.hands[game.seat].cards, chance), EVERYTHING))


def with_hands(*numbers: list[int], max_rounds: int = 1000, seed: int = 0) -> State:
    left = {number: iter(range(4)) for number in range(13)}
    hands = [[Card(number, next(left[number])) for number in hand] for hand in numbers]
    return State(hands, max_rounds, Random(seed))


def turn(game: State, play: Sequence[Card], *accusers: int) -> list[GameEvent]:
    """Play a turn in which these seats accuse, and return its events."""
    events = [*game.apply(play)]
    while game.view().node == "bs" and not game.over:
        events += game.apply(game.seat in accusers)
    return events


def numbers_in_hand(game: State, seat: int) -> list[int]:
    return [card.number for card in game.hands[seat].cards]


def snapshot(game: State) -> Any:
    """Return everything that a move can change."""
    public = {name: deepcopy(getattr(game.public, name)) for name in PublicState.__slots__}
    piles = [(tuple(hand.cards), hand.bits) for hand in (*game.hands, game.pile)]
    names = ("seat", "over", "turns_played", "winner", "_is_lie")
    rest = [getattr(game, name) for name in names]
    return public, piles, rest, deepcopy(game.counts), list(game.accusers), game._rng.getstate()
