"""Some games to try a prompt on: those that the game brings, or a few by its own bots."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from dubito.errors import UsageError
from dubito.game import Spec
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.workshop.parts import part
from dubito.workshop.recorder import Origin, recorded_positions
from dubito.workshop.recordings import RecordedPosition

_SEED: Final = 0
_DEALS: Final = 6


@cache
def sample_games(game: Spec) -> tuple[tuple[RecordedPosition, ...], ...]:
    """The positions of each game, in the order in which they were asked."""
    tables: Iterable[tuple[Table, Any]] = part(game, "sample_tables", lambda: _by_bots(game))()
    return tuple(
        tuple(recorded_positions(table, Origin(None, _SEED, table.deal, table.number), game, rules))
        for table, rules in tables
    )


def _by_bots(game: Spec) -> Iterator[tuple[Table, Any]]:
    """Games by the default rules at tables of every size, the game's hand-written bots in turn."""
    bots = find_bots(Path.cwd(), game.name).hand_written()
    if not bots:
        raise UsageError(f"{game.name} has no hand-written bot to play the games that prompts are tried on: write one")
    entrants = cycle(Entrant(bot.name, bot.cls) for bot in bots)
    rules, (least, most) = game.rules(), game.seats
    for deal in range(_DEALS):
        seats, streams = least + deal % (most - least + 1), DealStreams(_SEED, deal)
        state = game.deal(rules, seats, streams.deck())
        yield Table(state, list(islice(entrants, seats)), streams, deal=deal, number=deal), rules
