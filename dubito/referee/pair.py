"""The matches of a pairing, one after the other, each with both bots started anew: what goes into the log."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from dubito.errors import RunStopped, one_line
from dubito.referee.channel import Channel
from dubito.referee.config import Tournament
from dubito.referee.confine import Confinement
from dubito.referee.dialect import DIALECTS
from dubito.referee.games import folder_name, load
from dubito.referee.keeper import usage
from dubito.referee.log import MANIFEST, MatchLine
from dubito.referee.match import Match
from dubito.referee.match_table import MatchTable, Referee
from dubito.referee.process import Keeper, alone
from dubito.referee.programs import Program, digest
from dubito.referee.schedule import Pairing, Seeds, seats

_GB: Final = 1 << 30
_DISK: Final = 2  # the part of what is free on a disk that bots may share is one of so many


class Pair:
    """Two bots at one game, ready to play any of their matches."""

    def __init__(self, tournament: Tournament, pairing: Pairing, folder: Path, confinement: Confinement) -> None:
        """`folder` is the run's: its path marks every process of a bot, and bots' data lies there."""
        self._tournament, self._config, self._source = tournament, tournament.config, tournament.source
        self._confinement = confinement
        self._name = tournament.config.games[pairing.game]
        self._game = load(self._name)
        self._root = self._game.new_initial_state()  # copied for each match: gin rummy takes 3 ms to make a new one
        self._dialect = DIALECTS[tournament.config.dialect](self._game)
        self._bots = tournament.bots[pairing.bots[0]], tournament.bots[pairing.bots[1]]
        self._mark = str(folder)
        self._seen: dict[Path, tuple[int, ...] | None] = {}  # bots' files, as they were when they were as ever
        self._keepers: dict[str, Keeper | None] = {}
        self._data = {bot.name: data_folder(bot, self._name, folder) for bot in self._bots}

    def play(self, matches: Iterable[int]) -> Iterator[MatchLine]:
        """These matches, in this order."""
        try:
            for match in matches:
                yield self._unchanged(match)
        finally:
            self._close()

    def _unchanged(self, number: int) -> MatchLine:
        """A match between programs that are what they were before and after it; raises RunStopped."""
        self._check_programs(f"match {number} of {self._name} was not played")
        line = self._match(number)
        self._check_programs(f"match {number} of {self._name} is void")
        return line

    def _check_programs(self, hence: str) -> None:
        for bot in self._bots:
            for file, kept in self._tournament.programs.get(bot.name, {}).items():
                path = bot.home / file
                if (now := _signature(path)) != self._seen.get(path) and (now is None or digest(path) != kept):
                    (other,) = (one.name for one in self._bots if one is not bot)
                    raise RunStopped(
                        f"the program of {bot.name} has changed ({one_line(file, 120)}), so {hence}, against {other}: "
                        "put it back and run the same command again, or begin anew with another --output"
                    )
                self._seen[path] = now

    def _drawn(self, number: int) -> tuple[Seeds, list[Program]]:
        """A match's seeds, and the bots in the order of their seats."""
        one, other = self._bots
        return self._source.seeds(self._name, (one.name, other.name), number), [self._bots[n] for n in seats(number)]

    def _match(self, number: int) -> MatchLine:
        drawn, bots = self._drawn(number)
        match = Match(self._root.clone(), self._dialect, drawn.draws(), self._config.strikes)
        table = MatchTable((self._start(bots[0], 0, drawn), self._start(bots[1], 1, drawn)))
        try:
            prepared = [channel.started + self._config.prepare_seconds for channel in table.channels]
            for seat, channel in enumerate(table.channels):
                table.send(channel, self._dialect.opening(self._name, seat))
            referee = Referee(match, table, self._config.limits, (prepared[0], prepared[1]))
            referee.play()
            scores = match.state.returns()
            for seat, channel in enumerate(table.channels):
                table.send(channel, self._dialect.ending(scores[seat]))
            table.end(self._config.grace_seconds)
        finally:
            for channel in table.channels:
                table.shut(channel)
            self._confinement.end_orphans(self._mark)
        return self._line(number, bots, drawn, match, referee)

    def facts(self) -> dict[str, bool]:
        """What is enforced in these matches, and what is not."""
        for bot in self._bots:
            self._keeper(bot)
        return self._confinement.facts()

    def _keeper(self, bot: Program) -> Keeper | None:
        """The bot's keeper, a new one in place of one that is gone; None if there can be none."""
        there = self._keepers.get(bot.name)
        if there is not None and there.gone:
            there.close()
            del self._keepers[bot.name]
        if bot.name not in self._keepers:
            environment = bot.environment(self._mark, self._data[bot.name], 0)
            data, hidden = self._data[bot.name], self._hidden(bot)
            self._keepers[bot.name] = self._confinement.keeper(bot, environment, data, hidden, self._room(data))
        return self._keepers[bot.name]

    def _hidden(self, bot: Program) -> list[Path]:
        """What tells of the cards, and other bots' data."""
        run = Path(self._mark)
        others = [other.data for other in self._tournament.bots if other.data not in (None, bot.data)]
        logs = [path.parent for place in (run.parent, bot.home / "tournaments") for path in place.glob(f"*/{MANIFEST}")]
        return [run, *self._tournament.hidden, *(path for path in others if path is not None), *logs]

    def _room(self, data: Path) -> int:
        """Bytes that a bot may keep, so that all of them together do not fill the disk."""
        free = shutil.disk_usage(data).free // (_DISK * len(self._tournament.bots))
        return min(int(self._config.data_gb * _GB), size(data) + free)

    def _close(self) -> None:
        for keeper in self._keepers.values():
            if keeper is not None:
                keeper.close()
        self._keepers = {}

    def _start(self, bot: Program, seat: int, drawn: Seeds) -> Channel:
        keeper, seed = self._keeper(bot), drawn.bots[seat]
        if keeper is not None:
            core = self._confinement.core(seat)
            return Channel(lambda pipes: keeper.start(pipes, seed, core))
        environment = bot.environment(self._mark, self._data[bot.name], seed)
        bound = self._confinement.bound(seat, self._room(self._data[bot.name]))
        return Channel(alone(bot.command, bot.home, environment, bound))

    def _line(self, number: int, bots: list[Program], drawn: Seeds, match: Match, referee: Referee) -> MatchLine:
        one, other = referee.table.channels
        scores = match.state.returns()
        return MatchLine(
            game=self._name,
            match=number,
            seats=(bots[0].name, bots[1].name),
            seeds=drawn,
            history=match.history,
            returns=(scores[0], scores[1]),
            strikes=match.strikes,
            replaced=match.replaced,
            exit=(ending(one), ending(other)),
            stderr=(one.errors, other.errors),
            data=(size(self._data[bots[0].name]), size(self._data[bots[1].name])),
            times=referee.times,
        )


def _signature(path: Path) -> tuple[int, ...] | None:
    """What of a file changes with its content, at the latest; None if it is not there."""
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None


def ending(channel: Channel) -> int | str:
    """How a bot's process ended, if it has."""
    return "running" if channel.status is None else channel.status


def data_folder(bot: Program, game: str, folder: Path) -> Path:
    """A bot's own folder for a game; it is made if it is missing."""
    path = (bot.data or folder / "data" / bot.name) / folder_name(game)
    path.mkdir(parents=True, exist_ok=True)
    return path.absolute()


def size(folder: Path) -> int:
    """Bytes in all files of a folder."""
    return usage(os.fspath(folder))[0]
