"""Replay a run: play every game again, with models answering from the recording, and compare it with the store.

With model players, several processes can each replay some deals of a chunk. This module also counts lies, which
requires a replay too.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.experiment import Experiment
from dubito.experiment.play import (
    ChunkResult,
    chunk_numbers,
    deals_of_chunk,
    first_game_of_chunk,
    is_full_chunk,
    split_evenly,
)
from dubito.experiment.progress import ModelProgress
from dubito.experiment.proof import (
    check_calls,
    check_no_calls,
    check_sums,
    replay_uncounted_games,
)
from dubito.experiment.stop import find_stop_flaw
from dubito.experiment.stored import Run, read_run
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.workers import join_chunks, play_chunks, run_in_order, start_processes
from dubito.game import Lie, LieMark, Results, State
from dubito.game.log import Log
from dubito.game.packages import games_path, set_games_path
from dubito.game.record import Forfeit, make_move, output_of
from dubito.game.streams import DealStreams
from dubito.game.table import Table, step
from dubito.llm.recording import Differs, ReplayRecording, ReplyCallback
from dubito.stats.players import cluster_sums
from dubito.stats.ranking import all_games
from dubito.stats.rates import Rate, Sums, clustered_rate
from dubito.stats.tally import Outcome, Tally, build_outcome, read_outcome, read_record, read_tally, unpack_outcome
from dubito.store import folder as run_folder
from dubito.store.model_log import ModelLog
from dubito.store.run_db import Chunk, RunDb

if TYPE_CHECKING:
    from dubito.experiment.models import Models
    from dubito.seats.program import ProgramPlayer

LIES: Final[tuple[Lie, ...]] = get_args(Lie)
MAX_LIE_GAMES: Final = 1_000  # maximum number of games in which lies are counted, since each has to be replayed


def read_replayable_run(folder: Path, home: Path | None = None) -> Run:
    run = read_run(folder, home)
    check_replayable(run)
    return run


def check_replayable(run: Run) -> None:
    run.db.check(run.planned.first_game)
    read_tally(run.db, run.game.results)
    _ = run.mismatches


@dataclass(frozen=True, slots=True)
class LieMove:
    """A move that deceives other seats."""

    seat: int
    move: int  # the seat's own moves count from 1
    lie: Lie


LieRate = Literal["chosen", "forced", "caught", "hits", "alarms"]
_DENOMINATORS: Final[Mapping[LieRate, str]] = {
    "chosen": "plays",
    "forced": "plays",
    "caught": "lies",
    "hits": "lies met",
    "alarms": "honest met",
}


@dataclass(frozen=True, slots=True)
class TrackedPlay:
    """A move that can be a lie. Players are indexes into `Experiment.players`."""

    game: int
    seat: int
    move: int  # the seat's own moves count from 1
    player: int
    lie: Lie | None
    cards: int
    pile: int  # cards at stake, including the player's own
    late: bool  # whether the move is in the second half of its game
    called: list[tuple[int, bool]]  # the players asked about it, and whether they called it a lie


@dataclass(frozen=True, slots=True)
class TrackedResponse:
    """A response to a play, which calls the play a lie or lets it pass."""

    game: int
    seat: int
    move: int
    player: int
    of: int  # the player who made the play
    is_lie: bool
    called: bool
    pile: int  # cards at stake


@dataclass(frozen=True, slots=True)
class LieCounts:
    """Counts of lies in the first games of a run, by player and rate, summed deal by deal as y out of m.

    `chosen` (voluntary) and `forced` are shares of moves that can be lies, `caught` of all lies. `hits` is the share of
    other players' lies that were called lies, and `alarms` is that share for their honest plays.
    """

    games: int
    sums: Mapping[tuple[int, LieRate], Sums]
    stated_lies: Mapping[str, int]  # how often each model player admitted to lying, if a node asks
    tracked_plays: Sequence[TrackedPlay] = ()
    tracked_responses: Sequence[TrackedResponse] = ()

    def plays(self, player: int) -> int:
        return self.sums[player, "chosen"].m

    def count(self, player: int, lie: LieRate) -> int:
        return self.sums[player, lie].y

    def share(self, player: int, lie: LieRate) -> Rate:
        return clustered_rate(*self.sums[player, lie])


def replay_moves(run: Run, number: int) -> Iterator[tuple[Any, Any]]:
    """Yield the moves of a game with the state before each, from its record or by playing its bots.

    Raises UsageError at the end if the outcome differs from the stored one.
    """
    game, experiment = run.registry.game, run.experiment
    ((row, record),) = run.db.read("SELECT outcome, record FROM games WHERE game = ?", (number,))
    outcome = read_outcome(row, game.results, len(experiment.players), run.db.path)
    streams = DealStreams(experiment.seed, number // experiment.games_per_deal)
    state = game.deal(game.rules_of_run(experiment.rules), len(outcome.seats), streams.deck())
    ended: State = state
    if record is None:
        table, _ = run.player.build_table(number)
        ended, outputs = table.state, []
        while not ended.over:
            outputs.append(step(table, announce=True)[0])
    else:
        outputs = [output_of(game, output) for output in read_record(record, run.db.path)["outputs"]]
    for output in outputs:
        yield state, output
        if output is not None:
            make_move(state, output)
    replayed = build_outcome(ended, outcome.seats, outcome.contender_seat, [own[-1] for own in outcome.counts])
    if replayed.pack() != row:
        raise UsageError(f"game {number} of {one_line(str(run.folder))} is played differently now")


def _replay_lies(run: Run, number: int) -> Iterator[tuple[int, int, Lie | None, LieMark | None]]:
    """Yield a game's moves: the seat, the number of its move (from 1), the lie and the lie mark, if any."""
    game, moves = run.registry.game, Counter[int]()
    for state, output in replay_moves(run, number):
        moves[state.seat] += 1
        is_move = output is not None and not isinstance(output, Forfeit)
        marks = (game.lie(state, output), game.lie_mark(state, output)) if is_move else (None, None)
        yield state.seat, moves[state.seat], *marks


