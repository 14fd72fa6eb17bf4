"""Play a match between two bot processes, with a clock. No wait lasts longer than its deadline."""

import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Final

from dubito.plugins.tournament.match import Match
from dubito.plugins.tournament.rules import Limits
from dubito.sandbox.process import Channel

# How often to check whether a process has ended, on systems without pidfd.
_POLL_SECONDS: Final = 0.002


@dataclass(slots=True)
class Times:
    """The times of each seat's answers and of the whole match, in microseconds."""

    think: tuple[list[int], list[int]]
    match: int


class MatchTable:
    """Transfers bytes between the referee and the bots."""

    def __init__(self, channels: tuple[Channel, Channel]) -> None:
        self.channels = channels
        self._poll = select.poll()
        self._handlers: dict[int, Callable[[], bool]] = {}
        for channel in channels:
            if not channel.closed:
                self._register(channel.out, channel.read)
                self._register(channel.err, channel.read_errors)
                if channel.end >= 0:
                    self._register(channel.end, channel.read_last)
                if channel.pending:
                    self.send(channel, b"")

    def _register(self, end: int, handler: Callable[[], bool], events: int = select.POLLIN) -> None:
        self._handlers[end] = handler
        self._poll.register(end, events)

    def _unregister(self, end: int) -> None:
        if self._handlers.pop(end, None) is not None:
            self._poll.unregister(end)

    def send(self, channel: Channel, lines: bytes) -> None:
        """Send lines to a bot, now or as soon as its pipe has room."""
        channel.send(lines)
        if channel.pending and channel.to not in self._handlers:

            def write() -> bool:
                channel.write()
                return bool(channel.pending)

            self._register(channel.to, write, select.POLLOUT)

    def poll(self, seconds: float) -> None:
        for end, _ in self._poll.poll(max(0.0, seconds) * 1000):
            if end in self._handlers and not self._handlers[end]():
                self._unregister(end)

    def shut(self, channel: Channel) -> None:
        for end in (channel.to, channel.out, channel.err, channel.end):
            self._unregister(end)
        channel.shut()

    def end(self, grace: float) -> None:
        """Wait for the bots to exit, then send SIGTERM and finally SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = monotonic() + grace
            while (remaining := until - monotonic()) > 0 and not all(channel.has_ended() for channel in self.channels):
                self.poll(remaining if hasattr(os, "pidfd_open") else min(remaining, _POLL_SECONDS))
            for channel in self.channels:
                if channel.has_ended() or number == signal.SIGKILL:
                    self.shut(channel)
                else:
                    channel.signal(number)
            if all(channel.status is not None for channel in self.channels):
                return


class Referee:
    """Plays a match between bots that have received their opening lines."""

    def __init__(self, match: Match, table: MatchTable, limits: Limits, prepared: tuple[float, float]) -> None:
        self._match, self.table, self._limits, self._prepared = match, table, limits, prepared
        self.times = Times(([], []), 0)

    def play(self) -> None:
        match, table, limits = self._match, self.table, self._limits
        start = monotonic()
        while True:
            if match.advance():
                table.poll(0)
                # Lines that arrive before this node's line is sent are out of turn.
                self._receive_lines()
            turn = match.turn()
            if turn is None:
                break
            # The next line follows immediately.
            can_hold = turn.chance and not limits.chance and not match.waiting
            for channel, line in zip(table.channels, turn.lines, strict=True):
                if line is not None:
                    if can_hold:
                        channel.hold(line)
                    else:
                        table.send(channel, line)
            if match.waiting:
                self._wait_for_answers()
            elif turn.chance and limits.chance:
                until = monotonic() + limits.chance
                while (remaining := until - monotonic()) > 0:
                    table.poll(remaining)
                    self._receive_lines()
        self.times.match = _microseconds(monotonic() - start)

    def _wait_for_answers(self) -> None:
        """Wait until all seats have answered or run out of time.

        The clock starts when the line is in the pipe or, if the bot is not reading, when the line was offered. An
        answer that can be read at the deadline is in time.
        """
        match, table, sent = self._match, self.table, monotonic()
        while match.waiting:
            first = inf
            for seat in tuple(match.waiting):
                # This seat may have answered while the other seat's time ran out.
                if seat not in match.waiting:
                    continue
                channel, deadline = table.channels[seat], self._deadline(seat, sent)
                if channel.closed:
                    match.handle_crash(seat)
                    table.shut(channel)
                elif monotonic() >= deadline:
                    self._expire_time(seat)
                else:
                    first = min(first, deadline)
            if match.waiting:
                table.poll(first - monotonic())
                self._receive_lines()

    def _expire_time(self, seat: int) -> None:
        """End a seat's time at its deadline, after reading once more."""
        self.table.poll(0)
        self._receive_lines()
        if seat in self._match.waiting:
            self._match.time_out(seat)
            if self._match.down[seat]:
                self.table.shut(self.table.channels[seat])

    def _deadline(self, seat: int, sent: float) -> float:
        channel = self.table.channels[seat]
        start = sent if channel.pending else max(sent, channel.flushed)
        if not self._match.has_to_act(seat):
            return start + self._limits.ponder
        first = not self.times.think[seat]
        return max(start, self._prepared[seat] if first else start) + self._limits.move

    def _receive_lines(self) -> None:
        match = self._match
        for seat, channel in enumerate(self.table.channels):
            while channel.lines:
                if seat in match.waiting and match.has_to_act(seat):
                    self.times.think[seat].append(_microseconds(monotonic() - channel.flushed))
                match.receive(seat, channel.lines.popleft())
                if match.down[seat] and channel.status is None:
                    self.table.shut(channel)


def _microseconds(seconds: float) -> int:
    return max(0, round(seconds * 1e6))
