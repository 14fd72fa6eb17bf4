"""The errors that this project raises deliberately, and helpers for their messages.

DubitoError
├── UsageError     the user's mistake, found before anything started (exit code 2)
├── IllegalOutput  a bot's output breaks the rules; raised by the engine, which does not know the bot's name
├── BotError       the same, or an exception in a bot's method, with bot, game, deal and turn (R13)
├── GameError      an exception in a game's own code, for which no player is to blame (exit code 3)
└── RunStopped     a run had to stop after its start: disk, a bot error (exit code 3)

StopSignal, a KeyboardInterrupt, is a signal that ends the process. `dubito/llm/request.py` defines the errors raised
when asking a model. Any other exception is a bug.
"""

import re
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

# Characters that are invisible although Python counts them as printable: fillers, joiners, selectors, and the braille
# blank. The ordinary variation selectors are separate, since people write them after card suits and emoji.
_BLANKS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef"
_BLANK: Final = re.compile(f"[{_BLANKS}]")
_INVISIBLE: Final = re.compile(f"[{_BLANKS}\ufe00-\ufe0f]")


class DubitoError(Exception):
    """The base class of these errors. `format_error` builds the message from its fields.

    Args:
        problem: What is wrong.
        quote: A server's answer, which may repeat the question with all its cards.
        hint: What to do. `{setting}` is replaced with the setting to change.
        setting: The setting to change, by its key in a config.
        value: The value to set, if known.
        player: The player that has this setting.
        where: The place of the setting in a config.
    """

    def __init__(
        self,
        *problem: object,
        quote: str = "",
        hint: str = "",
        setting: str = "",
        value: str = "",
        player: str = "",
        where: str = "",
    ) -> None:
        super().__init__(*problem)
        self.quote, self.hint = quote, hint
        self.setting, self.value, self.player, self.where = setting, value, player, where

    @property
    def problem(self) -> str:
        return " ".join(map(str, self.args))

    def __str__(self) -> str:
        return format_error(self)


def format_error(error: DubitoError, *, as_flags: bool = False, with_quote: bool = True) -> str:
    """Return an error as one message, `where: problem: quote; hint`, leaving out unknown parts.

    With `as_flags`, the setting appears as the flag that sets it.
    """
    flag = f"--{error.setting.replace('_', '-')} {error.value}".rstrip() if as_flags and error.setting else ""
    if "{setting}" in error.hint:
        hint, where = error.hint.replace("{setting}", f"`{flag}`" if flag else error.where), ""
    else:
        hint, where = error.hint, flag or error.where
    quote = error.quote if with_quote else ""
    message = ": ".join(filter(None, (where, error.problem, quote)))
    return f"{message}; {hint}" if hint else message


class UsageError(DubitoError):
    """The user's mistake. The message describes what is wrong, where, and what to do."""


class NotInstalled(UsageError):
    """A package is needed that is not installed. The message names it."""


class IllegalOutput(DubitoError):
    """An output or answer breaks the rules. The message is the reason."""


class BotError(DubitoError):
    """A bot broke the rules or raised an exception (R13). All fields can be sent between processes."""

    def __init__(self, bot: str, seat: int, game: int, deal: int, turn: int, reason: str) -> None:
        super().__init__(bot, seat, game, deal, turn, reason)
        self.bot, self.seat, self.game = bot, seat, game
        self.deal, self.turn, self.reason = deal, turn, reason

    @property
    def problem(self) -> str:
        return (
            f"{one_line(self.bot)} (seat {self.seat}) failed in game {self.game}, deal {self.deal}, "
            f"turn {self.turn}: {self.reason}"
        )


class GameError(DubitoError):
    """A game's own code raised an exception, and the run stops. All fields can be sent between processes."""

    def __init__(self, name: str, game: int, deal: int, turn: int, reason: str) -> None:
        super().__init__(name, game, deal, turn, reason)
        self.name, self.game, self.deal, self.turn, self.reason = name, game, deal, turn, reason

    @property
    def problem(self) -> str:
        return (
            f"the code of the game {one_line(self.name)} failed in game {self.game}, deal {self.deal}, "
            f"turn {self.turn}: {self.reason}"
        )


class RunStopped(DubitoError):
    """A run had to stop after its start. The message contains the reason and what was saved."""


class StopSignal(KeyboardInterrupt):
    """A signal other than Ctrl-C's that ends the process in the same way."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(number)
        self.number = number


OUT_OF_MEMORY: Final = "out of memory: raise the limit (`ulimit -v`), or lower in_flight or workers"


def signal_number(error: BaseException | None) -> int:
    return error.number if isinstance(error, StopSignal) else signal.SIGINT


def describe_signal(number: int) -> str:
    with suppress(ValueError):  # a signal without a name
        return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    return f"signal {number}"


def is_visible(character: str) -> bool:
    return character.isprintable() and not _INVISIBLE.match(character)


def printable(text: str) -> str:
    if text.isprintable() and not _BLANK.search(text):
        return text
    return "".join(c if _can_print(c) else c.encode("unicode_escape").decode() for c in text)


def printable_json(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c if _can_print(c) else json_escape(c) for c in text)


def json_escape(character: str) -> str:
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[place]:02x}{halves[place + 1]:02x}" for place in range(0, len(halves), 2))


def _can_print(character: str) -> bool:
    if character.isprintable():
        return not _BLANK.match(character)
    return character in "\n\t" or (character.isspace() and character > "\x9f" and character not in "\u2028\u2029")


def one_line(text: str, limit: int = 300) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def describe_value(value: object, max_length: int = 20) -> str:
    """Describe a bot's output. Unknown types are shown only by name, so that none of the bot's code runs."""
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 10**9):
        return str(value)
    return repr(value) if type(value) is str and len(value) <= max_length else f"a value of type {type(value).__name__}"


def end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def join_names(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def pluralize(n: int, noun: str = "card") -> str:
    """Return a number with its noun: 1 card, 2 cards."""
    return f"{n} {noun}{'s' * (n != 1)}"


_NUMBERS: Final = ("no", "one", "two", "three", "four")


def number_word(n: int) -> str:
    """Return a small number as a word, and others as digits."""
    return _NUMBERS[n] if n < len(_NUMBERS) else str(n)


def sort_by_similarity(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names, most similar first."""
    # Imported late, like below, since every command imports this module but few need this.
    import difflib

    def difference(other: str) -> tuple[float, str]:
        return -difflib.SequenceMatcher(None, name.casefold(), other.casefold()).ratio(), other

    return sorted(known, key=difference)


def find_similar(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, if one is similar enough."""
    import difflib

    folded = {other.casefold(): other for other in sorted(known)}
    prefixed = [other for other in folded if len(name) > 2 and other.startswith(name.casefold())]
    similar = prefixed or difflib.get_close_matches(name.casefold(), folded, n=1)
    return folded[similar[0]] if similar else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, such as `did you mean 'games'?`, or with all known names."""
    names = sorted(known)
    if (similar := find_similar(name, names)) is not None:
        return f"did you mean '{one_line(similar)}'?"
    return f"choose from {', '.join(map(one_line, names))}"


class Interrupted(RunStopped):
    """The user stopped the run. Replies in flight are saved, and no new requests are sent."""
