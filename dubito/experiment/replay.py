"""A run proved: every game is played again, against the tape where models played, and compared with what is kept.

With model players several processes may do so, each some deals of a chunk at a time, from the same tape. Here too: the
lies of a run, for which its games are played again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
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
from dubito.experiment.workers import join_chunks, new_stop, play_chunks, run_in_order, start_processes
from dubito.game import Deed, Lie, Results, State
from dubito.game.packages import games_path, set_games_path
from dubito.game.record import Forfeit, make_move, output_of
from dubito.game.streams import DealStreams
from dubito.game.table import Table, step
from dubito.llm.recording import Differs, ReplayRecording, ReplyCallback
from dubito.stats.players import cluster_sums
from dubito.stats.ranking import all_games
from dubito.stats.rates import Rate, Sums, clustered_rate
from dubito.stats.tally import Outcome, Tally, outcome_of, read_outcome, read_record, read_tally, unpack_outcome
from dubito.store import folder as run_folder
from dubito.store.model_log import ModelLog
from dubito.store.run_db import Chunk, RunDb

if TYPE_CHECKING:
    from dubito.experiment.models import Models

LIES: Final[tuple[Lie, ...]] = get_args(Lie)
MAX_LIE_GAMES: Final = 1_000  # games of a run in which lies are counted, since each has to be played again


def run_to_replay(folder: Path, home: Path | None = None) -> Run:
    run = read_run(folder, home)
    check_to_replay(run)
    return run


def check_to_replay(run: Run) -> None:
    run.db.check(run.planned.first_game)
    read_tally(run.db, run.game.results)
    _ = run.mismatches


@dataclass(frozen=True, slots=True)
class LieMove:
    """A move that deceived."""

    seat: int
    move: int  # which of its seat's own, from 1
    lie: Lie


LieRate = Literal["chosen", "forced", "caught", "hits", "alarms"]
_DENOMINATORS: Final[Mapping[LieRate, str]] = {  # what each is a share of
    "chosen": "plays",
    "forced": "plays",
    "caught": "lies",
    "hits": "lies met",
    "alarms": "honest met",
}


@dataclass(frozen=True, slots=True)
class ModelPlay:
    """A move of a model player that can be a lie; players are places in `Experiment.players`."""

    game: int
    seat: int
    move: int  # which of its seat's own, from 1
    player: int
    lie: Lie | None
    cards: int
    pile: int  # cards with it: what is at stake
    late: bool  # in the second half of its game's moves
    called: list[tuple[int, bool]]  # who was asked about it, and whether they called it a lie


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What a model player said of somebody's play, by calling it a lie or by letting it pass."""

    game: int
    seat: int
    move: int
    player: int
    of: int  # whose
    is_lie: bool
    called: bool
    pile: int  # what is at stake


@dataclass(frozen=True, slots=True)
class LieCounts:
    """Lies over the first games of a run, by player and rate, summed deal by deal: y of m.

    Chosen and forced lies of the moves that can be; those caught of all lies; of the plays of others that were lies,
    and of those that were honest, how many were called lies: hits and false alarms.
    """

    games: int
    sums: Mapping[tuple[int, LieRate], Sums]
    meant: Mapping[str, int]  # by model player: how often it said that it lies, where a node asks just that
    plays_told: Sequence[ModelPlay] = ()
    words_told: Sequence[ModelResponse] = ()

    def plays(self, player: int) -> int:
        return self.sums[player, "chosen"].m

    def count(self, player: int, lie: LieRate) -> int:
        return self.sums[player, lie].y

    def share(self, player: int, lie: LieRate) -> Rate:
        return clustered_rate(*self.sums[player, lie])


