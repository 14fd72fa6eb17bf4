"""BS as a path: a play is chosen card by card, by number and ascending; then three are asked whether it is BS.

Cards of one number are alike here: the first one in the hand is played. What chance decides beside the deal is which
of several accusers counts, and which card one loses who is right.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, Final, Self, cast

from dubito.errors import IllegalOutput, UsageError
from dubito.game import GameEvent, Player
from dubito.games.bs.cards import COPIES, DECK, NUMBERS, PlayEvent, TurnEvent, WinEvent
from dubito.games.bs.engine import State, deal
from dubito.games.bs.game import GAME, RESULTS
from dubito.games.bs.table import SEATS
from dubito.training.course import CHANCE, ChanceDraws, Course, Pieces, one_hot

DONE: Final = NUMBERS  # actions below are numbers
NO, YES = DONE + 1, DONE + 2
_WORDS: Final = {DONE: "done", NO: "believes it", YES: "accuses"}
COLUMNS: Final = NUMBERS + 5  # of a turn in `recall`


class BSCourse(Course):
    """A game of BS: 0 to 12 is one more card of that number, 13 ends the play; 14 believes it and 15 accuses."""

    results = RESULTS
    n_actions = YES + 1
    n_outcomes = NUMBERS

    engine: State

    def __init__(self, max_rounds: int) -> None:
        if max_rounds < 1:
            raise UsageError(f"max_rounds: {max_rounds} is not at least 1")
        super().__init__(len(SEATS))
        self.max_rounds = max_rounds
        self.picks: list[int] = []  # the numbers of a play that is not done
        self._deck: list[int] = []  # in the order in which it is dealt
        self._left = Counter(dict.fromkeys(range(NUMBERS), COPIES))
        self._draws = ChanceDraws()
        self._accusers: list[int] = []
        self._answers = 0  # to the play under question
        self._last = False  # the last of them, which waits for chance
        self._ask_chance(self._left)

    @classmethod
    def longest(cls, max_rounds: int) -> int:
        """Steps of the longest game: the deal; in a turn at most all cards of the deck, three answers and two draws."""
        return len(DECK) + max_rounds * len(SEATS) * (len(DECK) + 1 + 3 + 2)

    def _chance(self, outcome: int) -> None:
        if self.engine is None:
            self._deck.append(outcome)
            self._left[outcome] -= 1
            if self._left.total():
                self._ask_chance(self._left)
            else:
                self._deal()
        elif len(self._accusers) > 1:
            self._draws.decide(self._accusers.index(outcome), len(self._accusers))
            self._accusers = [outcome]
            self._lose()
        else:
            hand = [card.number for card in self.engine.hands[self._accusers[0]].cards]
            self._draws.decide(hand.index(outcome), len(hand))
            self._settle(outcome)

    def _deal(self) -> None:
        copies = [iter(DECK[COPIES * number : COPIES * (number + 1)]) for number in range(NUMBERS)]
        self._draws = ChanceDraws([next(copies[number]) for number in self._deck])
        self._deck = []
        self.engine = deal(self.max_rounds, cast(Random, self._draws))
        self._tell([self.engine.start])
        for seat, hand in enumerate(self.engine.hands):
            cards = tuple(card.number for card in hand.cards)
            self.note(f"hand {_shown(cards)}", ("hand", cards), seat)
        self._go_on()

    def _decide(self, action: int) -> None:
        game = self.engine
        if action < DONE:
            self.picks.append(action)
            self._go_on()
        elif action == DONE:
            picks, self.picks = self.picks, []
            self._tell(game.apply(GAME.output_of("cards", picks, game.cards(game.seat, cast(Any, None)))))
            self._go_on()
        else:
            self._answers += 1
            self._last = action == YES
            if self._last:
                self._accusers.append(game.seat)
            if self._answers < len(SEATS) - 1:
                game.apply(self._last)
                self._go_on()
            elif len(self._accusers) > 1:
                self._ask_chance(self._accusers)
            else:
                self._lose()

    def _lose(self) -> None:
        """Let chance draw what the accuser loses, if anything."""
        if self._accusers and self.engine.lie:
            self._ask_chance(card.number for card in self.engine.hands[self._accusers[0]].cards)
        else:
            self._settle(None)

    def _settle(self, lost: int | None) -> None:
        """The last answer is in, and so is chance: end the turn."""
        game, accusers = self.engine, self._accusers
        mover, lie, pile = game.public.mover, game.lie, tuple(card.number for card in game.pile.cards)
        self._answers, self._accusers = 0, []
        self._tell(game.apply(self._last))
        assert not self._draws.places, "the engine has drawn less than chance has decided"
        if accusers:
            loser = mover if lie else accusers[0]
            self.note(f"takes {_shown(pile)}", ("takes", pile), loser)
            if lost is not None:
                self.note(f"loses {lost}", ("loses", lost), accusers[0])
        self._go_on()

    def _go_on(self) -> None:
        game = self.engine
        if game.over:
            self._end()
        elif game.public.node == "bs":
            self._ask(game.seat, (NO, YES))
        else:
            held, least = Counter(card.number for card in game.hands[game.seat].cards), max(self.picks, default=0)
            held.subtract(self.picks)
            numbers = [number for number in range(least, NUMBERS) if held[number] > 0]
            self._ask(game.seat, [*numbers, DONE] if self.picks else numbers)

    def in_words(self, event: GameEvent) -> str:
        """Plays and sizes; what was accused, the sizes tell."""
        match event:
            case PlayEvent(seat, number, n):
                return f"seat {seat} plays {n} as {number}"
            case TurnEvent(pile, hands):
                return f"pile {pile}, hands {_shown(hands)}"
            case WinEvent(seat):
                return f"seat {seat} wins"
        return type(event).__name__.removesuffix("Event").lower()

    def steps(self, player: Player) -> list[int]:
        """The numbers of its play, ascending, and that it is done; or whether it accuses."""
        output = player.play(self.engine.view())
        if why := self.engine.view().why_illegal(output):
            raise IllegalOutput(why)
        if isinstance(output, bool):
            return [YES if output else NO]
        return [*sorted(GAME.answer_of("cards", output)), DONE]

    def words(self, player: int, action: int) -> str:
        """As `card 7`, `done` or `accuses`; of chance as `deal 7`, `accuser 2` or `loses 7`."""
        if player != CHANCE:
            return _WORDS.get(action, f"card {action}")
        kind = "deal" if self.engine is None else "accuser" if len(self._accusers) > 1 else "loses"
        return f"{kind} {action}"

    def undone(self) -> Sequence[str]:
        """The deal, or who accused."""
        return [f"dealt {_shown(self._deck)}"] if self._deck else [f"accuser {a}" for a in self._accusers[:1]]

    def recall(self, seat: int) -> Pieces:
        """The first hand by number, the picks of a play that is not done, and a row a turn; see `_Recall`."""
        recall = _Recall(seat)
        for entry in self.seen(seat):
            recall.add(entry.what)
        return {"hand": recall.hand, "picks": recall.picks, "turns": recall.rows}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the pieces of `recall`."""
        return {"hand": (NUMBERS,), "picks": (NUMBERS,), "turns": (self.max_rounds * len(SEATS), COLUMNS)}

    def observation(self, seat: int) -> Pieces:
        """The own hand and picks, what is asked, and the table from the own seat on."""
        game, public = self.engine, self.engine.public if self.engine else None
        mine = public is not None and self.player == seat
        sizes = public.hands if public else [0] * len(SEATS)
        return {
            "asked": one_hot(("cards", "bs").index(public.node) if public and mine else -1, 2),
            "hand": _counts(card.number for card in game.hands[seat].cards) if game else [0] * NUMBERS,
            "picks": _counts(self.picks if mine else ()),
            "number": one_hot(public.number if public else -1, NUMBERS),
            "mover": one_hot((public.mover - seat) % len(SEATS) if public else -1, len(SEATS)),
            "table": [public.n_cards / NUMBERS, public.pile / NUMBERS] if public else [0, 0],
            "hands": [sizes[(seat + place) % len(SEATS)] / NUMBERS for place in range(len(SEATS))],
        }

    def world(self, seat: int, chance: Random) -> Self:
        """There is none: raises NotImplementedError."""
        raise NotImplementedError(
            "worlds of BS cannot be drawn from an information state: most plays nobody ever sees, and what they can "
            "have been hangs together over the whole game"
        )


