"""Read-only access to a run for viewers.

Finished games are replayed and compared with the stored results.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.counts import count_games, finished_games
from dubito.experiment.lies import LieCounts, count_lies
from dubito.experiment.replay import rebuild_table
from dubito.experiment.stop import describe_standing, pair_standings
from dubito.experiment.stored import Run, check_replayable, read_run
from dubito.game import State
from dubito.game.moves import output_of
from dubito.game.reader import table_reader
from dubito.game.record import GameRecord
from dubito.show.session import Session, session_of_outputs, table_moves
from dubito.show.story import ModelDecisions, Texts, story_of_game, winners
from dubito.stats.tally import Outcome, build_outcome, read_record
from dubito.store.lock import is_locked


class CannotShowGame(DubitoError):
    """Raised with the reason when a game cannot be shown."""


@dataclass
class ReplayedGames:
    """Replays the games of a run.

    Models repeat their recorded answers, and hand-written bots play from their seed.
    """

    source: Run
    _changed: dict[str, str] | None = field(default=None, init=False)  # None if not checked yet
    _reason: str | None = field(default=None, init=False)

    def play(self, game: int) -> dict[str, Any]:
        """Return the whole game for the viewer. Raises CannotShowGame if it cannot be repeated."""
        session, names, kept = self.replay(game)
        results = self.source.game.results
        try:
            whole = story_of_game(session, session.reader.names(len(names)))
        except DubitoError as error:
            raise CannotShowGame(f"it cannot be replayed: {error}") from None
        seats, contender, fallbacks = [*range(len(names))], None, [0] * len(names)
        if kept is not None:
            seats, contender, fallbacks = kept.seats, kept.contender_seat, [counts[-1] for counts in kept.counts]
        outcome = build_outcome(session.state, seats, contender, fallbacks) if session.state.over else None
        if outcome is None or (kept is not None and outcome.pack() != kept.pack()):
            raise CannotShowGame("its replay has a different result because a bot or Dubito has changed since then")
        won = winners(results, outcome.buckets(results), outcome.counts)
        return whole | {"winners": won, "kinds": [self.source.kinds[name] for name in names]}

    def stories(self, numbers: Iterable[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield these games with the models' requests and replies, without the games that cannot be shown."""
        asked = ModelDecisions(self.source.db, self.source.game)
        for number in numbers:
            try:
                story = self.play(number)
            except CannotShowGame:
                continue
            yield number, story | asked.describe_game(number, story, Texts())

    def record(self, game: int, max_moves: int) -> GameRecord | None:
        """Return the game's record, or None if it has more than `max_moves` moves.

        Raises CannotShowGame if it cannot be repeated.
        """
        session, names, _ = self.replay(game)
        planned = self.source.planned
        session.start_recording(planned.rules)
        deque(islice(session, max_moves), maxlen=0)
        if next(session, None) is not None:
            return None
        return session.record(names, self.source.public_seed, planned.deal_of(game), None)

    def lies(self) -> LieCounts | None:
        """Return the lies of the run's first games, or None if the game has no lies.

        Raises CannotShowGame if they cannot be counted.
        """
        if not self.source.game.has_lies:
            return None
        if (changed := self._changed_bots()) and not self.source.models:
            raise CannotShowGame(next(iter(changed.values())))
        try:
            return count_lies(self.source)
        except DubitoError as error:
            raise CannotShowGame(str(error)) from None

    def replay(self, game: int) -> tuple[Session, list[str], Outcome | None]:
        """Return the game, starting at its deal, with its players and its outcome if stored.

        The outcome of a finished game is not stored while other games of its chunk are in progress. The game can still
        be repeated because its model answers are stored. Raises CannotShowGame if it cannot be repeated.
        """
        rows = self.source.db.read("SELECT outcome, record FROM games WHERE game = ?", (game,))
        if not rows:
            if self.source.db.read("SELECT 1 FROM ended WHERE game = ?", (game,)):
                return *self._seat_players(game), None
            first = self.source.planned.first_game
            kept = range(first, first + self.source.tally.games)
            raise UsageError(self.source.describe_missing_game(game, kept))
        ((row, record),) = rows
        outcome = self.source.outcome(row)
        names = [self.source.names[player] for player in outcome.seats]
        if record is not None:
            try:
                return self._from_record(game, names, read_record(record, self.source.db.path)), names, outcome
            except (UsageError, ValueError):  # invalid rules or outputs
                raise CannotShowGame("its record was modified or is damaged") from None
        changed = self._changed_bots()
        for name in names:
            if name in changed:
                raise CannotShowGame(changed[name])
        session, seated = self._seat_players(game)
        if seated != names:
            raise CannotShowGame("its seed assigns other seats because Dubito has changed since then")
        return session, names, outcome

    def _seat_players(self, number: int) -> tuple[Session, list[str]]:
        self._changed_bots()
        table, names = rebuild_table(self.source, number, lambda place, question, end: None)
        return Session(self.source.game, table.state, table_reader(names), table_moves(table)), names

    def _from_record(self, number: int, names: list[str], record: dict[str, Any]) -> Session:
        game = self.source.game
        streams = self.source.deal_streams(number)
        state: State = game.deal(game.rules(**self.source.planned.rules), len(names), streams.deck())
        if game.deal_to_json(state) != {key: value for key, value in record.items() if key != "outputs"}:
            raise CannotShowGame("its seed deals other cards, so the record was modified or is damaged")
        return session_of_outputs(
            game, state, (output_of(game, kept) for kept in record["outputs"]), table_reader(names)
        )

    def _changed_bots(self) -> Mapping[str, str]:
        """Return the players whose bots have changed since the run, with the reason.

        Raises CannotShowGame, with the same reason on every call, if no game of the run can be repeated.
        """
        if self._changed is None and self._reason is None:
            try:
                check_replayable(self.source)
                self._changed = {
                    spec.name: f"{one_line(spec.bot)}'s file has changed, so it may play differently"
                    for spec in self.source.experiment.players
                    if self.source.registry.find(spec.bot).digest != spec.source
                }
            except UsageError as error:
                self._reason = str(error)
        if self._changed is None:
            raise CannotShowGame(self._reason)
        return self._changed