def replay_moves(kept: Run, number: int) -> Iterator[tuple[Any, Any]]:
    """The moves of a game, each with the state before it: with models from its record, else played from its seed.

    Raises UsageError at the end if it is not the game that the run keeps.
    """
    game, experiment = kept.registry.game, kept.experiment
    ((row, record),) = kept.db.read("SELECT outcome, record FROM games WHERE game = ?", (number,))
    outcome = read_outcome(row, game.results, len(experiment.players), kept.db.path)
    streams = DealStreams(experiment.seed, number // experiment.games_per_deal)
    state = game.deal(game.rules_of_run(experiment.rules), len(outcome.seats), streams.deck())
    ended: State = state
    if record is None:
        table, _ = kept.player.table_of(number)
        ended, outputs = table.state, []
        while not ended.over:
            outputs.append(step(table, announce=True)[0])
    else:
        outputs = [output_of(game, output) for output in read_record(record, kept.db.path)["outputs"]]
    for output in outputs:
        yield state, output
        if output is not None:
            make_move(state, output)
    came_to = outcome_of(ended, outcome.seats, outcome.contender_seat, [own[-1] for own in outcome.counts])
    if came_to.pack() != row:
        raise UsageError(f"game {number} of {one_line(str(kept.folder))} is now played differently")


def _replay_lies(kept: Run, number: int) -> Iterator[tuple[int, int, Lie | None, Deed | None]]:
    """The moves of a game: whose, which of its own from 1, what lie and what deed it is."""
    game, moves = kept.registry.game, Counter[int]()
    lie_of, deed_of = game.lie or (lambda state, output: None), game.deed or (lambda state, output: None)
    for state, output in replay_moves(kept, number):
        moves[state.seat] += 1
        is_move = output is not None and not isinstance(output, Forfeit)
        told = (lie_of(state, output), deed_of(state, output)) if is_move else (None, None)
        yield state.seat, moves[state.seat], *told


def replay_lies(kept: Run, number: int) -> list[LieMove]:
    return [LieMove(seat, move, lie) for seat, move, lie, _ in _replay_lies(kept, number) if lie]


class _LieCounter:
    """Adds up the lies of games, deal by deal."""

    def __init__(self, kept: Run) -> None:
        self._kept = kept
        results, names = kept.registry.game.results, kept.experiment.names
        habit = results.habit(results.lies)
        places = {"plays": habit.of, "lies": habit.count, "caught": results.found_out}
        self._places = {key: results.counts.index(count) for key, count in places.items() if count}
        self._models = {place for place, name in enumerate(names) if kept.kinds[name] in ("model", "stand-in")}
        self.sums = {(player, rate): [0] * 6 for player in range(len(names)) for rate in _DENOMINATORS}
        self.plays, self.words = list[ModelPlay](), list[ModelResponse]()

    def add_deal(self, games: range) -> None:
        own = Counter[tuple[int, str]]()
        for game in games:
            self._add_game(game, own)
        for (player, rate), sums in self.sums.items():
            of_deal = cluster_sums(own[player, _DENOMINATORS[rate]], own[player, rate])
            self.sums[player, rate] = [a + b for a, b in zip(sums, of_deal, strict=True)]

    def _add_game(self, game: int, own: Counter[tuple[int, str]]) -> None:
        kept = self._kept
        ((row,),) = kept.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
        outcome = read_outcome(row, kept.game.results, len(kept.experiment.players), kept.db.path)
        for player, counts in zip(outcome.seats, outcome.counts, strict=True):
            for key, place in self._places.items():
                own[player, key] += counts[place]
        told, asked = [*_replay_lies(kept, game)], list[tuple[int, bool]]()  # who was asked about the last play
        for place, (seat, move, lie, deed) in enumerate(told):
            player = outcome.seats[seat]
            if lie:
                own[player, lie] += 1
            if deed and deed.of is not None:
                asked.append((player, deed.called))
                own[player, "lies met" if deed.is_lie else "honest met"] += 1
                own[player, "hits" if deed.is_lie else "alarms"] += deed.called
                if player in self._models:
                    word = (outcome.seats[deed.of], deed.is_lie, deed.called, deed.pile)
                    self.words.append(ModelResponse(game, seat, move, player, *word))
            if deed and deed.cards:
                asked = []
                if player in self._models:
                    late, pile = 2 * place >= len(told), deed.pile + deed.cards
                    self.plays.append(ModelPlay(game, seat, move, player, lie, deed.cards, pile, late, asked))


def count_lies(kept: Run, most: int = MAX_LIE_GAMES) -> LieCounts:
    """The lies of at most so many games, in whole deals; raises UsageError if a bot would now play otherwise."""
    experiment, counting = kept.experiment, _LieCounter(kept)
    most = min(most, kept.db.game_count())
    games = experiment.game_numbers[: most // experiment.games_per_deal * experiment.games_per_deal]
    for first in range(games.start, games.stop, experiment.games_per_deal):
        counting.add_deal(range(first, first + experiment.games_per_deal))
    sums = {key: Sums(*values) for key, values in counting.sums.items()}
    meant = ModelLog(kept.db).count_yes(kept.game.results.lie_nodes, games.stop)
    return LieCounts(len(games), sums, meant, counting.plays, counting.words)


def count_lies_in_folder(folder: Path) -> LieCounts | None:
    """The lies of the run in this folder; None in a game without, or where bots would now play otherwise."""
    kept = read_run(folder)
    with kept.db:
        if kept.game.lie is None:
            return None
        check_to_replay(kept)
        return count_lies(kept) if kept.has_bots else None


def replay_table(kept: Run, game: int, heard: ReplyCallback) -> tuple[Table, list[str]]:
    models = kept.asking(ReplayRecording(ModelLog(kept.db), heard))
    table, lineup = kept.player.table_of(game, models)
    return table, [kept.experiment.players[player].name for player in lineup.seats]


_GAMES_PER_PROCESS: Final = 100  # games that take about as long to play again as a process takes to start
_PARTS_PER_PROCESS: Final = 8  # into how many a chunk is split for each process, so that all end at about the same time


def useful_workers(games: int, workers: int) -> int:
    return max(1, min(workers, games // _GAMES_PER_PROCESS))


def replay_in_processes(
    kept: Run, workers: int, tape: ReplayRecording, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    """The chunks in order, played by so many processes.

    `progress` is told how many games were played, and the tape how many decisions were taken.
    """
    experiment, stop = kept.experiment, new_stop(workers)
    by_chunk = (deals_of_chunk(experiment, number) for number in chunk_numbers(experiment))
    runs_of_deals = (
        few for deals in by_chunk for few in split_evenly(deals, min(workers * _PARTS_PER_PROCESS, len(deals)))
    )

    def played(back: Iterator[tuple[range, _ReplayedDeals | None]]) -> Iterator[tuple[range, ChunkResult]]:
        games = 0
        for deals, result in back:
            assert result is not None  # none is given up: nobody stops it
            tape.decisions += result[1]
            tape.attempts += result[2]
            games += len(result[0].outcomes)
            progress(games)
            yield deals, result[0]

    play = partial(_replay_deals, kept.folder, kept.registry.working_directory, games_path())
    with start_processes(workers, stop) as crew, closing(run_in_order(crew, play, runs_of_deals, stop)) as back:
        yield from join_chunks(experiment, played(back))


_ReplayedDeals = tuple[ChunkResult, int, int]  # with how many decisions and attempts were compared


def _replay_deals(folder: Path, home: Path, beside: Sequence[Path], deals: range) -> _ReplayedDeals:
    """Play deals of one chunk, in a worker process."""
    set_games_path(beside)
    threads, tape = _open_replay(folder, home)
    decisions, attempts = tape.decisions, tape.attempts
    return threads.play(deals, lambda: False), tape.decisions - decisions, tape.attempts - attempts


@lru_cache(maxsize=1)
def _open_replay(folder: Path, home: Path) -> tuple[ThreadedChunks, ReplayRecording]:
    kept = run_to_replay(folder, home)
    tape = ReplayRecording(ModelLog(kept.db))
    models = kept.asking(tape)
    assert models is not None
    return ThreadedChunks(kept.player, models, 1, ModelProgress(), lambda games: None), tape


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay found; without a difference everything is identical."""

    games: int
    decisions: int
    results_digest: str
    mismatches: list[str]  # inputs that were changed since
    tally: Tally  # the sums over the games that were played again
    difference: Differs | None = None


def replay(kept: Run, workers: int, progress: Callable[[int], None]) -> ReplayResult:
    """Play all games again and compare; `progress` is told how many games are played."""
    tape, db, experiment = ReplayRecording(ModelLog(kept.db)), kept.db, kept.experiment
    tally, complete, difference, games = Tally(), Tally(), None, 0
    models = kept.asking(tape)
    try:
        progress(0)
        for played in _replay_chunks(kept, models, tape, workers, progress):
            if played.error is not None:
                raise played.error
            _check_chunk(db, experiment, played, kept.registry.game.results)
            tally, games = tally + played.tally, games + len(played.outcomes)
            complete = tally if is_full_chunk(played.deals) else complete
            progress(games)
        _check_results(kept, tally)
        _check_stop(kept)
        check_sums(kept, tally, complete)
        if models is None:
            check_no_calls(kept)
        else:
            replay_uncounted_games(kept, models, tape)
            check_calls(kept, tape)
    except Differs as error:
        difference = Differs(error.where, error.what, [kept.without_folder(detail) for detail in error.details])
    except DubitoError as error:
        said = [kept.without_folder(str(error))]
        difference = Differs(f"game {games} or after", "the run cannot be played again", said)
    return ReplayResult(games, tape.decisions, db.results_digest(), kept.mismatches, tally, difference)


def _replay_chunks(
    kept: Run, models: "Models | None", tape: ReplayRecording, workers: int, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    experiment = kept.experiment
    numbers = chunk_numbers(experiment)
    if models is None:
        yield from play_chunks(experiment, kept.registry, workers, new_stop(workers), numbers)
        return
    workers = useful_workers(experiment.games, workers)
    if workers > 1:
        yield from replay_in_processes(kept, workers, tape, progress)
        return
    before = 0  # games of the chunks that were played
    threads = ThreadedChunks(kept.player, models, 1, ModelProgress(), lambda games: progress(before + games))
    for number in numbers:
        yield threads.play(deals_of_chunk(experiment, number), lambda: False)
        before = first_game_of_chunk(experiment, number + 1) - experiment.first_game


def _check_chunk(db: RunDb, experiment: Experiment, played: ChunkResult, results: Results) -> None:
    """Raise Differs at the first game that is not the one kept."""
    first = first_game_of_chunk(experiment, played.number)
    rows = db.read(
        "SELECT outcome, record, decisions FROM games WHERE game >= ? AND game < ? ORDER BY game",
        (first, first + len(played.outcomes)),
    )
    for place, (outcome, record, decisions) in enumerate(rows):
        again = played.records[place] if played.records else None
        if (outcome, record) != (played.outcomes[place], again):
            said = [
                f"recorded: {_describe_outcome(outcome, results)}",
                f"replayed: {_describe_outcome(played.outcomes[place], results)}",
            ]
            raise Differs(f"game {first + place}", "it does not play out as recorded", said)
        if decisions != (played.decision_digests[place] if played.decision_digests else None):
            raise Differs(f"game {first + place}", "the digest of its decisions differs", [])
    chunk = Chunk(played.number, played.deals, first, played.outcomes, played.decision_digests)
    query = "SELECT digest, deals, games FROM chunks WHERE chunk = ?"
    ((digest, deals, games),) = db.read(query, (played.number,))
    if (deals, games) != (played.deals, len(played.outcomes)):
        said = [f"recorded: {deals} deals, {games} games", f"replayed: {played.deals}, {len(played.outcomes)}"]
        raise Differs(f"chunk {played.number}", "it has another number of games", said)
    if digest != chunk.digest:
        said = [f"recorded: {digest.hex()}", f"replayed: {chunk.digest.hex()}"]
        raise Differs(f"games {first} to {first + len(rows) - 1}", "their digest differs", said)


def _check_results(kept: Run, tally: Tally) -> None:
    """Compare the counts; a run that was killed has not written them yet."""
    names = [player.name for player in kept.experiment.players]
    file = kept.folder / run_folder.RESULTS
    counted = run_folder.to_yaml(all_games(tally, names, kept.registry.game)).encode()
    if file.exists() and file.read_bytes() != counted:
        raise Differs(file.name, "the published counts are not what the games add up to", [])


def _check_stop(kept: Run) -> None:
    if flaw := find_stop_flaw(kept):
        raise Differs("where the run stopped", flaw, [])


def _describe_outcome(row: bytes, results: Results) -> str:
    try:
        outcome: Outcome = unpack_outcome(row, results)
    except ValueError:
        return f"nothing that can be read ({row.hex()})"
    return f"seats {outcome.seats}, marks {outcome.marks}, {outcome.game_counts[0]} turns, counts {outcome.counts}"
