"""Kuhn poker: three cards, two seats, one chip each in the pot, and one more to bet (Kuhn, 1950)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from dubito.errors import IllegalOutput
from dubito.files import NoRules
from dubito.game import Choice, Ending, Facts, Game, GameEvent, Measure, Node, Player, Results, View

if TYPE_CHECKING:
    from games.kuhn.words import KuhnWords

CARDS = ("jack", "queen", "king")
ACTS = ("pass", "bet")
ENDS = {("pass", "pass"), ("pass", "bet", "pass"), ("pass", "bet", "bet"), ("bet", "pass"), ("bet", "bet")}


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """Both seats hold a card. Seat 0 begins."""


@dataclass(frozen=True, slots=True)
class CardEvent(GameEvent):
    """A seat's card. Bots do not need this event, because they hold the card."""

    silent = True

    card: str
    only: int | None


@dataclass(frozen=True, slots=True)
class ActEvent(GameEvent):
    """A pass or a bet, which both seats see."""

    seat: int
    act: str


class KuhnView(View):
    """What the seat to move sees, apart from its card."""

    node = "act"

    def __init__(self, acts: list[str]) -> None:
        self.acts = tuple(acts)

    def legal(self) -> tuple[str, ...]:
        return ACTS


class KuhnState:
    """A game between two acts."""

    def __init__(self, cards: Iterable[int]) -> None:
        self.dealt = tuple(cards)  # the card of each seat, as its place in `CARDS`
        self.acts: list[str] = []
        self.seat, self.turns_played, self.over = 0, 0, False
        self.start = [DealEvent(), *(CardEvent(CARDS[card], only=seat) for seat, card in enumerate(self.dealt))]

    def view(self) -> KuhnView:
        return KuhnView(self.acts)

    def cards(self, seat: int, streams: object = None) -> str:
        return CARDS[self.dealt[seat]]

    def apply(self, output: Any, announce: int = 1) -> list[GameEvent]:
        if why := "the game is over" if self.over else self.view().why_illegal(output):
            raise IllegalOutput(why)
        event = ActEvent(self.seat, output)
        self.acts.append(output)
        self.seat, self.turns_played, self.over = 1 - self.seat, len(self.acts), tuple(self.acts) in ENDS
        return [event]

    def ending(self) -> Ending:
        """Return the results. A seat's mark is the chips that it won or lost, plus 2."""
        winner = self.seat if self.acts[-2:] == ["bet", "pass"] else int(self.dealt[1] > self.dealt[0])
        chips = 2 if self.acts[-2:] == ["bet", "bet"] else 1
        marks = [2 + chips if seat == winner else 2 - chips for seat in (0, 1)]
        return Ending(False, (len(self.acts),), marks, [(self.acts[seat::2].count("bet"),) for seat in (0, 1)])


class KuhnBot(Player[str]):
    """The base class of bots. `self.cards` is the bot's card."""

    def act(self, view: KuhnView) -> str:
        """Return `pass` or `bet`. `view.acts` lists the acts so far."""
        raise NotImplementedError


class KuhnGame(Game[NoRules, KuhnState, GameEvent]):
    name = "kuhn"
    summary = "Kuhn poker: three cards, two seats, one bet"
    seats = (2, 2)
    lineup = "ordered_pairs"
    base = KuhnBot
    fallback = "Coin"
    events = (DealEvent, CardEvent, ActEvent)
    nodes = (Node("act", "act", Choice(ACTS)),)
    results = Results(
        buckets=("won_two", "won_one", "lost_one", "lost_two"),
        endings=("won two chips", "won one chip", "lost one chip", "lost two chips"),
        bucket=lambda mark, capped: {4: 0, 3: 1, 1: 2, 0: 3}[mark],
        measures=(Measure("chips", "chips", "Chips", (4, 3, 1, 0), scale=4),),
        seat_counts=("bets",),
        meaning="Chips are 100 % for winning two, 75 % for winning one, 25 % and 0 % for losing as many.",
    )

    def deal(self, rules: NoRules, seats: int, chance: Random) -> KuhnState:
        return KuhnState(chance.sample(range(3), seats))

    @property
    def words(self) -> "KuhnWords":
        from games.kuhn.words import KuhnWords

        return KuhnWords(self)

    @property
    def facts(self) -> Facts:
        from games.kuhn.facts import KuhnFacts

        return KuhnFacts()

    @property
    def courses(self) -> Mapping[str, type]:
        from games.kuhn.training import KuhnCourse

        return {"": KuhnCourse}


GAME = KuhnGame()
