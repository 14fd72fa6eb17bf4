"""Features of observations for neural networks: one-hot values, counts and shares."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple


class Feature(NamedTuple):
    """A part of a tensor: `size` numbers, computed from a course for a seat. They are 0 during the deal."""

    name: str
    size: int
    value: Callable[[Any, int], Sequence[float]]  # of the game's own course
    around: bool = False  # for each seat, starting with the observing one


def node_feature(nodes: Sequence[str]) -> Feature:
    """Return the one-hot feature of the current node."""
    places = {node: one_hot(place, len(nodes)) for place, node in enumerate(nodes)}
    nothing = one_hot(-1, len(nodes))
    return Feature("asked", len(nodes), lambda course, seat: places[course.node] if course.player == seat else nothing)


def hand_feature(kinds: Sequence[object]) -> Feature:
    """Return the feature with the number of cards of each kind in the seat's hand."""
    return Feature("hand", len(kinds), lambda course, seat: count_by_kind(course.hand(seat), kinds))


def count_by_kind(cards: Sequence[object], kinds: Iterable[object]) -> list[int]:
    """Count the cards of each kind."""
    return [cards.count(kind) for kind in kinds]


def one_hot(value: int, size: int) -> list[float]:
    """Encode a value as one-hot, or as all 0 if it is not among the values."""
    return [float(place == value) for place in range(size)]
