"""BS in words for people: the rules, events with their hidden truth, and a person's view of the table."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dubito.errors import UsageError, number_word, one_line, pluralize
from dubito.game import GameEvent
from dubito.game.events import AnswerEvent
from dubito.game.reader import Reader
from dubito.game.words import HAND, Claim, Face, Marks, Panel, Play, Scene, Teller, Words
from dubito.games.bs.cards import (
    COPIES,
    DECK,
    NUMBERS,
    AcceptEvent,
    AccuseEvent,
    Card,
    CardsEvent,
    DealEvent,
    LoseEvent,
    PlayEvent,
    RoundEvent,
    WinEvent,
)
from dubito.games.bs.engine import State
from dubito.games.bs.knowledge import BSRules
from dubito.games.bs.table import SEATS

OBJECTIVE: Final = (
    "Be the first to have no cards. The winner scores 1 and everyone else 0. If nobody wins, all score 0."
)
_N: Final = len(SEATS)


class CardTerms(NamedTuple):
    """How the rules call the cards' numbers."""

    cards: str
    order: str  # in which they are asked for
    number: str


_IN_NUMBERS: Final = CardTerms(
    f"numbers 0 to {NUMBERS - 1}",
    f"The first turn asks for the number 0, the next for 1, and so on; after {NUMBERS - 1} comes 0 again",
    "number",
)
_IN_RANKS: Final = CardTerms(
    "ranks A, 2 to 10, J, Q and K",
    "The first turn asks for aces, the next for 2s, and so on; after kings come aces again",
    "rank",
)


