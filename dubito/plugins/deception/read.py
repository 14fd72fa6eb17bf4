"""Read the deception sheet of a run, by replaying its games."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from dubito.errors import UsageError
from dubito.experiment.lies import LieCounts, TrackedGame, replay_game, track_game
from dubito.experiment.stored import Run, check_replayable
from dubito.game import STATED
from dubito.plugins.deception.sheet import Sheet, SheetCounter
from dubito.stats.players import calibrations

if TYPE_CHECKING:
    from dubito.api import Run as PublicRun


def read_sheet(run: "PublicRun") -> Sheet:
    """Return the deception sheet of a run, over all its counted games.

    Raises:
        UsageError: The game has no lies, or the run cannot be replayed here.
    """
    return count_sheet(run.stored)


def count_sheet(run: Run, progress: Callable[[int], None] = lambda games: None) -> Sheet:
    """Replay all games of a run. `progress` is called with the number of games so far. Raises UsageError."""
    if not run.game.has_lie_marks:
        raise UsageError(f"{run.game.name} has no lies that can be called, so there is nothing to show")
    check_replayable(run)
    if not run.has_same_bots:
        raise UsageError(f"{run} cannot be replayed here: {'; '.join(run.changed)}")
    return _add_games(run, (_track(run, game, progress) for game in run.experiment.game_numbers))


def _track(run: Run, game: int, progress: Callable[[int], None]) -> TrackedGame:
    ((row,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
    tracked = track_game(game, run.outcome(row).seats, replay_game(run, game))
    progress(game + 1 - run.experiment.first_game)
    return tracked


def sheet_of_counted(run: Run, lies: LieCounts) -> Sheet:
    """Return the sheet of a run whose lies were counted in all games."""
    games = {game: TrackedGame([], []) for game in run.experiment.game_numbers}
    for play in lies.tracked_plays:
        games[play.game].plays.append(play)
    for response in lies.tracked_responses:
        games[response.game].responses.append(response)
    return _add_games(run, games.values())


def _add_games(run: Run, games: Iterable[TrackedGame]) -> Sheet:
    counter, deal, size = SheetCounter(run.names), list[TrackedGame](), run.planned.games_per_deal
    number = run.planned.first_game // size
    for game in games:
        deal.append(game)
        if len(deal) == size:
            counter.add_deal(number, deal, _read_stated(run, number * size, size) if run.models else None)
            deal, number = [], number + 1
    return counter.sheet(calibrations(run.tally, run.names))


def _read_stated(run: Run, first: int, games: int) -> dict[tuple[int, int, int], float]:
    """Return the probabilities that models stated, by game, seat and move."""
    query = f"SELECT game, seat, turn, {STATED} FROM decisions WHERE game >= ? AND game < ? AND {STATED} IS NOT NULL"  # noqa: S608
    return {(game, seat, turn): stated for game, seat, turn, stated in run.db.read(query, (first, first + games))}
