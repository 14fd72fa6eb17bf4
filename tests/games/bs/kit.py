"""Seats BS bots at a dealt game and plays it: what a table does, without errors, clocks and stores."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from dubito.game import GameEvent, Player, Seating, make_player
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.state import Game, deal
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


def cards(*numbers: int) -> list[Card]:
    """The first copies of these numbers: `cards(3, 3)` are two cards of 3."""
    return [Card(number, numbers[:place].count(number)) for place, number in enumerate(numbers)]
