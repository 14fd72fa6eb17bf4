from collections import Counter

from bots.base import BotBase
from dubito.game_data import DiscardEvent, DoubtResolvedEvent, Event, TurnData


class Witness(BotBase):
    """Remembers who picked up which cards, and doubts players who claim cards that others hold."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.picked_up: dict[int, Counter[int]] = {}

    def observe(self, event: Event) -> None:
        match event:
            case DoubtResolvedEvent():
                self.picked_up.setdefault(event.loser_id, Counter()).update(event.board_cards)
            case DiscardEvent():
                self.picked_up.get(event.player_id, Counter()).pop(event.card_number, None)

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def should_doubt(self, p: TurnData) -> bool:
        elsewhere = self.cards.count(p.current_number)
        for seat, cards in self.picked_up.items():
            if seat not in (self.id, p.prev.id):
                elsewhere += cards[p.current_number]
        return p.n_cards_played + elsewhere > 4

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < self.uncertainty_value
