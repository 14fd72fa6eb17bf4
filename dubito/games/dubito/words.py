"""Dubito in words: rules, effects of answers, the viewer's data, and what a person at the table reads and types.

The rulebook is docs/rules.md. Sentences about events come from `sentences.sentence`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dubito.errors import UsageError, number_word, one_line, pluralize
from dubito.game import GameEvent
from dubito.game.reader import Reader
from dubito.game.words import HAND, Claim, Face, Marks, Panel, Play, Question, Scene, Teller, Words
from dubito.games.dubito.cards import JOKER, MAX_PLAY, NUMBERS, TurnData, TurnOutput
from dubito.games.dubito.engine import DUEL, Rules, State, WinRule
from dubito.games.dubito.engine import why_illegal as refused
from dubito.games.dubito.events import CardsPlayedEvent, DoubtResolvedEvent, OwnCardsEvent
from dubito.games.dubito.rules import DubitoRules
from dubito.games.dubito.sentences import card_name, card_names, describe_cards, ending, sort_cards
from dubito.games.dubito.sentences import sentence as sentence

WALK: Final = (
    "You decide, and the table picks the cards. On your turn you answer up to five questions, one per request, with "
    "true for the first choice or false for the second: on an empty board A, then B; otherwise C, then, if you do not "
    "doubt, D and E."
)

WALK_AT_ONCE: Final = WALK.replace("one per request", "all in one request")

_RANDOM_NUMBER: Final = "a random number still in play"
_LAST_TABLE: Final = 3  # with this many players or fewer, the next win ends the game (R10)

# What each node asks (R24, R25). `effects` describes what an answer does on a given turn.
NODE_TEXTS: Final = {
    "A": "bluff, with random cards under a random number still in play, or play honest cards?",
    "B": "many cards, or few? Many is three random cards for a bluff, otherwise up to three of the number you hold "
    "most of (jokers count as the number 0; the lowest if several tie). Few is one to three random cards for a bluff, "
    "otherwise one random card under its own number.",
    "C": "doubt the last play, or play cards? Asked if you may doubt.",
    "D": "bluff anyway, with random cards, or play cards of the number? Asked if you hold the number; without it you "
    "must bluff.",
    "E": "many cards, or few? Many is three random cards for a bluff, otherwise up to three of the number. Few is one "
    "to three random cards for a bluff, otherwise a random number of the matching ones.",
}

_WINNING: Final = {
    "immediate": "A player with no cards at the end of a turn, after discards, has won and leaves. Their last cards "
    "stay on the board and cannot be doubted, and the next player plays on the same number.",
    "contested": "A player who plays their last card waits until the next player's turn ends. If that player doubts "
    "and the play was a bluff, the bluffer picks up the board and plays on; otherwise the waiting player has won "
    "and leaves. A hand emptied by a discard wins at once.",
}


_WINNING_A_DUEL: Final = {
    "immediate": "A player with no cards at the end of a turn, after discards, has won: their last cards cannot be "
    "doubted.",
    "contested": "A player who plays their last card waits until the other player's next turn ends. If the other "
    "player doubts and the play was a bluff, the bluffer picks up the board and plays on; otherwise the waiting player "
    "has won. A hand emptied by a discard wins at once.",
}
_END: Final = "The game ends when two players are left: both lose, whatever they hold."
_END_OF_A_DUEL: Final = "The game ends when one player has won: the other loses."

_EXAMPLE: Final = " As 7s, 7 7 joker is honest and 7 8 joker is a bluff."


def rule_paragraphs(rules: Rules, n_players: int) -> list[str]:
    """Return the rules in force at a table of this size, each as a paragraph."""
    figures = ", ".join(f"{n} the {card_name(n)}" for n in NUMBERS[1 : rules.ranks] if card_name(n) != str(n))
    figures = ", ".join(filter(None, ("1 is the ace", figures)))
    jokers = ["no joker", "one joker", "two jokers"][rules.jokers]
    four = number_word(rules.copies)
    play_example = _EXAMPLE if rules.is_full_deck else ""
    return [
        f"The deck has {four} cards of each number from {NUMBERS[0]} to {rules.ranks} ({figures}) and {jokers}. All "
        f"cards are dealt to the {n_players} players; nobody is dealt {four} of one number.",
        f"On your turn you play 1 to {MAX_PLAY} cards face down, or you doubt the last play. If the board is empty, "
        "you open a round: you must play, and you name a number. Everyone who plays after you in that round claims the "
        "same number, until somebody doubts.",
        "A play is honest if each of its cards is the named number or a joker. Any other play is a bluff."
        f"{play_example} A number whose {four} cards have left the game may still be named; then only jokers are "
        "honest.",
        "A doubt turns over the last play only; earlier bluffs are safe. If it was a bluff, the bluffer picks up the "
        "whole board and the doubter takes a free turn on the empty board. If it was honest, its jokers leave the "
        "game, the doubter picks up the rest of the board, and the player after the doubter opens a round. Everyone "
        "sees which cards are picked up.",
        f"At the end of a turn, a hand with all {four} cards of a number discards them as a set: they leave the game. "
        "So picking up cards can help. Jokers make no set.",
        (_WINNING_A_DUEL if rules.duel else _WINNING)[rules.win_rule],
        f"{_END_OF_A_DUEL if rules.duel else _END} After {rules.max_turns} turns (free turns not counted) it stops, "
        "unfinished for everyone still in it.",
    ]


def objective(n_players: int) -> str:
    if n_players == DUEL:
        return "Be the first to have no cards: that is a hard win. The other player loses."
    soft = {3: "", 4: " Place 2 is a soft win."}.get(n_players, f" Places 2 to {n_players - 2} are soft wins.")
    return f"Be the first to have no cards: place 1 is a hard win.{soft} The last two players lose."


SCORING: Final = "A hard win scores 1, a soft win 1/2, a loss or an unfinished game 0."  # R10, R12


Effects = tuple[str, str, str]  # the question, what true does, what false does


def effects(node: str, hand: Sequence[int], turn: TurnData, answers: Mapping[str, bool], win_rule: WinRule) -> Effects:
    """Return the node's question on this turn and the effects of `true` and `false` (R24, R25).

    `answers` contains this turn's earlier answers: the answer to A at B, and the answer to D at E unless the bluff is
    forced.
    """
    number, matching = card_name(turn.current_number, plural=True), hand.count(turn.current_number)
    match node:
        case "A":
            return (
                "The board is empty and you open a round. Do you bluff?",
                f"you bluff: random cards under {_RANDOM_NUMBER}.",
                f"you are honest: {_most_common(hand)[1]}, or one random card.",
            )
        case "B" if answers["A"]:
            (n, most), some = _random_cards(len(hand))
            most, some = (f"{cards} under {_RANDOM_NUMBER}" for cards in (most, some))
            question = "You open with a bluff. Do you play many cards?"
        case "B":
            n, most = _most_common(hand)
            some = f"one random card under its own number (a joker: under {_RANDOM_NUMBER})"
            question = "You open with honest cards. Do you play many?"
        case "C":
            last, board = f"seat {turn.last_player_id}", pluralize(turn.board_cards)
            question = f"{last} played {pluralize(turn.n_cards_played)} as {number}. Do you doubt?"
            won = f" {_prev_has_won(turn)}" if turn.prev.n_cards == 0 else ""
            doubt = f"if it is a bluff, {last} picks up the {board} on the board and you take a free turn; "
            doubt += f"if it is honest, you pick them up without its jokers and the next player opens.{won}"
            return question, doubt, f"you play as {number}{'' if matching else '; you hold none and must bluff'}.{won}"
        case "D":
            return (
                f"You play as {number} and hold {matching} of them. Do you bluff anyway?",
                f"you play random cards as {number}.",
                f"you play {number} only.",
            )
        case _ if answers.get("D", True):
            (n, most), some = _random_cards(len(hand))
            question = f"You bluff, as {number}. Do you play many cards?"
        case _:
            n = min(MAX_PLAY, matching)
            most, some = pluralize(n), "1 card"
            if n > 1:
                most, some = f"{most}, all of them {number}", f"a random number of them, 1 to {n}"
            question = f"You are honest, with {number}. Do you play many cards?"
    won = _after_last_card(turn, win_rule) if n == len(hand) else ""
    return question, f"you play {most}.{won}", f"you play {some}."


def _after_last_card(turn: TurnData, win_rule: WinRule) -> str:
    """Describe what happens if the hand is empty after the play (R9)."""
    if win_rule == "immediate":
        return " You then have no cards and win."
    if turn.prev.n_cards == 0 and turn.n_players <= _LAST_TABLE:
        return f" You then have no cards, but {_prev_has_won(turn)}"
    return f" You then have no cards, and win unless seat {turn.next.id} doubts and it was a bluff."


def _prev_has_won(turn: TurnData) -> str:
    end = " and the game is over: you lose." if turn.n_players <= _LAST_TABLE else "."
    return f"seat {turn.prev.id} has won{end}"


def _most_common(hand: Sequence[int]) -> tuple[int, str]:
    """Return how many cards the largest honest opening plays, and describe them (R25)."""
    value = max(sorted(hand), key=hand.count)  # max returns the first, so ties go to the lowest value
    n = min(MAX_PLAY, hand.count(value))
    if value == JOKER:
        return n, f"{pluralize(n, 'joker')}, the value you hold most of, under {_RANDOM_NUMBER}"
    return n, f"{pluralize(n)} of the number you hold most of, as {card_name(value, plural=True)}"


def _random_cards(held: int) -> tuple[tuple[int, str], str]:
    if held > MAX_PLAY:
        return (MAX_PLAY, "three random cards"), "one to three random cards"
    return (held, "all your cards"), "one to three random cards, but no more than you hold"


_SIGNS: Final = ("★", "A", *map(str, range(2, 11)), "J", "Q", "K")
_JOKERS: Final = ("no joker", "one joker", "two jokers")
_CALL: Final = "Dubito!"
_LAST_CARD: Final = {"immediate": "winning at once", "contested": "open to doubt"}


class DubitoTeller(Teller[State]):
    def __init__(self, words: Words, state: State, reader: Reader) -> None:
        super().__init__(words, state, reader)
        self._plays: list[Play] = []
        self._free_turns, self._can_doubt = state.free_turns, False

    def describe_hand(self, seat: int) -> str:
        return describe_cards(self.state.hands[seat].cards)

    def see(self, event: GameEvent) -> None:
        match event:
            case DoubtResolvedEvent(correct=is_bluff):
                self._plays[-1] = doubted = replace(self._plays[-1], shown=True)
                self.scene = Scene(
                    event.doubter_id,
                    _CALL,
                    doubted.cards,
                    doubted.wrong or (),
                    stamp="bluff" if is_bluff else "honest",
                    bad=is_bluff,
                    taker=event.loser_id,
                    pile=len(event.board_cards),
                )
                wrong = "" if is_bluff else "doubted an honest play"
                self.marks = Marks(("doubt",), wrong, catches=is_bluff, note=self._note_turn())
            case CardsPlayedEvent(player, declared, n):
                let_pass = "let a bluff pass" if self._can_doubt and self._plays[-1].lie else ""
                self.marks = Marks(let_pass=let_pass, note=self._note_turn())
                if self._plays and self._plays[-1].shown:  # doubted plays leave the board
                    self._plays = []
                self._plays.append(Play(player, f"{pluralize(n)} as {card_name(declared, plural=True)}", ()))
            case OwnCardsEvent(cards, lie):
                names = card_names(sort_cards(cards))
                false = card_names(card for card in sort_cards(cards) if card not in (JOKER, self.state.number))
                self._plays[-1] = replace(self._plays[-1], cards=names, wrong=false)
                self.marks = replace(self.marks, kinds=("bluff",) if lie else ())

    def _note_turn(self) -> str:
        """Note what the state was after the move. Return a note on a free turn."""
        free = "a free turn" if self.state.free_turns > self._free_turns else ""
        self._free_turns, self._can_doubt = self.state.free_turns, self.state.can_doubt
        return free

    def panels(self) -> list[Panel]:
        state = self.state
        badges = [f"place {place}" if place else "" for place in state.places]
        hands = map(self.hand_panel, range(len(state.hands)), badges)
        is_doubted = bool(self._plays) and self._plays[-1].shown
        title = "The doubted cards" if is_doubted else "The board"
        if state.over:
            about = ""
        elif state.board:
            about = f"This round: {card_name(state.number, plural=True)} · {pluralize(len(state.board))} on the pile"
        else:
            about = f"New round. {self.reader.starts(state.seat, 'opens')} it."
        board = Panel(title, about, backs=len(state.board), plays=tuple(self._plays))
        gone = [number for number in NUMBERS[: state.rules.ranks] if number not in state.playing_cards]
        names = ", ".join(card_name(number, plural=True) for number in gone)
        return [*hands, board, *([Panel("Out of the game", names)] if gone else [])]

    def ending(self) -> list[str]:
        state, reader = self.state, self.reader
        winners = sorted((place, seat) for seat, place in enumerate(state.places) if place is not None)
        placed = [f"{place}. {reader.starts(seat)}" for place, seat in winners]
        turns = f"{pluralize(state.turns, 'turn')} and {pluralize(state.free_turns, 'free one')}"
        return [ending(state, reader), *placed, turns]


def _claim_in_words(count: int, number: int) -> str:
    return f"{number_word(count)} {card_name(number, plural=count > 1)}"


_OF_CARD: Final = re.compile(r"\b(\d+) of card (\d+), not (\d+)")
_CARDS: Final = {"sixes": 6, "*": JOKER} | {
    form: card
    for card, sign in enumerate(_SIGNS)
    for form in (card_name(card), card_name(card, plural=True), str(card), sign.casefold())
}


_RANKS: Final = ("", "first", "second", "third", "fourth", "fifth", "sixth")
_TIPS: Final = {
    "open": "You open the round. Play one to three cards face down and say a number. Other players cannot check it.",
    "lie": "This would be a bluff. It costs nothing until somebody doubts it: then you take the whole pile.",
}


def read_move(line: str, number: int) -> TurnOutput:
    """Parse a person's input in a round of this number (0 for an opening). The engine checks whether the move is legal.

    Raises UsageError if the input cannot be parsed.
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
        raise UsageError(
            f"'{one_line(word, 20)}' is not a card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`"
        )
    return _CARDS[word]


