"""OpenSpiel's games in words for people at the table and for spectators."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dubito.errors import UsageError, one_line, pluralize
from dubito.files import NoRules
from dubito.game import Game, GameEvent
from dubito.game.reader import Reader
from dubito.game.words import Line, Panel, Teller, Words
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.state import DealEvent, SeenEvent, State, own_words
from dubito.plugins.openspiel.texts import format_state_text, is_open, objective, rule_paragraphs

_WRITTEN: Final = ", as OpenSpiel writes it"
_BOARD: Final = f"The board{_WRITTEN}"
_GIN: Final = "openspiel:gin_rummy"


class OpenSpielTeller(Teller[State]):
    def describe_hand(self, seat: int) -> str:
        own = own_words(self.state.engine)
        boards = [one for one in own.panels(self.state.state, self.reader) if one.seat is None] if own else []
        return "; ".join([_describe_hand(self.state, seat), *(f"{one.title.lower()}: {one.public}" for one in boards)])

    def describe_move(self, seat: int, output: object, events: Sequence[GameEvent]) -> list[Line]:
        """Return a line with the action. It is public if we have words for the game or nothing is hidden."""
        engine = self.state.engine
        if own_words(engine) or is_open(engine):
            return [Line(f"{self.reader.starts(seat)}: {output}")]
        return [Line(f"{self.reader.starts(seat, 'moves')}.", f"chose {output}")]

    def panels(self) -> list[Panel]:
        state, reader = self.state, self.reader
        if own := own_words(state.engine):
            return [
                each
                if (seat := each.seat) is None
                else replace(each, truth=_describe_hand(state, seat), cards=own.cards(state.state, seat))
                for each in own.panels(state.state, reader)
            ]
        if is_open(state.engine):
            return [_text_panel(_BOARD, str(state.state), is_public=True)]
        seats = range(len(state.moves))
        seen = [
            _text_panel(reader.name(seat), state.describe_view(seat), seat, f"What the seat sees{_WRITTEN}")
            for seat in seats
        ]
        return [*seen, _text_panel(f"The whole state{_WRITTEN}", str(state.state))]

    def ending(self) -> list[str]:
        own, reader = own_words(self.state.engine), self.reader
        unit = own.unit if own and own.unit else "point"
        gains = []
        for seat, gain in enumerate(self.state.state.returns()):
            verb = "wins" if gain > 0 else "loses"
            gains.append(f"{reader.does(seat, verb)} {_amount(abs(gain), unit)}" if gain else reader.name(seat) + " 0")
        return [f"The game is over: {', '.join(gains)}.", pluralize(self.state.turns_played, "move")]


class OpenSpielWords(Words[State, NoRules]):
    """The words of a game. A person answers with the name or the number of an action."""

    TELLER = OpenSpielTeller
    HOW = "Type the name of an action, or its number in the list."

    def __init__(self, game: Game, engine: Engine) -> None:
        super().__init__(game)
        self._engine, self._own = engine, own_words(engine)
        if self._own:
            self.FACES = self._own.faces
            self.DRAWN_LINES = ("You hold ", "Community card", "Pot ")
        self._is_gin, others = game.name.startswith(_GIN), game.seats[0] - 1
        self.BOTS = ["SimpleGin" if self._is_gin else game.fallback] * others
        self.EASY, self.HARD = [game.fallback] * others, ["Solved"] * others

    def default_bots(self, names: Sequence[str]) -> list[str]:
        return [bot for bot in self.HARD if bot in names] or super().default_bots(names)

    def strengths(self, names: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return the quick games. A game without its own simple bot has no medium."""
        levels = super().strengths(names)
        levels = [(name, bots) for name, bots in levels if name != "medium" or self._is_gin]
        return levels if len(levels) > 1 else []

    @property
    def TITLE(self) -> str:  # noqa: N802, as in Words
        title = self._own.title if self._own else super().TITLE
        return f"{title[:1].upper()}{title[1:]}"

    @property
    def LEAD(self) -> str:  # noqa: N802
        return self._own.lead if self._own else super().LEAD

    def rules(self, rules: NoRules, seats: int) -> list[str]:
        return [*rule_paragraphs(self._engine), f"Objective: {objective(self._engine)}"]

    def summarize_rules(self, rules: NoRules) -> str:
        given = self.game.name.partition("(")[2].removesuffix(")")
        return given.replace("=", " ").replace(",", ", ")

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        match event:
            case DealEvent():
                return "The game begins."
            case SeenEvent(entries):
                shown = (entry for entry in entries if entry.by is not None or not is_open(self._engine))
                return " ".join(_sentence(self._draw_cards(entry.text)) for entry in shown)
        return ""

    def describe_view(self, state: State, seat: int, reader: Reader) -> list[str]:
        if (hand := state.hand(seat)) is not None:
            lines = [
                f"You hold {_describe_hand(state, seat)}.",
                *(each[:1].upper() + each[1:] for each in hand.split("; ")[1:]),
            ]
        else:
            is_board = is_open(state.engine)
            text = str(state.state) if is_board else state.describe_view(seat)
            lines = [
                f"{_BOARD if is_board else f'What you see{_WRITTEN}'}:",
                format_state_text(text) or text.strip("\n"),
            ]
        return [*lines, "What do you do?"]

    def key_hint(self, state: State) -> str:
        return ", ".join(f"{n} {name}" for n, name in enumerate(self.choices(state), 1))

    def hand(self, state: State, seat: int) -> list[str]:
        return own.cards(state.state, seat) if (own := own_words(state.engine)) else []

    def parse_line(self, line: str, state: State, seat: int) -> str:
        """Parse a typed action. Names take precedence, because a name can also be a number."""
        word, names = line.strip().casefold(), self.choices(state)
        folded = {name.casefold(): name for name in names}
        if word in folded:
            return folded[word]
        if word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(names):
            return names[int(word[:9]) - 1]
        raise UsageError(
            f"'{one_line(line, 40)}' is not an action here: type its name, or its number from 1 to {len(names)}"
        )

    def parse_answer(self, answer: object, state: State, seat: int) -> str:
        if isinstance(answer, str):
            return answer
        raise UsageError("this is not an answer to `act`: give the name of an action")

    def verdict(self, state: State, seat: int) -> str:
        """Report what the seat has won, in the game's unit, or only who has won if there are no amounts."""
        gain, engine = state.state.returns()[seat], self._engine
        verb = "win" if gain > 0 else "lose"
        if own := self._own:
            return f"You {verb} {_amount(abs(gain), own.unit)}." if own.unit and gain else _PLAIN_VERDICTS[_sign(gain)]
        if (engine.min_utility(), engine.max_utility()) == (-1, 1) and gain in (-1, 0, 1):
            return _PLAIN_VERDICTS[_sign(gain)]
        return f"Your return is {gain:g}."

    def _draw_cards(self, text: str) -> str:
        """Replace the engine's names of gin's cards: 2♣ 2♦ instead of 2c2d."""
        return _GIN_CARDS.sub(_with_suits, text) if self._is_gin else text

    def label_answer(self, state: State, answer: object) -> str:
        name = self._draw_cards(str(answer))
        return f"{name[:1].upper()}{name[1:]}"

    def speech(self, output: object, events: Sequence[GameEvent]) -> str:
        return self._draw_cards(str(output)) if self._own or is_open(self._engine) else ""


