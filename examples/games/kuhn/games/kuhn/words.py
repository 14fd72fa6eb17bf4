"""Kuhn poker in words for people."""

from dubito.files import NoRules
from dubito.game import GameEvent
from dubito.game.reader import Reader
from dubito.game.words import Face, Panel, Teller, Words
from games.kuhn.facts import RULES
from games.kuhn.game import CARDS, ActEvent, DealEvent, KuhnState


class KuhnTeller(Teller[KuhnState]):
    def panels(self) -> list[Panel]:
        return [*map(self.hand_panel, (0, 1)), Panel("The pot", f"{2 + self.state.acts.count('bet')} chips")]


class KuhnWords(Words[KuhnState, NoRules]):
    TELLER = KuhnTeller
    FACES = {card: Face(card[0].upper(), "spades") for card in CARDS}

    def rules(self, rules: NoRules, seats: int) -> list[str]:
        return [RULES]

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        if isinstance(event, ActEvent):
            return f"{reader.starts(event.seat, 'bets' if event.act == 'bet' else 'passes')}."
        return "Each seat is dealt a card, and puts a chip into the pot." if isinstance(event, DealEvent) else ""
