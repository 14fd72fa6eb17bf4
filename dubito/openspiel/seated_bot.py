"""Bots of the harness at a table of pyspiel."""

from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyspiel

from dubito.errors import UsageError
from dubito.game import GameEvent, Player, Seating, make_player
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.openspiel.course import Course, LogEntry
from dubito.openspiel.spiel import HarnessGame, HarnessState


class SeatedBot(pyspiel.Bot):  # type: ignore[misc]  # pyspiel has no types
    """A hand-written bot in a seat of one of our games; a new instance of it plays each game.

    It observes what its seat sees of the states that it is shown, by `step` or `inform_action`.
    """

    def __init__(
        self,
        game: HarnessGame,
        seat: int,
        bot: str | type[Player],
        *,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`bot` is a name, as `dubito bots` lists it, or a class; its chance follows from `seed`.

        Raises UsageError for a name that no bot of this game has, and for a model player.
        """
        super().__init__()
        name = game.kind.spec.name
        self._class = find_bots(Path.cwd(), name).find(bot).cls if isinstance(bot, str) else bot
        if self._class.is_model:
            raise UsageError(
                f"{self._class.__name__} asks a model, which only runs of the harness do: seat another bot"
            )
        self._seat, self._seed, self._settings = seat, seed, settings or {}
        self._games = 0  # begun
        self._forget()

    def _forget(self) -> None:
        self._player: Player | None = None
        self._streams = DealStreams(self._seed, self._games).seat(self._seat)
        self._at = 0  # so many entries of the log were told
        self._last: LogEntry | None = None
        self._left = False
        self._steps: deque[int] = deque()

    def restart(self) -> None:
        """A new game begins."""
        self._forget()

    def restart_at(self, state: HarnessState) -> None:
        """A game goes on from here."""
        self._forget()

    def inform_action(self, state: HarnessState, player: int, action: int) -> None:
        """Somebody else is about to do this."""
        self._observe(state.course)

    def step(self, state: HarnessState) -> int:
        """What the bot does now."""
        player = self._observe(state.course)
        if not self._steps:
            self._steps.extend(state.course.steps(player))
        return self._steps.popleft()

    def _observe(self, course: Course) -> Any:
        """Tell the bot what is new to it; of a game that does not continue the last one, everything."""
        if self._at > len(course.log) or (self._at and course.log[self._at - 1] is not self._last):
            self._forget()
        if course.engine is None:
            return None
        look = partial(course.engine.cards, self._seat)
        if self._player is None:
            rules = getattr(course.engine, "rules", None)
            seating = Seating(self._seat, self._games, self._games, self._streams, look, None, rules)
            self._player = make_player(self._class, seating, self._settings)
            self._games += 1
        self._player.cards = look(self._streams)  # a clone of a state has hands of its own
        observes = self._class.observes()
        for entry in course.log[self._at :]:
            if observes and not self._left and entry.only in (None, self._seat) and isinstance(entry.what, GameEvent):
                self._player.observe(entry.what)
            self._left = self._left or getattr(entry.what, "leaves", None) == self._seat
            self._last = entry
        self._at = len(course.log)
        return self._player
