"""What became of every finished game of a folder: a file is played through once, and its result remembered."""

import threading
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from dubito.errors import RunStopped, UsageError, listed, one_line
from dubito.files import write_whole
from dubito.game import Ending, Results
from dubito.game.record import Strict, whole_game
from dubito.game.words import names_to, seat_label
from dubito.report.share import saved_record
from dubito.show.company import as_sentence
from dubito.show.person import GUEST, seat_of_guest
from dubito.show.session import of_record
from dubito.show.story import won_by

MADE: Final = "%Y-%m-%d-%H%M%S"  # how the name of a table's record begins: when it was dealt, in UTC
_JUST_WON: Final = ("won", "win")  # what a game calls a win of which there is one kind
_LENGTH: Final = len("2026-11-22-140500")
_MEMORY: Final = "running/summaries"  # beside the tables that are played


@dataclass(frozen=True, slots=True)
class Summary(Strict):
    """A finished game; of a file that cannot be shown, only why."""

    changed: int  # the file's time, in nanoseconds, and its size in bytes: another file under its name has others
    size: int
    fault: str | None = None
    game: str = ""
    players: list[str] = field(default_factory=list)
    me: int | None = None  # the person's seat
    won: bool | None = None  # for the person, where it was either
    result: str = ""  # in words to the person, or, where there was none, of everybody
    turns: int = 0


@dataclass(frozen=True, slots=True)
class _Memory(Strict):
    """The summaries by name, as they are kept over the server's end."""

    games: dict[str, Summary]
    format: Literal["dubito summaries 1"] = "dubito summaries 1"


_MEMORIES: Final = TypeAdapter(_Memory)


class Summaries:
    """The summaries of a folder, each made anew only when its file is another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[str, Summary] | None = None  # not read yet

    def __call__(self) -> dict[str, Summary]:
        """Those of all files, the newest name last."""
        with self._lock:
            known = self._remembered() if self._known is None else self._known
            now = {}
            for name, path in sorted(saved_files(self._folder).items()):
                with suppress(OSError):  # it has just been deleted
                    about = path.stat()
                    old = known.get(name)
                    same = old and (old.changed, old.size) == (about.st_mtime_ns, about.st_size)
                    now[name] = old if old and same else _summary(path, about.st_mtime_ns, about.st_size)
            if now != known:
                self._remember(now)
            self._known = now
            return now

    def against(self, game: str) -> dict[str, tuple[int, int]]:
        """How often the person has won and lost a game with each player at the table, by the player's name."""
        won, lost = Counter[str](), Counter[str]()
        for one in self().values():
            if one.game == game and one.won is not None:
                (won if one.won else lost).update({*one.players} - {GUEST})
        return {name: (won[name], lost[name]) for name in sorted({*won, *lost})}

    def _remembered(self) -> dict[str, Summary]:
        """Those of an earlier server. A file that cannot be read is as good as none: it is only a memory."""
        try:
            return _MEMORIES.validate_json((self._folder / _MEMORY).read_bytes()).games
        except (OSError, ValidationError):
            return {}

    def _remember(self, now: Mapping[str, Summary]) -> None:
        whole = _Memory({name: one for name, one in now.items() if one.fault is None})
        with suppress(RunStopped):  # then the next server plays the games through again
            write_whole(self._folder / _MEMORY, _MEMORIES.dump_json(whole).decode())


def saved_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in folder.glob("*.json") if path.is_file() and path.stem.isprintable()}


def dealt_at(name: str, summary: Summary) -> datetime:
    with suppress(ValueError, OverflowError):
        return datetime.strptime(name[:_LENGTH], MADE).replace(tzinfo=UTC).astimezone()
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=summary.changed // 1000)).astimezone()


def _summary(path: Path, changed: int, size: int) -> Summary:
    try:
        game, record = saved_record(path)
        session = of_record(game, record, seat_label)
        with whole_game(session.state):
            deque(session, maxlen=0)
    except UsageError as error:
        return Summary(changed, size, as_sentence(str(error)))
    except Exception as error:  # a game of one's own may raise anything, and the other files are still good
        why = one_line(f"{type(error).__name__}: {error}")
        return Summary(changed, size, as_sentence(f"the code of its game fails on it: {why}"))
    me = seat_of_guest(record.players)
    came = _won(game.results, session.state.ending())
    result = _result(game.results, session.state.ending(), came, names_to(record.players, me), me)
    won = None if me is None else came[me]
    return Summary(changed, size, None, game.name, list(record.players), me, won, result, session.state.turns_played)


def _won(results: Results, ending: Ending) -> list[bool | None]:
    """By seat, whether it has won: it came to more of what ranks than those who came to the least, who have lost.

    None where it was neither: the game is unfinished for the seat, or all came to the same.
    """
    buckets = [results.bucket(mark, ending.capped) for mark in ending.marks]
    came = [results.measured(bucket, (*counts, 0))[0] for bucket, counts in zip(buckets, ending.counts, strict=True)]
    unfinished = [results.buckets[bucket] == results.unfinished for bucket in buckets]
    least = min(came)
    return [None if none or least == max(came) else own > least for own, none in zip(came, unfinished, strict=True)]


def _result(results: Results, ending: Ending, came: list[bool | None], names: list[str], me: int | None) -> str:
    if me is None:
        first = won_by(results, ending)
        if not first:
            return f"nobody won: {listed(names)}"
        others = [name for seat, name in enumerate(names) if seat not in first]
        return f"{listed([names[seat] for seat in first])} won against {listed(others)}"
    others = [name for seat, name in enumerate(names) if seat != me]
    how = results.endings[results.bucket(ending.marks[me], ending.capped)]
    if came[me]:
        by = "" if how in _JUST_WON else f" ({how})"
        return f"you won{by} against {listed(others)}"
    if came[me] is None:
        return f"{how}, with {listed(others)}"
    return f"you lost to {listed([name for seat, name in enumerate(names) if came[seat]])}"
