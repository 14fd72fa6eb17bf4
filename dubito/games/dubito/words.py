"""Dubito in words: its rules and what each answer does, for prompts and people; a game told; a person at the table.

docs/rules.md is the rulebook; each sentence is one of its rulings in the words of `record.sentence`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.files import fault
from dubito.game.record import Strict
from dubito.game.words import ME, Label, Line, Panel, counted, to_person
from dubito.games.dubito.cards import JOKER, MOST, NUMBERS, TurnData, TurnOutput
from dubito.games.dubito.engine import DUEL, Result, Rules, State, WinRule, is_honest
from dubito.games.dubito.engine import why_illegal as refused
from dubito.games.dubito.events import Event, PlayerWonEvent
from dubito.games.dubito.record import card_name, cards_in_words, ending, in_order, kept_plural, narrated, number_word

WALK: Final = (
    "On your turn you are asked up to five yes-or-no questions, one a request, and the table picks the cards by your "
    "answers: on an empty board A, then B; else C, and if you do not doubt D, then E."
)

WALK_AT_ONCE: Final = WALK.replace(", one a request, and", ", all in one request, and")

_DRAWN: Final = "a number drawn from those still in play"
_LAST_TABLE: Final = 3  # players, or the two of a duel: the next win ends the game (R10)

# What each node asks, whenever it is asked (R24, R25); what an answer does on a given turn is told by `effects`.
NODE_TEXTS: Final = {
    "A": "Asked when you open a round. true: bluff, with random cards of your hand under a number drawn from those "
    "still in play. false: open with honest cards.",
    "B": "Asked after A. true: as many as possible: when bluffing three random cards, else all (at most three) of the "
    "number you hold most of, the lowest of several. false: when bluffing one to three random cards, else one random "
    "card under its own number.",
    "C": "Asked when cards lie on the board that you may doubt. true: doubt the last play. false: put down cards.",
    "D": "Asked after C when you play and hold the number of the round; without it you have to bluff. true: bluff all "
    "the same, with random cards. false: put down cards of that number.",
    "E": "Asked last when cards lie on the board and you play. true: as many as possible: when bluffing three random "
    "cards, else all of the number (at most three). false: when bluffing one to three random cards, else a random "
    "number of the matching ones.",
}

_WINNING: Final = {
    "immediate": "A player without cards at the end of a turn, after discards, has won and leaves. His last cards stay "
    "on the board, nobody may doubt them, and the next player plays on the same number.",
    "contested": "A player who puts down his last card stays until the end of the next player's turn: if that player "
    "doubts and the play was a bluff, he takes the board and plays on; in any other case he has won and leaves. A hand "
    "that a discard empties has won at once.",
}


_WINNING_A_DUEL: Final = {
    "immediate": "A player without cards at the end of a turn, after discards, has won: nobody may doubt his last "
    "cards.",
    "contested": "A player who puts down his last card has not won before the end of the other's next turn: if the "
    "other doubts and the play was a bluff, he takes the board and plays on; in any other case he has won. A hand that "
    "a discard empties has won at once.",
}
_END: Final = "The game ends when two players are left: both lose, whatever they hold."
_END_OF_A_DUEL: Final = "The game ends when one player has won: the other loses."

_EXAMPLE_OF_A_PLAY: Final = ": as 7s, two 7s and a joker are honest, a 7, an 8 and a joker are a bluff"
_EXAMPLE_OF_A_DOUBT: Final = (
    "Say the board has nine cards and the last play was a 7 and a joker, as 7s: a doubt of it is wrong, the joker is "
    "gone, and the doubter takes eight cards. "
)
_EXAMPLE: Final = (
    "An example of a round: seat 0 opens with two cards as 7s, and they are two 7s. Seat 1 holds no 7 and has to "
    "bluff: it puts down a king as 7s. Seat 2 holds two 7s. With the three cards on the board that makes five, and "
    "there are four: somebody bluffed, but a doubt would turn over the last card only. Seat 2 doubts, and the king "
    "is seen: seat 1 takes all three cards of the board, and seat 2 plays at once on the empty board, under any "
    "number in play. Had the last card been honest, seat 2 would have taken the three cards, and the player after "
    "it would have opened."
)


def rule_sentences(rules: Rules, n_players: int) -> list[str]:
    """The rules of this game, a paragraph each, for a table of that many players."""
    figures = ", ".join(f"{n} is the {card_name(n)}" for n in NUMBERS[: rules.ranks] if card_name(n) != str(n))
    jokers = ["no joker", "one joker", "two jokers"][rules.jokers]
    copies = rules.copies if rules.is_whole else number_word(rules.copies)
    four, numbers = number_word(rules.copies), f"{NUMBERS[0]} to {rules.ranks}"
    example, pick_up = (_EXAMPLE_OF_A_PLAY, _EXAMPLE_OF_A_DOUBT) if rules.is_whole else ("", "")
    return [
        f"The deck has {copies} cards of each number from {numbers} ({figures}) and {jokers}. All "
        f"of it is dealt to {n_players} players, and nobody is dealt {four} of one number.",
        f"On your turn you put down 1 to {MOST} cards of your hand face down, or you doubt the last play. Who finds "
        "the board empty opens a round: he has to play, and declares a number. Whoever plays after him in that round "
        "claims the same number, until somebody doubts.",
        "A play is honest when each of its cards is the declared number or a joker. Any other play is a bluff, also "
        f"one with a joker among its cards{example}. A "
        f"number whose {four} cards have left the game may be declared; then only jokers are honest.",
        "A doubt turns over the last play, and only that play is judged: older bluffs on the board are safe. If it was "
        "a bluff, whoever put it down takes the whole board into his hand, and the doubter plays at once on the empty "
        "board: a free turn. If it was honest, its jokers leave the game, the doubter takes all other cards of the "
        f"board, and the next player opens a round. {pick_up}Everybody sees which "
        "cards are taken up.",
        f"At the end of a turn a hand with {four} cards of one number discards them: they leave the game. This is the "
        "way in which taking cards up can help. Jokers never make a set.",
        (_WINNING_A_DUEL if rules.duel else _WINNING)[rules.win_rule],
        f"{_END_OF_A_DUEL if rules.duel else _END} After "
        f"{rules.max_turns} turns (free ones not counted) it stops unfinished for all who are still in it.",
        *([_EXAMPLE] if rules.is_usual else []),
    ]


def objective(n_players: int) -> str:
    """What to play for, in a sentence."""
    if n_players == DUEL:
        return "Be the first to have no cards: that is a hard win. The other player loses."
    soft = {3: "", 4: " Place 2 is a soft win."}.get(n_players, f" Places 2 to {n_players - 2} are soft wins.")
    return f"Be the first to have no cards: place 1 is a hard win.{soft} The last two players lose."


def scoring() -> str:
    return "A hard win scores 1, a soft win 1/2, a loss 0, an unfinished game 0."  # R10, R12


Effects = tuple[str, str, str]  # the question, what true does, what false does


def effects(node: str, hand: Sequence[int], turn: TurnData, answers: Mapping[str, bool], win_rule: WinRule) -> Effects:
    """The node's question on this very turn, and what `true` and `false` will do (R24, R25).

    `answers` are those given before on this turn: at B the one of A; at E the one of D, none if the bluff is forced.
    """
    match node:
        case "A":
            return _open(hand)
        case "B":
            return _open_how_many(hand, answers["A"], _after_the_last(turn, win_rule))
        case "C":
            return _doubt(hand, turn)
        case "D":
            return _play(hand, turn)
        case _:
            return _play_how_many(hand, turn, answers.get("D", True), _after_the_last(turn, win_rule))


def _open(hand: Sequence[int]) -> Effects:
    return (
        "The board is empty and you open a round. Do you bluff?",
        f"you bluff: random cards of your hand under {_DRAWN}. How many is asked next.",
        f"you are honest: {_most_common(hand)[1]}, or one random card. Which of the two is asked next.",
    )


def _open_how_many(hand: Sequence[int], bluff: bool, after_the_last: str) -> Effects:
    if bluff:
        (n, most), some = _random_cards(len(hand))
        won = after_the_last if n == len(hand) else ""
        return (
            "You open with a bluff. As many cards as possible?",
            f"you put down {most} under {_DRAWN}.{won}",
            f"you put down {some} under {_DRAWN}.",
        )
    n, most = _most_common(hand)
    won = after_the_last if n == len(hand) else ""
    return (
        "You open with honest cards. As many as possible?",
        f"you put down {most}.{won}",
        f"you put down one random card under its own number (a joker: under {_DRAWN}).",
    )


def _doubt(hand: Sequence[int], turn: TurnData) -> Effects:
    number, matching = kept_plural(turn.current_number), hand.count(turn.current_number)
    last, board = f"seat {turn.last_player_id}", counted(turn.board_cards)
    question = f"{last} put down {counted(turn.n_cards_played)} as {number}. Do you doubt?"
    won = f" {_prev_has_won(turn)}" if _is_pending(turn) else ""
    doubt = f"a bluff: {last} takes the {board} of the board, and you play at once. "
    doubt += f"Honest: you take them, less its jokers, and the next player opens.{won}"
    how = f"you hold {matching}; whether to bluff" if matching else "you hold none and have to bluff; how many"
    return question, doubt, f"you put down cards as {number}: {how} is asked next.{won}"


def _play(hand: Sequence[int], turn: TurnData) -> Effects:
    number, matching = kept_plural(turn.current_number), hand.count(turn.current_number)
    return (
        f"You play as {number}, and hold {matching} of them. Do you bluff all the same?",
        f"you put down random cards of your hand as {number}. How many is asked next.",
        f"you put down {number} only. How many is asked next.",
    )


def _play_how_many(hand: Sequence[int], turn: TurnData, bluff: bool, after_the_last: str) -> Effects:
    number = kept_plural(turn.current_number)
    if bluff:
        (n, most), some = _random_cards(len(hand))
        won = after_the_last if n == len(hand) else ""
        question = f"You bluff, with cards as {number}. As many as possible?"
        return question, f"you put down {most}.{won}", f"you put down {some}."
    n = min(MOST, hand.count(turn.current_number))
    won = after_the_last if n == len(hand) else ""
    some = "1 card" if n == 1 else f"a random number of them, 1 to {n}"
    question = f"You are honest, with {number}. As many as possible?"
    return question, f"you put down {counted(n)}, all of them {number}.{won}", f"you put down {some}."


def _after_the_last(turn: TurnData, win_rule: WinRule) -> str:
    """What follows when the hand is empty after the play (R9)."""
    if win_rule == "immediate":
        return " No card is left to you: you have won."
    if _is_pending(turn) and turn.n_players <= _LAST_TABLE:
        return f" No card is left to you, but {_prev_has_won(turn)}"
    return f" No card is left to you: you have won unless seat {turn.next.id} doubts and it was a bluff."


def _is_pending(turn: TurnData) -> bool:
    return turn.prev.n_cards == 0


def _prev_has_won(turn: TurnData) -> str:
    end = " and the game is over: you lose." if turn.n_players <= _LAST_TABLE else "."
    return f"seat {turn.prev.id} has won{end}"


def _most_common(hand: Sequence[int]) -> tuple[int, str]:
    """What an honest opening with as many cards as possible puts down (R25): how many cards, and which."""
    numbers = sorted(card for card in hand if card != JOKER)
    if not numbers:
        return len(hand), f"{counted(len(hand))}, all you hold: jokers, under {_DRAWN}"
    number = max(numbers, key=numbers.count)  # the first of the best: ties go to the lowest
    n = min(MOST, numbers.count(number))
    return n, f"{counted(n)} of the number you hold most of, as {kept_plural(number)}"


def _random_cards(held: int) -> tuple[tuple[int, str], str]:
    if held > MOST:
        return (MOST, "three random cards"), "one to three random cards"
    return (held, "all your cards"), "one to three random cards, but no more than you hold"


_LETTERS: Final = "*A23456789TJQK"  # a card is a letter, so that a hand is a short word
_OPENING: Final = "AB"  # the nodes that are asked on an empty board
_JOKERS: Final = ("No joker", "One joker", "Two jokers")
_LAST_CARD: Final = {"immediate": "winning at once", "contested": "open to doubt"}
TO_ME: Final = {
    f"{ME} puts": "You put",
    f"{ME} doubts": "You doubt",
    f"{ME}, who shows": "you, and you show",
    f"{ME} picks": "You pick",
    f"{ME} discards": "You discard",
    f"{ME} is": "You are",
    f"{ME} holds": "you hold",
    f"{ME} loses": "you lose",
    ME: "you",
}

QUESTIONS: Final = {
    "A": "Open with a bluff?",
    "B": "Open with many cards?",
    "C": "Doubt?",
    "D": "Bluff?",
    "E": "Play many cards?",
}

_PRONOUNS: Final = {"he": "it", "him": "it", "his": "its", "His": "Its"}  # requests keep theirs: they are runs' bytes

Turns = Iterator[tuple[TurnOutput, Sequence[Event]]]

sentence = narrated


def rules(rules: Any, seats: int) -> list[str]:
    told = rule_sentences(rules.in_force, seats)
    of_a_player = [re.sub(r"\b([Hh]is|him|he)\b", lambda found: _PRONOUNS[found[0]], text) for text in told]
    return [objective(seats), *of_a_player, scoring()]


def in_short(rules: Any) -> str:
    deck = "" if rules.in_force.is_whole else f"{rules.ranks} numbers with {rules.copies} cards each, "
    told = f"{_JOKERS[rules.jokers]}, the last card {_LAST_CARD[rules.win_rule]}"
    return f"{'A duel: ' if rules.duel else ''}{deck}{told}" if rules.duel or deck else told


class Teller:
    def __init__(self, state: State, label: Label) -> None:
        self._state, self._label, self._number = state, label, state.number

    def holds(self, seat: int) -> str:
        return cards_in_words(self._state.hands[seat].cards)

    def moved(self, seat: int, output: TurnOutput, events: Sequence[Event]) -> list[Line]:
        lines = [Line(narrated(event, self._label)) for event in events]
        if output.cards:
            verdict = "honest" if is_honest(output.cards, output.number or self._number) else "a bluff"
            lines[0] = Line(lines[0].said, f"really {cards_in_words(output.cards)}: {verdict}")
        self._number = self._state.number
        return lines

    def panels(self) -> list[Panel]:
        state, label = self._state, self._label
        seats = range(len(state.hands))
        hands = [Panel(label(seat), f"{len(state.hands[seat].cards)} cards", self.holds(seat), seat) for seat in seats]
        return [*hands, Panel("The board", f"{len(state.board)} cards", cards_in_words(state.board))]

    def ending(self) -> list[str]:
        state, label = self._state, self._label
        winners = sorted((place, seat) for seat, place in enumerate(state.places) if place is not None)
        placed = [f"{place}. {label(seat)}" for place, seat in winners]
        turns = f"{counted(state.turns, 'turn')} and {counted(state.free_turns, 'free one')}"
        return [ending(state, label), *placed, turns]


def drawn(
    state: State, turns: Turns, names: Sequence[str], label: Label, spoken: Callable[[str], str] = str
) -> dict[str, Any]:
    """The game as the viewer draws it with cards, from its deal on; an error of a turn is passed on.

    `label` names the players in sentences, which are then `spoken` to whom they are for.
    """
    held = [list(hand.cards) for hand in state.hands]
    dealt = [_letters(hand) for hand in held]
    shown: list[dict[str, Any]] = []
    story: list[str] = []
    opened, number, free, seat, doubtable = 0, 0, 0, state.seat, state.can_doubt
    for output, events in turns:
        bluffed = doubtable and not shown[-1]["honest"]  # a bluff lay on top, and there was doubting it
        was_free, free = state.free_turns > free, state.free_turns
        if output.doubt:
            opened = len(shown) + 1
        story.append(" ".join(spoken(narrated(event, label)) for event in events))
        now = [list(hand.cards) for hand in state.hands]
        shown.append(
            {
                "seat": seat,
                "pile": opened,  # the first turn whose cards lie on the board
                "won": [event.player_id for event in events if isinstance(event, PlayerWonEvent)],
                "free": was_free,
                "hands": {place: _letters(hand) for place, hand in enumerate(now) if hand != held[place]},
                **_cards_shown(output, number),
                **_marks(output, number, seat, bluffed),
            }
        )
        number, seat, held, doubtable = state.number, state.seat, now, state.can_doubt
    return {
        "names": list(names),
        "hands": dealt,
        "turns": shown,
        "story": story,  # a line for each turn
        "places": list(state.places),
        "ending": spoken(ending(state, label)),
    }


def fits(decision: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> bool:
    turn = turns[decision["turn"] - 1]
    opens = "cards" in turn and turn["pile"] == decision["turn"] - 1
    return (decision["node"] in _OPENING) == opens


def _cards_shown(output: TurnOutput, number: int) -> dict[str, Any]:
    if output.doubt:
        return {}
    assert output.cards is not None
    claimed = output.number or number
    return {
        "claimed": card_name(claimed, plural=True),
        "cards": _letters(output.cards),
        "honest": is_honest(output.cards, claimed),
    }


def _marks(output: TurnOutput, number: int, seat: int, bluffed: bool) -> dict[str, Any]:
    """What the viewer can look for: bluffs and doubts, and what a seat got wrong of the play before."""
    if output.doubt:
        mistakes = {} if bluffed else {seat: "doubted an honest play"}
        return {"marks": ["doubt"], "mistakes": mistakes, "let_pass": {}}
    assert output.cards is not None
    kinds = [] if is_honest(output.cards, output.number or number) else ["bluff"]
    return {"marks": kinds, "mistakes": {}, "let_pass": {seat: "let a bluff pass"} if bluffed else {}}


def _letters(cards: Iterable[int]) -> str:
    return "".join(map(_LETTERS.__getitem__, in_order(cards)))


BOTS: Final = ("ClaudeBot", "AdaptyBoi", "StefaBot")
EASY: Final = ("RandomBoi", "JustPutCards", "MrNoDoubt")
HARD: Final = ("Sherlock",)
HOW: Final = (
    "Type `doubt` (or `d`), or the cards you put down: `7 7 joker`, also `a k j`, `jack`, `*` for a joker. When you "
    "open a round, say the number you claim: `7 king as 7`; without it, cards of one number are claimed as what they "
    "are. `?` tells the rules, Ctrl-D leaves the table."
)
LEAD: Final = (
    "Dubito, “I doubt it”: put cards face down, claim what they are, and catch the others lying. The first to be "
    "rid of all cards has a hard win, the next ones a soft win, worth half; those left at the end lose."
)
OPTIONS: Final = (  # what of the rules a page offers: the rule, its label, its values in words, the first the usual one
    ("jokers", "Jokers", ((2, "2"), (1, "1"), (0, "0"))),
    ("win_rule", "Your last card", (("immediate", "wins at once"), ("contested", "may still be doubted"))),
)
_OF_CARD: Final = re.compile(r"\b(\d+) of card (\d+), not (\d+)")
_CARDS: Final = {
    **{card_name(card): card for card in (JOKER, *NUMBERS)},
    **{card_name(card, plural=True): card for card in (JOKER, *NUMBERS)},
    **{str(card): card for card in (JOKER, *NUMBERS)},
    "sixes": 6,
    "a": 1,
    "j": 11,
    "q": 12,
    "k": 13,
    "*": JOKER,
}


def sees(state: State, seat: int, label: Label) -> list[str]:
    counts = [state.player_data(other).n_cards for other in range(len(state.hands))]
    there = [other for other, place in enumerate(state.places) if place is None]
    held = [f"{to_person(label(other), TO_ME)} {counts[other]}" for other in there]
    lines = [f"Cards held: {', '.join(held)}.", f"Your hand: {cards_in_words(state.hands[seat].cards)}"]
    if not state.number:
        return [*lines, "Your turn. The board is empty: you open a round."]
    assert state.last_player is not None
    last, number = to_person(label(state.last_player), TO_ME), card_name(state.number, plural=True)
    doubt = "" if state.can_doubt else " (nobody may doubt them)"
    return [
        *lines,
        f"Your turn. On the board: {state.n_cards_played} of {len(state.board)} by {last}, as {number}{doubt}.",
    ]


def read(line: str, state: State, seat: int) -> TurnOutput:
    return read_move(line, state.number)


def read_move(line: str, number: int) -> TurnOutput:
    """What a person typed, in a round of that number (0: they open); whether it is legal the engine says.

    Raises UsageError for what cannot be read.
    """
    words = line.casefold().replace(",", " ").split()
    if words in (["doubt"], ["d"]):
        return TurnOutput(True)
    text, claimed, as_what = " ".join(words).partition(" as ")
    cards = [_card(word) for word in text.split()]
    if claimed:
        return TurnOutput(False, _card(as_what), cards)
    own = set(cards) - {JOKER}
    return TurnOutput(False, own.pop() if not number and len(own) == 1 else None, cards)


def _card(word: str) -> int:
    if word not in _CARDS:
        raise UsageError(f"'{one_line(word, 20)}' is no card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`")
    return _CARDS[word]


@dataclass(frozen=True, slots=True)
class _Move(Strict):
    """What the page sends."""

    doubt: bool = False
    cards: list[int] | None = None
    number: int | None = None


_MOVE: Final = TypeAdapter(_Move)


def answered(answer: object, state: State, seat: int) -> TurnOutput:
    try:
        move = _MOVE.validate_json(json.dumps(answer))
    except ValidationError as error:
        raise UsageError(f"this move cannot be read: {fault(error, 'the answer')}") from None
    return TurnOutput(move.doubt, move.number, move.cards)


def why_illegal(state: State, output: object) -> str | None:
    why = refused(output, state.hands[state.seat].counts, state.number, state.can_doubt, state.rules.ranks)
    return why and _OF_CARD.sub(lambda found: _cards_of_kind(*map(int, found.groups())), why)


def _cards_of_kind(count: int, card: int, wanted: int) -> str:
    return f"{count} {card_name(card, plural=count > 1)}, not {wanted}" if count else f"no {card_name(card)}"


def cheer(state: State, seat: int) -> str:
    place = state.places[seat]
    if place is None:
        return "You lose this one." if state.result(seat) is Result.LOSS and state.over else ""
    if place == 1:
        return "\n  ***  A hard win! You are the first to be out of cards.  ***\n"
    return f"\n  **  A soft win! You are out of cards, in place {place}, and have not lost.  **\n"
