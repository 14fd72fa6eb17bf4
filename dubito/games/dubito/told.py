"""Dubito in words for people, and with its cards for the viewer."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dubito.game.words import ME, Label, Line, Panel
from dubito.games.dubito.core_game import Game
from dubito.games.dubito.game_data import Event, PlayerWonEvent, TurnOutput
from dubito.games.dubito.record import card_name, cards_in_words, ending, in_order, narrated
from dubito.games.dubito.rule_text import objective, rule_sentences, scoring
from dubito.games.dubito.rules import Rules, is_honest

_LETTERS: Final = "*A23456789TJQK"  # a card is a letter, so that a hand is a short word
_OPENING: Final = "AB"  # the nodes that are asked on an empty board
_JOKERS: Final = ("No joker", "One joker", "Two jokers")
_LAST_CARD: Final = {"immediate": "winning at once", "contested": "open to doubt"}
_TO_ME: Final = {
    f"{ME} puts": "You put",
    f"{ME} doubts": "You doubt",
    f"{ME}, who shows": "you, and you show",
    f"{ME} picks": "You pick",
    f"{ME} discards": "You discard",
    f"{ME} is": "You are",
    f"{ME} holds": "you hold",
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
    """The objective, the rules in force, and how a game is scored."""
    told = rule_sentences(Rules(rules.jokers, rules.win_rule, rules.max_turns), seats)
    of_a_player = [re.sub(r"\b([Hh]is|him|he)\b", lambda found: _PRONOUNS[found[0]], text) for text in told]
    return [objective(seats), *of_a_player, scoring()]


def in_short(rules: Any) -> str:
    """The jokers, and what a last card is."""
    return f"{_JOKERS[rules.jokers]}, the last card {_LAST_CARD[rules.win_rule]}"


def to_me(text: str) -> str:
    """The sentence with the person spoken to."""
    for words, said in _TO_ME.items():
        text = text.replace(words, said)
    return text


class Teller:
    """Tells one game with its cards open."""

    def __init__(self, game: Game, label: Label) -> None:
        self._game, self._label, self._number = game, label, game.number

    def holds(self, seat: int) -> str:
        """The cards of a hand."""
        return cards_in_words(self._game.hands[seat].cards)

    def moved(self, seat: int, output: TurnOutput, events: Sequence[Event]) -> list[Line]:
        """What the table observed, and what was really played."""
        lines = [Line(narrated(event, self._label)) for event in events]
        if output.cards:
            verdict = "honest" if is_honest(output.cards, output.number or self._number) else "a bluff"
            lines[0] = Line(lines[0].said, f"really {cards_in_words(output.cards)}: {verdict}")
        self._number = self._game.number
        return lines

    def panels(self) -> list[Panel]:
        """The hands, then the board."""
        game, label = self._game, self._label
        seats = range(len(game.hands))
        hands = [Panel(label(seat), f"{len(game.hands[seat].cards)} cards", self.holds(seat), seat) for seat in seats]
        return [*hands, Panel("The board", f"{len(game.board)} cards", cards_in_words(game.board))]

    def ending(self) -> list[str]:
        """Who did not win; then the places, and the turns."""
        game, label = self._game, self._label
        winners = sorted((place, seat) for seat, place in enumerate(game.places) if place is not None)
        placed = [f"{place}. {label(seat)}" for place, seat in winners]
        turns, free = game.turns, game.free_turns
        counts = f"{turns} turn{'s' * (turns != 1)} and {free} free one{'s' * (free != 1)}"
        return [ending(game, label), *placed, counts]


def drawn(
    game: Game, turns: Turns, names: Sequence[str], label: Label, spoken: Callable[[str], str] = str
) -> dict[str, Any]:
    """The game as the viewer draws it with cards, from its deal on; an error of a turn is passed on.

    `label` names the players in sentences, which are then `spoken` to whom they are for.
    """
    held = [list(hand.cards) for hand in game.hands]
    dealt = [_letters(hand) for hand in held]
    shown: list[dict[str, Any]] = []
    story: list[str] = []
    opened, number, free, seat, doubtable = 0, 0, 0, game.seat, game.can_doubt
    for output, events in turns:
        bluffed = doubtable and not shown[-1]["honest"]  # a bluff lay on top, and there was doubting it
        was_free, free = game.free_turns > free, game.free_turns
        if output.doubt:
            opened = len(shown) + 1
        story.append(" ".join(spoken(narrated(event, label)) for event in events))
        now = [list(hand.cards) for hand in game.hands]
        shown.append(
            {
                "seat": seat,
                "pile": opened,  # the first turn whose cards lie on the board
                "won": [event.player_id for event in events if isinstance(event, PlayerWonEvent)],
                "free": was_free,
                "hands": {place: _letters(hand) for place, hand in enumerate(now) if hand != held[place]},
                **_played(output, number),
                **_marks(output, number, seat, bluffed),
            }
        )
        number, seat, held, doubtable = game.number, game.seat, now, game.can_doubt
    return {
        "names": list(names),
        "hands": dealt,
        "turns": shown,
        "story": story,  # a line for each turn
        "places": list(game.places),
        "ending": spoken(ending(game, label)),
    }


def fits(decision: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a model can have been asked this at its turn, of a game told so: on an empty board A and B."""
    turn = turns[decision["turn"] - 1]
    opens = "cards" in turn and turn["pile"] == decision["turn"] - 1
    return (decision["node"] in _OPENING) == opens


def _played(output: TurnOutput, number: int) -> dict[str, Any]:
    """What was put down, and as what; nothing of a doubt."""
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
        kinds, mistake = ["doubt"], "" if bluffed else "doubted an honest play"
    else:
        assert output.cards is not None
        kinds = [] if is_honest(output.cards, output.number or number) else ["bluff"]
        mistake = "let a bluff pass" if bluffed else ""
    return {"marks": kinds, "mistakes": {seat: mistake} if mistake else {}}


def _letters(cards: Iterable[int]) -> str:
    return "".join(map(_LETTERS.__getitem__, in_order(cards)))
