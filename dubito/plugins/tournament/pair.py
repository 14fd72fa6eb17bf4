"""Play the matches of a pairing one after the other.

In dialect v1, both bots are restarted for each match. Dialect v2 is the protocol of the referee in OpenSpiel's
repository, in which a process plays all matches of a seat. The process prints `ready` when it is ready, `start` before
each match, an answer at every node (`ponder` if it is not its turn), and `match over` after the last line. More than
three strikes of any kind, or an answer that is not a number, shut the bot down for the match. It is restarted for the
next match. Unlike that referee, this one stops sending lines to a bot that is out of step.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from dubito.errors import RunStopped, one_line
from dubito.plugins.tournament.log import MANIFEST, MatchLine
from dubito.plugins.tournament.match import Match, MatchTurn
from dubito.plugins.tournament.plan import Pairing, Seeds, Tournament, match_seats
from dubito.plugins.tournament.rules import DIALECTS, folder_name, load
from dubito.plugins.tournament.table import MatchTable, Referee
from dubito.sandbox.keeper import usage
from dubito.sandbox.process import Channel, Keeper
from dubito.sandbox.programs import BotProgram, Confinement, file_digest

_GB: Final = 1 << 30
# All bots together may use 1 / _DISK_DIVISOR of the free disk space.
_DISK_DIVISOR: Final = 2


class Pair:
    """Two bots that play matches of a game."""

    def __init__(self, tournament: Tournament, pairing: Pairing, folder: Path, confinement: Confinement) -> None:
        """`folder` is the tournament's folder, for bots' data. The path of this folder marks every bot process."""
        self._tournament, self._config, self._source = tournament, tournament.config, tournament.source
        self._confinement = confinement
        self._name = tournament.config.games[pairing.game]
        self._game = load(self._name)
        # Copied for each match, because creating a new state of gin rummy takes 3 ms.
        self._root = self._game.new_initial_state()
        self._dialect = DIALECTS[tournament.config.dialect](self._game)
        self._bots = tournament.bots[pairing.bots[0]], tournament.bots[pairing.bots[1]]
        self._mark = str(folder)
        self._signatures: dict[Path, tuple[int, ...] | None] = {}  # signatures of bots' files at the last verification
        self._keepers: dict[str, Keeper | None] = {}
        self._data = {bot.name: data_folder(bot, self._name, folder) for bot in self._bots}

    def play(self, matches: Iterable[int]) -> Iterator[MatchLine]:
        try:
            for match in matches:
                yield self._play_verified(match)
        finally:
            self._close()

    def _play_verified(self, number: int) -> MatchLine:
        """Play a match. Raises RunStopped if a program has changed before or after it."""
        self._check_programs(f"match {number} of {self._name} was not played")
        line = self._match(number)
        self._check_programs(f"match {number} of {self._name} is void")
        return line

    def _check_programs(self, consequence: str) -> None:
        for bot in self._bots:
            for file, digest in self._tournament.programs.get(bot.name, {}).items():
                path = bot.home / file
                if (now := _signature(path)) != self._signatures.get(path) and (
                    now is None or file_digest(path) != digest
                ):
                    (other,) = (one.name for one in self._bots if one is not bot)
                    problem = f"the program of {bot.name} has changed ({one_line(file, 120)})"
                    raise RunStopped(
                        f"{problem}, so {consequence}, against {other}",
                        hint="restore it and run the same command again, or start over with another --output",
                    )
                self._signatures[path] = now

    def _seeds_and_seats(self, number: int) -> tuple[Seeds, list[BotProgram]]:
        one, other = self._bots
        return self._source.seeds(self._name, (one.name, other.name), number), [
            self._bots[n] for n in match_seats(number)
        ]

    def _match(self, number: int) -> MatchLine:
        seeds, bots = self._seeds_and_seats(number)
        match = Match(self._root.clone(), self._dialect, seeds.streams(), self._config.strikes)
        table = MatchTable((self._start(bots[0], 0, seeds), self._start(bots[1], 1, seeds)))
        try:
            prepared = [channel.started + self._config.prepare_seconds for channel in table.channels]
            for seat, channel in enumerate(table.channels):
                table.send(channel, self._dialect.opening_lines(self._name, seat))
            referee = Referee(match, table, self._config.limits, (prepared[0], prepared[1]))
            referee.play()
            scores = match.state.returns()
            for seat, channel in enumerate(table.channels):
                table.send(channel, self._dialect.closing_line(scores[seat]))
            table.end(self._config.grace_seconds)
        finally:
            for channel in table.channels:
                table.shut(channel)
            self._confinement.end_orphans(self._mark)
        return self._line(number, bots, seeds, match, referee)

    def enforced_limits(self) -> dict[str, bool]:
        for bot in self._bots:
            self._keeper(bot)
        return self._confinement.enforced_limits()

    def _keeper(self, bot: BotProgram) -> Keeper | None:
        """Return the bot's keeper process, restarted if it has ended, or None if keepers are not supported."""
        keeper = self._keepers.get(bot.name)
        if keeper is not None and keeper.gone:
            keeper.close()
            del self._keepers[bot.name]
        if bot.name not in self._keepers:
            environment = bot.environment(self._mark, self._data[bot.name], 0)
            data, hidden = self._data[bot.name], self._hidden(bot)
            self._keepers[bot.name] = self._confinement.keeper(
                bot, environment, data, hidden, self._max_data_bytes(data)
            )
        return self._keepers[bot.name]

    def _hidden(self, bot: BotProgram) -> list[Path]:
        """Return the files to hide from the bot: logs, secrets and other bots' data."""
        run = Path(self._mark)
        others = [other.data for other in self._tournament.bots if other.data not in (None, bot.data)]
        logs = [path.parent for place in (run.parent, bot.home / "tournaments") for path in place.glob(f"*/{MANIFEST}")]
        return [run, *self._tournament.hidden, *(path for path in others if path is not None), *logs]

    def _max_data_bytes(self, data: Path) -> int:
        free = shutil.disk_usage(data).free // (_DISK_DIVISOR * len(self._tournament.bots))
        return min(int(self._config.data_gb * _GB), folder_size(data) + free)

    def _close(self) -> None:
        for keeper in self._keepers.values():
            if keeper is not None:
                keeper.close()
        self._keepers = {}

    def _start(self, bot: BotProgram, seat: int, seeds: Seeds) -> Channel:
        keeper, seed = self._keeper(bot), seeds.bots[seat]
        if keeper is not None:
            core = self._confinement.core(seat)
            return Channel(lambda pipes: keeper.start(pipes, seed, core))
        data = self._data[bot.name]
        environment, room = bot.environment(self._mark, data, seed), self._max_data_bytes(data)
        return Channel(self._confinement.start_directly(bot, environment, data, self._hidden(bot), seat, room))

    def _line(self, number: int, bots: list[BotProgram], seeds: Seeds, match: Match, referee: Referee) -> MatchLine:
        one, other = referee.table.channels
        scores = match.state.returns()
        return MatchLine(
            game=self._name,
            match=number,
            seats=(bots[0].name, bots[1].name),
            seeds=seeds,
            history=match.history,
            returns=(scores[0], scores[1]),
            strikes=match.strikes,
            replaced=match.replaced,
            exit=(exit_status(one), exit_status(other)),
            stderr=(one.errors, other.errors),
            data=(folder_size(self._data[bots[0].name]), folder_size(self._data[bots[1].name])),
            times=referee.times,
        )


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return metadata that changes with a file's content, or None if the file is missing."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return None


