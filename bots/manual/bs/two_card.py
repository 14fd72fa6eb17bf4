"""TwoCard, which always plays at least two cards."""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table


class TwoCard(BSBot):
    """Plays all its cards of the number, padded to two; accuses if its own cards and the play make four.

    Repaired: the source does not compile. It may be related to LiePlayer of the question's scoreboard, whose
    source is lost. It won 5.72 ± 0.20 % of its games in the pool of the seven verbatim players and itself.
    """

    origin = "ImpEmp/bs 3b4643d"

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        play = self.cards.of(number)
        if len(play) < 2:
            others = [card for card in self.cards if card.number != number]
            play += others[: 2 - len(play)]
        return play

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return self.cards.count(number) + n_cards >= 4
