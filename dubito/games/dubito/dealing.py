"""Dealing a game from a stream, with or without players at its table."""

from collections.abc import Sequence
from random import Random

from dubito.game import Player
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.games.dubito.core_game import Game
from dubito.games.dubito.rules import Rules, deal_hands


def deal_game(rules: Rules, seats: int, deck: Random) -> Game:
    """A game whose cards are shuffled by this stream; raises UsageError for a number of seats it cannot have."""
    return Game(rules, deal_hands(deck, seats, rules))


def deal_table(
    entrants: Sequence[Entrant],
    rules: Rules,
    streams: DealStreams,
    *,
    deal: int = 0,
    number: int = 0,
    fallback: type[Player] | None = None,
    services: Sequence[object] = (),
) -> Table:
    """Deal a game from the deck's stream and seat these entrants at it."""
    game = deal_game(rules, len(entrants), streams.deck())
    return Table(game, entrants, streams, deal=deal, number=number, fallback=fallback, services=services)
