"""A position as a file, and an example of each node.

The file is JSON with the fields of `Position`. Beside them may stand `hidden`, the truth that the seat cannot
see: nothing here reads it.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import cache
from typing import Any, Final, Literal

from pydantic import ValidationError, create_model

from dubito.errors import UsageError, one_line
from dubito.files import Checked
from dubito.game.record import first_fault
from dubito.games.dubito.game_data import (
    JOKER,
    MOST,
    NUMBERS,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    GameStartEvent,
)
from dubito.games.dubito.knowledge import Position
from dubito.games.dubito.memory import Memory
from dubito.games.dubito.player import NODES
from dubito.games.dubito.questions import Questions
from dubito.games.dubito.rules import MAX_PLAYERS, MIN_PLAYERS, Rules
from dubito.games.dubito.sample import sample_table

FORMAT: Final = "dubito position 1"
_EXAMPLE_EVENTS: Final = 24  # by then there are doubts, pick-ups and own plays to tell of
# The nodes that may have been answered before on the same turn (R24); where C or D is not asked, it is missing.
_BEFORE: Final = {"A": [""], "B": ["A"], "C": [""], "D": ["", "C"], "E": ["", "C", "D", "CD"]}

_FIELDS: Final[dict[str, Any]] = {field.name: (field.type, ...) for field in fields(Position)} | {
    "format": (Literal["dubito position 1"], ...),
    "hidden": (Any, None),
}
_File: Final = create_model("_File", __base__=Checked, **_FIELDS)


def to_json(position: Position) -> str:
    """The position as a file, a field a line and an event a line."""
    lines = [f'"format": {json.dumps(FORMAT)}']
    for key, value in asdict(position).items():
        if key in ("events", "own_plays") and value:
            items = ",\n  ".join(map(json.dumps, value))
            lines.append(f'"{key}": [\n  {items}\n ]')
        else:
            lines.append(f'"{key}": {json.dumps(value)}')
    return "{" + ",\n ".join(lines) + "}\n"


def from_json(text: str) -> Position:
    """The inverse of `to_json`; raises UsageError that names what is malformed, or what contradicts what."""
    try:
        file = _File.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"this is no position: {first_fault(error)}") from None
    position = Position(**{field.name: getattr(file, field.name) for field in fields(Position)})
    fault = _fault(position)
    if fault is not None:
        raise UsageError(f"this is no position: {fault}")
    return position


def _fault(position: Position) -> str | None:
    """What makes the position one that no game can have, as far as prompts depend on it."""
    start, turn = position.events[0] if position.events else None, position.turn
    if not isinstance(start, GameStartEvent) or sum(isinstance(event, GameStartEvent) for event in position.events) > 1:
        return "events: the first one, and no other, is the start of the game"
    n = len(start.player_ids)
    if not MIN_PLAYERS <= n <= MAX_PLAYERS or start.player_ids != tuple(range(n)) or position.seat not in range(n):
        return f"events.0: player_ids are the seats from 0 to at most {MAX_PLAYERS - 1}, the own one among them"
    if len(start.initial_card_counts) != n:
        return "events.0: initial_card_counts has another length than player_ids"
    if not all(JOKER <= card <= NUMBERS[-1] for card in _cards(position)):
        return f"a card is not between {JOKER} and {NUMBERS[-1]}"
    if not all(number in NUMBERS for number in _numbers(position)):
        return f"a number is not between {NUMBERS[0]} and {NUMBERS[-1]}"
    played = [
        event.n_cards
        for event in position.events
        if isinstance(event, CardsPlayedEvent) and event.player_id == position.seat
    ]
    if played != [len(play.cards) for play in position.own_plays] or not all(1 <= n <= MOST for n in played):
        return f"own_plays: not the plays of seat {position.seat} in events"
    if not _asked(position):
        return f"node {one_line(position.node)} is not asked here, or not after these answers"
    return _contradiction(position, turn.prev.id, turn.next.id)


def _asked(position: Position) -> bool:
    """Whether the walk through the nodes asks this one (R24)."""
    node, turn = position.node, position.turn
    if node not in NODES or set(position.answers) not in map(set, _BEFORE[node]):
        return False
    if node in "AB":
        return turn.board_cards == 0
    if position.answers.get("C") or not 0 < turn.n_cards_played <= turn.board_cards:
        return False
    return {"C": turn.can_doubt, "D": turn.current_number in position.hand}.get(node, True)


def _contradiction(position: Position, before: int, after: int) -> str | None:
    """Where the events contradict the turn data."""
    turn, seat = position.turn, position.seat
    try:
        witness = Memory.of(seat, position.events, position.own_plays).witness
    except LookupError:
        return "events: a player is none of the table"
    around = witness.active()
    if seat not in around or len(around) < MIN_PLAYERS or (around[-1], around[1]) != (before, after):
        return "turn: prev and next are not the neighbours that the events leave"
    neighbours = [witness.players[other] for other in (seat, before, after)]
    if neighbours != [turn.me, turn.prev, turn.next] or not len(position.hand) == turn.my_n_cards == turn.me.n_cards:
        return "turn: me, prev, next or the hand disagree with the events"
    if (witness.board_cards, witness.streak, witness.last_player) != (
        turn.board_cards,
        turn.streak,
        turn.last_player_id,
    ):
        return "turn: the board disagrees with the events"
    return None


def _cards(position: Position) -> Iterator[int]:
    yield from position.hand
    for play in position.own_plays:
        yield from play.cards
    for event in position.events:
        if isinstance(event, DoubtResolvedEvent):
            yield from event.latest_cards + event.board_cards


def _numbers(position: Position) -> Iterator[int]:
    yield from position.turn.playing_cards
    yield position.turn.current_number or NUMBERS[0]
    for play in position.own_plays:
        yield play.number
    for event in position.events:
        if isinstance(event, (CardsPlayedEvent, DoubtResolvedEvent)):
            yield event.declared_number
        elif isinstance(event, DiscardEvent):
            yield event.card_number


@cache
def example_position(node: str) -> Position:
    """A fixed position in the middle of a game of four at which this node ("A" to "E") is asked."""
    table, asked = sample_table(Rules(), 4, 0), list[Position]()
    questions = Questions(table, Rules(), lambda _, position: asked.append(position))
    while not table.game.over:
        questions.step()
        for position in asked:
            if position.node == node and len(position.events) >= _EXAMPLE_EVENTS:
                return position
        asked.clear()
    raise AssertionError(f"the example game never comes to node {node}")