class _Recall:
    """What a seat has seen of a game, as numbers.

    A turn is a row: the cards put down by number, where the seat knows them by now; how many; the own answer (1 no,
    2 yes); who accused, + 1; whether it was a lie (1 no, 2 yes); the card that was drawn from the accuser, + 1.
    """

    def __init__(self, seat: int) -> None:
        self.hand = [0] * NUMBERS
        self.picks = [0] * NUMBERS
        self.rows: list[list[int]] = []
        self._seat = seat
        self._sizes = [NUMBERS] * len(SEATS)
        self._pile: list[tuple[int, int]] = []  # its cards from below: of which row, or drawn in which; how many

    def add(self, what: Any) -> None:
        """One entry of the log."""
        match what:
            case ("hand", cards):
                self.hand = _counts(cards)
            case ("did", pick) if pick < DONE:
                self.picks[pick] += 1
            case ("did", answer) if answer > DONE:
                self.rows[-1][NUMBERS + 1] = 1 + (answer == YES)
            case PlayEvent(seat, _, n):
                own = self.picks if seat == self._seat else [0] * NUMBERS
                self.rows.append([*own, n, 0, 0, 0, 0])
                self._pile.append((len(self.rows) - 1, n))
                self._sizes[seat] -= n
                self.picks = [0] * NUMBERS if seat == self._seat else self.picks
            case TurnEvent(pile, hands):
                self._settled(pile, hands)
            case ("takes", cards):
                self._taken(list(cards))
            case ("loses", number):
                self.rows[-1][NUMBERS + 4] = number + 1

    def _settled(self, pile: int, hands: Sequence[int]) -> None:
        """By the sizes, everybody knows who accused, and whether it was a lie."""
        changed = [seat for seat in SEATS if hands[seat] != self._sizes[seat]]
        self._sizes = list(hands)
        self._before = self._pile
        if changed:
            lie, mover = pile == 1, (len(self.rows) - 1) % len(SEATS)
            accuser = next(seat for seat in changed if seat != mover)
            self.rows[-1][NUMBERS + 2 : NUMBERS + 4] = accuser + 1, 1 + lie
            self._pile = [(~(len(self.rows) - 1), 1)] if lie else []

    def _taken(self, cards: list[int]) -> None:
        """The seat has taken the pile up, and knows now what was put down."""
        for row, n in self._before:
            if row < 0:
                self.rows[~row][NUMBERS + 4] = cards[0] + 1
            else:
                self.rows[row][:NUMBERS] = _counts(cards[:n])
            del cards[:n]


def _counts(numbers: Any) -> list[int]:
    counts = Counter(numbers)
    return [counts[number] for number in range(NUMBERS)]


def _shown(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))
