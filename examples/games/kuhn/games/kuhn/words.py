"""Kuhn poker in words for people."""

from collections.abc import Sequence

from dubito.files import NoRules
from dubito.game import GameEvent
from dubito.game.reader import Reader
from dubito.game.words import Face, Line, Panel, Teller, Words
from games.kuhn.facts import RULES
from games.kuhn.game import CARDS, ActEvent, DealEvent, KuhnState


def sentence(event: GameEvent, reader: Reader) -> str:
    """What both seats observe."""
    if isinstance(event, ActEvent):
        return f"{reader.starts(event.seat, 'bets' if event.act == 'bet' else 'passes')}."
    return "Each seat is dealt a card, and puts a chip into the pot." if isinstance(event, DealEvent) else ""


def hand(game: KuhnState, seat: int) -> list[str]:
    """What the person at the table sees of their own, drawn."""
    return [CARDS[game.dealt[seat]]]


class KuhnTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        """What `--show-hands` shows."""
        return f"the {CARDS[self.state.dealt[seat]]}"

    def panels(self) -> list[Panel]:
        """A panel for each seat, and one for the pot: what is public first, then what is not."""
        chips = 2 + self.state.acts.count("bet")
        hands = [
            Panel(self.reader.name(seat), "one card", self.describe_hand(seat), seat, hand(self.state, seat)) for seat in (0, 1)
        ]
        return [*hands, Panel("The pot", f"{chips} chips")]

    def ending(self) -> list[str]:
        """How the game ended, in a sentence."""
        marks = self.state.ending().marks
        winner = marks.index(max(marks))
        return [f"The game is over: {self.reader.does(winner, 'wins')} {max(marks) - 2} of the other's chips."]


class KuhnWords(Words):
    FACES = {card: Face(card[0].upper(), "spades") for card in CARDS}

    def teller(self, state: KuhnState, reader: Reader) -> Teller:
        return KuhnTeller(self, state, reader)

    def rules(self, rules: NoRules, seats: int) -> list[str]:
        """The rules in force, a paragraph each."""
        return [RULES]

    def summarize_rules(self, rules: NoRules) -> str:
        """What of the rules may be varied: nothing."""
        return ""

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        return sentence(event, reader)

    def hand(self, game: KuhnState, seat: int) -> list[str]:
        return hand(game, seat)
