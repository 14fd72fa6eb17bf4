"""A bot in its seat at a turn that you choose, for its own unit tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Player
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table


def after(
    moves: Sequence[Any],
    bot: str | type[Player],
    *,
    game: str,
    seats: int,
    seed: int = 0,
    deal: int = 0,
    rules: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Any, Any]:
    """The bot, in the seat whose turn it is after these moves of a deal, and what it sees there.

    The moves are outputs, of whichever seat has its turn. The bot is a class, or a name that `dubito bots --game NAME`
    lists. Raises UsageError for what that game cannot be.
    """
    registry = find_bots(Path.cwd(), game)
    cls = registry.find(bot).cls if isinstance(bot, str) else bot
    said = registry.game.rules(**(rules or {}))
    return at_its_turn(
        cls, moves, lambda: registry.game.dealt(said, seats, DealStreams(seed, deal).deck()), seats, settings
    )


def at_its_turn(
    bot: type[Player], moves: Sequence[Any], dealt: Callable[[], Any], seats: int, settings: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The same in a game that is `dealt` alike each time; the engine plays the moves, the bot's own among them."""
    entrants = [Entrant("nobody", Player)] * seats
    entrants[_seat_after(dealt(), moves)] = Entrant(bot.__name__, bot, settings)
    table = Table(dealt(), entrants, DealStreams(0, 0))
    for move in moves:
        events = table.state.apply(move)
        table.tell(events, table.state.turns_played)
    return table.players[table.state.seat], table.state.view()


def _seat_after(state: Any, moves: Sequence[Any]) -> int:
    for place, move in enumerate(moves):
        try:
            state.apply(move)
        except IllegalOutput as error:
            raise UsageError(f"moves[{place}], of seat {state.seat}: {error}") from None
    if state.over:
        raise UsageError("the game is over after these moves: nobody has a turn")
    return int(state.seat)
