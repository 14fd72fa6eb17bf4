"""A position of draw and defuse as a file, and an example of each node.

The file is JSON with the fields of `Position`. Beside them may stand `hidden`, the truth that the seat cannot see:
nothing here reads it.
"""

import json
from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from dubito.errors import UsageError
from dubito.files import Checked
from dubito.game.record import first_fault
from dubito.games.defuse.cards import DEALT, DEFUSE, IN_HAND
from dubito.games.defuse.knowledge import Witness
from dubito.games.defuse.notebook import Act, ActName, Position

FORMAT: Final = "defuse position 1"
Seat = Annotated[int, Field(ge=0, le=1)]
Held = Literal["defuse", "skip", "bottom", "shuffle", "see", "nothing"]
Card = Literal["bomb", "defuse", "skip", "bottom", "shuffle", "see", "nothing"]


class _Act(Checked):
    seat: Seat
    act: ActName
    card: Card | None = None
    cards: Annotated[tuple[Card, ...], Field(max_length=3)] = ()
    place: Annotated[int, Field(ge=0)] | None = None


class _File(Checked):
    format: Literal["defuse position 1"]
    seat: Seat
    node: Literal["turn", "place"]
    dealt: tuple[Held, ...]
    acts: tuple[_Act, ...]
    hidden: Any = None


def to_json(position: Position) -> str:
    """The position as a file, an act a line."""
    acts = [
        json.dumps({key: value for key, value in asdict(act).items() if value not in (None, ())})
        for act in position.acts
    ]
    lines = [f'"format": "{FORMAT}"', f'"seat": {position.seat}', f'"node": "{position.node}"']
    lines.append(f'"dealt": {json.dumps(position.dealt)}')
    lines.append('"acts": [\n  ' + ",\n  ".join(acts) + "\n ]" if acts else '"acts": []')
    return "{" + ",\n ".join(lines) + "}\n"


def from_json(text: str) -> Position:
    """The inverse of `to_json`; raises UsageError that names what is malformed, or what no game can have."""
    try:
        file = _File.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"this is no position: {first_fault(error)}") from None
    position = Position(file.seat, file.node, file.dealt, tuple(Act(**act.model_dump()) for act in file.acts))
    try:
        _check(position)
    except UsageError as error:
        raise UsageError(f"this is no position: {error}") from None
    return position


def _check(position: Position) -> None:
    """Raise UsageError for what no game can have."""
    dealt = Counter(position.dealt)
    if dealt[DEFUSE] != 1 or len(position.dealt) != IN_HAND + 1 or any(dealt[card] > n for card, n in DEALT.items()):
        raise UsageError(f"dealt: it is a defuse card and {IN_HAND} others")
    witness = Witness(position)
    if witness.seat != position.seat:
        raise UsageError(f"acts: after them it is seat {witness.seat} that is asked")
    if witness.placing != (position.node == "place"):
        raise UsageError("node: place is asked after the bomb was drawn, and turn otherwise")


def example_position(node: str) -> Position:
    """A fixed position in the middle of a game: seat 0 has looked, and drawn the bomb later."""
    acts = [
        Act(0, "see", cards=("nothing", "see", "shuffle")),
        Act(0, "draw", "nothing"),
        Act(1, "draw"),
        Act(0, "draw", "shuffle"),
        Act(1, "draw", "bomb"),
        Act(1, "place"),
        Act(0, "shuffle"),
    ]
    dealt = ("defuse", "skip", "bottom", "shuffle", "see", "nothing")
    if node == "turn":
        return Position(0, "turn", dealt, tuple(acts))
    return Position(0, "place", dealt, (*acts, Act(0, "draw", "bomb")))
