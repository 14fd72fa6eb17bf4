"""Views that can list their legal moves, and the functions that use these lists."""

from collections.abc import Sequence
from typing import Final

from dubito.errors import describe_value, find_similar, one_line

_MAX_LISTED: Final = 60  # legal moves listed in a sentence


class View:
    """The base class for views of games. Subclasses define `legal` or `why_illegal`.

    A game can define both for speed or better messages, but they must be consistent.
    """

    __slots__ = ()

    node: str  # name of the current node

    def legal(self) -> Sequence[object] | None:
        """Return the legal outputs in display order, or None if there are too many."""
        return None

    def why_illegal(self, output: object) -> str | None:
        """Explain why the output is illegal, or return None if it is legal.

        Does not run the output's code.
        """
        legal = self.legal()
        if legal is None:
            hint = _suggest_spelling(type(self))
            raise NotImplementedError(
                f"{type(self).__name__} lists nothing at {self.node}; implement why_illegal for it{hint}"
            )
        if is_listed(output, legal):
            return None
        if not legal:
            return "no move is legal here"
        return f"a move here is {describe_legal(legal)}, and not {describe_value(output, 60)}"


def _suggest_spelling(view: type[View]) -> str:
    """Suggest a method that may be a misspelt `legal` or `why_illegal`. Return an empty string if none is similar."""
    own = {name for name in {*dir(view)} - {*dir(View)} if callable(getattr(view, name))}
    for name in ("legal", "why_illegal"):
        if getattr(view, name) is getattr(View, name) and (meant := find_similar(name, own)):
            return f", or did you mean `{name}` instead of `{meant}`?"
    return ""


def read_legal(view: object) -> Sequence[object] | None:
    """Return the view's `legal()`, or None if the view has no such method."""
    legal = getattr(view, "legal", None)
    return legal() if callable(legal) else None


def is_listed(output: object, legal: Sequence[object]) -> bool:
    """Return whether the output is listed, comparing types as well, so that True is not 1.

    Does not run the output's code.
    """
    if isinstance(legal, range):
        return type(output) is int and output in legal
    return any(type(output) is type(one) and output == one for one in legal)


def describe_legal(legal: Sequence[object]) -> str:
    """Describe legal moves: `pass or bet`, `one of 2, 3, 5`, `a whole number from 0 to 9`."""
    if bounds := _bounds_of_unbroken(legal):
        return f"a whole number from {bounds[0]} to {bounds[1]}"
    names = [("no", "yes")[one] if isinstance(one, bool) else one_line(str(one), 60) for one in legal[:_MAX_LISTED]]
    if len(legal) > _MAX_LISTED:
        return f"one of {', '.join(names)}, and {len(legal) - _MAX_LISTED:,} others"
    return " or ".join(names) if len(names) < 3 else f"one of {', '.join(names)}"


def _bounds_of_unbroken(legal: Sequence[object]) -> tuple[int, int] | None:
    """Return the least and the greatest of at least three consecutive integers, ascending or descending."""
    if len(legal) < 3 or type(first := legal[0]) is not int or type(last := legal[-1]) is not int:
        return None
    unbroken = range(first, last + 1) if first < last else range(first, last - 1, -1)
    if len(unbroken) != len(legal):
        return None
    # Compare the types as well, so that True is not 1.
    if legal != unbroken and any(type(one) is not int or one != at for one, at in zip(legal, unbroken, strict=True)):
        return None
    return min(first, last), max(first, last)