def _cards_of_kind(count: int, card: int, wanted: int) -> str:
    return f"{count} {card_name(card, plural=count > 1)}, not {wanted}" if count else f"no {card_name(card)}"


class DubitoWords(Words[State, DubitoRules]):
    TELLER = DubitoTeller
    QUESTIONS = {
        "A": "Open with a bluff?",
        "B": "Open with many cards?",
        "C": "Doubt?",
        "D": "Bluff?",
        "E": "Play many cards?",
    }
    FACES = {card_name(card): Face(sign, "pip") for card, sign in enumerate(_SIGNS)}
    SLOGAN = "I doubt it."
    PICTURE = tuple(
        (name, sign, "pip") for name, sign in zip(("ace", "2", "2", "queen", "joker"), "A22Q★", strict=True)
    )
    BOTS = ("ClaudeBot", "AdaptyBoi", "StefaBot")
    EASY = ("RandomBoi", "JustPutCards", "MrNoDoubt")
    HARD = ("Sherlock",)
    HOW = (
        "Type `doubt` (or `d`), or the cards you play: `7 7 joker`, also `a k j`, `jack`, `*` for a joker. When you "
        "open a round, add the number you claim: `7 king as 7`. Without it, cards of one number are claimed as that "
        "number."
    )
    LEAD = (
        "Play cards face down, say what they are, and catch other players lying. The first player without cards wins."
    )
    DRAWN_LINES = ("Cards held: ", HAND, "Your turn. ")
    OPTIONS = (  # rules that a page offers: name, label, and values with their words, the default first
        ("jokers", "Jokers", ((2, "2"), (1, "1"), (0, "0"))),
        ("win_rule", "Your last card", (("immediate", "wins at once"), ("contested", "may still be doubted"))),
    )

    def shown_cards(self, event: GameEvent) -> Sequence[str]:
        return card_names(sort_cards(event.cards)) if isinstance(event, OwnCardsEvent) else ()

    def rules(self, rules: DubitoRules, seats: int) -> list[str]:
        return [objective(seats), *rule_paragraphs(rules.engine_rules, seats), SCORING]

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        return sentence(event, reader)

    def summarize_rules(self, rules: DubitoRules) -> str:
        deck = "" if rules.engine_rules.is_full_deck else f"{rules.ranks} numbers with {rules.copies} cards each, "
        text = f"{deck}{_JOKERS[rules.jokers]}, the last card {_LAST_CARD[rules.win_rule]}"
        return f"A duel: {text}" if rules.duel else f"{text[0].upper()}{text[1:]}"

    def speech(self, output: object, events: Sequence[GameEvent]) -> str:
        play = next((event for event in events if isinstance(event, CardsPlayedEvent)), None)
        if play is None:
            return _CALL
        return f"{_claim_in_words(play.n_cards, play.declared_number)}!"

    def hand(self, state: State, seat: int) -> list[str]:
        return card_names(sort_cards(state.hands[seat].cards))

    def question(self, state: State, seat: int, reader: Reader) -> Question:
        """Return the whole turn as one question: cards with a claim, or a doubt."""
        opens, wanted = not state.number, "Pick one to three cards."
        claims = [
            Claim(number if opens else None, card_name(number), card_name(number, plural=True), (JOKER, number))
            for number in (NUMBERS[: state.rules.ranks] if opens else [state.number])
        ]
        tips, others, prompt = {"lie": _TIPS["lie"]} | ({"open": _TIPS["open"]} if opens else {}), [], ""
        if state.can_doubt:
            assert state.last_player is not None
            others, wanted = [("Doubt!", {"doubt": True})], "Pick one to three cards, or doubt."
            who, claim = reader.name(state.last_player), _claim_in_words(state.n_cards_played, state.number)
            prompt = f"{reader.starts(state.last_player, 'claims')} {claim}. Doubt it?"
            believed = f"{who} says {claim}. Do you believe it?"
            tips["doubt"] = f"{believed} If you doubt and it is a lie, {who} takes the pile. If not, you do."
        elif not opens:
            wanted = "You cannot doubt now: pick one to three cards."
        cards = sort_cards(state.hands[seat].cards)
        return Question(
            "play", "play", wanted, cards, claims=claims, most=MAX_PLAY, others=others, tips=tips, prompt=prompt
        )

    def verdict(self, state: State, seat: int) -> str:
        place = state.places[seat]
        if place is None:
            return "Unfinished." if state.capped else "You lost."
        return "You win!" if place == 1 else f"You came {_RANKS[place]}."

    def explain_verdict(self, state: State, seat: int) -> str:
        place, turns = state.places[seat], pluralize(state.turns_played, "turn")
        if place == 1:
            return f"A hard win: you were the first to get rid of all cards, after {turns}."
        if place is not None:
            return f"A soft win: you got rid of all your cards before the last two, after {turns}."
        if state.capped:
            return "The game was stopped after too many turns."
        if state.rules.duel:
            return "Your opponent was the first to get rid of all cards."
        return "You were one of the last two players with cards."

    def describe_view(self, state: State, seat: int, reader: Reader) -> list[str]:
        held = [
            f"{reader.name(other)} {own.n_cards}" for other, own in enumerate(state.counts) if not state.places[other]
        ]
        lines = [f"Cards held: {', '.join(held)}.", f"Your hand: {describe_cards(state.hands[seat].cards)}"]
        if not state.number:
            return [*lines, "Your turn. The board is empty: you open a round."]
        assert state.last_player is not None
        last, number = reader.name(state.last_player), card_name(state.number, plural=True)
        doubt = "" if state.can_doubt else " (you cannot doubt them)"
        return [
            *lines,
            f"Your turn. On the board: {state.n_cards_played} of {len(state.board)} by {last}, as {number}{doubt}.",
        ]

    def parse_line(self, line: str, state: State, seat: int) -> TurnOutput:
        move = read_move(line, state.number)
        if not state.number and not move.doubt and move.number is None:
            raise UsageError(f"name the number you claim, as in `{one_line(line.strip(), 40)} as 7`")
        return move

    def parse_answer(self, answer: object, state: State, seat: int) -> TurnOutput:
        if not isinstance(answer, dict) or not answer.keys() <= {"doubt", "number", "cards"}:
            raise UsageError("this move cannot be read: give `doubt`, or `cards` and `number`")
        return TurnOutput(answer.get("doubt", False), answer.get("number"), answer.get("cards"))

    def why_illegal(self, state: State, output: object) -> str | None:
        why = refused(output, state.hands[state.seat].counts, state.number, state.can_doubt, state.rules.ranks)
        return why and _OF_CARD.sub(lambda found: _cards_of_kind(*map(int, found.groups())), why)

    def is_decided(self, state: State, seat: int) -> bool:
        return state.over or state.places[seat] is not None
