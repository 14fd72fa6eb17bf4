"""The courses of games: those of Dubito's own games are in this package, other games list theirs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.hooks import Flaw
from dubito.plugins.openspiel.course import Course, format_exception, try_out

if TYPE_CHECKING:
    from dubito.hooks import CheckedGame


def own_courses(game: Game) -> Mapping[str, type[Course]]:
    """Return the courses of a game that comes with Dubito by name, or an empty mapping."""
    match game.package:
        case "dubito.games.bs":
            from dubito.plugins.openspiel.courses.bs import BSCourse

            return {"": BSCourse}
        case "dubito.games.defuse":
            from dubito.plugins.openspiel.courses.defuse import DefuseCourse

            return {"": DefuseCourse}
        case "dubito.games.dubito":
            from dubito.plugins.openspiel.courses.dubito import CardsCourse, DubitoCourse

            return {"nodes": DubitoCourse, "cards": CardsCourse}
    return {}


def load_courses(game: Game) -> Mapping[str, type[Course]]:
    """Return the courses of a game by name, or an empty mapping if it has none.

    Raises UsageError, whose message contains the problem but not the file.
    """
    try:
        courses: Mapping[str, type[Course]] = own_courses(game) or game.courses
    except (Exception, SystemExit) as error:  # foreign code: its import may raise anything
        raise UsageError(f"importing it raises {format_exception(error)}; correct it") from None
    for one in courses.values():
        if not (isinstance(one, type) and issubclass(one, Course)):
            named = one_line(one.__name__ if isinstance(one, type) else repr(one), 60)
            raise UsageError(f"{named} is not a subclass of Course, so OpenSpiel cannot load {game.name}")
    return courses


def check_courses(subject: "CheckedGame") -> Iterator[Flaw]:
    """Play a random game for each course and number of seats, if the game has courses."""
    game = subject.game
    try:
        for course in load_courses(game).values():
            for seats in sorted({*game.seats}):
                try_out(game, course, seats)
    except UsageError as error:
        yield Flaw(subject.file("training.py"), str(error))
