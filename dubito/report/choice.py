"""Which games of a run a report shows."""

from dataclasses import dataclass
from typing import Final

from dubito.errors import UsageError, one_line
from dubito.experiment.stored import StoredRun

FIRST: Final = 500  # games that are shown unless others are asked for
PLAYED: Final = 60  # so many where no model was asked, since each has to be played again: a second for 400
FEW: Final = 100  # games of which all are shown
_LONGEST: Final = 10  # besides them, the longest
_AMONG: Final = 2_000  # of the first so many
MOST: Final = 10_000  # games that one report shows


@dataclass(frozen=True, slots=True)
class GameChoice:
    """Which games are shown, and why these in words."""

    games: list[int]
    why: str
    bounded: bool = False  # nobody named these games: where their pages grow too large, the rest is left out


def chosen_games(source: StoredRun, asked: str | None) -> GameChoice:
    """The games of `--games`, `0,5,17` or `all`; without it the first and the longest. Raises UsageError."""
    kept = source.tally.games
    every = range(source.first_game, source.first_game + kept)
    if asked == "all":
        if kept > MOST:
            raise UsageError(
                f"--games all: the run keeps {kept:,} games and a report shows at most {MOST:,}: name them"
            )
        return GameChoice([*every], f"All {kept:,} games.")
    if asked is not None:
        games = _numbers(asked, source, every)
        return GameChoice(games, f"{len(games):,} of {kept:,} games, those that were asked for.")
    first = FIRST if source.models else PLAYED
    if kept <= max(first, FEW):
        return GameChoice([*every], f"All {kept:,} games.", bounded=True)
    among, others = min(kept, _AMONG), every[first:_AMONG]
    rows = source.db.read("SELECT game, outcome FROM games WHERE game >= ? AND game < ?", (others.start, others.stop))
    by_length = sorted((-sum(source.outcome(row).game_counts), game) for game, row in rows)
    longest = sorted(game for _, game in by_length[:_LONGEST])
    why = (
        f"{first + len(longest):,} of {kept:,} games: the first {first:,}, and the {len(longest)} longest others of "
        f"the first {among:,}. Others can be shown with --games, as in: dubito report RUN --games 0,5,17"
    )
    return GameChoice([*every[:first], *longest], why, bounded=True)


def _numbers(asked: str, source: StoredRun, every: range) -> list[int]:
    parts = [part.strip() for part in asked.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in parts):
        raise UsageError(f"--games is `all` or numbers as in 0,5,17, not '{one_line(asked, 60)}'")
    games = sorted(set(map(int, parts)))
    if missing := [game for game in games if game not in every]:
        kept = f"{one_line(str(source.folder))} keeps the games {every.start} to {every.stop - 1}"
        raise UsageError(f"--games: {kept}, and there is no game {missing[-1]}")
    if len(games) > MOST:
        raise UsageError(f"--games names {len(games):,} games and a report shows at most {MOST:,}")
    return games
