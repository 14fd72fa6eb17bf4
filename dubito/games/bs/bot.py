"""What a bot of BS is: four callbacks, two of which it must write."""

from collections.abc import Sequence
from typing import Any

from dubito.errors import IllegalOutput
from dubito.game import GameEvent, Player
from dubito.games.bs.cards import Card, DealEvent, HandView, RoundEvent
from dubito.games.bs.table import PublicState, View


class BSBot(Player):
    """The base of every BS bot; a new instance plays each game.

    `self.id` is the seat, `self.cards` the own hand, `self.rng` the only randomness to use.
    """

    cards: HandView

    def initialize(self, table: View) -> None:
        """Called once the cards are dealt."""

    def request_cards(self, number: int, table: View) -> Sequence[Card]:
        """Your turn: the cards to play, at least one of `self.cards`. One of another number than asked is a lie."""
        raise _not_written("request_cards", self)

    def bs(self, seat: int, number: int, n_cards: int, table: View) -> bool:
        """A seat has played n_cards, said to be of this number: True accuses it of a lie."""
        raise _not_written("bs", self)

    def update(self, table: View) -> None:
        """Called at the end of every round, with the table as it was then."""

    def play(self, view: View) -> Any:
        """Ask the callback of the node."""
        public = view._public  # four properties fewer to call, at every question of every game
        if public.node == "bs":
            return self.bs(public.mover, public.number, public.n_cards, view)
        return self.request_cards(public.number, view)

    def observe(self, event: GameEvent) -> None:
        """Calls `initialize` and `update`; an override ends in `super().observe(event)`."""
        if isinstance(event, RoundEvent):
            public = PublicState(event.hands, number=event.number, pile=event.pile, round=event.round)
            self.update(View(public))
        elif isinstance(event, DealEvent):
            self.initialize(View(PublicState(event.hands)))

    @classmethod
    def observes(cls) -> bool:
        """Only whoever overrides one of the three is told anything."""
        return (
            cls.observe is not BSBot.observe or cls.initialize is not BSBot.initialize or cls.update is not BSBot.update
        )


def _not_written(method: str, bot: BSBot) -> IllegalOutput:
    return IllegalOutput(f"{method} of {type(bot).__name__} is not written yet")
