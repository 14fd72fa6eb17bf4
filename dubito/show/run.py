"""A run before somebody, only read: its finished games, each played again and checked against what the run has."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.counts import count_games, finished_games
from dubito.experiment.replay import LieCounts, check_to_replay, count_lies, table_of
from dubito.experiment.stop import in_words, standings_of
from dubito.experiment.stored import Run, read_run
from dubito.game.record import output_of
from dubito.game.streams import DealStreams
from dubito.game.words import labels
from dubito.show.session import Session, moves_at, of_outputs
from dubito.show.story import ModelDecisions, Texts, story_of_game, winners
from dubito.stats.tally import Outcome, outcome_of, record_in
from dubito.store.lock import is_claimed


class NotShown(DubitoError):
    """A game cannot be shown; the text says why."""


@dataclass
class ReplayedGames:
    """Plays the games of a run again: with models from their record, hand-written ones from their seed."""

    source: Run
    _changed: dict[str, str] | None = field(default=None, init=False)  # None: nothing was played again yet
    _reason: str | None = field(default=None, init=False)

    def play(self, game: int) -> dict[str, Any]:
        """The whole game, told; raises NotShown if it cannot be had as it was."""
        session, names, kept = self.again(game)
        results = self.source.game.results
        try:
            whole = story_of_game(session, [session.label(seat) for seat in range(len(names))])
        except DubitoError as error:
            raise NotShown(f"it cannot be played again: {error}") from None
        seats, contender, fallbacks = [*range(len(names))], None, [0] * len(names)
        if kept is not None:
            seats, contender, fallbacks = kept.seats, kept.contender_seat, [counts[-1] for counts in kept.counts]
        outcome = outcome_of(session.state, seats, contender, fallbacks) if session.state.over else None
        if outcome is None or (kept is not None and outcome.pack() != kept.pack()):
            raise NotShown("played again it ends otherwise than the run has it: a bot or the harness was changed since")
        won = winners(results, outcome.buckets(results), outcome.counts)
        return whole | {"winners": won, "kinds": [self.source.kinds[name] for name in names]}

    def record(self, game: int, max_moves: int) -> Any:
        """Return the game as a saved one, None if it has more moves. Raises NotShown if it cannot be had as it was."""
        session, names, _ = self.again(game)
        planned = self.source.planned
        session.keep(planned.rules)
        deque(islice(session, max_moves), maxlen=0)
        if next(session, None) is not None:
            return None
        return session.record(names, planned.seed, game // planned.games_per_deal, None)

    def lies(self) -> LieCounts | None:
        """The lies of the run's first games, None in a game without; raises NotShown if they cannot be counted."""
        if self.source.game.lie is None:
            return None
        if (changed := self._other_bots()) and not self.source.models:
            raise NotShown(next(iter(changed.values())))
        try:
            return count_lies(self.source)
        except DubitoError as error:
            raise NotShown(str(error)) from None

    def again(self, game: int) -> tuple[Session, list[str], Outcome | None]:
        """The game as it was, its players, and what it came to if that is kept; raises NotShown if it cannot be had.

        Of a game that was played to its end, and is not kept yet because others of its chunk are still being played,
        the models' answers are there, and so is the game.
        """
        rows = self.source.db.read("SELECT outcome, record FROM games WHERE game = ?", (game,))
        if not rows:
            if self.source.db.read("SELECT 1 FROM ended WHERE game = ?", (game,)):
                return *self._at_table(game), None
            first = self.source.planned.first_game
            kept = self.source.kept_in_words(range(first, first + self.source.tally.games))
            raise UsageError(f"{kept}: there is no game {game}")
        ((row, record),) = rows
        outcome = self.source.outcome(row)
        names = [self.source.names[player] for player in outcome.seats]
        return self._session(game, names, record), names, outcome

    def _session(self, game: int, names: list[str], record: str | None) -> Session:
        if record is not None:
            try:
                return self._from_record(game, names, record_in(record, self.source.db.path))
            except (UsageError, ValueError):  # its rules or its outputs are none of the game's
                raise NotShown("its record was changed or is damaged") from None
        changed = self._other_bots()
        for name in names:
            if name in changed:
                raise NotShown(changed[name])
        session, seated = self._at_table(game)
        if seated != names:
            raise NotShown("its seed seats other players than the run has it: the harness was changed since")
        return session

    def _at_table(self, number: int) -> tuple[Session, list[str]]:
        self._other_bots()
        table, names = table_of(self.source, number, lambda place, question, end: None)
        return Session(self.source.game, table.state, labels(names, None), moves_at(table)), names

    def _from_record(self, number: int, names: list[str], record: dict[str, Any]) -> Session:
        game = self.source.game
        streams = DealStreams(self.source.planned.seed, number // self.source.planned.games_per_deal)
        state: Any = game.deal(game.rules(**self.source.planned.rules), len(names), streams.deck())
        if game.deal_to_json(state) != {key: value for key, value in record.items() if key != "outputs"}:
            raise NotShown("its cards are not those that its seed deals: the record was changed or is damaged")
        return of_outputs(game, state, (output_of(game, kept) for kept in record["outputs"]), labels(names, None))

    def _other_bots(self) -> Mapping[str, str]:
        """By player, that its bot would play otherwise; raises NotShown if nothing of the run can be played again, with
        the same reason each time."""
        if self._changed is None and self._reason is None:
            try:
                check_to_replay(self.source)
                self._changed = {
                    spec.name: f"the file of {one_line(spec.bot)} was changed since, and it would play otherwise"
                    for spec in self.source.experiment.players
                    if self.source.registry.find(spec.bot).digest != spec.source
                }
            except UsageError as error:
                self._reason = str(error)
        if self._changed is None:
            raise NotShown(self._reason)
        return self._changed


class FollowedRun:
    """A run that somebody may be playing. Whoever asks closes it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._home = folder, home
        self.source = read_run(folder, home)
        self.games = ReplayedGames(self.source)

    def read_again(self) -> None:
        """It may have been made longer."""
        source = read_run(self._folder, self._home)  # first: what cannot be read now is left as it was
        self.close()
        self.source = source
        self.games = ReplayedGames(self.source)

    def finished(self) -> Collection[int]:
        counted, later = finished_games(self.source.db, self.source.planned.first_game)
        return {*counted, *later} if later else counted

    @property
    def is_playing(self) -> bool:
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
        planned, of = self.source.planned, self.source.planned.games
        counts = count_games(self.source.db, planned.first_game, planned.games_per_deal)
        done = counts.counted >= of or self.source.is_decided
        state = "finished" if done else "being played" if self.is_playing else "stopped"
        return " ".join(
            [f"The run is {state}: {counts.finished:,} of {of:,} games finished.", *(f"{one}." for one in self.pairs())]
        )

    def pairs(self) -> list[str]:
        return [in_words(pair, self.source.planned) for pair in standings_of(self.source)]

    def questions(self, game: int, told: Mapping[str, Any]) -> dict[str, Any]:
        return ModelDecisions(self.source.db, self.source.game).of_game(game, told, Texts())

    def close(self) -> None:
        self.source.db.__exit__()