class FollowedRun:
    """A run that may still be in progress. Callers must close it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._home = folder, home
        self.source = read_run(folder, home)
        self.games = ReplayedGames(self.source)

    def reload(self) -> None:
        """Reload the run, which may have new games."""
        source = read_run(self._folder, self._home)  # load before closing, so that the old state is kept if this fails
        self.close()
        self.source = source
        self.games = ReplayedGames(self.source)

    def finished(self) -> Collection[int]:
        counted, later = finished_games(self.source.db, self.source.planned.first_game)
        return {*counted, *later} if later else counted

    @property
    def is_playing(self) -> bool:
        return is_locked(self.source.folder)

    def newest(self, wait: Callable[[], None]) -> Iterator[tuple[int, int]]:
        """Yield the newest finished game whenever there is a new one, until the run ends.

        The second value is the number of games skipped since the previous one.
        """
        seen: Collection[int] = range(0)
        while True:
            playing, now = self.is_playing, self.finished()
            if len(now) > len(seen):
                new = {*now}.difference(seen)
                self.reload()
                yield max(new), len(new) - 1 if seen else 0
            elif not playing:
                return
            else:
                wait()
            seen = now

    def standing(self) -> str:
        planned, of = self.source.planned, self.source.planned.games
        counts = count_games(self.source.db, planned.first_game, planned.games_per_deal)
        done = counts.counted >= of or self.source.is_decided
        state = "finished" if done else "playing" if self.is_playing else "stopped"
        return " ".join(
            [f"The run is {state}: {counts.finished:,} of {of:,} games finished.", *(f"{one}." for one in self.pairs())]
        )

    def pairs(self) -> list[str]:
        return [describe_standing(pair, self.source.planned) for pair in pair_standings(self.source)]

    def questions(self, game: int, story: Mapping[str, object]) -> dict[str, Any]:
        return ModelDecisions(self.source.db, self.source.game).describe_game(game, story, Texts())

    def close(self) -> None:
        self.source.db.__exit__()
