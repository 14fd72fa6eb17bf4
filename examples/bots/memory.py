from collections.abc import Sequence

from dubito.game import GameEvent
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card, PlayEvent, TurnEvent
from dubito.games.bs.table import Table


class Memory(BSBot):
    """Honest when it can be; accuses players who were caught before, every other time."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.mover = 0
        self.held = 0  # by the mover, after its play
        self.caught = [0] * 4  # lies, by seat

    def observe(self, event: GameEvent) -> None:
        if isinstance(event, PlayEvent):
            self.mover, self.held = event.seat, -1
        elif isinstance(event, TurnEvent):
            grown = self.held >= 0 and event.hands[self.mover] > self.held
            self.caught[self.mover] += grown
        super().observe(event)

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return self.cards.of(number) or self.cards.first(1)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        self.held = table.hands[seat]
        return table.hands[seat] == 0 or (self.caught[seat] > 0 and self.rng.random() < 0.5)
