"""A bot's pipes without a match: data that does not fit is queued, and nothing blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dubito.plugins.tournament.match import Match, MatchStreams
from dubito.plugins.tournament.rules import V1, Limits, load
from dubito.plugins.tournament.table import MatchTable, Referee
from dubito.sandbox.process import MAX_LINE_BYTES, Channel, DirectProcess

PATH = {"PATH": "/usr/bin:/bin"}


@contextmanager
def running(folder: Path, script: str) -> Iterator[tuple[Channel, MatchTable]]:
    channel = Channel(partial(DirectProcess, ("sh", "-c", script), folder, PATH))
    try:
        yield channel, MatchTable((channel, channel))
    finally:
        channel.shut()


def test_lines_beyond_the_pipe_size_are_sent_later(tmp_path: Path) -> None:
    with running(tmp_path, "read go; head -c 5000000 | wc -c") as (channel, table):
        table.send(channel, b"x" * 5_000_000)
        assert channel.pending
        table.send(channel, b"\n")  # queued after it
        assert channel.flushed == channel.started
    with running(tmp_path, "head -c 5000002 | tr -d x") as (channel, table):
        table.send(channel, b"x" * 5_000_000 + b"y\n")
        while not channel.lines:
            table.poll(10)
        assert list(channel.lines) == [b"y"]
        assert not channel.pending
        assert channel.flushed > channel.started


def test_bot_that_never_reads_blocks_nothing(tmp_path: Path) -> None:
    with running(tmp_path, "exec 0<&-; echo; exec sleep 60") as (channel, table):
        while not channel.lines:
            table.poll(10)
        table.send(channel, b"x\n")
        assert not channel.pending


def test_lines_arrive_whole_and_long_ones_are_truncated(tmp_path: Path) -> None:
    script = f"printf '1\\n2\\n3'; printf '4\\n'; head -c {3 * MAX_LINE_BYTES} /dev/zero; echo; echo 5"
    with running(tmp_path, script) as (channel, table):
        while not channel.closed:
            table.poll(10)
        assert list(channel.lines) == [b"1", b"2", b"34", b"\0" * MAX_LINE_BYTES, b"5"]


def test_program_that_does_not_start_counts_as_ended(tmp_path: Path) -> None:
    channel = Channel(partial(DirectProcess, (str(tmp_path / "missing"),), tmp_path, PATH))
    channel.send(b"kuhn_poker\n")
    channel.shut()
    assert channel.closed
    assert channel.has_ended()
    assert channel.status == "not started"
    assert channel.errors == f"cannot start {tmp_path / 'missing'}: No such file or directory"


def test_failed_start_does_not_keep_other_pipes_open(tmp_path: Path) -> None:
    missing = Channel(partial(DirectProcess, (str(tmp_path / "missing"),), tmp_path, PATH))
    channel = Channel(
        partial(DirectProcess, ("sh", "-c", "echo 1; read go"), tmp_path, PATH)
    )  # reuses the file descriptors of the missing bot's pipes
    table = MatchTable((missing, channel))
    try:
        table.shut(missing)
        table.poll(10)
        assert list(channel.lines) == [b"1"]
    finally:
        channel.shut()


def test_unread_flood_is_discarded(tmp_path: Path) -> None:
    with running(tmp_path, "head -c 4000000 /dev/zero | tr '\\0' '\\n'") as (channel, table):
        while not channel.closed:
            table.poll(10)
        assert len(channel.lines) < 200_000


class SlowTable(MatchTable):
    """A table that polls slowly until seat 1, if it was asked, has sent everything and exited."""

    asked = False

    def send(self, channel: Channel, lines: bytes) -> None:
        super().send(channel, lines)
        self.asked = True

    def poll(self, seconds: float) -> None:
        super().poll(0)
        while self.asked and not self.channels[1].closed:
            super().poll(10)


def test_answer_read_at_the_other_seats_deadline_counts(tmp_path: Path) -> None:
    game = load("goofspiel(imp_info=True,points_order=descending,num_cards=3)")
    match = Match(game.new_initial_state(), V1(game), MatchStreams(1, (2, 3)))
    silent, quick = (
        Channel(partial(DirectProcess, ("sh", "-c", script), tmp_path, PATH))
        for script in ("sleep 60", "read node; echo 2")
    )
    table = SlowTable((silent, quick))
    try:
        Referee(match, table, Limits(move=0.0, chance=0.0), (0.0, 0.0)).play()
    finally:
        for channel in table.channels:
            channel.shut()
    entry = match.history[0]
    assert isinstance(entry, list)
    assert entry[1] == 2
    assert [(strike.node, strike.seat, strike.kind) for strike in match.strikes] == [(0, 0, "overrun"), (1, 1, "crash")]
