"""Tricks in words for people."""

from dubito.errors import pluralize
from dubito.game import GameEvent
from dubito.game.reader import Reader
from dubito.game.words import HAND, Face, Panel, Teller, Words
from games.tricks.facts import RULES
from games.tricks.game import CARDS, DealEvent, PlayEvent, TrickEvent, TricksRules, TricksState, suit_of


class TricksTeller(Teller[TricksState]):
    def panels(self) -> list[Panel]:
        state = self.state
        seats = [self.hand_panel(seat, pluralize(taken, "trick")) for seat, taken in enumerate(state.taken)]
        return [*seats, Panel("The trick", ", ".join(state.trick) or "no cards yet", cards=[*state.trick])]

    def ending(self) -> list[str]:
        taken = ", ".join(f"{self.reader.name(seat)} {taken}" for seat, taken in enumerate(self.state.taken))
        return [f"The game is over. Tricks: {taken}."]


class TricksWords(Words[TricksState, TricksRules]):
    TELLER = TricksTeller
    FACES = {card: Face(card[: 2 if card[0] == "1" else 1].upper(), suit_of(card)) for card in CARDS}

    def rules(self, rules: TricksRules, seats: int) -> list[str]:
        return [RULES, f"Trumps: {rules.trump}."]

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        match event:
            case DealEvent(trump):
                return f"Each seat is dealt eight cards. Trumps: {trump}."
            case PlayEvent(seat, card):
                return f"{reader.starts(seat, 'plays')} the {card}."
            case TrickEvent(seat):
                return f"{reader.starts(seat, 'wins')} the trick."
        return ""

    def describe_view(self, state: TricksState, seat: int, reader: Reader) -> list[str]:
        tricks = ", ".join(f"{reader.name(other)} {taken}" for other, taken in enumerate(state.taken))
        return [
            f"Trumps: {state.trump}. Tricks: {tricks}.",
            f"The trick: {', '.join(state.trick) or 'no cards yet'}.",
            HAND + ", ".join(state.hands[seat]),
        ]
