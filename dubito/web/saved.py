"""Results of a folder's finished games. Each file is replayed once and its result is cached."""

import threading
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from dubito.errors import RunStopped, UsageError, join_names, one_line
from dubito.files import write_whole
from dubito.game import Ending, Results
from dubito.game.moves import require_whole_game
from dubito.game.reader import Reader, name_seats
from dubito.game.record import Strict
from dubito.report.share import saved_record
from dubito.show.opponents import as_sentence
from dubito.show.person import GUEST, seat_of_guest
from dubito.show.session import session_of_record
from dubito.show.story import winners_of_ending

TIME_FORMAT: Final = "%Y-%m-%d-%H%M%S"  # start of a record's name: the time of the deal, in UTC
_JUST_WON: Final = ("won", "win")  # a game's word for a win, if it has only one kind of win
_TIME_LENGTH: Final = len("2026-11-22-140500")
_CACHE_PATH: Final = "running/summaries"  # cache file, next to the running tables


@dataclass(frozen=True, slots=True)
class Summary(Strict):
    """The result of a finished game, or why its file cannot be shown."""

    # Modification time in nanoseconds. Together with the size it identifies the file's content.
    changed: int
    size: int
    fault: str | None = None
    game: str = ""
    players: list[str] = field(default_factory=list)
    me: int | None = None  # the person's seat
    won: bool | None = None  # whether the person won; None if they neither won nor lost
    result: str = ""  # addressed to the person if there is one, otherwise describes all players
    turns: int = 0


@dataclass(frozen=True, slots=True)
class _CacheFile(Strict):
    """The cache file, which maps names to summaries and outlives the server."""

    games: dict[str, Summary]
    format: Literal["dubito summaries 1"] = "dubito summaries 1"


_CACHE_FORMAT: Final = TypeAdapter(_CacheFile)


@dataclass(eq=False)
class Summaries:
    """The summaries of a folder. They are only recomputed if a file has changed."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: dict[str, Summary] | None = None  # None if not loaded yet

    def __call__(self) -> dict[str, Summary]:
        """Return the summaries of all files, sorted by name."""
        with self._lock:
            known = self._known
            if known is None:
                try:
                    known = _CACHE_FORMAT.validate_json((self.folder / _CACHE_PATH).read_bytes()).games
                except (OSError, ValidationError):  # an unreadable cache is treated as empty
                    known = {}
            now = {}
            for name, path in sorted(saved_files(self.folder).items()):
                with suppress(OSError):  # the file was deleted in the meantime
                    about = path.stat()
                    old = known.get(name)
                    same = old and (old.changed, old.size) == (about.st_mtime_ns, about.st_size)
                    now[name] = old if old and same else _summary(path, about.st_mtime_ns, about.st_size)
            if now != known:
                whole = _CacheFile({name: one for name, one in now.items() if one.fault is None})
                with suppress(RunStopped):  # if the cache cannot be written, the next server recomputes it
                    write_whole(self.folder / _CACHE_PATH, _CACHE_FORMAT.dump_json(whole).decode())
            self._known = now
            return now

    def records_against(self, game: str) -> dict[str, tuple[int, int]]:
        """Return the person's wins and losses against each player of a game, by name."""
        won, lost = Counter[str](), Counter[str]()
        for one in self().values():
            if one.game == game and one.won is not None:
                (won if one.won else lost).update({*one.players} - {GUEST})
        return {name: (won[name], lost[name]) for name in sorted({*won, *lost})}


def saved_files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in folder.glob("*.json") if path.is_file() and path.stem.isprintable()}


def deal_time(name: str, summary: Summary) -> datetime:
    with suppress(ValueError, OverflowError):
        return datetime.strptime(name[:_TIME_LENGTH], TIME_FORMAT).replace(tzinfo=UTC).astimezone()
    return (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=summary.changed // 1000)).astimezone()


def _summary(path: Path, changed: int, size: int) -> Summary:
    try:
        game, record = saved_record(path)
        session = session_of_record(game, record, Reader())
        with require_whole_game(session.state):
            deque(session, maxlen=0)
    except UsageError as error:
        return Summary(changed, size, as_sentence(str(error)))
    except Exception as error:  # a user's game may raise any exception, but other files can still be shown
        why = one_line(f"{type(error).__name__}: {error}")
        return Summary(changed, size, as_sentence(f"the game's code failed: {why}"))
    me = seat_of_guest(record.players)
    won_by_seat = _find_winners(game.results, session.state.ending())
    result = _describe_result(game.results, session.state.ending(), won_by_seat, name_seats(record.players, me), me)
    won = None if me is None else won_by_seat[me]
    return Summary(changed, size, None, game.name, list(record.players), me, won, result, session.state.turns_played)


def _find_winners(results: Results, ending: Ending) -> list[bool | None]:
    """Return whether each seat won.

    A seat has won if it scored above the lowest score in the first measure. None if all scores are equal or the seat's
    game is unfinished.
    """
    buckets = [results.bucket(mark, ending.capped) for mark in ending.marks]
    seats = zip(buckets, ending.counts, strict=True)
    scores = [results.measure_values(bucket, (*counts, 0))[0] for bucket, counts in seats]
    unfinished = [results.buckets[bucket] == results.unfinished for bucket in buckets]
    least, best = min(scores), max(scores)
    return [
        None if no_result or least == best else score > least
        for score, no_result in zip(scores, unfinished, strict=True)
    ]


def _describe_result(
    results: Results, ending: Ending, won_by_seat: list[bool | None], names: list[str], me: int | None
) -> str:
    if me is None:
        first = winners_of_ending(results, ending)
        if not first:
            return f"nobody won: {join_names(names)}"
        others = [name for seat, name in enumerate(names) if seat not in first]
        return f"{join_names([names[seat] for seat in first])} won against {join_names(others)}"
    others = [name for seat, name in enumerate(names) if seat != me]
    how = results.endings[results.bucket(ending.marks[me], ending.capped)]
    if won_by_seat[me]:
        won = how if how.startswith("won ") else "won" if how in _JUST_WON else f"won ({how})"
        return f"you {won} against {join_names(others)}"
    if won_by_seat[me] is None:
        return f"{how}, with {join_names(others)}"
    lost = how if how.startswith("lost ") else "lost"
    return f"you {lost} to {join_names([name for seat, name in enumerate(names) if won_by_seat[seat]])}"
