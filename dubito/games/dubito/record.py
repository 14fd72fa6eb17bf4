"""A game's deal and outputs, from which it can be replayed exactly and described in words.

The `story` has one line per event, as reported by the engine when the game was recorded. A replay compares its events
with the story and reports the first turn that differs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Final, Literal, assert_never

from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import IllegalOutput, UsageError
from dubito.files import describe_fault
from dubito.game.record import Strict, digest_line, format_record, refuse_other_format
from dubito.game.seeds import Seed
from dubito.game.words import Label, pluralize, seat_label
from dubito.games.dubito.cards import JOKER, NUMBERS, Hand, TurnOutput
from dubito.games.dubito.engine import Rules, State, check_players
from dubito.games.dubito.events import (
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)

FORMAT: Final = "dubito game 1"
_NAMES: Final = ("joker", "ace", *map(str, range(2, 11)), "jack", "queen", "king")
Card = Annotated[int, Field(strict=True, ge=JOKER, le=NUMBERS[-1])]


@dataclass(frozen=True, slots=True)
class RecordedOutput(Strict):
    """A stored `TurnOutput`."""

    doubt: bool
    number: int | None
    cards: list[Card] | None


@dataclass(frozen=True, slots=True)
class GameRecord(Strict):
    players: list[str]
    hands: list[list[Card]]
    outputs: list[RecordedOutput]
    story: list[str]
    rules: Rules = field(default_factory=Rules)
    seed: Seed | None = None
    deal: int | None = None
    number: Annotated[int, Field(strict=True, ge=0, lt=2**63)] | None = None  # see `Recorder.record`
    format: Literal["dubito game 1"] = field(kw_only=True)


def number_word(n: int) -> str:
    return ("no", "one", "two", "three", "four")[n]


def card_name(card: int, plural: bool = False) -> str:
    return f"{_NAMES[card]}s" if plural else _NAMES[card]


def sort_cards(cards: Iterable[int]) -> list[int]:
    return sorted(cards, key=lambda card: card or NUMBERS[-1] + 1)


def describe_cards(cards: Iterable[int]) -> str:
    return " ".join(map(card_name, sort_cards(cards)))


def sentence(event: Event, label: Label = seat_label) -> str:
    """Describe an event in the words used in stories, requests and pages."""
    match event:
        case GameStartEvent():
            dealt = zip(event.player_ids, event.initial_card_counts, strict=True)
            return "The cards are dealt: " + ", ".join(f"{label(seat)} holds {n}" for seat, n in dealt) + "."
        case CardsPlayedEvent():
            count = pluralize(event.n_cards)
            return f"{label(event.player_id)} plays {count} as {card_name(event.declared_number, plural=True)}."
        case DoubtResolvedEvent():
            return _describe_doubt(event, label)
        case DiscardEvent():
            cards = f"{number_word(event.n_cards)} {card_name(event.card_number, plural=True)}"
            return f"{label(event.player_id)} discards the {cards}."
        case PlayerWonEvent():
            kind = "a hard win" if event.position == 1 else "a soft win"
            return f"{label(event.player_id)} is out of cards: place {event.position}, {kind}."
        case _:
            assert_never(event)


def _describe_doubt(event: DoubtResolvedEvent, label: Label) -> str:
    shown = describe_cards(event.latest_cards)
    verdict = "a bluff" if event.correct else "honest"
    text = f"{label(event.doubter_id)} doubts {label(event.target_id)}, who shows {shown}: {verdict}."
    if event.jokers_discarded:
        leave = "leaves" if event.jokers_discarded == 1 else "leave"
        text += f" {pluralize(event.jokers_discarded, 'joker')} {leave} the game."
    return f"{text} {label(event.loser_id)} picks up {pluralize(len(event.board_cards))}."


def ending(state: State, label: Label = seat_label) -> str:
    losers = " and ".join(label(seat) for seat, place in enumerate(state.places) if place is None)
    if state.capped:
        return f"The game stops after {state.turns} turns, unfinished for {losers}."
    return f"The game is over; {losers} {'loses' if state.rules.duel else 'lose'}."


def _seal(hands: list[list[int]], outputs: list[RecordedOutput]) -> str:
    return digest_line(hands, [[output.doubt, output.number, output.cards] for output in outputs])


def dump(record: GameRecord) -> str:
    return format_record(record, {"hands", "outputs", "story"})


@cache
def _format() -> TypeAdapter[GameRecord]:
    return TypeAdapter(GameRecord)


def load(text: str) -> GameRecord:
    """Parse the output of `dump`. Raises UsageError if it is invalid."""
    try:
        record = _format().validate_json(text)
    except ValidationError as error:
        refuse_other_format(text, FORMAT, "this game")
        raise UsageError(f"this is not a game record: {describe_fault(error)}") from None
    check_players(len(record.hands), record.rules)
    if len(record.players) != len(record.hands):
        raise UsageError(f"the record names {len(record.players)} players but contains {len(record.hands)} hands")
    dealt = Counter(card for hand in record.hands for card in hand)
    rules, deck = record.rules, Counter(record.rules.deck)
    if any(n > deck[card] for card, n in dealt.items()):
        raise UsageError("the record deals more cards of a value than a deck has")
    if any(not hand or rules.copies in Counter(hand).values() for hand in record.hands):
        four = number_word(rules.copies)
        raise UsageError(f"the record deals an impossible hand: without cards, or with {four} of one number")
    return record


class Recorder:
    def __init__(self, state: State) -> None:
        self.hands = [list(hand.cards) for hand in state.hands]
        self.outputs: list[RecordedOutput] = []
        self.story: list[str] = []

    def add(self, turn: int, output: TurnOutput, events: Sequence[Event]) -> None:
        cards = None if output.cards is None else list(output.cards)
        self.outputs.append(RecordedOutput(output.doubt, output.number, cards))
        self.story.extend(_lines(turn, events))

    def record(
        self, state: State, players: Sequence[str], seed: Seed | None, deal: int, number: int | None = None
    ) -> GameRecord:
        story = [*self.story, ending(state), _seal(self.hands, self.outputs)]
        rules = state.rules
        return GameRecord(list(players), self.hands, self.outputs, story, rules, seed, deal, number, format=FORMAT)


def replay(record: GameRecord) -> Iterator[str]:
    """Replay the outputs, starting from the deal, and yield the story line by line.

    If an output is illegal, the story ends with a line that reports it.
    """
    state, outputs = deal_record(record)
    for turn, output in enumerate(outputs, start=1):
        try:
            yield from _lines(turn, state.apply(output))
        except IllegalOutput as error:
            yield f"turn {turn}: refused: {error}"
            return
    if state.over:
        yield from (ending(state), _seal(record.hands, record.outputs))
    else:
        yield "The outputs end before the game is over."


def recorder(state: State, rules: Mapping[str, Any]) -> Recorder:
    return Recorder(state)


def deal_record(record: GameRecord) -> tuple[State, Iterator[TurnOutput]]:
    outputs = (TurnOutput(output.doubt, output.number, output.cards) for output in record.outputs)
    return State(record.rules, [Hand(cards, record.rules.copies) for cards in record.hands]), outputs


def _lines(turn: int, events: Sequence[Event]) -> list[str]:
    return [f"turn {turn}: {sentence(event)}" for event in events]
