"""A run watched from outside: which of its games are finished, and each of them as it was. It is only read."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from dubito.experiment.stored import read_run
from dubito.game.find import find_bots
from dubito.report.model_decisions import ModelDecisions
from dubito.report.replays import ReplayedGames
from dubito.report.texts import Texts
from dubito.store.lock import is_claimed


class FollowedRun:
    """A run that somebody may be playing. Whoever asks closes it."""

    def __init__(self, folder: Path, home: Path) -> None:
        """Bots of the user's own are looked for in `home`; raises UsageError if there is no run that can be read."""
        self._folder, self._home = folder, home
        self.source = read_run(folder, home)
        self._registry = find_bots(home, self.source.game.name)
        self.games = ReplayedGames(self.source, self._registry)

    def read_again(self) -> None:
        """It may have been made longer."""
        source = read_run(self._folder, self._home)  # first: what cannot be read now is left as it was
        self.close()
        self.source = source
        self.games = ReplayedGames(self.source, self._registry)

    def finished(self) -> Collection[int]:
        """The numbers of the games that were played to their end; those of a chunk may not be kept yet."""
        first = self.source.first_game
        kept = range(first, first + self.source.db.game_count())
        ended = self.source.db.read("SELECT game FROM ended WHERE game >= ?", (kept.stop,))
        return {*kept, *(game for (game,) in ended)} if ended else kept

    @property
    def is_playing(self) -> bool:
        """Whether a process plays it now."""
        return is_claimed(self.source.folder)

    def newest(self, wait: Callable[[], None]) -> Iterator[tuple[int, int]]:
        """The last finished game; then, until nobody plays, each time the newest, with how many were passed over."""
        seen: Collection[int] = range(0)
        while True:
            playing, now = self.is_playing, self.finished()
            if len(now) > len(seen):
                new = {*now}.difference(seen)
                self.read_again()
                yield max(new), len(new) - 1 if seen else 0
            elif not playing:
                return
            else:
                wait()
            seen = now

    def standing(self) -> str:
        """How far it is, in a sentence."""
        games, of = len(self.finished()), self.source.games
        state = "finished" if games >= of else "being played" if self.is_playing else "stopped"
        return f"The run is {state}: {games:,} of {of:,} games."

    def questions(self, game: int, told: Mapping[str, Any]) -> dict[str, Any]:
        """What models were asked in a game that was told so, as the viewer has it."""
        return ModelDecisions(self.source.db, self.source.game).of_game(game, told, Texts())

    def close(self) -> None:
        """Leave its store."""
        self.games.close()
        self.source.db.__exit__()
