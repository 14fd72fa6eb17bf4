"""Dialect v2: the protocol that OpenSpiel's repository had a referee for, so that the bots written for it can play.

A process stays for all matches of a seat. It says `ready` once it is, `start` before each match, answers every node,
with `ponder` where it is not to act, and `match over` to the last line. More than three strikes of whatever kind, or
an answer that is no number, shut it down for the match; it is started anew for the next. That referee never sent a
process away and went on to send it lines; here a bot that is out of step is never asked again in that match.
"""

from collections.abc import Iterable, Iterator
from time import monotonic

from dubito.referee.channel import Channel
from dubito.referee.log import MatchLine
from dubito.referee.match import Match, MatchTurn
from dubito.referee.match_table import MatchTable, Referee
from dubito.referee.pair import Pair
from dubito.referee.programs import Program
from dubito.referee.schedule import Seeds


class LaterMatch(Match):
    """A match in which everybody answers at every node."""

    _owed = 0, 0  # lines of each seat that are late, and not to be taken for what comes next

    def turn(self) -> MatchTurn | None:
        """Play what was chosen and go to the next node, at which all are waited for."""
        turn = super().turn()
        self.waiting = [] if turn is None else [seat for seat in (0, 1) if not self.down[seat]]
        return turn

    def said(self, seat: int, line: bytes) -> None:
        """A line of a bot, without its end."""
        line = line.removesuffix(b"\r")
        if line == b"ponder" and self._owed[seat] > 0:
            self._owe(seat, -1)
        elif seat in self.waiting and not self.acts(seat):
            self.waiting.remove(seat)
            if line != b"ponder":
                self._strike(seat, "ponder", line)
        else:
            asked = seat in self.waiting
            super().said(seat, line)
            if asked and not line.removeprefix(b"-").isdigit():
                self.down[seat] = True

    def overran(self, seat: int) -> None:
        """A seat let its time pass; if it was only to say `ponder`, that line is still owed."""
        if self.acts(seat):
            super().overran(seat)
        else:
            self.waiting.remove(seat)
            self._strike(seat, "ponder", b"")
            self._owe(seat, 1)

    def _owe(self, seat: int, lines: int) -> None:
        one, other = self._owed
        self._owed = (one, other + lines) if seat else (one + lines, other)

    def _are_too_many(self, seat: int, kind: str) -> bool:
        return sum(strike.seat == seat for strike in self.strikes) > self._most


class LaterPair(Pair):
    """Two bots whose processes stay from match to match, each for one seat."""

    _channels: tuple[Channel | None, Channel | None] = (None, None)

    def play(self, matches: Iterable[int]) -> Iterator[MatchLine]:
        """These matches, those of one seating first: a process has its seat for good."""
        seating = 0
        try:
            for match in sorted(matches, key=lambda match: (match % 2, match)):
                if match % 2 != seating:
                    self._send_home()
                seating = match % 2
                yield self._unchanged(match)
        finally:
            self._send_home()
            self._close()

    def _match(self, number: int) -> MatchLine:
        drawn, bots = self._drawn(number)
        channels = self._seated(bots, drawn)
        table = MatchTable(channels)
        match = LaterMatch(self._root.clone(), self._dialect, drawn.draws(), self._config.strikes)
        self._await(table, b"start", self._config.prepare_seconds)
        referee = Referee(match, table, self._config.limits, (0.0, 0.0))
        referee.play()
        scores = match.state.returns()
        for seat, channel in enumerate(channels):
            table.send(channel, self._dialect.ending(scores[seat]))
        self._await(table, b"match over", self._config.grace_seconds)
        for channel in channels:
            if channel.closed:
                table.shut(channel)
        one_left, other_left = (None if channel.closed else channel for channel in channels)
        self._channels = one_left, other_left
        line = self._line(number, bots, drawn, match, referee)
        for channel in channels:
            channel.forget_errors()
        self._confinement.end_orphans(self._mark, [channel.pid for channel in channels])
        return line

    def _seated(self, bots: list[Program], drawn: Seeds) -> tuple[Channel, Channel]:
        """Both bots at the table, started if they are not there; who does not get ready is gone."""
        fresh = [seat for seat in (0, 1) if self._channels[seat] is None]
        found = [self._channels[seat] or self._start(bots[seat], seat, drawn) for seat in (0, 1)]
        channels = found[0], found[1]
        self._channels, table = channels, MatchTable(channels)
        for seat in fresh:
            table.send(channels[seat], self._dialect.opening(self._name, seat))
        self._await(table, b"ready", self._config.prepare_seconds, fresh)
        return channels

    def _await(self, table: MatchTable, word: bytes, seconds: float, whom: Iterable[int] = (0, 1)) -> None:
        """Wait for this line of each of these seats; who says another one, or none in time, is out."""
        until, missing = monotonic() + seconds, set(whom)
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
            left = until - monotonic()
            if not missing or left <= 0:
                break
            table.look(left)
        for seat in missing:
            table.shut(table.channels[seat])

    def _send_home(self) -> None:
        """Tell the bots that it is over, and end them."""
        channels = [channel for channel in self._channels if channel is not None]
        if channels:
            table = MatchTable((channels[0], channels[-1]))
            for channel in channels:
                table.send(channel, b"tournament over\n")
            table.end(self._config.grace_seconds)
        self._channels = None, None
        self._confinement.end_orphans(self._mark)
