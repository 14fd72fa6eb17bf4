"""The base class of BS bots. A bot must override two of its four callbacks."""

from collections.abc import Sequence
from typing import Any

from dubito.errors import IllegalOutput
from dubito.game import GameEvent, Player
from dubito.games.bs.cards import Card, DealEvent, HandView, RoundEvent
from dubito.games.bs.table import PublicState, View


class BSBot(Player):
    """The base class of BS bots. Each game uses a new instance.

    `self.id` is the seat, `self.cards` the seat's hand and `self.rng` the only source of randomness to use.
    """

    cards: HandView

    def initialize(self, table: View) -> None:
        """Receive the table once the cards are dealt."""

    def request_cards(self, number: int, table: View) -> Sequence[Card]:
        """Return at least one of `self.cards` to play. A card of another number makes the play a lie."""
        raise IllegalOutput(f"{type(self).__name__} does not implement request_cards yet")

    def bs(self, seat: int, number: int, n_cards: int, table: View) -> bool:
        """Return whether to accuse the seat that played `n_cards` cards and claimed this number."""
        raise IllegalOutput(f"{type(self).__name__} does not implement bs yet")

    def update(self, table: View) -> None:
        """Receive the table at the end of every round."""

    def play(self, view: View) -> Any:
        """Answer the node by calling its callback."""
        public = view._public  # avoids four property calls per question
        if public.node == "bs":
            return self.bs(public.mover, public.number, public.n_cards, view)
        return self.request_cards(public.number, view)

    def observe(self, event: GameEvent) -> None:
        """Call `initialize` and `update`. An override must end with `super().observe(event)`."""
        if isinstance(event, RoundEvent):
            public = PublicState([*event.hands], number=event.number, pile=event.pile, round=event.round)
            self.update(View(public))
        elif isinstance(event, DealEvent):
            self.initialize(View(PublicState([*event.hands])))

    @classmethod
    def needs_events(cls) -> bool:
        """Return whether the bot overrides any of the three event callbacks."""
        return (
            cls.observe is not BSBot.observe or cls.initialize is not BSBot.initialize or cls.update is not BSBot.update
        )
