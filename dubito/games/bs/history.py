"""What one seat of BS has seen, in sentences, an event a line: each line is the same whenever it is told."""

from collections.abc import Iterable

from dubito.games.bs.cards import NUMBERS
from dubito.games.bs.witness import Laid, Seen, Witness


def lines(witness: Witness, dealt: Iterable[int]) -> tuple[list[str], list[int]]:
    """The history, and the places in it of the seat's own moves: its plays, and its answers."""
    told = [f"Every seat is dealt {NUMBERS} cards. Yours: {numbers(dealt)}."]
    own = []
    for seen in witness.turns:
        if seen.mover == witness.seat:
            own.append(len(told))
        told.append(_play(seen))
        if seen.turn.answer is not None:
            own.append(len(told))
            told.append("You accuse it." if seen.turn.answer else "You do not accuse it.")
        if seen.turn.is_over:
            told.append(_ending(seen, witness.seat))
    return told, own


def numbers(cards: Iterable[int]) -> str:
    """The numbers of cards: 3 3 7."""
    return " ".join(map(str, cards)) or "none"


def count(n: int) -> str:
    """1 card, 2 cards."""
    return f"{n} card{'s' * (n != 1)}"


def _play(seen: Seen) -> str:
    put = f"{count(seen.turn.n_cards)} as {_plural(seen.number)}"
    if not seen.turn.cards:
        return f"seat {seen.mover} puts down {put}."
    kind = "honest" if set(seen.turn.cards) == {seen.number} else "a lie"
    return f"You put down {put}: {numbers(seen.turn.cards)}, {kind}."


def _ending(seen: Seen, own: int) -> str:
    turn, accuser = seen.turn, seen.accuser
    if accuser is None:
        return f"Nobody accuses it: {count(turn.pile or 0)} on the pile."
    who = f"seat {accuser} accuses it" if accuser != own else "Your accusation counts"
    taker = seen.mover if seen.lie else accuser
    take = f"you take the pile: {_shown(seen.shown)}" if taker == own else f"seat {taker} takes the pile"
    if not seen.lie:
        return f"{who}, and it was honest: {take}."
    card = f"a card of seat {accuser} is the new pile" if accuser != own else f"your {turn.lost} is the new pile"
    return f"{who}, and it was a lie: {take}; {card}."


def _shown(shown: Iterable[Laid]) -> str:
    """What was taken up, from the bottom, with who put it there."""
    return ", ".join(_part(laid) for laid in shown)


def _part(laid: Laid) -> str:
    how = "drawn" if laid.number is None else f"as {_plural(laid.number)}"
    return f"{numbers(sorted(laid.cards))} of seat {laid.seat} ({how})"


def _plural(number: int) -> str:
    return f"{number}s"
