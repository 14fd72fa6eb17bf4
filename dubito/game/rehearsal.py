"""Set up a bot at a chosen turn, for its unit tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Player, State
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table


def bot_after(
    moves: Sequence[object],
    bot: str | type[Player],
    *,
    game: str,
    seats: int,
    seed: int = 0,
    deal: int = 0,
    rules: Mapping[str, object] | None = None,
    **settings: object,
) -> tuple[Any, Any]:
    """Return the bot to move after these moves, and its view.

    Args:

    `moves`: outputs, each by the seat to move. `bot`: a class, or a name listed by `dubito bots --game NAME`.
    The bot sits in the seat to move. `seed`, `deal`: choose the cards. `settings`: settings of the bot.

    Raises UsageError if the game, its rules or its moves are invalid.
    """
    registry = find_bots(Path.cwd(), game)
    cls = registry.find(bot).cls if isinstance(bot, str) else bot
    game_rules = registry.game.rules(**(rules or {}))
    return set_up_turn(
        cls, moves, lambda: registry.game.deal_game(game_rules, seats, DealStreams(seed, deal).deck()), seats, settings
    )


def set_up_turn(
    bot: type[Player], moves: Sequence[object], dealt: Callable[[], State], seats: int, settings: Mapping[str, object]
) -> tuple[Player | None, object]:
    """Return the bot and its view after these moves.

    `dealt` deals the same game on each call. The engine makes all moves, including the bot's own.
    """
    state = dealt()
    for place, move in enumerate(moves):
        try:
            state.apply(move)
        except IllegalOutput as error:
            raise UsageError(f"moves[{place}], by seat {state.seat}: {error}") from None
    if state.over:
        raise UsageError("the game is over after these moves; leave out the last ones")
    entrants = [Entrant("nobody", Player)] * seats
    entrants[state.seat] = Entrant(bot.__name__, bot, settings)
    table = Table(dealt(), entrants, DealStreams(0, 0))
    for move in moves:
        events = table.state.apply(move)
        table.send_events(events, table.state.turns_played)
    return table.players[table.state.seat], table.state.view()
