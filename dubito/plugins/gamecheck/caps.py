"""Check the endings of capped games by playing some games with very low caps."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from dubito.game import Ending, State
from dubito.game.flaws import find_ending_flaws
from dubito.game.streams import DealStreams
from dubito.game.table import step
from dubito.hooks import Flaw
from dubito.plugins.gamecheck.plain_data import find_line, stored_attributes
from dubito.plugins.gamecheck.subject import MAX_MOVES, Subject

_CAP: Final = re.compile(r"max|most|cap|limit|round|turn|move", re.IGNORECASE)  # words in the name of a possible cap
_LOW_CAPS: Final = (1, 2, 3)  # caps on turns, rounds or moves
_DEALS: Final = 3


class _Cap(NamedTuple):
    """A number that may limit the length of a game."""

    owner: object  # a module, or None for the rules or the state
    name: str
    is_rule: bool = False


def check_caps(subject: Subject) -> Iterator[Flaw]:
    """Yield flaws in the ending of a capped game.

    The cap can be a rule, or a number in the state or in a module.
    """
    deals = [(deal, seats) for seats in sorted({*subject.game.seats}) for deal in range(_DEALS)]
    for cap in _find_caps(subject):
        for low in _LOW_CAPS:
            endings = [(_play_to_cap(subject, cap, low, *deal), deal[1]) for deal in deals]
            capped = [(ending, seats) for ending, seats in endings if ending is not None and ending.capped]
            for ending, seats in capped:
                for flaw in find_ending_flaws(ending, subject.game.results, seats):
                    line = find_line(subject, subject.main, flaw.removeprefix("results: ").partition(" ")[0])
                    yield Flaw(subject.main, f"in a game capped by {cap.name}={low}: {flaw}{line}")
                    return
            if capped:
                return


def _find_caps(subject: Subject) -> Iterator[_Cap]:
    for name, value in subject.game.rules().model_dump().items():
        if type(value) is int and _CAP.search(name):
            yield _Cap(None, name, is_rule=True)
    for name, value in stored_attributes(subject.state(0, subject.game.seats[0])).items():
        if type(value) is int and value > max(_LOW_CAPS) and _CAP.search(name):
            yield _Cap(None, name)
    for module in [each for name, each in [*sys.modules.items()] if f"{name}.".startswith(f"{subject.game.package}.")]:
        for name, value in vars(module).items():
            if type(value) is int and value > max(_LOW_CAPS) and name.isupper() and _CAP.search(name):
                yield _Cap(module, name)


def _play_to_cap(subject: Subject, cap: _Cap, low: int, deal: int, seats: int) -> Ending | None:
    """Return the ending of a game with a low cap, or None if it fails or does not end."""
    game = subject.game
    with suppress(Exception), _lower_cap(cap, low):  # perhaps the number is not a cap
        rules = game.rules(**{cap.name: low}) if cap.is_rule else game.rules()
        state: State = game.deal(rules, seats, DealStreams(0, deal).deck())
        if cap.owner is None and not cap.is_rule:
            setattr(state, cap.name, low)
        table = subject.table(deal, seats, state=state)
        for _ in range(MAX_MOVES):
            if state.over:
                return state.ending()
            step(table)
    return None


@contextmanager
def _lower_cap(cap: _Cap, low: int) -> Iterator[None]:
    """Temporarily lower a cap, which is a constant of a module."""
    if cap.owner is None:
        yield
        return
    value = getattr(cap.owner, cap.name)
    try:
        setattr(cap.owner, cap.name, low)
        yield
    finally:
        setattr(cap.owner, cap.name, value)
