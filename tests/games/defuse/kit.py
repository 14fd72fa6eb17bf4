"""Helpers for draw and defuse: games with chosen cards, seated bots, whole games."""

from collections.abc import Sequence
from random import Random
from typing import Any

from dubito.files import NoRules
from dubito.game import Player
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, play_game
from dubito.games.defuse.engine import State
from dubito.games.defuse.game import GAME
from tests.games.kit import registry_of

BOTS = {bot.name: bot.cls for bot in registry_of("defuse").hand_written()}


def deal_game(deal: int = 0) -> State:
    game = GAME.deal(NoRules(), 2, DealStreams(0, deal).deck())
    assert isinstance(game, State)
    return game


def with_cards(top_first: str, mine: str = "", other: str = "") -> State:
    return State([mine.split(), other.split()], top_first.split()[::-1], Random(0))


def table_of(game: State, *bots: type[Player], **how: Any) -> Table[State]:
    return Table(game, [Entrant(bot.__name__, bot) for bot in bots], DealStreams(0, 0), **how)


def won_first(bots: Sequence[type[Player]], games: int, seed: int = 1) -> float:
    """Return how often the first of two bots wins, over the deals of a seed."""
    wins = 0
    for deal in range(games):
        streams = DealStreams(seed, deal)
        game = GAME.deal(NoRules(), 2, streams.deck())
        table = Table(game, [Entrant(bot.__name__, bot) for bot in bots], streams, deal=deal)
        wins += play_game(table).winner == 0
    return wins / games


def mutable_state(game: State) -> Any:
    """Return everything that a move can change."""
    return (
        [dict(hand) for hand in game.hands],
        list(game.pile),
        list(game.discard),
        (game.seat, game.node, game.over, game.winner, game.turns_played, game.moves, game.seen),
        repr(game.counts),
        game._rng.getstate(),
    )
