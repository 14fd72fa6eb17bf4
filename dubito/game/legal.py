"""What is legal now, where that is a list: a view's `legal()`, of which all that asks what may be done is made."""

from collections.abc import Sequence
from typing import Any, Final

from dubito.errors import near, one_line, value_in_words

_SHOWN: Final = 60  # of a list, in a sentence


class View:
    """What the seat to move sees, for games to build upon: a class of it writes `legal` or `why_illegal`.

    Where it writes both, which a game may do for its speed or its words, they have to agree.
    """

    __slots__ = ()

    node: Any  # the name of the node that is asked

    def legal(self) -> Sequence[Any] | None:
        """The outputs that are legal now, as people are to read them; None where they are too many for a list."""
        return None

    def why_illegal(self, output: Any) -> str | None:
        """Why this is not legal now, in a sentence; None if it is. No code of the output runs."""
        legal = self.legal()
        if legal is None:
            raise NotImplementedError(
                f"{type(self).__name__} lists nothing at {self.node}: write why_illegal there{_misspelt(type(self))}"
            )
        if is_listed(output, legal):
            return None
        if not legal:
            return "no move is legal here"
        return f"a move here is {listed_in_words(legal)}, and not {value_in_words(output, 60)}"


def _misspelt(view: type[View]) -> str:
    """Which of a view's own methods may be meant for one that it does not write; empty if none is like it."""
    own = {name for name in {*dir(view)} - {*dir(View)} if callable(getattr(view, name))}
    for name in ("legal", "why_illegal"):
        if getattr(view, name) is getattr(View, name) and (meant := near(name, own)):
            return f", or is `{meant}` to be `{name}`?"
    return ""


def legal_of(view: Any) -> Sequence[Any] | None:
    """What a view's `legal()` lists; None where it has no such method, as views once had none."""
    legal = getattr(view, "legal", None)
    return legal() if callable(legal) else None


def is_listed(output: Any, legal: Sequence[Any]) -> bool:
    """Whether an output is one of these, and of its type: True is no 1. Nothing else of it is asked."""
    if isinstance(legal, range):
        return type(output) is int and output in legal
    return any(type(output) is type(one) and output == one for one in legal)


def listed_in_words(legal: Sequence[Any]) -> str:
    """What is legal, in the words of a sentence: `pass or bet`, `one of 2, 3, 5`, `a whole number from 0 to 24`."""
    if _is_unbroken(legal):
        return f"a whole number from {min(legal[0], legal[-1])} to {max(legal[0], legal[-1])}"
    said = [("no", "yes")[one] if isinstance(one, bool) else one_line(str(one), 60) for one in legal[:_SHOWN]]
    if len(legal) > _SHOWN:
        return f"one of {', '.join(said)}, and {len(legal) - _SHOWN:,} others"
    return " or ".join(said) if len(said) < 3 else f"one of {', '.join(said)}"


def _is_unbroken(legal: Sequence[Any]) -> bool:
    """Whether these are three whole numbers or more, up or down by one."""
    if len(legal) < 3 or any(type(one) is not int for one in legal[:2]):
        return False
    if isinstance(legal, range):
        return legal.step in (1, -1)
    step = legal[1] - legal[0]
    return step in (1, -1) and all(
        type(one) is int and one == legal[0] + step * place for place, one in enumerate(legal)
    )
