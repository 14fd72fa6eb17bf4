"""The file format of positions: rules, node, seat and the seat's log, as JSON with one event per line.

A file can contain `hidden`, what the seat cannot see, which is ignored here.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.files import CheckedModel, describe_fault
from dubito.game import Game
from dubito.game.events import AnswerEvent, GameEvent, event_to_json
from dubito.game.log import Position, SeatLog
from dubito.game.record import format_lines, refuse_other_format

_VERSION: Final = 2
_type_adapter: Final = cache(TypeAdapter)  # creating an instance takes longer than using it


class _File(CheckedModel):
    format: str
    rules: dict[str, object]
    seat: Annotated[int, Field(ge=0)]
    node: str
    log: list[dict[str, object]]
    hidden: object = None


def dump_position(game: Game, position: Position) -> str:
    """Return a position as the text of a file."""
    content = {"format": _format(game), "rules": position.rules.model_dump(), "seat": position.seat}
    return format_lines({**content, "node": position.node, "log": [*map(event_to_json, position.log)]}, ["log"])


def load_position(game: Game, text: str) -> Position:
    """Parse the output of `dump_position`.

    The only check of the content is that the game can compute its facts. Raises UsageError if the text is malformed.
    """
    known = f"{game.folder} position {_VERSION}"
    try:
        file = _File.model_validate_json(text)
        if file.format != _format(game):
            refuse_other_format(text, known, "this position")
            raise UsageError(f"format: it is {one_line(file.format, 60)!r}, not {_format(game)!r}")
        rules, node = game.rules(**file.rules), game.node(file.node).name
        if file.seat >= game.seats[1]:
            raise UsageError(f"seat: seats are 0 to {game.seats[1] - 1}")
        log = SeatLog(file.seat, [_parse_event(game, place, each) for place, each in enumerate(file.log)])
        position = Position(rules, node, log)
        if any(event.only not in (None, file.seat) for event in log):
            raise UsageError(f"log: it contains an event that seat {file.seat} does not see")
        try:
            game.facts.facts(position)
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            what = one_line(f"{type(error).__name__}: {error}".removesuffix(": "), 100)
            raise UsageError(f"log: no game has this log ({what})") from None
        return position
    except ValidationError as error:
        refuse_other_format(text, known, "this position")
        why = describe_fault(error)
    except UsageError as error:
        why = str(error).removeprefix(_REFUSED)
    raise UsageError(f"{_REFUSED}{why}")


_REFUSED: Final = "this is not a position: "


def _format(game: Game) -> str:
    return f"{game.name} position {_VERSION}"


def _parse_event(game: Game, place: int, fields: Mapping[str, object]) -> GameEvent:
    known = {kind.__name__: kind for kind in (*game.events, AnswerEvent)}
    name = fields.get("event")
    if name not in known:
        raise UsageError(f"log.{place}: event: {one_line(repr(name), 60)} is not an event of {game.name}")
    rest = {key: value for key, value in fields.items() if key != "event"}
    try:
        event: GameEvent = _type_adapter(known[name]).validate_json(json.dumps(rest))
    except ValidationError as error:
        raise UsageError(describe_fault(error, within=f"log.{place}")) from None
    return event
