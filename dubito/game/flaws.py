"""Checks of a game's data: its `Game`, its positions and its endings.

Each flaw names a field and describes what it should be. The first flaw stops a command; `dubito games check` lists all
of them.
"""

from collections.abc import Collection, Iterator, Sequence
from inspect import get_annotations
from itertools import chain
from typing import Final, get_args

from dubito.errors import find_similar, join_names, one_line
from dubito.game import Answer, Ending, Game, LineupKind, Node, Player, Results, Text
from dubito.game.log import Position

_REQUIRED: Final = ("name", "summary", "seats", "fallback", "nodes", "results", "deal")


def find_unknown_parts(part: type, base: type) -> Iterator[str]:
    """Yield the public names that a subclass defines and its base class does not know, which are often misspelt."""
    known = {name for cls in base.__mro__ for name in (*vars(cls), *get_annotations(cls)) if not name.startswith("_")}
    for cls in part.__mro__[: part.__mro__.index(base)]:
        for name in vars(cls):
            if not name.startswith("_") and name not in known:
                meant = find_similar(name, known)
                hint = f"did you mean `{meant}`?" if meant else "begin the names of your own parts with an underscore"
                yield f"{cls.__name__} defines `{one_line(name, 60)}`, which is not a part of {base.__name__}; {hint}"


def find_missing_parts(part: object, base: type, required: Sequence[str]) -> list[str]:
    """Return the required names that neither the object nor its classes below the base class define."""
    classes = type(part).__mro__[: type(part).__mro__.index(base)]
    defined = {*vars(part), *(name for cls in classes for name in vars(cls))}
    return [name for name in required if name not in defined]


def find_definition_flaws(game: Game) -> Iterator[str]:
    """Yield the flaws in a game's definition."""
    yield from find_unknown_parts(type(game), Game)
    missing = find_missing_parts(game, Game, _REQUIRED)
    if missing:
        yield f"{type(game).__name__} does not define {join_names(missing)}"
        return
    if not (isinstance(game.summary, str) and game.summary and len(game.summary.splitlines()) == 1):
        yield "summary must be one line that describes the game"
    least, most = game.seats if isinstance(game.seats, tuple) and len(game.seats) == 2 else (0, 0)
    if not (type(least) is type(most) is int and 1 <= least <= most):
        yield f"seats is {_shorten(game.seats)}, but must be the minimum and maximum, such as (2, 4)"
    if game.lineup not in get_args(LineupKind):
        yield f"lineup is {_shorten(game.lineup)}, but must be one of {', '.join(get_args(LineupKind))}"
    if game.has_facts and not game.events:
        yield "events is empty, but must list the classes of the game's events, from which facts are computed"
    from pydantic import BaseModel  # imported late, as by games

    try:
        rules = game.rules()
    except Exception as error:  # foreign code
        yield f"rules() raises {type(error).__name__}: {one_line(str(error), 200)}; every rule needs a default"
    else:
        if not isinstance(rules, BaseModel):
            yield f"rules() returns {_shorten(rules)}, but must return a pydantic model"
    yield from _check_nodes(game)
    yield from _check_results(game)


def _shorten(value: object) -> str:
    return one_line(repr(value), 60)


def _check_nodes(game: Game) -> Iterator[str]:
    if not (isinstance(game.base, type) and issubclass(game.base, Player)):
        yield f"base is {_shorten(game.base)}, but must be a subclass of dubito.game.Player"
    names = [node.name for node in game.nodes if isinstance(node, Node)]
    if not names or len(names) < len(game.nodes):
        yield "nodes must contain at least one Node, and nothing else"
    if len({*names}) < len(names):
        yield f"two nodes have the same name: {', '.join(names)}"
    for node in game.nodes:
        if isinstance(node, Node):
            if not isinstance(node.answer, Answer):
                yield f"node {node.name}: its answer is {_shorten(node.answer)}, which is not an Answer of dubito.game"
            if isinstance(node.answer, Text) and not (type(node.answer.most) is int and 10 <= node.answer.most <= 4000):
                yield f"node {node.name}: Text(most={_shorten(node.answer.most)}) must be from 10 to 4000 characters"
            if not (game.has_walk or game.base is Player or callable(getattr(game.base, node.method, None))):
                yield f"node {node.name}: {game.base.__name__} has no method {node.method}()"