def replay_lies(run: Run, number: int) -> list[LieMove]:
    return [LieMove(seat, move, lie) for seat, move, lie, _ in _replay_lies(run, number) if lie]


class ReplayedLogs:
    """Replays games of a run and keeps their logs. Models repeat their recorded answers."""

    def __init__(self, run: Run) -> None:
        """Raise UsageError if hand-written bots have changed and no recorded answers could reveal a difference."""
        if not run.has_same_bots:
            raise UsageError(f"games of {run} may play differently now: {'; '.join(run.changed)}")
        self._run, self._models = run, run.replay_models(ReplayRecording(ModelLog(run.db)), stored_prompts=True)

    def of_game(self, number: int) -> tuple[Log, list[int]]:
        """Return a game's log and the turn of each event, from 1, or 0 for events of the deal.

        Raises UsageError if the outcome differs from the stored one, and Differs if a model gets a different request.
        """
        table, lineup = self._run.player.build_table(number, self._models)
        log, state = table.keep_log(), table.state
        turns = [0] * len(log.events)
        while not state.over:
            turn = state.turns_played + 1
            step(table)
            turns += [turn] * (len(log.events) - len(turns))
        replayed = build_outcome(state, lineup.seats, lineup.contender_seat, table.fallback_turns)
        if [(replayed.pack(),)] != self._run.db.read("SELECT outcome FROM games WHERE game = ?", (number,)):
            raise UsageError(f"game {number} of {one_line(str(self._run.folder))} is played differently now")
        return log, turns


