"""What the games' words have in common: parameters, seats, chips, ranks."""

from collections.abc import Sequence
from typing import Any, Final

Line = tuple[int | None, str]  # whose act it was, None for chance; and the sentence

_RANKS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "jack", "queen", "king")


def parameters(game: Any) -> dict[str, Any]:
    """What the game was loaded with, defaults included."""
    return {**game.get_type().parameter_specification, **game.get_parameters()}


def seats_in_words(players: int) -> str:
    """Who plays."""
    return "Two players sit in seats 0 and 1" if players == 2 else f"{players} players sit in seats 0 to {players - 1}"


def ranks(count: int) -> tuple[str, ...]:
    """So many ranks of a deck, the lowest first and the king last; there are twelve."""
    return _RANKS[len(_RANKS) - count :]


def chips(count: int) -> str:
    """1 chip, 2 chips."""
    return f"{count} chip{'s' * (count != 1)}"


def pot(put: Sequence[int], seat: int) -> str:
    """What lies in the pot, and who has put it there."""
    shares = (f"{count} of {'yours' if player == seat else f'seat {player}'}" for player, count in enumerate(put))
    return f"pot {chips(sum(put))}: {', '.join(shares)}"


def did(player: int, seat: int, verb: str, rest: str = "") -> Line:
    """What a player did, told to a seat: `You pass.`, `seat 1 passes.`"""
    if player == seat:
        return player, f"You {verb}{rest}."
    return player, f"seat {player} {verb}{'es' if verb.endswith('s') else 's'}{rest}."
