"""Count the finished games of a run and the games included in its results."""

from dataclasses import dataclass

from dubito.store.run_db import RunDb


@dataclass(frozen=True, slots=True)
class GameCounts:
    """The numbers of finished and counted games in `run.db`. All messages and exit codes are based on them.

    A game is finished when it is over. It is counted when it becomes part of the results, which are written in deal
    order and in whole deals. Games of hand-written bots are finished and counted at the same time.
    """

    finished: int
    counted: int
    in_order: int  # finished games before the first unfinished deal
    replies: int  # replies from models during games

    def __str__(self) -> str:
        games = f"{self.finished:,} game{'s' * (self.finished != 1)}"
        return f"{games} finished, {self.counted:,} of them counted, {self.replies:,} replies saved"

    @property
    def reason_for_no_results(self) -> str:
        """Explain why no games are counted."""
        if not self.finished:
            return "No results yet: no games are finished."
        games = "1 game is finished" if self.finished == 1 else f"{self.finished:,} games are finished"
        if self.in_order:
            return f"No results yet: {games}, but none are counted. Resume the run to count them."
        return f"No results yet: {games}, but results are counted in deal order and an earlier deal is unfinished."


def count_games(db: RunDb, first_game: int, games_per_deal: int) -> GameCounts:
    """Count the games of a run, which may still be playing."""
    counted, later = finished_games(db, first_game)
    end = counted.stop
    while later.issuperset(range(end, end + games_per_deal)):
        end += games_per_deal
    return GameCounts(len(counted) + len(later), len(counted), end - first_game, db.reply_count())


def finished_games(db: RunDb, first_game: int) -> tuple[range, set[int]]:
    counted = range(first_game, first_game + db.game_count())
    later = db.read("SELECT game FROM ended WHERE game >= ?", (counted.stop,))
    return counted, {game for (game,) in later}
