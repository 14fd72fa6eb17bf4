"""Kuhn poker: three cards, two seats, a chip each in the pot, and one more to bet (Kuhn, 1950)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from dubito.errors import IllegalOutput
from dubito.files import NoRules
from dubito.game import Choice, Ending, Facts, Game, GameEvent, Measure, Node, Player, Results, View

if TYPE_CHECKING:
    from games.kuhn.words import KuhnWords

CARDS = ("jack", "queen", "king")
ENDS = {("pass", "pass"), ("pass", "bet", "pass"), ("pass", "bet", "bet"), ("bet", "pass"), ("bet", "bet")}


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    """Both seats hold a card; seat 0 begins."""


@dataclass(frozen=True, slots=True)
class CardEvent(GameEvent):
    """The card that a seat was dealt. It is only for logs, since bots look at their card."""

    silent = True

    card: str
    only: int | None


@dataclass(frozen=True, slots=True)
class ActEvent(GameEvent):
    """What a seat did, for everybody to see."""

    seat: int
    act: str


class KuhnView(View):
    """What the seat to move sees beside its card."""

    node = "act"

    def __init__(self, acts: Sequence[str]) -> None:
        self.acts = tuple(acts)

    def legal(self) -> Sequence[str]:
        """Both acts are open to everybody whose turn it is."""
        return ("pass", "bet")


class KuhnState:
    """One game between two acts."""

    def __init__(self, cards: Sequence[int]) -> None:
        self.dealt = tuple(cards)  # a card for each seat: 0 the jack, 2 the king
        self.acts: list[str] = []
        own = [CardEvent(CARDS[card], only=seat) for seat, card in enumerate(cards)]
        self.start = [DealEvent(), *own]

    @property
    def seat(self) -> int:
        return len(self.acts) % 2

    @property
    def over(self) -> bool:
        return tuple(self.acts) in ENDS

    @property
    def turns_played(self) -> int:
        return len(self.acts)

    def view(self) -> KuhnView:
        return KuhnView(self.acts)

    def cards(self, seat: int, streams: object) -> str:
        return CARDS[self.dealt[seat]]

    def apply(self, output: Any, announce: bool = True) -> list[GameEvent]:
        if self.over:
            raise IllegalOutput("the game is over")
        if why := self.view().why_illegal(output):
            raise IllegalOutput(why)
        event = ActEvent(self.seat, output)
        self.acts.append(output)
        return [event]

    def copy_of(self, output: str) -> str:
        return output

    def ending(self) -> Ending:
        """Marks are chips won or lost, plus 2."""
        last = self.acts[-2:]
        if last == ["bet", "pass"]:  # whoever passed a bet has folded
            winner, chips = len(self.acts) % 2, 1
        else:
            winner, chips = int(self.dealt[1] > self.dealt[0]), 2 if last == ["bet", "bet"] else 1
        marks = [2 + chips if seat == winner else 2 - chips for seat in (0, 1)]
        return Ending(False, (len(self.acts),), marks, [(self.acts[seat::2].count("bet"),) for seat in (0, 1)])


class KuhnBot(Player):
    """The base of bots: one method to write."""

    cards: str

    def act(self, view: KuhnView) -> str:
        """`pass` or `bet`; `self.cards` is the own card, `view.acts` what was done so far."""
        raise NotImplementedError

    def play(self, view: KuhnView) -> str:
        return self.act(view)


class KuhnGame(Game[NoRules, KuhnState, GameEvent]):
    """There are no rules to vary."""

    name = "kuhn"
    summary = "Kuhn poker: three cards, two seats, one bet"
    seats = (2, 2)
    lineup = "ordered_pairs"
    base = KuhnBot
    fallback = "Coin"
    events = (DealEvent, CardEvent, ActEvent)
    nodes = (Node("act", "act", Choice(("pass", "bet"))),)
    results = Results(
        buckets=("won_two", "won_one", "lost_one", "lost_two"),
        endings=("won two", "won one", "lost one", "lost two"),
        bucket=lambda mark, capped: {4: 0, 3: 1, 1: 2, 0: 3}[mark],
        measures=(Measure("chips", "chips", "Chips", (4, 3, 1, 0), scale=4),),
        headline=("chips",),
        equal_share=lambda seats: {"chips": 0.5},
        game_counts=("turns",),
        seat_counts=("bets",),
        meaning="Chips are 100 % for winning two, 75 % for winning one, 25 % and 0 % for losing as many.",
    )

    def deal(self, rules: NoRules, seats: int, chance: Random) -> KuhnState:
        return KuhnState(chance.sample(range(3), seats))

    def deal_to_json(self, state: KuhnState) -> dict[str, Any]:
        return {"cards": list(state.dealt)}

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
