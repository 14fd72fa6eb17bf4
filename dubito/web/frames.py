"""What is seen of the table after each move by the person who plays.

A page shows frames and knows no rules. A frame holds nothing that its person may not know. A game whose package has a
module `frames` has frames and a page of its own; those of the others are in words.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dubito.game import Bool, Cards, Choice
from dubito.game.person import wanted
from dubito.game.words import Panel
from dubito.show.person import Sitting


@dataclass(frozen=True, slots=True)
class Question:
    """What the person is asked, by the kind of answer: `bool`, `choice`, `whole`, or `cards`."""

    node: str
    kind: str
    wanted: str  # in words
    options: list[Any]  # names to choose from, or the cards that are held
    illegal: list[Any]  # of the names, those that the rules refuse now


@dataclass(frozen=True, slots=True)
class Frame:
    """The table between two moves."""

    move: int  # how many were made
    turn: int  # that the last move belongs to
    mover: int | None  # whose move it was
    said: list[str]
    seats: list[str]  # what everybody may know of each
    boards: list[tuple[str, str]]  # the rest of the table, with titles
    truth: list[str]  # of each seat, in a game that is over
    sees: list[str]  # what the person sees and is asked, where it is their move
    to_move: int | None
    question: Question | None


def frame_of(sitting: Sitting, move: int, turn: int, mover: int | None, said: list[str]) -> Frame:
    """The table as the person sees it now."""
    game, panels = sitting.game, sitting.panels()
    seats = {panel.seat: panel for panel in panels if panel.seat is not None}
    known = [seats.get(seat, Panel("", "", "", seat)) for seat in range(len(sitting.setup.players))]
    return Frame(
        move=move,
        turn=turn,
        mover=mover,
        said=said,
        seats=[sitting.to_me(panel.public) for panel in known],
        boards=[
            (sitting.to_me(one.title), sitting.to_me(one.public)) for one in panels if one.seat is None and one.public
        ],
        truth=[sitting.to_me(panel.truth) for panel in known] if game.over else [],
        sees=sitting.person.sees(game, sitting.me, sitting.label) if sitting.asked else [],
        to_move=None if game.over else game.seat,
        question=_question(sitting) if sitting.asked else None,
    )


def _question(sitting: Sitting) -> Question | None:
    game, me, person = sitting.game, sitting.me, sitting.person
    node = sitting.spec.node(game.view().node)
    words = wanted(node)
    match node.answer:
        case Bool():
            return Question(node.name, "bool", words, [True, False], [])
        case Choice():
            options = person.choices(game)
            outputs = {name: sitting.spec.output_of(node.name, name, None) for name in options}
            illegal = [name for name, output in outputs.items() if sitting.why_not(output) is not None]
            return Question(node.name, "choice", words, options, illegal)
        case Cards():
            return Question(node.name, "cards", words, person.holding(game, me), [])
        case _:
            return Question(node.name, "whole", words, [], [])


def dealt(sitting: Sitting) -> dict[str, Any]:
    """The table before the first move."""
    if own := sitting.spec.module("page", before="frames"):
        return asdict(own.dealt(sitting.game, sitting.label, sitting.me))
    return asdict(frame_of(sitting, 0, 0, None, sitting.start))


def after(
    sitting: Sitting, move: int, turn: int, mover: int, output: Any, events: Sequence[Any], said: list[str]
) -> dict[str, Any]:
    """The table after a move, the `move`th, of that turn."""
    if own := sitting.spec.module("page", before="frames"):
        return asdict(own.after(sitting.game, mover, output, events, said, sitting.me))
    return asdict(frame_of(sitting, move, turn, mover, said))


def words(sitting: Sitting) -> dict[str, Any]:
    """What the game's own page needs to call things."""
    own = sitting.spec.module("page", before="frames")
    return dict(own.WORDS) if own else {}
