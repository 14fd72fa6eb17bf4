"""Draw and defuse in words for people: rules, events with their hidden truth, and a person's answers."""

from collections.abc import Sequence
from typing import Final

from dubito.errors import pluralize
from dubito.files import NoRules
from dubito.game import GameEvent
from dubito.game.reader import Reader
from dubito.game.words import HAND, Face, Marks, Panel, Scene, Teller, Words
from dubito.games.defuse.engine import (
    ALL_CARDS,
    BOMB,
    CARD_COUNTS,
    DEFUSE,
    HAND_SIZE,
    SEE_DEPTH,
    SPARE_DEFUSES,
    HandView,
    State,
)
from dubito.games.defuse.events import (
    DealEvent,
    DrawEvent,
    EndEvent,
    HideEvent,
    LookEvent,
    PlaceEvent,
    PlayEvent,
    TakeEvent,
)

OBJECTIVE: Final = "Do not draw the bomb without a defuse card: the player who does loses, and the other wins."
_PILE: Final = sum(ALL_CARDS.values()) - 2 * (HAND_SIZE + 1)


def rule_paragraphs() -> list[str]:
    """Return the rules, each as a paragraph."""
    dealt = ", ".join(f"{n} {card}" for card, n in CARD_COUNTS.items())
    return [
        f"Two players sit in seats 0 and 1, and seat 0 begins. {sum(CARD_COUNTS.values())} cards ({dealt}) are "
        f"shuffled. Each player is dealt {HAND_SIZE} of them and one {DEFUSE} card. The remaining cards are shuffled "
        f"with {SPARE_DEFUSES} more {DEFUSE} cards and one {BOMB} into the pile: {_PILE} cards, face down.",
        "Players take turns. On your turn you may first play any number of see and shuffle cards. Then you end the "
        "turn in one of three ways: draw the top card of the pile; play a skip card and draw nothing; or play a bottom "
        "card and draw the bottom card of the pile.",
        f"A see card shows the top {SEE_DEPTH} cards of the pile (all, if there are fewer) to the player who plays it "
        "and to nobody else; everyone sees that it was played. A shuffle card shuffles the pile. A nothing card cannot "
        "be played. Played cards are face up.",
        "A drawn card goes into your hand, unseen by the other player, unless it is the bomb, which both see. If you "
        f"hold a {DEFUSE} card, it is played at once, and you put the bomb back anywhere in the pile, unseen by the "
        "other player: place 0 is the top, to be drawn next; with n cards in the pile, place n is the bottom. The "
        "order of the other cards does not change, and your turn is over.",
        f"A player who draws the bomb without a {DEFUSE} card loses, and the other player wins.",
    ]


_BOMB: Final = "The bomb!"
_ICONS: Final = {DEFUSE: "shield", "see": "eye", "nothing": "blank"}  # for cards whose icon has another name


class DefuseTeller(Teller[State]):
    def describe_hand(self, seat: int) -> str:
        return str(HandView(self.state.hands[seat]))

    def see(self, event: GameEvent) -> None:
        match event:
            case DrawEvent(seat, bomb=True):
                self.marks = Marks(("bomb",))
                is_defused = not self.state.over
                self.scene = Scene(seat, _BOMB, [BOMB], stamp="defused" if is_defused else "boom", bad=not is_defused)
            case LookEvent():
                self.marks = Marks(("look",))

    def panels(self) -> list[Panel]:
        state = self.state
        down = state.pile[::-1]
        pile = Panel(
            "The pile",
            f"{pluralize(len(down))}.",
            f"from the top: {' '.join(down)}" if down else "",
            cards=down,
            backs=len(down),
        )
        played = Panel("Played, in order", " ".join(state.discard) or "Nothing.", cards=[*state.discard])
        return [*map(self.hand_panel, (0, 1)), pile, played]

    def ending(self) -> list[str]:
        state, reader = self.state, self.reader
        assert state.winner is not None
        loser = 1 - state.winner
        by_mistake = f" because of a mistake by {reader.name(loser)};" if state.counts[loser].forfeits else ":"
        wins, turns = reader.does(state.winner, "wins"), pluralize(state.turns_played + 1, "turn")
        return [f"The game is over{by_mistake} {wins}.", turns]


_LETTERS: Final = {"d": "draw", "h": "shuffle", "s": "see", "k": "skip", "b": "bottom"}


def _playable(state: State) -> dict[str, str]:
    return {key: act for key, act in _LETTERS.items() if act != "draw" and act in state.legal()}


