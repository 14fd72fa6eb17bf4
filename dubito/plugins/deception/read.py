"""Read the deception sheet of a run, by replaying its games."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dubito.errors import UsageError
from dubito.experiment.lies import LieCounts, TrackedGame, track_game
from dubito.experiment.stored import Run, check_replayable
from dubito.game import STATED
from dubito.hooks import BeliefReference, StartProgress
from dubito.llm.prompts import Prompt
from dubito.llm.protocols import parse_stored_request, read_recorded_reply
from dubito.llm.questions import read_chance_to_win
from dubito.plugins.deception.reference import ReferenceReplay, find_reference, ignore_progress
from dubito.plugins.deception.sheet import BeliefsByMove, Sheet, SheetCounter
from dubito.show.story import winners
from dubito.stats.detection import Belief
from dubito.stats.players import calibrations

if TYPE_CHECKING:
    from dubito.api import Run as PublicRun


def read_sheet(run: "PublicRun") -> Sheet:
    """Return the deception sheet of a run, over all its counted games.

    Raises:
        UsageError: The game has no lies, or the run cannot be replayed here.
    """
    return count_sheet(run.stored, find_beliefs(run.stored))


def find_beliefs(run: Run, start_progress: StartProgress = ignore_progress) -> BeliefReference | None:
    """Return the reference beliefs for a run's games, if there are any. Raises UsageError if lies cannot be counted."""
    if not run.game.has_lie_marks:
        raise UsageError(f"{run.game.name} has no lies that can be called, so there is nothing to show")
    check_replayable(run)
    if not run.has_same_bots:
        raise UsageError(f"{run} cannot be replayed here: {'; '.join(run.changed)}")
    return find_reference(run, start_progress)


def count_sheet(
    run: Run, reference: BeliefReference | None, progress: Callable[[int], None] = lambda games: None
) -> Sheet:
    """Replay all games of a run. `progress` is called with the number of games so far."""
    games = (_track(run, game, reference, progress) for game in run.experiment.game_numbers)
    return _add_games(run, games, reference.name if reference else None)


class _RatedGame(NamedTuple):
    tracked: TrackedGame
    reference: BeliefsByMove


def _track(run: Run, game: int, reference: BeliefReference | None, progress: Callable[[int], None]) -> _RatedGame:
    seats = run.outcome_of(game).seats
    moves, beliefs = ReferenceReplay(run, game, seats, reference).moves()
    progress(game + 1 - run.experiment.first_game)
    return _RatedGame(track_game(game, seats, moves), beliefs)


def sheet_of_counted(run: Run, lies: LieCounts) -> Sheet:
    """Return the sheet of a run whose lies were counted in all games, without reference beliefs."""
    games = {game: TrackedGame([], []) for game in run.experiment.game_numbers}
    for play in lies.tracked_plays:
        games[play.game].plays.append(play)
    for response in lies.tracked_responses:
        games[response.game].responses.append(response)
    return _add_games(run, (_RatedGame(one, {}) for one in games.values()))


def _add_games(run: Run, games: Iterable[_RatedGame], reference: str | None = None) -> Sheet:
    counter, deal, size = SheetCounter(run.names), list[_RatedGame](), run.planned.games_per_deal
    number, asked = run.planned.first_game // size, _list_models_with_beliefs(run)
    for game in games:
        deal.append(game)
        if len(deal) == size:
            numbers = range(number * size, (number + 1) * size)
            stated = _read_stated(run, numbers) if run.models else None
            beliefs = {move: belief for one in deal for move, belief in one.reference.items()}
            counter.add_deal(number, [one.tracked for one in deal], stated, beliefs)
            for place in numbers if asked else ():
                _add_wins(run, asked, counter, place)
            deal, number = [], number + 1
    return counter.sheet(calibrations(run.tally, run.names), reference)


def _list_models_with_beliefs(run: Run) -> list[str]:
    """Return the models whose prompt asks for the probability to win."""
    asked = []
    for spec in run.planned.players:
        if spec.name in run.models and (sources := run.model_log.prompt(spec.prompt)):
            asked += [spec.name] if Prompt(Path(spec.name), sources, run.game).description.beliefs else []
    return asked


def _add_wins(run: Run, asked: Sequence[str], counter: SheetCounter, game: int) -> None:
    """Add the probabilities to win that models stated first in each turn, which only their replies contain."""
    outcome, results, log = run.outcome_of(game), run.game.results, run.model_log
    won = winners(results, outcome.buckets(results), outcome.counts)
    query = (
        "SELECT d.seat, d.turn, a.player, a.request, a.raw "
        "FROM decisions d JOIN attempts a USING (game, seat, decision) "
        "WHERE d.game = ? AND d.outcome LIKE 'model%' AND a.raw IS NOT NULL ORDER BY d.seat, d.decision, a.attempt"
    )
    turns = set[tuple[int, int]]()
    for seat, turn, player, request, raw in run.db.read(query, (game,)):
        if player in asked and (seat, turn) not in turns:
            protocol = parse_stored_request(log.text(request)).protocol
            stated = read_chance_to_win(read_recorded_reply(protocol, log.text(raw)).text or "")
            if stated is not None:
                turns.add((seat, turn))
                counter.add_win(outcome.seats[seat], Belief(run.planned.deal_of(game), stated, seat in won))


def _read_stated(run: Run, games: range) -> dict[tuple[int, int, int], float]:
    """Return the probabilities that models stated, by game, seat and move."""
    query = f"SELECT game, seat, turn, {STATED} FROM decisions WHERE game >= ? AND game < ? AND {STATED} IS NOT NULL"  # noqa: S608
    return {(game, seat, turn): stated for game, seat, turn, stated in run.db.read(query, (games.start, games.stop))}