def rule_paragraphs(rules: BSRules, terms: CardTerms = _IN_NUMBERS) -> list[str]:
    """Return the rules in force, each as a paragraph."""
    return [
        f"{_N} players sit in seats 0 to {_N - 1}. The deck has {len(DECK)} cards: the {terms.cards}, "
        f"{COPIES} of each. All are dealt, {NUMBERS} to each seat. Everyone sees only their own hand, and always knows "
        "how many cards each seat holds and how many are on the pile.",
        f"Turns go in seat order from seat 0; {_N} turns are a round. {terms.order}, whatever happens.",
        "On your turn you play one or more cards face down on the pile, as many as you like, and claim that all of "
        f"them have the {terms.number} asked for. If any card has another {terms.number}, the play is a lie. Nobody "
        "may pass.",
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


_SUITS: Final = ("spades", "hearts", "clubs", "diamonds")  # by copy; suits do not matter
# People see the numbers 0 to 12 as ace, 2 to 10, jack, queen and king.
_SIGNS: Final = ("A", *map(str, range(2, 11)), "J", "Q", "K")
_RANKS: Final = ("ace", *map(str, range(2, 11)), "jack", "queen", "king")
_NAMES: Final = {card: f"{_RANKS[card.number]} of {_SUITS[card.copy]}" for card in DECK}


def _ranks(number: int) -> str:
    return f"{_RANKS[number]}s"


def numbers(cards: Iterable[Card]) -> str:
    return " ".join(_SIGNS[card.number] for card in sorted(cards)) or "nothing"


def card_names(cards: Iterable[Card]) -> list[str]:
    return [_NAMES[card] for card in cards]


class BSTeller(Teller[State]):
    def __init__(self, words: Words, state: State, reader: Reader) -> None:
        super().__init__(words, state, reader)
        self._plays: list[Play] = []  # on the pile

    def describe_hand(self, seat: int) -> str:
        return numbers(self.state.hands[seat].cards)

    def see(self, event: GameEvent) -> None:
        match event:
            case PlayEvent(seat, number, n):
                self._plays.append(Play(seat, f"{pluralize(n)} as {_ranks(number)}", ()))
            case CardsEvent(cards, lie):
                false = card_names(card for card in sorted(cards) if card.number != self.state.public.number)
                self._plays[-1] = replace(self._plays[-1], cards=card_names(sorted(cards)), wrong=false)
                self.marks = Marks(("lie",) if lie else ())
            case AnswerEvent(_, accuses):
                is_lie = bool(self._plays[-1].lie)
                wrong = "doubted an honest play" if accuses and not is_lie else ""
                passed = "let a lie pass" if is_lie and not accuses else ""
                self.marks = Marks(("doubt",) if accuses else (), wrong, passed, catches=accuses and is_lie)
            case AccuseEvent(seat, lie=is_lie, pile=pile):
                last, word = self._plays[-1], "lie" if is_lie else "honest"
                self.scene = Scene(seat, "BS!", last.cards, last.wrong or (), False, word, is_lie, event.taker, pile)
                self._plays = []
            case LoseEvent(card, int(seat)):
                self._plays = [Play(seat, pluralize(1), card_names([card]))]

    def panels(self) -> list[Panel]:
        state = self.state
        public = state.public
        pile = f"{pluralize(len(state.pile.cards))}, face down." if state.pile.cards else "Empty."
        if not state.over:
            pile += f" Round {public.round}: {_ranks(public.number)}."
        board = Panel("The pile", pile, backs=len(state.pile.cards), plays=tuple(self._plays))
        return [*map(self.hand_panel, SEATS), board]

    def ending(self) -> list[str]:
        state = self.state
        if state.winner is not None:
            how = f"The game is over: {self.reader.does(state.winner, 'wins')}."
        elif any(counts.forfeits for counts in state.counts):
            seat = next(seat for seat in SEATS if state.counts[seat].forfeits)
            how = f"The game is over because of a mistake by {self.reader.name(seat)}; nobody wins."
        else:
            how = f"The game stops after {rounds(state.max_rounds)}; nobody wins."
        return [how, f"{state.turns_played} turns"]


class BSWords(Words[State, BSRules]):
    TELLER = BSTeller
    QUESTIONS = {"cards": "Which cards?", "bs": "Say BS?"}
    FACES = {_NAMES[card]: Face(_SIGNS[card.number], _SUITS[card.copy]) for card in DECK}
    DRAWN_LINES = (HAND, "Cards held: ")
    LEAD = "The rank goes up each turn, and you cannot pass. Call BS before the liar is out of cards."
    BOTS = ("Player1", "Player4", "CalculatingLiar")
    EASY = ("Player1", "Player2", "Player3")
    HARD = ("CalculatingLiar", "ConMan", "RiskTaker")
    HOW = (
        "On your turn type the cards you play, as in `3 3 k`; you claim that all of them have the rank asked for. "
        "After another player's turn type `yes` to accuse them of lying, or `no`."
    )

    def rules(self, rules: BSRules, seats: int) -> list[str]:
        return [OBJECTIVE, *rule_paragraphs(rules, _IN_RANKS)]

    def summarize_rules(self, rules: BSRules) -> str:
        return f"At most {rounds(rules.max_rounds)}"

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        match event:
            case DealEvent():
                held = (f"{reader.does(seat, 'holds')} {n}" for seat, n in enumerate(event.hands))
                return f"The cards are dealt: {', '.join(held)}."
            case PlayEvent():
                return f"{reader.starts(event.seat, 'plays')} {pluralize(event.n_cards)} as {_ranks(event.number)}."
            case CardsEvent():
                return f"really {numbers(event.cards)}: {'a lie' if event.lie else 'honest'}"
            case AnswerEvent(_, True, int(seat)):
                return f"{reader.starts(seat, 'says')} BS"
            case AcceptEvent():
                return "Nobody says BS."
            case AccuseEvent():
                called = f"BS! {reader.starts(event.seat, 'is')}"
                takes = f"{reader.starts(event.taker, 'takes')} {pluralize(event.pile)}"
                if not event.lie:
                    return f"{called} wrong: {reader.does(event.mover, 'was')} honest. {takes}."
                begins = f"{reader.does(event.seat, 'begins')} a new pile with a card"
                return f"{called} right: {reader.name(event.mover)} lied. {takes}; {begins}."
            case LoseEvent(card, int(seat)):
                return f"{reader.starts(seat, 'loses')} {_SIGNS[card.number]} to the pile"
            case RoundEvent():
                return f"Round {event.round} is over."
            case WinEvent():
                return f"{reader.starts(event.seat, 'has')} no cards left and {reader.verb(event.seat, 'wins')}."
        return ""

    def shown_cards(self, event: GameEvent) -> Sequence[str]:
        return card_names(sorted(event.cards)) if isinstance(event, CardsEvent) else ()

    def hand(self, state: State, seat: int) -> list[str]:
        return card_names(sorted(state.hands[seat].cards))

    def speech(self, output: object, events: Sequence[GameEvent]) -> str:
        for event in events:
            if isinstance(event, PlayEvent):
                rank = _RANKS[event.number] if event.n_cards == 1 else _ranks(event.number)
                return f"{number_word(event.n_cards)} {rank}!"
        return ""

    def label_answer(self, state: State, answer: object) -> str:
        return "BS!" if answer is True else "Pass" if answer is False else str(answer)

    def verdict(self, state: State, seat: int) -> str:
        return "You win!" if state.winner == seat else "You lose." if state.winner is not None else "Nobody wins."

    def describe_view(self, state: State, seat: int, reader: Reader) -> list[str]:
        """Return lines that list all hand sizes, the pile, the seat's cards and the question."""
        public = state.public
        held = ", ".join(f"{reader.name(other)} {n}" for other, n in enumerate(public.hands))
        lines = [f"Cards held: {held}. On the pile: {public.pile}.", f"{HAND}{numbers(state.hands[seat].cards)}"]
        if public.node == "cards":
            return [*lines, f"Your turn: play cards as {_ranks(public.number)}."]
        played = f"{pluralize(public.n_cards)} as {_ranks(public.number)}"
        return [*lines, f"{reader.starts(public.mover)} played {played}. Do you say BS?"]

    def parse_line(self, line: str, state: State, seat: int) -> object:
        """Parse a typed answer: yes or no, or cards by their signs."""
        words = line.casefold().replace(",", " ").split()
        if state.public.node == "bs":
            return super().parse_line(line, state, seat)
        signs = [sign.casefold() for sign in _SIGNS]
        if not words or not {*words} <= {*signs}:
            raise UsageError(f"'{one_line(line, 20)}' is not a list of cards: type for example `3 3 k`")
        held, played = sorted(state.hands[seat].cards), list[Card]()
        for number in map(signs.index, words):
            card = next((each for each in held if each.number == number and each not in played), None)
            if card is None:
                raise UsageError(f"you do not hold that many {_ranks(number)}")
            played.append(card)
        return played

    def claims(self, state: State, seat: int) -> list[Claim]:
        number = state.public.number
        return [Claim(None, _RANKS[number], _ranks(number), (number,))]

    def playable_cards(self, state: State, seat: int) -> list[int]:
        return sorted(card.number for card in state.hands[seat].cards)
