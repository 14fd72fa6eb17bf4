"""A position of BS as a file, and an example of each node.

The file is JSON with the fields of `Position`. Beside them may stand `hidden`, the truth that the seat cannot see:
nothing here reads it.
"""

import json
from collections import Counter
from dataclasses import asdict, fields
from functools import cache
from typing import Any, Final, Literal

from pydantic import ValidationError, create_model

from dubito.errors import UsageError
from dubito.files import Checked
from dubito.game.record import first_fault
from dubito.games.bs.cards import COPIES, NUMBERS
from dubito.games.bs.notebook import Number, Position
from dubito.games.bs.sample import sample_game
from dubito.games.bs.table import SEATS
from dubito.games.bs.witness import Witness

FORMAT: Final = "bs position 1"
_EXAMPLE_DEAL: Final = 1
_EXAMPLE_TURNS: Final = 20  # by then there are accusations, and piles that were taken up
_FIELDS: Final[dict[str, Any]] = {field.name: (field.type, ...) for field in fields(Position)} | {
    "dealt": (tuple[Number, ...], ...),
    "format": (Literal["bs position 1"], ...),
    "hidden": (Any, None),
}
_File: Final = create_model("_File", __base__=Checked, **_FIELDS)


def to_json(position: Position) -> str:
    """The position as a file, a field a line and a turn a line."""
    plain = {field.name: getattr(position, field.name) for field in fields(Position)}
    turns = [json.dumps(asdict(turn)) for turn in position.turns]
    lines = [f'"format": {json.dumps(FORMAT)}', f'"rules": {position.rules.model_dump_json()}']
    lines += [f'"{name}": {json.dumps(plain[name])}' for name in ("seat", "node", "dealt")]
    lines.append('"turns": [\n  ' + ",\n  ".join(turns) + "\n ]" if turns else '"turns": []')
    return "{" + ",\n ".join(lines) + "}\n"


def from_json(text: str) -> Position:
    """The inverse of `to_json`; raises UsageError that names what is malformed, or what contradicts what."""
    try:
        file = _File.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"this is no position: {first_fault(error)}") from None
    position = Position(**{field.name: getattr(file, field.name) for field in fields(Position)})
    try:
        _check(position)
    except UsageError as error:
        raise UsageError(f"this is no position: {error}") from None
    return position


def _check(position: Position) -> None:
    """Raise UsageError for what no game can have."""
    seat, turns = position.seat, position.turns
    if seat not in SEATS:
        raise UsageError(f"seat: seats are 0 to {SEATS[-1]}")
    if len(position.dealt) != NUMBERS or max(Counter(position.dealt).values()) > COPIES:
        raise UsageError(f"dealt: it is {NUMBERS} cards, at most {COPIES} of one number")
    if any(not turn.is_over for turn in turns[:-1]):
        raise UsageError("turns: only the last one may lack pile and hands")
    if (position.node == "bs") != bool(turns and not turns[-1].is_over):
        raise UsageError("turns: the last one is not over at bs, and all are at cards")
    if (position.node == "cards") != (position.mover == seat):
        raise UsageError(f"node: seat {seat} is not asked that here, where it is the turn of seat {position.mover}")
    if position.node == "bs" and turns[-1].answer is not None:
        raise UsageError(f"turns.{len(turns) - 1}: answer: it is asked for now")
    if len(turns) - (position.node == "bs") >= len(SEATS) * position.rules.max_rounds:
        raise UsageError("turns: the game was over after max_rounds")
    if 0 in Witness(position).hands and position.node == "cards":
        raise UsageError("turns: the game is over")


@cache
def example_position(node: str) -> Position:
    """A fixed position in the middle of a game at which this node is asked, by players who answer by chance."""
    return next(
        asked.position
        for _, asked in sample_game(_EXAMPLE_DEAL)
        if asked.position.node == node and len(asked.position.turns) >= _EXAMPLE_TURNS
    )
