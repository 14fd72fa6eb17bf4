"""A run proved: every game is played again, against the tape where models played, and compared with what is kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dubito.errors import DubitoError
from dubito.experiment.chunk import ChunkResult, chunk_numbers, first_game_of
from dubito.experiment.experiment import Experiment
from dubito.experiment.model_progress import ModelProgress
from dubito.experiment.replay_shares import shared_chunks, worth
from dubito.experiment.run_to_replay import RunToReplay
from dubito.experiment.threads import ThreadedChunks
from dubito.experiment.workers import new_stop, play_chunks
from dubito.game import Results
from dubito.llm.tape import Differs, ReplayTape
from dubito.stats.ranking import all_games
from dubito.stats.tally import Outcome, Tally, unpack
from dubito.store import folder as run_folder
from dubito.store.model_log import ModelLog
from dubito.store.run_db import Chunk, RunDb

if TYPE_CHECKING:  # a run of hand-written bots needs no templates, retries and clients
    from dubito.experiment.models import Models


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay found; without a difference everything is identical."""

    games: int
    decisions: int
    results_digest: str
    mismatches: list[str]  # inputs that were changed since
    difference: Differs | None = None


def replay(kept: RunToReplay, workers: int, progress: Callable[[int], None]) -> ReplayResult:
    """Play all games again and compare; `progress` is told how many games are played."""
    tape, db, experiment = ReplayTape(ModelLog(kept.db)), kept.db, kept.experiment
    tally, difference, games = Tally(), None, 0
    models = kept.models(tape)
    try:
        progress(0)
        for played in _chunks(kept, models, tape, workers, progress):
            if played.error is not None:
                raise played.error
            _compare(db, experiment, played, kept.registry.game.results)
            tally, games = tally + played.tally, games + len(played.outcomes)
            progress(games)
        _compare_results(kept, tally)
    except Differs as error:
        difference = error
    except DubitoError as error:
        difference = Differs(f"game {games} or after", "the run cannot be played again", [str(error)])
    return ReplayResult(games, tape.decisions, db.results_digest(), kept.mismatches, difference)


def _chunks(
    kept: RunToReplay, models: "Models | None", tape: ReplayTape, workers: int, progress: Callable[[int], None]
) -> Iterator[ChunkResult]:
    experiment = kept.experiment
    numbers = chunk_numbers(experiment)
    if models is None:
        yield from play_chunks(experiment, kept.registry, workers, new_stop(workers), numbers)
        return
    workers = worth(experiment.games, workers)
    if workers > 1:
        yield from shared_chunks(kept, workers, tape, progress)
        return
    before = 0  # games of the chunks that were played
    threads = ThreadedChunks(kept.player, models, 1, ModelProgress(), lambda games: progress(before + games))
    for number in numbers:
        yield threads.play(number, lambda: False)
        before = first_game_of(experiment, number + 1) - experiment.game_numbers.start


def _compare(db: RunDb, experiment: Experiment, played: ChunkResult, results: Results) -> None:
    """Raise Differs at the first game that is not the one kept."""
    first = first_game_of(experiment, played.number)
    rows = db.read(
        "SELECT outcome, record FROM games WHERE game >= ? AND game < ? ORDER BY game",
        (first, first + len(played.outcomes)),
    )
    for place, (outcome, record) in enumerate(rows):
        again = played.records[place] if played.records else None
        if (outcome, record) != (played.outcomes[place], again):
            said = [
                f"recorded: {_in_words(outcome, results)}",
                f"replayed: {_in_words(played.outcomes[place], results)}",
            ]
            raise Differs(f"game {first + place}", "it does not play out as recorded", said)
    chunk = Chunk(played.number, played.deals, first, played.outcomes, played.decision_digests)
    ((digest,),) = db.read("SELECT digest FROM chunks WHERE chunk = ?", (played.number,))
    if digest != chunk.digest:
        said = [f"recorded: {digest.hex()}", f"replayed: {chunk.digest.hex()}"]
        raise Differs(f"games {first} to {first + len(rows) - 1}", "their digest differs", said)


def _compare_results(kept: RunToReplay, tally: Tally) -> None:
    """Raise Differs unless the published counts are what the games add up to."""
    names = [player.name for player in kept.experiment.players]
    file = kept.folder / run_folder.RESULTS
    counted = run_folder.to_yaml(all_games(tally, names, kept.registry.game)).encode()
    if not file.exists() or file.read_bytes() != counted:
        raise Differs(str(file), "the published counts are not what the games add up to", [])


def _in_words(row: bytes, results: Results) -> str:
    try:
        outcome: Outcome = unpack(row, results)
    except ValueError:
        return f"nothing that can be read ({row.hex()})"
    return f"seats {outcome.seats}, marks {outcome.marks}, {outcome.game_counts[0]} turns, counts {outcome.counts}"
