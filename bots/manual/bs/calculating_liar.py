"""CalculatingLiar, a player from an answer to the original question."""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table

NUMBERS = 13
SEATS = 4  # a seat's next turn asks for a number this much higher


class CalculatingLiar(BSBot):
    """Lies with the card it will be asked for last; counts its own cards in hand and on the pile to catch others.

    Verbatim. It won 57.53 ± 0.29 % of its games in the pool of the seven verbatim players.
    """

    origin = "an answer to the question"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.known: list[int] = []  # numbers of its own cards on the pile
        self.last = 0  # the pile's size when last looked at

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        play = self.cards.of(number) or [self.most_useless(number)]
        self.update(table)
        self.known += [card.number for card in play]
        self.last = table.pile + len(play)
        return play

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return self.is_suspicious(seat, number, n_cards, table, 4)

    def update(self, table: Table) -> None:
        pile = table.pile
        if self.last > pile:
            self.known.clear()
        self.last = pile

    def most_useless(self, number: int) -> Card:
        """Return the first card of the number that its turns ask for last."""
        for turns in range(NUMBERS - 1, 0, -1):
            if cards := self.cards.of((number + SEATS * turns) % NUMBERS):
                return cards[0]
        return self.cards[0]

    def is_suspicious(self, seat: int, number: int, n_cards: int, table: Table, most: int) -> bool:
        """Return whether more than `most` cards of the number would exist, or the seat is about to win."""
        self.update(table)
        if n_cards > most or self.cards.count(number) + self.known.count(number) + n_cards > most:
            return True
        held = table.hands[seat]
        return held == 0 or (held < 5 and len(self.cards) == 1)
