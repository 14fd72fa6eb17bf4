"""Put a bot into its seat at a chosen turn, for its unit tests."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from dubito.errors import UsageError
from dubito.game import Player
from dubito.game.find import find_bots
from dubito.game.rehearsal import set_up_turn
from dubito.games.dubito.cards import JOKER, NUMBERS, Hand, TurnData, TurnOutput
from dubito.games.dubito.engine import MAX_JOKERS, Rules, State

_RULES: Final = Rules()


def bot_at_turn(
    bot: str | type[Player],
    hands: Sequence[Sequence[int]],
    moves: Sequence[TurnOutput] = (),
    *,
    rules: Rules = _RULES,
    **settings: Any,
) -> tuple[Any, TurnData]:
    """Return the bot, in the seat to move after these moves, and what it sees.

    `hands` are dealt from seat 0, which moves first, and need not be a whole deck. The engine plays the moves,
    including the bot's own, so that turn data, hand and observed events are consistent. The bot is a class or a name
    that `dubito bots` lists. Raises UsageError for impossible hands and moves.
    """
    cls = find_bots(Path.cwd()).find(bot).cls if isinstance(bot, str) else bot
    dealt = Counter(card for hand in hands for card in hand)
    for card, n in dealt.items():
        if card not in (JOKER, *NUMBERS[: rules.ranks]):
            raise UsageError(f"unknown card {card!r}: use 0 for a joker, or a number from 1 to {rules.ranks}")
        if n > (most := MAX_JOKERS if card == JOKER else rules.copies):
            raise UsageError(f"card {card} is dealt {n} times, but the deck has {most}")
    for seat, hand in enumerate(hands):
        if not hand or rules.copies in Counter(hand).values():
            raise UsageError(f"seat {seat} has an impossible hand: no cards, or {rules.copies} of one number")
    state = partial(_build_state, hands, rules)
    player, view = set_up_turn(cls, moves, state, len(hands), settings)
    return player, cast(TurnData, view)


def _build_state(hands: Sequence[Sequence[int]], rules: Rules) -> State:
    return State(rules, [Hand(hand, rules.copies) for hand in hands])
