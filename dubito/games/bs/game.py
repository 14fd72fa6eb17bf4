"""The description of BS for the harness."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.game import (
    Bool,
    Cards,
    Game,
    Habit,
    Lie,
    LieMark,
    Measure,
    Node,
    Results,
    house_contenders,
    make_missing_check,
)
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import (
    COPIES,
    DECK,
    EVENTS,
    NUMBERS,
    Card,
    HandView,
)
from dubito.games.bs.engine import GAME_COUNTS, SEAT_COUNTS, State, deal
from dubito.games.bs.table import SEATS

if TYPE_CHECKING:
    from dubito.games.bs.knowledge import BSRules


def _rules(**settings: Any) -> "BSRules":
    from dubito.games.bs.knowledge import BSRules  # imported late, so that listing bots or games does not load pydantic

    return BSRules(**settings)


def _deal(rules: "BSRules", seats: int, rng: Random) -> State:
    if seats != len(SEATS):
        raise UsageError(f"BS needs {len(SEATS)} players, not {seats}")
    return deal(rules.max_rounds, rng)


def _places(cards: Sequence[Card]) -> list[int]:
    return [COPIES * number + copy for number, copy in cards]


def _output_from_json(value: Any) -> bool | list[Card]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not all(type(place) is int and 0 <= place < len(DECK) for place in value):
        raise UsageError(
            f"the record is damaged: a BS move is true, false or a list of deck positions from 0 to {len(DECK) - 1}, "
            f"not {one_line(repr(value), 60)}"
        )
    return [DECK[place] for place in value]


def _build_output(node: str, answer: Any, cards: HandView) -> Any:
    """Return a model's yes or no unchanged, or convert its numbers to cards from the hand."""
    if node == "bs":
        return answer
    output = []
    for number, wanted in Counter(answer).items():
        held = cards.of(number)
        if wanted > len(held):
            raise IllegalOutput(explain_shortage(number, len(held), wanted))
        output += held[:wanted]
    return output


def explain_shortage(number: int, held: int, wanted: int) -> str:
    if not held:
        return f"the hand holds no card of number {number}; play cards that it holds"
    return f"the hand holds {held} card{'s' * (held > 1)} of number {number}, not {wanted}"


def _classify_lie(state: State, output: bool | Sequence[Card]) -> Lie | None:
    """Classify a lie: voluntary if the hand contained a card of the number, otherwise forced. None if honest."""
    number = state.public.number
    if isinstance(output, bool) or all(card.number == number for card in output):
        return None
    return "chosen" if any(card.number == number for card in state.hands[state.seat].cards) else "forced"


def _lie_mark(state: State, output: bool | Sequence[Card]) -> LieMark:
    public = state.public
    if isinstance(output, bool):
        return LieMark(public.pile, of=public.mover, is_lie=bool(state.lie), called=output)
    return LieMark(public.pile, len(output))


RESULTS = Results(
    buckets=("wins", "losses", "unfinished"),
    endings=("won", "lost", "unfinished"),
    bucket=lambda mark, capped: 2 if capped else 1 - mark,
    measures=(Measure("wins", "won", "Wins", (1, 0, 0)),),
    headline=("wins",),
    equal_share=lambda seats: {"wins": 1 / seats},
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
GAME = Game(
    name="bs",
    summary="BS, king of the hill: play cards face down, call out lies, and be the first without cards",
    rules=_rules,
    seats=(len(SEATS), len(SEATS)),
    lineup="distinct",
    base=BSBot,
    base_path="dubito.games.bs.bot.BSBot",
    fallback="Hoarder",
    nodes=NODES,
    events=EVENTS,
    results=RESULTS,
    deal=_deal,
    deal_to_json=lambda state: {"hands": [_places(hand.cards) for hand in state.hands]},
    output_to_json=lambda output: output if isinstance(output, bool) else _places(output),
    output_from_json=_output_from_json,
    output_of=_build_output,
    answer_of=lambda node, output: output if isinstance(output, bool) else [card.number for card in output],
    package="dubito.games.bs",
    rules_version=1,
    lie=_classify_lie,
    lie_mark=_lie_mark,
    missing=make_missing_check(BSBot, NODES),
    kept_rules=SimpleNamespace,
    demo={
        "games": 40,
        "bots": ["ConMan", "CalculatingLiar", "Player1", "RiskTaker"],
        "contenders": house_contenders("careful", "random"),
    },
    forfeits=True,
)
