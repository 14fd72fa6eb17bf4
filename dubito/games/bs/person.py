"""A person at BS: what they see, and how they answer."""

from typing import Final

from dubito.game.words import Label
from dubito.games.bs.state import Game
from dubito.games.bs.told import numbers, to_me

BOTS: Final = ("Player1", "Player4", "CalculatingLiar")
HOW: Final = (
    "On your turn type the numbers of the cards you play, as in `3 3 7`: at least one, all of them said to be the "
    "number asked for. When another has played, type `yes` to accuse it of a lie, or `no`. `rules` tells the rules, "
    "`hand` what you see, `log` what happened; Ctrl-D leaves the table."
)


def sees(game: Game, seat: int, label: Label) -> list[str]:
    """The sizes of all hands, the pile, the own cards, and the question."""
    public = game.public
    held = ", ".join(f"{to_me(label(other))} {n}" for other, n in enumerate(public.hands))
    lines = [f"Cards held: {held}. On the pile: {public.pile}.", f"Your hand: {numbers(game.hands[seat].cards)}"]
    if public.node == "cards":
        return [*lines, f"Your turn: play cards as {public.number}."]
    n = f"{public.n_cards} card{'s' * (public.n_cards > 1)}"
    return [*lines, f"{label(public.mover)} has played {n} as {public.number}. Do you say BS?"]


def holding(game: Game, seat: int) -> list[int]:
    """The numbers of the hand, ascending."""
    return sorted(card.number for card in game.hands[seat].cards)
