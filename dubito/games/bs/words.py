"""BS in words for people: rules, public events with the truth behind them, and a person at the table."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dubito.game import GameEvent
from dubito.game.words import HAND, ME, Face, Label, Line, Marks, Panel, counted, to_person
from dubito.games.bs.cards import COPIES, DECK, NUMBERS, Card, DealEvent, PlayEvent, RoundEvent, TurnEvent, WinEvent
from dubito.games.bs.engine import State
from dubito.games.bs.table import SEATS

OBJECTIVE: Final = (
    "Be the first to have no cards. The winner scores 1 and everyone else 0. If nobody wins, all score 0."
)
_N: Final = len(SEATS)


def rule_sentences(rules: Any) -> list[str]:
    """Return the rules in force, one paragraph each."""
    return [
        f"{_N} players sit in seats 0 to {_N - 1}. The deck has {len(DECK)} cards: the numbers 0 to {NUMBERS - 1}, "
        f"{COPIES} of each. All are dealt, {NUMBERS} to each seat. Everyone sees only their own hand, and always knows "
        "how many cards each seat holds and how many are on the pile.",
        f"Turns go in seat order from seat 0; {_N} turns are a round. The first turn asks for the number 0, the next "
        f"for 1, and so on; after {NUMBERS - 1} comes 0 again, whatever happens.",
        "On your turn you play one or more cards face down on the pile, as many as you like, and claim that all of "
        "them have the number asked for. If any card has another number, the play is a lie. Nobody may pass.",
        "After each play the other three seats are asked, in seat order from seat 0, whether they accuse the player of "
        "lying. They do not hear each other's answers. All three are asked, even if the player has no cards left.",
        "If nobody accuses, the cards stay on the pile, unseen. If several accuse, one of them is drawn at random, all "
        "equally likely, and only that accusation counts.",
        "If the accused play was a lie, its player picks up the whole pile, this play included, and a random card from "
        "the accuser's hand becomes the new pile. If the play was honest, the accuser picks up the whole pile, and the "
        "pile is empty.",
        "Nobody is told who accused or which cards were played, only how many cards each seat holds and how many are "
        "on the pile afterwards.",
        "After each turn, once an accusation is settled, a seat without cards has won and the game is over. So a "
        "player who plays their last cards wins unless the play was a lie and is accused, and an accuser who is right "
        "wins at once if the card drawn from their hand was their last.",
        f"If nobody has won after {rounds(rules.max_rounds)}, the game is over and nobody wins.",
    ]


def rounds(n: int) -> str:
    return f"{n:,} round{'s' * (n != 1)}"


TO_ME: Final = {
    f"{ME} plays": "You play",
    f"{ME} has no cards left and wins": "You have no cards left and win",
    f"{ME} wins": "you win",
    f"{ME} holds": "you hold",
    ME: "you",
}


QUESTIONS: Final = {"cards": "Which cards?", "bs": "Say BS?"}
_SUITS: Final = ("spades", "hearts", "clubs", "diamonds")  # by copy; suits do not matter
_NAMES: Final = {card: f"{card.number} of {_SUITS[card.copy]}" for card in DECK}
FACES: Final = {_NAMES[card]: Face(str(card.number), _SUITS[card.copy]) for card in DECK}


def rules(rules: Any, seats: int) -> list[str]:
    return [OBJECTIVE, *rule_sentences(rules)]


def in_short(rules: Any) -> str:
    return f"At most {rounds(rules.max_rounds)}"


def sentence(event: GameEvent, label: Label) -> str:
    """Describe a public event: plays and sizes."""
    match event:
        case DealEvent():
            held = (f"{label(seat)} holds {n}" for seat, n in enumerate(event.hands))
            return f"The cards are dealt: {', '.join(held)}."
        case PlayEvent():
            return f"{label(event.seat)} plays {counted(event.n_cards)} as {event.number}s."
        case TurnEvent():
            held = (f"{label(seat)} {n}" for seat, n in enumerate(event.hands))
            return f"On the pile: {event.pile}. In hand: {', '.join(held)}."
        case RoundEvent():
            return f"Round {event.round} is over."
        case WinEvent():
            return f"{label(event.seat)} has no cards left and wins."
    return ""


def numbers(cards: Iterable[Card]) -> str:
    return " ".join(str(card.number) for card in sorted(cards)) or "nothing"


def drawn_as(cards: Iterable[Card]) -> list[str]:
    return [_NAMES[card] for card in cards]


def hand(state: State, seat: int) -> list[str]:
    return drawn_as(sorted(state.hands[seat].cards))


class Teller:
    """Narrates one game, including what is hidden from every seat."""

    def __init__(self, state: State, label: Label) -> None:
        self._state, self._label = state, label
        self._accusers: list[int] = []
        self._play: Sequence[Card] = ()
        self._asked = 0  # the claimed number of the last play
        self._marks = Marks()
        self._note_state()

    def _note_state(self) -> None:
        state = self._state
        self._mover, self._number = state.public.mover, state.public.number
        self._drawn = [counts.accusations_drawn for counts in state.counts]

    def holds(self, seat: int) -> str:
        return numbers(self._state.hands[seat].cards)

    def moved(self, seat: int, output: bool | Sequence[Card], events: Sequence[GameEvent]) -> list[Line]:
        if not isinstance(output, bool):
            self._play, self._accusers, self._asked = output, [], self._number
            self._marks = Marks(("lie",) if self._lie else ())
            truth = f"really {numbers(output)}: {'a lie' if self._lie else 'honest'}"
            return [Line(sentence(events[0], self._label), truth, drawn_as(sorted(output)))]
        wrong = "doubted an honest play" if output and not self._lie else ""
        passed = "let a lie pass" if self._lie and not output else ""
        self._marks = Marks(("doubt",) if output else (), wrong, passed)
        lines = []
        if output:
            self._accusers.append(seat)
            lines.append(Line("", f"{self._label(seat)} says BS"))
        if events:
            end, *others = events
            lines.append(self._line(end, self._settled()))
            lines += [self._line(event) for event in others]
            self._note_state()
        return lines

    def marks(self) -> Marks:
        return self._marks

    @property
    def _lie(self) -> bool:
        return any(card.number != self._asked for card in self._play)

    def _line(self, event: GameEvent, truth: str = "") -> Line:
        return Line(sentence(event, self._label), truth)

    def _settled(self) -> str:
        """Describe how the accusations of the last turn ended."""
        state, label = self._state, self._label
        if not self._accusers:
            return "nobody says BS"
        drawn = [counts.accusations_drawn for counts in state.counts]
        accuser = next(seat for seat in SEATS if drawn[seat] > self._drawn[seat])
        counts = f"of {len(self._accusers)} who said BS {label(accuser)} is drawn: " if self._accusers[1:] else ""
        if not self._lie:
            return f"{counts}it was honest, and {label(accuser)} picks up the pile"
        lost = numbers(state.pile.cards)
        return f"{counts}it was a lie, {label(self._mover)} picks up the pile, and {label(accuser)} loses {lost} to it"

    def panels(self) -> list[Panel]:
        state = self._state
        hands = [
            Panel(self._label(seat), counted(len(held)), self.holds(seat), seat, held)
            for seat in SEATS
            for held in [hand(state, seat)]
        ]
        public = state.public
        pile = f"{counted(len(state.pile.cards))}, face down." if state.pile.cards else "Empty."
        if not state.over:
            pile += f" Round {public.round}, number {public.number}."
        lies = " ".join(str(card.number) for card in state.pile.cards)
        turned = drawn_as(state.pile.cards)
        return [*hands, Panel("The pile", pile, f"from the bottom: {lies}" if lies else "", cards=turned)]

    def ending(self) -> list[str]:
        state = self._state
        if state.winner is not None:
            how = f"The game is over: {self._label(state.winner)} wins."
        elif any(counts.forfeits for counts in state.counts):
            seat = next(seat for seat in SEATS if state.counts[seat].forfeits)
            how = f"The game is over by a mistake of {self._label(seat)}; nobody wins."
        else:
            how = f"The game stops after {rounds(state.max_rounds)}; nobody wins."
        return [how, f"{state.turns_played} turns"]


BOTS: Final = ("Player1", "Player4", "CalculatingLiar")
HOW: Final = (
    "On your turn type the numbers of the cards you play, as in `3 3 7`; you claim that all of them have the number "
    "asked for. After another player's turn type `yes` to accuse them of lying, or `no`."
)


def sees(state: State, seat: int, label: Label) -> list[str]:
    """Return lines with all hand sizes, the pile, the seat's cards and the question."""
    public = state.public
    held = ", ".join(f"{to_person(label(other), TO_ME)} {n}" for other, n in enumerate(public.hands))
    lines = [f"Cards held: {held}. On the pile: {public.pile}.", f"{HAND}{numbers(state.hands[seat].cards)}"]
    if public.node == "cards":
        return [*lines, f"Your turn: play cards as {public.number}s."]
    played = f"{counted(public.n_cards)} as {public.number}s"
    return [*lines, f"{label(public.mover)} played {played}. Do you say BS?"]


def holding(state: State, seat: int) -> list[int]:
    return sorted(card.number for card in state.hands[seat].cards)
