"""Seats BS bots at a dealt game and plays it: what a table does, without errors, clocks and stores."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

from dubito.game import GameEvent, Player, Seating, make_player
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.state import Game, deal
from dubito.games.bs.table import Public
from dubito.streams import DealStreams

Bot = type[BSBot]
Told = Callable[[Game, Sequence[GameEvent]], None]


def seat_bots(game: Game, bots: Sequence[Bot], streams: DealStreams) -> list[Player]:
    """New instances of these, in their seats."""
    players = []
    for seat, bot in enumerate(bots):
        seating = Seating(seat, 0, 0, streams.seat(seat), partial(game.cards, seat))
        players.append(make_player(bot, seating, {}))
    return players


def play(game: Game, players: Sequence[Player], told: Told | None = None) -> Game:
    """Play a game to its end; `told` is called with what is observed of the start and of every move."""
    watchers = [player for player in players if type(player).observes()]
    announce = told is not None or bool(watchers)
    events: Sequence[GameEvent] = [game.start]
    while True:
        for event in events:
            for watcher in watchers:
                watcher.observe(event)
        if told is not None:
            told(game, events)
        if game.over:
            return game
        events = game.apply(players[game.seat].play(game.view()), announce)


def play_deal(
    bots: Sequence[Bot], seed: int, number: int = 0, told: Told | None = None, max_rounds: int = 1000
) -> Game:
    """Deal and play one game."""
    streams = DealStreams(seed, number)
    game = deal(max_rounds, streams.deck())
    return play(game, seat_bots(game, bots, streams), told)


def dealt(seed: int = 0, max_rounds: int = 1000) -> Game:
    """A game nobody has moved in."""
    return deal(max_rounds, Random(seed))


def with_hands(*numbers: list[int], max_rounds: int = 1000, seed: int = 0) -> Game:
    """A game of these hands, by numbers: the first of a number is its copy 0, the next one copy 1, and so on."""
    left = {number: iter(range(4)) for number in range(13)}
    hands = [[Card(number, next(left[number])) for number in hand] for hand in numbers]
    return Game(hands, max_rounds, Random(seed))


def turn(game: Game, play: Sequence[Card], *accusers: int) -> list[GameEvent]:
    """Play a turn in which these seats accuse; returns what is observed of it."""
    events = [*game.apply(play)]
    while game.view().node == "bs" and not game.over:
        events += game.apply(game.seat in accusers)
    return events


def held(game: Game, seat: int) -> list[int]:
    """The numbers of a seat's hand, in order."""
    return [card.number for card in game.hands[seat].cards]


def snapshot(game: Game) -> Any:
    """All that a move may change."""
    public = {name: deepcopy(getattr(game.public, name)) for name in Public.__slots__}
    piles = [(tuple(hand.cards), hand.bits) for hand in (*game.hands, game.pile)]
    names = ("seat", "over", "turns_played", "winner", "_lie")
    rest = [getattr(game, name) for name in names]
    return public, piles, rest, deepcopy(game.counts), list(game._accusers), game._rng.getstate()