_SUIT_SIGNS: Final = {"s": "♠", "c": "♣", "d": "♦", "h": "♥"}
_GIN_CARDS: Final = re.compile(r"\b(?:[A23456789TJQK][scdh])+\b")


def _with_suits(cards: re.Match[str]) -> str:
    pairs = zip(cards[0][::2], cards[0][1::2], strict=True)
    return " ".join(f"{rank.replace('T', '10')}{_SUIT_SIGNS[suit]}" for rank, suit in pairs)


_PLAIN_VERDICTS: Final = {1: "You win!", 0: "It is a draw.", -1: "You lose."}


def _sign(gain: float) -> int:
    return (gain > 0) - (gain < 0)


def _amount(number: float, unit: str) -> str:
    return f"{number:g} {unit}{'s' * (number != 1)}"


def _text_panel(title: str, text: str, seat: int | None = None, under: str = "", *, is_public: bool = False) -> Panel:
    plain = format_state_text(text)
    folded = None if plain else (under or title, text.strip("\n"))
    return Panel(title, plain if is_public else "", "" if is_public else plain, seat, folded=folded)


def _describe_hand(state: State, seat: int) -> str:
    cards, _, about = (state.hand(seat) or "").partition("; ")[0].partition(" (")
    return f"{about.rstrip(')').rpartition(', ')[2]}: {cards}" if about else cards


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text[-1:] in ".!?" or "\n" in text else f"{text}."