class DefuseWords(Words[State, NoRules]):
    TELLER = DefuseTeller
    FACES = {card: Face(card, _ICONS.get(card, card)) for card in ALL_CARDS}
    QUESTIONS = {"turn": "What now?", "place": "Where to hide the bomb?"}
    TITLE = "Draw and defuse"
    DRAWN_LINES = (HAND, "In the pile: ", "Played so far")
    LEAD = "Do not draw the bomb. If you do, defuse it and hide it for the other player."
    BOTS = ("Medium",)
    EASY = ("Simple",)
    HARD = ("Sapper",)
    ENTER = "draw"  # the meaning of an empty line
    HOW = (
        "On your turn press Enter to draw, or type `h` to play a shuffle card, `s` see, `k` skip, `b` bottom, or the "
        "whole words. When you have defused the bomb, type its place in the pile: 0 is the top."
    )

    def rules(self, rules: NoRules, seats: int) -> list[str]:
        return [OBJECTIVE, *rule_paragraphs()]

    def summarize_rules(self, rules: NoRules) -> str:
        return ""

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        match event:
            case DealEvent():
                begins = reader.starts(0, "begins")
                return f"{event.hands[0]} cards each; {event.pile} in the pile, with the bomb. {begins}."
            case PlayEvent():
                then = ": the pile is shuffled" if event.card == "shuffle" else ""
                return f"{reader.starts(event.seat, 'plays')} a {event.card} card{then}."
            case LookEvent():
                return f"The top cards are {', '.join(event.cards)}."
            case DrawEvent():
                bomb = ": the bomb!" if event.bomb else "."
                return f"{reader.starts(event.seat, 'draws')} a card from the {event.end} of the pile{bomb}"
            case TakeEvent():
                return f"It is a {event.card} card."
            case PlaceEvent():
                return f"{reader.starts(event.seat, 'puts')} the bomb back into the pile."
            case HideEvent():
                return f"The bomb is at place {event.place} of the pile; 0 is the top."
            case EndEvent():
                blows = f"{reader.starts(event.loser, 'has')} no defuse card and {reader.verb(event.loser, 'blows')} up"
                return f"{blows}: {reader.does(1 - event.loser, 'wins')}."
        return ""

    def shown_cards(self, event: GameEvent) -> Sequence[str]:
        match event:
            case LookEvent():
                return event.cards
            case TakeEvent():
                return (event.card,)
        return ()

    def describe_view(self, state: State, seat: int, reader: Reader) -> list[str]:
        """Return lines that describe the pile, the known cards of both hands, the played cards and the question."""
        played = ", ".join(reversed(state.discard)) or "nothing"
        pile, theirs = pluralize(len(state.pile)), pluralize(sum(state.hands[1 - seat].values()))
        lines = [
            f"In the pile: {pile}. {reader.starts(1 - seat, 'holds')} {theirs}.",
            f"Played so far, latest first: {played}.",
            f"{HAND}{HandView(state.hands[seat])}.",
        ]
        if state.node == "place":
            last = len(state.pile)
            places = (
                f"0 is the top of the pile, {last} the bottom" if last else "The pile is empty: its only place is 0"
            )
            return [*lines, f"Where do you put the bomb? {places}."]
        if state.seen:
            lines.append(f"You have seen, from the top: {', '.join(state.seen)}.")
        *others, another = [*_playable(state).values()] or [""]
        play = f", or play a {', '.join(others)}{' or ' if others else ''}{another} card" if another else ""
        return [*lines, f"Draw a card{play}?"]

    def key_hint(self, state: State) -> str:
        if state.node == "place":
            return ""
        played = ", ".join(f"{key} {act}" for key, act in _playable(state).items())
        return f"Enter draws; {played}" if played else "Enter draws"

    def parse_line(self, line: str, state: State, seat: int) -> object:
        return super().parse_line(_LETTERS.get(line.casefold().strip(), line), state, seat)

    def label_answer(self, state: State, answer: object) -> str:
        if not isinstance(answer, int):
            return "Draw a card" if answer == "draw" else f"Play {answer}"
        last = len(state.pile)
        return "On top" if answer == 0 else "At the bottom" if answer == last else f"Under {pluralize(answer)}"

    def speech(self, output: object, events: Sequence[GameEvent]) -> str:
        """Return the played card, or that the bomb was drawn."""
        if any(isinstance(event, DrawEvent) and event.bomb for event in events):
            return _BOMB
        return next((f"{event.card}!" for event in events if isinstance(event, PlayEvent)), "")
