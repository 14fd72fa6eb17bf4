"""The description of BS for the harness."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.game import (
    Bool,
    Cards,
    Game,
    GameEvent,
    Habit,
    HousePolicy,
    Lie,
    LieMark,
    Measure,
    Node,
    Results,
    house_contenders,
)
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import COPIES, DECK, EVENTS, NUMBERS, Card, HandView
from dubito.games.bs.engine import GAME_COUNTS, SEAT_COUNTS, State, deal
from dubito.games.bs.table import SEATS, explain_shortage

if TYPE_CHECKING:
    from dubito.games.bs.facts import BSFacts
    from dubito.games.bs.knowledge import BSRules
    from dubito.games.bs.words import BSWords
    from dubito.games.bs.workshop import BSWorkshop


def _places(cards: Sequence[Card]) -> list[int]:
    return [COPIES * number + copy for number, copy in cards]


RESULTS = Results(
    buckets=("wins", "losses", "unfinished"),
    endings=("won", "lost", "unfinished"),
    bucket=lambda mark, capped: 2 if capped else 1 - mark,
    measures=(Measure("wins", "won", "Wins", (1, 0, 0)),),
    game_counts=GAME_COUNTS,
    seat_counts=SEAT_COUNTS,
    scoreboard=("wins",),
    averaged=("cards",),
    habits=(
        Habit("lies", "all lies, % of plays", "lies", "lies", "plays"),
        Habit("accuses", "accuses, % of others' plays", "accuses", "accusations", "asked"),
        Habit("accuracy", "right, % of accusations that counted", "right", "accusations_right", "accusations_drawn"),
        Habit("cards", "cards per play", "cards", "cards_played", "plays", most=len(DECK)),
    ),
    lies="lies",
    describe_lies="A lie is voluntary if the hand held a card of the number, and forced if it held none.",
    found_out="lies_accused",
    charted=("lies", "accuses", "accuracy"),
    meaning="A bot's score is the share of its games that it won. Games without a winner count as not won.",
)

NODES = (Node("cards", "request_cards", Cards(tuple(range(NUMBERS)))), Node("bs", "bs", Bool()))


class BSGame(Game["BSRules", State, GameEvent, bool | list[Card]]):
    name = "bs"
    summary = "BS, king of the hill: play cards face down, call out lies, and be the first without cards"
    seats = (len(SEATS), len(SEATS))
    lineup = "distinct"
    base = BSBot
    fallback = "Hoarder"
    nodes = NODES
    events = EVENTS
    results = RESULTS
    forfeits = True
    demo = {
        "games": 40,
        "bots": ["ConMan", "CalculatingLiar", "Player1", "RiskTaker"],
        "contenders": house_contenders("careful", "random"),
    }

    def rules(self, **settings: Any) -> "BSRules":
        from dubito.games.bs.knowledge import BSRules  # imported late, so that listing games does not load pydantic

        return BSRules(**settings)

    def rules_of_run(self, stored: Mapping[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**stored)

    def deal(self, rules: "BSRules", seats: int, chance: Random) -> State:
        if seats != len(SEATS):
            raise UsageError(f"BS needs {len(SEATS)} players, not {seats}")
        return deal(rules.max_rounds, chance)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"hands": [_places(hand.cards) for hand in state.hands]}

    def output_to_json(self, output: bool | Sequence[Card]) -> bool | list[int]:
        return output if isinstance(output, bool) else _places(output)

    def output_from_json(self, value: Any) -> bool | list[Card]:
        if isinstance(value, bool):
            return value
        if not isinstance(value, list) or not all(type(place) is int and 0 <= place < len(DECK) for place in value):
            raise UsageError(
                f"the record is damaged: a BS move is true, false or a list of deck positions from 0 to "
                f"{len(DECK) - 1}, not {one_line(repr(value), 60)}"
            )
        return [DECK[place] for place in value]

    def output_of(self, node: str, answer: Any, cards: HandView) -> bool | list[Card]:
        """Return a model's yes or no unchanged, or convert its numbers to cards from the hand."""
        if isinstance(answer, bool):
            return answer
        output = list[Card]()
        for number, wanted in Counter(answer).items():
            held = cards.of(number)
            if wanted > len(held):
                raise IllegalOutput(explain_shortage(number, len(held), wanted))
            output += held[:wanted]
        return output

    def answer_of(self, node: str, output: bool | Sequence[Card]) -> bool | list[int]:
        return output if isinstance(output, bool) else [card.number for card in output]

    def lie(self, state: State, output: bool | Sequence[Card]) -> Lie | None:
        """Classify a lie: voluntary if the hand contained a card of the number, otherwise forced. None if honest."""
        number = state.public.number
        if isinstance(output, bool) or all(card.number == number for card in output):
            return None
        return "chosen" if any(card.number == number for card in state.hands[state.seat].cards) else "forced"

    def lie_mark(self, state: State, output: bool | Sequence[Card]) -> LieMark:
        public, hand = state.public, len(state.hands[state.seat].cards)
        if isinstance(output, bool):
            return LieMark(public.pile, of=public.mover, is_lie=bool(state.lie), called=output, hand=hand)
        return LieMark(public.pile, len(output), hand=hand)

    @property
    def words(self) -> "BSWords":
        from dubito.games.bs.words import BSWords

        return BSWords(self)

    @property
    def facts(self) -> "BSFacts":
        from dubito.games.bs.facts import BSFacts

        return BSFacts()

    @property
    def fakes(self) -> Mapping[str, HousePolicy]:
        from dubito.games.bs.fake_models import MODELS

        return MODELS

    @property
    def workshop(self) -> "BSWorkshop":
        from dubito.games.bs.workshop import BSWorkshop

        return BSWorkshop(self)


GAME: Final = BSGame()