class _LieCounter:
    """Counts the lies of games, deal by deal."""

    def __init__(self, run: Run) -> None:
        self._run = run
        results, names = run.registry.game.results, run.experiment.names
        habit = results.habit(results.lies)
        places = {"plays": habit.of, "lies": habit.count, "caught": results.found_out}
        self._places = {key: results.counts.index(count) for key, count in places.items() if count}
        self.sums = {(player, rate): [0] * 6 for player in range(len(names)) for rate in _DENOMINATORS}
        self.plays, self.responses = list[TrackedPlay](), list[TrackedResponse]()

    def add_deal(self, games: range) -> None:
        own = Counter[tuple[int, str]]()
        for game in games:
            self._add_game(game, own)
        for (player, rate), sums in self.sums.items():
            deal_sums = cluster_sums(own[player, _DENOMINATORS[rate]], own[player, rate])
            self.sums[player, rate] = [a + b for a, b in zip(sums, deal_sums, strict=True)]

    def _add_game(self, game: int, own: Counter[tuple[int, str]]) -> None:
        run = self._run
        ((row,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
        outcome = read_outcome(row, run.game.results, len(run.experiment.players), run.db.path)
        for player, counts in zip(outcome.seats, outcome.counts, strict=True):
            for key, place in self._places.items():
                own[player, key] += counts[place]
        moves, responses = [*_replay_lies(run, game)], list[tuple[int, bool]]()  # responses to the last play
        for place, (seat, move, lie, lie_mark) in enumerate(moves):
            player = outcome.seats[seat]
            if lie:
                own[player, lie] += 1
            if lie_mark and lie_mark.of is not None:
                responses.append((player, lie_mark.called))
                own[player, "lies met" if lie_mark.is_lie else "honest met"] += 1
                own[player, "hits" if lie_mark.is_lie else "alarms"] += lie_mark.called
                target = outcome.seats[lie_mark.of]
                self.responses.append(
                    TrackedResponse(game, seat, move, player, target, lie_mark.is_lie, lie_mark.called, lie_mark.pile)
                )
            if lie_mark and lie_mark.cards:
                responses = []
                late, pile = 2 * place >= len(moves), lie_mark.pile + lie_mark.cards
                self.plays.append(TrackedPlay(game, seat, move, player, lie, lie_mark.cards, pile, late, responses))


def count_lies(run: Run, max_games: int = MAX_LIE_GAMES) -> LieCounts:
    """Count the lies in a run's first games, using whole deals. Raises UsageError if a bot plays differently now."""
    experiment, counter = run.experiment, _LieCounter(run)
    count = min(max_games, run.db.game_count())
    games = experiment.game_numbers[: count // experiment.games_per_deal * experiment.games_per_deal]
    for first in range(games.start, games.stop, experiment.games_per_deal):
        counter.add_deal(range(first, first + experiment.games_per_deal))
    sums = {key: Sums(*values) for key, values in counter.sums.items()}
    stated_lies = ModelLog(run.db).count_yes(run.game.results.lie_nodes, games.stop)
    return LieCounts(len(games), sums, stated_lies, counter.plays, counter.responses)


def count_lies_in_folder(folder: Path) -> LieCounts | None:
    """Count the lies of the run in this folder.

    Returns None if the game has no lies or bot files have changed.
    """
    run = read_run(folder)
    with run.db:
        if not run.game.has_lies:
            return None
        check_replayable(run)
        return count_lies(run) if run.has_same_bots else None


def rebuild_table(run: Run, game: int, on_reply: ReplyCallback) -> tuple[Table, list[str]]:
    models = run.replay_models(ReplayRecording(ModelLog(run.db), on_reply))
    table, lineup = run.player.build_table(game, models)
    return table, [run.experiment.players[player].name for player in lineup.seats]


_GAMES_PER_PROCESS: Final = 100  # a replay of so few games takes about as long as starting a process
_PARTS_PER_PROCESS: Final = 8  # per chunk, so that all processes finish at about the same time


def useful_workers(games: int, workers: int) -> int:
    return max(1, min(workers, games // _GAMES_PER_PROCESS))


def replay_in_processes(
    run: Run, workers: int, recording: ReplayRecording, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    """Yield the chunks in order, replayed by this many processes.

    `progress` receives the number of games replayed. Decisions and attempts are added to the recording.
    """
    experiment, stop = run.experiment, threading.Event()
    by_chunk = (deals_of_chunk(experiment, number) for number in chunk_numbers(experiment))
    jobs = (part for deals in by_chunk for part in split_evenly(deals, min(workers * _PARTS_PER_PROCESS, len(deals))))

    def count(results: Iterator[tuple[range, _ReplayedDeals | None]]) -> Iterator[tuple[range, ChunkResult]]:
        games = 0
        for deals, result in results:
            assert result is not None  # a replay is never stopped
            recording.decisions += result[1]
            recording.attempts += result[2]
            games += len(result[0].outcomes)
            progress(games)
            yield deals, result[0]

    play = partial(_replay_deals, run.folder, run.registry.working_directory, games_path())
    with start_processes(workers, stop) as pool, closing(run_in_order(pool, play, jobs, stop)) as results:
        yield from join_chunks(experiment, count(results))


_ReplayedDeals = tuple[ChunkResult, int, int]  # the result, and the numbers of compared decisions and attempts


def _replay_deals(folder: Path, home: Path, beside: Sequence[Path], deals: range) -> _ReplayedDeals:
    """Replay deals of one chunk in a worker process."""
    set_games_path(beside)
    threads, recording = _open_replay(folder, home)
    decisions, attempts = recording.decisions, recording.attempts
    return threads.play(deals, lambda: False), recording.decisions - decisions, recording.attempts - attempts


@lru_cache(maxsize=1)
def _open_replay(folder: Path, home: Path) -> tuple[ThreadedChunks, ReplayRecording]:
    run = read_replayable_run(folder, home)
    recording = ReplayRecording(ModelLog(run.db))
    models = run.replay_models(recording)
    assert models is not None
    return ThreadedChunks(run.player, models, 1, ModelProgress(), lambda games: None), recording


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay. Everything is identical unless `difference` is set."""

    games: int
    decisions: int
    results_digest: str
    mismatches: list[str]  # inputs that have changed
    tally: Tally  # sums over the replayed games
    difference: Differs | None = None


def replay(
    run: Run,
    workers: int,
    progress: Callable[[int], None],
    started: "Mapping[str, ProgramPlayer] | None" = None,
) -> ReplayResult:
    """Replay all games and compare them with the run.

    `progress` receives the number of games replayed. Programs that were started for the replay are asked again.
    """
    recording, db, experiment = ReplayRecording(ModelLog(run.db)), run.db, run.experiment
    tally, complete, difference, games = Tally(), Tally(), None, 0
    models = run.replay_models(recording)
    try:
        if models and started:
            from dubito.experiment.ask_again import compare_with

            models, workers = replace(models, programs={**models.programs, **compare_with(recording, started, run)}), 1
        progress(0)
        for played in _replay_chunks(run, models, recording, workers, progress):
            if played.error is not None:
                raise played.error
            _check_chunk(db, experiment, played, run.registry.game.results)
            tally, games = tally + played.tally, games + len(played.outcomes)
            complete = tally if is_full_chunk(played.deals) else complete
            progress(games)
        _check_results(run, tally)
        _check_stop(run)
        check_sums(run, tally, complete)
        if models is None:
            check_no_calls(run)
        else:
            replay_uncounted_games(run, models)
            check_calls(run, recording)
    except Differs as error:
        difference = Differs(error.where, error.what, [run.strip_folder(detail) for detail in error.details])
    except DubitoError as error:
        details = [run.strip_folder(str(error))]
        difference = Differs(f"game {games} or later", "the run cannot be replayed", details)
    return ReplayResult(games, recording.decisions, db.results_digest(), run.mismatches, tally, difference)


def _replay_chunks(
    run: Run, models: "Models | None", recording: ReplayRecording, workers: int, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    experiment = run.experiment
    numbers = chunk_numbers(experiment)
    if models is None:
        yield from play_chunks(experiment, run.registry, workers, threading.Event(), numbers)
        return
    workers = useful_workers(experiment.games, workers)
    if workers > 1:
        yield from replay_in_processes(run, workers, recording, progress)
        return
    before = 0  # games of the chunks before this one
    threads = ThreadedChunks(run.player, models, 1, ModelProgress(), lambda games: progress(before + games))
    for number in numbers:
        yield threads.play(deals_of_chunk(experiment, number), lambda: False)
        before = first_game_of_chunk(experiment, number + 1) - experiment.first_game


def _check_chunk(db: RunDb, experiment: Experiment, played: ChunkResult, results: Results) -> None:
    """Raise Differs at the first game that differs from the stored one."""
    first = first_game_of_chunk(experiment, played.number)
    rows = db.read(
        "SELECT outcome, record, decisions FROM games WHERE game >= ? AND game < ? ORDER BY game",
        (first, first + len(played.outcomes)),
    )
    for place, (outcome, record, decisions) in enumerate(rows):
        replayed = played.records[place] if played.records else None
        if (outcome, record) != (played.outcomes[place], replayed):
            details = [
                f"recorded: {_describe_outcome(outcome, results)}",
                f"replayed: {_describe_outcome(played.outcomes[place], results)}",
            ]
            raise Differs(f"game {first + place}", "its replay differs from the recorded game", details)
        if decisions != (played.decision_digests[place] if played.decision_digests else None):
            raise Differs(f"game {first + place}", "the digest of its decisions differs", [])
    chunk = Chunk(played.number, played.deals, first, played.outcomes, played.decision_digests)
    query = "SELECT digest, deals, games FROM chunks WHERE chunk = ?"
    ((digest, deals, games),) = db.read(query, (played.number,))
    if (deals, games) != (played.deals, len(played.outcomes)):
        details = [f"recorded: {deals} deals, {games} games", f"replayed: {played.deals}, {len(played.outcomes)}"]
        raise Differs(f"chunk {played.number}", "the number of games differs", details)
    if digest != chunk.digest:
        details = [f"recorded: {digest.hex()}", f"replayed: {chunk.digest.hex()}"]
        raise Differs(f"games {first} to {first + len(rows) - 1}", "their digest differs", details)


def _check_results(run: Run, tally: Tally) -> None:
    """Compare the counts in `all_games.yaml`, which does not exist if the run was killed."""
    names = [player.name for player in run.experiment.players]
    file = run.folder / run_folder.RESULTS
    counted = run_folder.to_yaml(all_games(tally, names, run.registry.game)).encode()
    if file.exists() and file.read_bytes() != counted:
        raise Differs(file.name, "its counts do not match its games", [])


def _check_stop(run: Run) -> None:
    if flaw := find_stop_flaw(run):
        raise Differs("where the run stopped", flaw, [])


def _describe_outcome(row: bytes, results: Results) -> str:
    try:
        outcome: Outcome = unpack_outcome(row, results)
    except ValueError:
        return f"unreadable ({row.hex()})"
    return f"seats {outcome.seats}, marks {outcome.marks}, {outcome.game_counts[0]} turns, counts {outcome.counts}"
