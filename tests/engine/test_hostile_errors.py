"""R13: hostile exceptions, whose description would run the bot's code again."""

from typing import Any, NoReturn

import pytest

from dubito.errors import BotError, IllegalOutput
from dubito.game.table import Entrant, step
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import TurnData, TurnOutput
from tests.engine.helpers import position, snapshot, table


class ExitingError(Exception):
    """An exception that ends the process when it is converted to text."""

    def __str__(self) -> NoReturn:
        raise SystemExit(3)


class MuteIllegalOutput(IllegalOutput):
    """An exception that imitates the engine's own error and has no readable text."""

    def __str__(self) -> NoReturn:
        raise ValueError("not even this")


class Text(str):
    """A string that fails when it is used."""

    __slots__ = ()

    def __format__(self, game: str) -> NoReturn:
        raise ValueError("not even this")


class TextError(Exception):
    """An exception whose text is a `Text`."""

    def __str__(self) -> str:
        return Text("hello")


class Nameless(type):
    """A type whose name cannot be read."""

    @property
    def __name__(cls) -> NoReturn:  # type: ignore[override]
        raise ValueError("not even this")


class NamelessError(Exception, metaclass=Nameless):
    """An exception whose type's name cannot be read."""


class TracelessError(Exception):
    """An exception whose traceback cannot be read."""

    @property
    def __traceback__(self) -> NoReturn:  # type: ignore[override]
        raise ValueError("not even this")


class Disguised(Exception):
    """An exception that pretends to be Ctrl-C."""

    @property  # type: ignore[misc]
    def __class__(self) -> type[BaseException]:  # type: ignore[override]
        return KeyboardInterrupt


class Throwing(PlayerAI):
    """A bot that raises an error of the given class."""

    def __init__(self, id: int, *, error: type[Exception]) -> None:
        super().__init__(id)
        self.error = error

    def play(self, p: TurnData) -> NoReturn:
        raise self.error


def blamed(entrant: Entrant | type[PlayerAI]) -> str:
    """Return the error message of this bot's turn. The bot's exception itself must not reach pytest."""
    game = position("A2/34/56")
    before = snapshot(game)
    try:
        step(table(game, entrant))
    except BotError as error:
        assert snapshot(game) == before
        return str(error)
    except BaseException:
        return "it got away"
    return "nothing happened"


@pytest.mark.parametrize(
    "error",
    [ExitingError, MuteIllegalOutput, TextError, NamelessError, TracelessError, Disguised],
    ids=range(6),  # pytest would read their names
)
def test_r13_hostile_exception_is_blamed_on_the_bot(error: type[Exception]) -> None:
    assert blamed(Entrant("Throwing", Throwing, {"error": error})).startswith("Throwing (seat 0) failed in game 7")


def test_r13_an_exception_that_exits_when_read_is_still_named() -> None:
    message = blamed(Entrant("Throwing", Throwing, {"error": ExitingError}))
    assert ": play raised ExitingError: (its text cannot be read) (test_hostile_errors.py, line " in message


def test_r13_control_characters_of_a_file_are_escaped() -> None:
    names: dict[str, Any] = {}
    exec(compile("def play(self, p):\n raise ValueError", "\x1b[2J\n.py", "exec"), names)  # noqa: S102
    bot = type("Wild", (PlayerAI,), {"play": names["play"]})
    assert blamed(bot).startswith("Wild (seat 0) failed")
    assert blamed(bot).isprintable()


class Odd:
    """An object that a bot might take for a number."""


@pytest.mark.parametrize("number", [Odd(), "5", True, 14])
def test_r13_doubt_with_another_number_is_illegal(number: Any) -> None:
    """R13: on a regular turn the number must be None or the current one, since a record cannot store others."""
    game = position("A2/34/56")
    game.apply(TurnOutput(False, 1, [1]))
    with pytest.raises(IllegalOutput):
        game.apply(TurnOutput(True, number))