def exit_status(channel: Channel) -> int | str:
    return "running" if channel.status is None else channel.status


def data_folder(bot: BotProgram, game: str, folder: Path) -> Path:
    path = (bot.data or folder / "data" / bot.name) / folder_name(game)
    path.mkdir(parents=True, exist_ok=True)
    return path.absolute()


def folder_size(folder: Path) -> int:
    return usage(os.fspath(folder))[0]


class V2Match(Match):
    """A match in which both seats answer at every node."""

    _late_lines = 0, 0  # number of expected `ponder` lines, by seat

    def turn(self) -> MatchTurn | None:
        turn = super().turn()
        self.waiting = [] if turn is None else [seat for seat in (0, 1) if not self.down[seat]]
        return turn

    def receive(self, seat: int, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if line == b"ponder" and self._late_lines[seat] > 0:
            self._expect_late_line(seat, -1)
        elif seat in self.waiting and not self.has_to_act(seat):
            self.waiting.remove(seat)
            if line != b"ponder":
                self._strike(seat, "ponder", line)
        else:
            was_waiting = seat in self.waiting
            super().receive(seat, line)
            if was_waiting and not line.removeprefix(b"-").isdigit():
                self.down[seat] = True

    def time_out(self, seat: int) -> None:
        """Handle a timeout. If the seat only had to print `ponder`, that line may still arrive later."""
        if self.has_to_act(seat):
            super().time_out(seat)
        else:
            self.waiting.remove(seat)
            self._strike(seat, "ponder", b"")
            self._expect_late_line(seat, 1)

    def _expect_late_line(self, seat: int, lines: int) -> None:
        one, other = self._late_lines
        self._late_lines = (one, other + lines) if seat else (one + lines, other)

    def _has_too_many_strikes(self, seat: int, kind: str) -> bool:
        return sum(strike.seat == seat for strike in self.strikes) > self._max_strikes


class V2Pair(Pair):
    """Two bots whose processes play all matches of a seat."""

    _channels: tuple[Channel | None, Channel | None] = (None, None)

    def play(self, matches: Iterable[int]) -> Iterator[MatchLine]:
        """Play these matches, grouped by seating because processes keep their seats."""
        seating = 0
        try:
            for match in sorted(matches, key=lambda match: (match % 2, match)):
                if match % 2 != seating:
                    self._stop_bots()
                seating = match % 2
                yield self._play_verified(match)
        finally:
            self._stop_bots()
            self._close()

    def _match(self, number: int) -> MatchLine:
        seeds, bots = self._seeds_and_seats(number)
        channels = self._ready_channels(bots, seeds)
        table = MatchTable(channels)
        match = V2Match(self._root.clone(), self._dialect, seeds.streams(), self._config.strikes)
        self._wait_for_word(table, b"start", self._config.prepare_seconds)
        referee = Referee(match, table, self._config.limits, (0.0, 0.0))
        referee.play()
        scores = match.state.returns()
        for seat, channel in enumerate(channels):
            table.send(channel, self._dialect.closing_line(scores[seat]))
        self._wait_for_word(table, b"match over", self._config.grace_seconds)
        for channel in channels:
            if channel.closed:
                table.shut(channel)
        one_open, other_open = (None if channel.closed else channel for channel in channels)
        self._channels = one_open, other_open
        line = self._line(number, bots, seeds, match, referee)
        for channel in channels:
            channel.forget_errors()
        self._confinement.end_orphans(self._mark, [channel.pid for channel in channels])
        return line

    def _ready_channels(self, bots: list[BotProgram], seeds: Seeds) -> tuple[Channel, Channel]:
        """Start both bots if needed and wait until they are ready. Shut down a bot that does not become ready."""
        fresh = [seat for seat in (0, 1) if self._channels[seat] is None]
        started = [self._channels[seat] or self._start(bots[seat], seat, seeds) for seat in (0, 1)]
        channels = started[0], started[1]
        self._channels, table = channels, MatchTable(channels)
        for seat in fresh:
            table.send(channels[seat], self._dialect.opening_lines(self._name, seat))
        self._wait_for_word(table, b"ready", self._config.prepare_seconds, fresh)
        return channels

    def _wait_for_word(self, table: MatchTable, word: bytes, seconds: float, seats: Iterable[int] = (0, 1)) -> None:
        """Wait until these seats print `word`. Shut down seats that print anything else or time out."""
        until, missing = monotonic() + seconds, set(seats)
        while True:
            for seat in tuple(missing):
                channel = table.channels[seat]
                while channel.lines and seat in missing:
                    line = channel.lines.popleft().strip()
                    if line != b"ponder":  # which may be late
                        missing.discard(seat)
                    if line not in (word, b"ponder"):
                        table.shut(channel)
                if channel.closed:
                    missing.discard(seat)
            remaining = until - monotonic()
            if not missing or remaining <= 0:
                break
            table.poll(remaining)
        for seat in missing:
            table.shut(table.channels[seat])

    def _stop_bots(self) -> None:
        channels = [channel for channel in self._channels if channel is not None]
        if channels:
            table = MatchTable((channels[0], channels[-1]))
            for channel in channels:
                table.send(channel, b"tournament over\n")
            table.end(self._config.grace_seconds)
        self._channels = None, None
        self._confinement.end_orphans(self._mark)