def _check_results(game: Game) -> Iterator[str]:
    results = game.results
    if len(results.endings) != len(results.buckets):
        yield f"results: {len(results.endings)} endings for {len(results.buckets)} buckets; give each bucket an ending"
    keys = [measure.key for measure in results.measures]
    if not keys:
        yield "results: measures is empty, but the ranking needs a first measure"
    for measure in results.measures:
        if measure.count:
            yield from _find_unknown(
                f"measure {measure.key}: count", [measure.count], results.seat_counts, "seat_counts"
            )
        elif len(measure.values) != len(results.buckets):
            yield f"results: measure {measure.key} has {len(measure.values)} values for {len(results.buckets)} buckets"
        elif not 0 <= min(measure.values) <= max(measure.values) <= measure.scale:
            yield f"results: measure {measure.key} has a value that is not between 0 and its scale, {measure.scale}"
    yield from _find_unknown("headline", results.headline, keys, "measures")
    yield from _find_unknown("scoreboard", results.scoreboard, results.buckets, "buckets")
    yield from _find_unknown("averaged", results.averaged, results.seat_counts, "seat_counts")
    for habit in results.habits:
        yield from _find_unknown(f"habit {habit.key}", [habit.count, habit.of], results.seat_counts, "seat_counts")
    habits = [habit.key for habit in results.habits]
    yield from _find_unknown("charted", results.charted, habits, "habits")
    yield from _find_unknown("lies", [results.lies] if results.lies else [], habits, "habits")
    yield from _find_unknown("lie_nodes", results.lie_nodes, [node.name for node in game.nodes], "nodes")
    yield from _find_unknown(
        "unfinished", [results.unfinished] if results.unfinished else [], results.buckets, "buckets"
    )
    if not results.game_counts:
        yield "results: game_counts is empty, but must begin with the number of turns"


def _find_unknown(fact: str, names: Collection[str], known: Collection[str], where: str) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"results: {fact} names {_shorten(name)}, which is not in {where} ({', '.join(known) or 'empty'})"


def find_position_flaws(position: object) -> Iterator[str]:
    """Yield a flaw unless this is a position."""
    if not isinstance(position, Position):
        yield f"example_position returns {_shorten(position)}, which is not a Position of dubito.game.log"


def find_ending_flaws(ending: object, results: Results, seats: int) -> Iterator[str]:
    """Yield the flaws in an ending for this number of seats."""
    if not isinstance(ending, Ending):
        yield f"ending() returns {_shorten(ending)}, but must return an Ending"
        return
    if len(ending.game_counts) != len(results.game_counts):
        needed = f"{len(results.game_counts)} ({', '.join(results.game_counts)})"
        yield f"ending() has {len(ending.game_counts)} game_counts, but needs {needed}"
    if len(ending.marks) != seats:
        yield f"ending() has {len(ending.marks)} marks for {seats} seats"
    if len(ending.counts) != seats:
        yield f"ending() has counts for {len(ending.counts)} of {seats} seats"
    for seat, counts in enumerate(ending.counts):
        if len(counts) != len(results.seat_counts):
            needed = f"{len(results.seat_counts)} ({', '.join(results.seat_counts)})"
            yield f"ending() has {len(counts)} counts of seat {seat}, but needs {needed}"
            return
    for number in chain(ending.game_counts, ending.marks, *ending.counts):
        if not (type(number) is int and number >= 0):
            yield f"ending() has {_shorten(number)}, but marks and counts are whole numbers from 0"
            return
    yield from _check_buckets(ending, results)
    for mark in ending.marks if results.standing else ():
        standing = results.standing(mark, seats, ending.capped) if results.standing else 0
        if not (type(standing) is int and 0 <= standing <= 2 * (seats - 1)):
            yield f"results: standing is {_shorten(standing)} for mark {mark}, not between 0 and {2 * (seats - 1)}"
            return


def _check_buckets(ending: Ending, results: Results) -> Iterator[str]:
    for mark, counts in zip(ending.marks, ending.counts, strict=False):
        try:
            bucket = results.bucket(mark, ending.capped)
        except Exception as error:  # foreign code
            yield f"results: bucket raises {type(error).__name__}: {one_line(str(error), 60)} for mark {mark}"
            return
        if not (type(bucket) is int and 0 <= bucket < len(results.buckets)):
            yield f"results: bucket is {_shorten(bucket)} for mark {mark}, but buckets has {len(results.buckets)}"
            return
        for measure, value in zip(results.measures, results.measure_values(bucket, [*counts, 0]), strict=True):
            if not 0 <= value <= measure.scale:
                yield f"results: measure {measure.key} is {value} for mark {mark}, not between 0 and {measure.scale}"
                return
