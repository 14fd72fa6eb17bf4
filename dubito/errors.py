"""Everything this project raises on purpose: whose fault it is, and what to do next.

DubitoError
├── UsageError     the user's mistake, found before anything started (exit code 2)
├── IllegalOutput  what a bot gave back breaks the rules; raised by the engine, which knows no bot's name
├── BotError       the same, or an exception in a bot's method, with bot, game, deal and turn (R13)
├── GameError      an exception in a game's own code: no player is to blame (exit code 3)
└── RunStopped     a run that could not go on after its start: disk, a bot error (exit code 3)

ToldToEnd, a KeyboardInterrupt, is a signal that ends the process. Below them are helpers for sentences.
`dubito/llm/request.py` adds what can go wrong when a model is asked. Anything else that is raised is a bug.
"""

import signal
from collections.abc import Iterable, Sequence


class DubitoError(Exception):
    """The root of the tree; its text is one sentence for the user."""


class UsageError(DubitoError):
    """The user's mistake: the text says what is wrong, where, and what to do next."""


class IllegalOutput(DubitoError):
    """An output or an answer that the rules refuse; the text is the reason."""


class BotError(DubitoError):
    """A bot broke the rules or raised (R13). All fields travel between processes."""

    def __init__(self, bot: str, seat: int, game: int, deal: int, turn: int, reason: str) -> None:
        super().__init__(bot, seat, game, deal, turn, reason)
        self.bot, self.seat, self.game = bot, seat, game
        self.deal, self.turn, self.reason = deal, turn, reason

    def __str__(self) -> str:
        return (
            f"{one_line(self.bot)} (seat {self.seat}) failed in game {self.game}, deal {self.deal}, "
            f"turn {self.turn}: {self.reason}"
        )


class GameError(DubitoError):
    """A game's own code raised, and no player is to blame: nothing goes on. All fields travel between processes."""

    def __init__(self, name: str, game: int, deal: int, turn: int, reason: str) -> None:
        super().__init__(name, game, deal, turn, reason)
        self.name, self.game, self.deal, self.turn, self.reason = name, game, deal, turn, reason

    def __str__(self) -> str:
        return (
            f"the code of the game {one_line(self.name)} failed in game {self.game}, deal {self.deal}, "
            f"turn {self.turn}: {self.reason}"
        )


class RunStopped(DubitoError):
    """A run had to stop after its start; the text says why, and what was kept."""


class ToldToEnd(KeyboardInterrupt):
    """Another signal than Ctrl-C's told this process to end, and is answered as Ctrl-C is."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = number


def signal_of(error: BaseException | None) -> int:
    """The number of the signal that raised this."""
    return error.number if isinstance(error, ToldToEnd) else signal.SIGINT


def signal_in_words(number: int) -> str:
    """What told this process to end: `Ctrl-C`, `SIGTERM`."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


def one_line(text: str, limit: int = 300) -> str:
    """The text on one printable line: foreign words may not move the user's cursor."""
    line = " ".join(text.split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def value_in_words(value: object, longest: int = 20) -> str:
    """What a bot gave back; what is none of the usual kinds only by its type, since no code of it may run."""
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 10**9):
        return str(value)
    return repr(value) if type(value) is str and len(value) <= longest else f"a value of type {type(value).__name__}"


def with_stop(sentence: str) -> str:
    """The sentence with a full stop, unless it has its mark."""
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def listed(names: Sequence[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """The known names, the most alike first."""
    import difflib  # late, as below: few mistakes are made, and every command loads this

    def unlike(other: str) -> tuple[float, str]:
        return -difflib.SequenceMatcher(None, name.casefold(), other.casefold()).ratio(), other

    return sorted(known, key=unlike)


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that may have been meant, if one is like it."""
    import difflib

    folded = {other.casefold(): other for other in sorted(known)}
    begun = [other for other in folded if len(name) > 2 and other.startswith(name.casefold())]
    alike = begun or difflib.get_close_matches(name.casefold(), folded, n=1)
    return folded[alike[0]] if alike else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a hint, or all of them: `did you mean 'games'?`."""
    names = sorted(known)
    if (meant := near(name, names)) is not None:
        return f"did you mean '{one_line(meant)}'?"
    return f"choose from {', '.join(map(one_line, names))}"
