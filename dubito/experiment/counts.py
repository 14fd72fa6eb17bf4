"""How many games of a run are finished, and how many of them its results count."""

from dataclasses import dataclass

from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb


@dataclass(frozen=True, slots=True)
class GameCounts:
    """The games of a run as `run.db` has them. Every message and exit takes its figures from here.

    A game is finished once it was played to its end. It is counted once it is part of the results, which happens in
    whole deals, in deal order, when they are written. Games of hand-written bots are finished and counted at once.
    """

    finished: int
    counted: int
    in_order: int  # finished games before the first unfinished deal
    replies: int  # to questions of games, in a run with models

    def __str__(self) -> str:
        return f"{self.finished:,} games finished, {self.counted:,} of them counted, {self.replies:,} replies kept"

    @property
    def reason_for_no_results(self) -> str:
        """Why no game is counted, as a sentence."""
        if not self.finished:
            return "No results yet: no game is finished."
        games = "1 game is finished" if self.finished == 1 else f"{self.finished:,} games are finished"
        if self.in_order:
            return f"No results yet: {games}, but none was added to the results. Resume the run to add them."
        return f"No results yet: {games}, but results are counted in deal order and an earlier deal is not."


def count_games(db: RunDb, first_game: int, games_per_deal: int) -> GameCounts:
    """Count the games of a run, whether it is being played or not."""
    counted, later = finished_games(db, first_game)
    end = counted.stop
    while later.issuperset(range(end, end + games_per_deal)):
        end += games_per_deal
    return GameCounts(len(counted) + len(later), len(counted), end - first_game, ModelLog(db).count_replies())


def finished_games(db: RunDb, first_game: int) -> tuple[range, set[int]]:
    counted = range(first_game, first_game + db.game_count())
    later = db.read("SELECT game FROM ended WHERE game >= ?", (counted.stop,))
    return counted, {game for (game,) in later}
