"""The games of a run, played again to be told: each is checked against what the run has of it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment import replay
from dubito.experiment.outcome import Outcome, outcome_of, unpack
from dubito.experiment.stored import StoredRun
from dubito.handlers import Table, step
from dubito.record import output_of, play
from dubito.registry import Registry
from dubito.report.story import Turns, told, winners
from dubito.streams import DealStreams
from dubito.telling import labels


class NotShown(DubitoError):
    """A game cannot be shown; the text says why."""


@dataclass
class Games:
    """Plays the games of a run again: with models from their record, hand-written ones from their seed."""

    source: StoredRun
    registry: Registry
    home: Path
    _kept: replay.RunToReplay | None = field(default=None, init=False)
    _reason: str | None = field(default=None, init=False)
    _changed: dict[str, str] = field(default_factory=dict, init=False)

    def play(self, game: int) -> dict[str, Any]:
        """The whole game, told; raises NotShown if it cannot be had as it was."""
        (row, record) = self._row(game)
        outcome = unpack(row, self.source.game.results)
        names = [self.source.names[player] for player in outcome.seats]
        table, turns = self._turns(game, names, outcome, record)
        label = labels(names, None)
        try:
            whole = told(self.source.game, table, turns, [label(seat) for seat in range(len(names))], label)
        except DubitoError as error:
            raise NotShown(f"it cannot be played again: {error}") from None
        fallbacks = [counts[-1] for counts in outcome.counts]
        if not table.over or outcome_of(table, outcome.seats, outcome.contender_seat, fallbacks).pack() != row:
            raise NotShown("played again it ends otherwise than the run has it: a bot or the harness was changed since")
        won = winners(self.source.game.results, outcome.buckets(self.source.game.results), outcome.counts)
        return whole | {"winners": won}

    def _row(self, game: int) -> tuple[bytes, str | None]:
        rows = self.source.db.read("SELECT outcome, record FROM games WHERE game = ?", (game,))
        if not rows:
            first = self.source.first_game
            last = first + self.source.tally.games - 1
            raise UsageError(f"{self.source.folder} keeps the games {first} to {last}: there is no game {game}")
        return rows[0][0], rows[0][1]

    def _turns(self, game: int, names: list[str], outcome: Outcome, record: str | None) -> tuple[Any, Turns]:
        if record is not None:
            return self._from_record(game, len(names), json.loads(record))
        kept = self._opened()
        for name in names:
            if name in self._changed:
                raise NotShown(self._changed[name])
        table, seated = replay.table_of(kept, game, lambda place, question, end: None)
        if seated != names:
            raise NotShown("its seed seats other players than the run has it: the harness was changed since")
        return table.game, _stepped(table)

    def _from_record(self, game: int, seats: int, record: dict[str, Any]) -> tuple[Any, Turns]:
        spec = self.source.game
        streams = DealStreams(self.source.seed, game // self.source.games_per_deal)
        table: Any = spec.deal(spec.rules(**self.source.identity.rules), seats, streams.deck())
        if spec.deal_to_json(table) != {key: value for key, value in record.items() if key != "outputs"}:
            raise NotShown("its cards are not those that its seed deals: the record was changed by hand")
        outputs = (output_of(spec, output) for output in record["outputs"])
        return table, ((output, play(table, output)) for output in outputs)

    def _opened(self) -> replay.RunToReplay:
        """The run as it can be played again; raises NotShown with the same reason each time."""
        if self._kept is None and self._reason is None:
            try:
                self._kept = replay.opened(self.source.folder, self.registry, self.home)
                self._changed = {
                    spec.name: f"the file of {one_line(spec.bot)} was changed since, and it would play otherwise"
                    for spec in self._kept.experiment.players
                    if self.registry.find(spec.bot).digest != spec.source
                }
            except UsageError as error:
                self._reason = str(error)
        if self._kept is None:
            raise NotShown(self._reason)
        return self._kept

    def close(self) -> None:
        """Leave the store that was opened for it."""
        if self._kept is not None:
            self._kept.db.__exit__()


def _stepped(table: Table) -> Turns:
    while not table.game.over:
        yield step(table, announce=True)
