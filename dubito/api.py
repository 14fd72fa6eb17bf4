"""The public Python API: play experiments, and read runs as typed rows.

Everything here is imported from `dubito`: `import dubito; run = dubito.run(games=100)`.
"""

import json
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.call_options import call_options
from dubito.experiment.compare import compare_runs
from dubito.experiment.config import parse_config, read_config
from dubito.experiment.plan import choose_run_folder, open_executor, plan_experiment
from dubito.experiment.replay import ReplayedLogs
from dubito.experiment.replay import replay as replay_run
from dubito.experiment.run import RunOptions, find_finished_run, play
from dubito.experiment.saved_config import config_to_store
from dubito.experiment.stored import Run as StoredRun
from dubito.experiment.stored import check_replayable, open_recorded_run
from dubito.experiment.workers import default_workers
from dubito.game import GameEvent, Player
from dubito.game.find import find_bots
from dubito.game.log import Log, SeatLog
from dubito.llm.protocols import conversation, parse_stored_request
from dubito.report import documents
from dubito.sandbox.consent import Permits
from dubito.show.run import ReplayedGames
from dubito.stats.players import Calibration, calibrations
from dubito.store.folder import unpack
from dubito.store.model_log import ModelLog
from dubito.workshop.run_rows import DecisionRows, game_rows

Row = TypeVar("Row")


class ReplayDiffers(DubitoError):
    """A replay differs from the run. The message describes the first difference."""


class Rows(list[Row]):
    """A list of typed rows that can become a table."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as plain values, as `--json` prints them."""
        rows = []
        for row in self:
            if isinstance(row, BaseModel):
                rows.append(row.model_dump(mode="json"))
            else:
                assert is_dataclass(row)
                rows.append(asdict(row, dict_factory=_leave_out_ends))  # type: ignore[arg-type]
        return rows

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`. Nested values become columns such as `rates.score.value`.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        import pandas

        return pandas.json_normalize(self.to_dicts())


def _leave_out_ends(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dataclass's fields. The interval of a rate without a value has no ends."""
    plain = dict(fields)
    return plain | {"low": None, "high": None} if plain.get("value", 0) is None else plain


@dataclass(frozen=True)
class ModelDecision:
    """A decision of a model player."""

    seat: int
    decision: int  # number of the seat's decision in its game, from 0
    turn: int  # the seat's own turn, from 1
    player: str
    model: str
    node: str
    messages: list[tuple[str, str]]  # the last request, as (role, text)
    reply: str | None  # text of the last reply, if there was one
    answer: Any  # the played answer
    outcome: str  # model, model_after_reask, or fallback:CAUSE
    stated: float | None  # the probability that the model stated
    truth: Any  # the right answer according to hidden information; None for other questions
    attempts: int  # the question and its re-asks
    usd: float | None  # None if the price is unknown


@dataclass(eq=False, repr=False)
class PlayedGame:
    """A game in a run. Its events, text and decisions are computed on first use, by replaying the game."""

    number: int
    deal: int
    # By seat: the player, its result such as hard_wins, and its measures.
    players: list[str]
    results: list[str]
    measures: list[dict[str, float | None]]
    is_capped: bool  # whether it was stopped at the maximum number of turns
    _run: "Run"

    @property
    def events(self) -> list[GameEvent]:
        """All events in order, including the seats' answers and hidden events (see `event.only`)."""
        return self._log.events

    def log_of(self, seat: int) -> SeatLog:
        """Return the events that a seat saw, in order.

        Raises:
            UsageError: The game has no such seat.
        """
        if seat not in range(len(self.players)):
            raise UsageError(f"game {self.number} has no seat {seat}; its seats are 0 to {len(self.players) - 1}")
        return self._log.of(seat)

    @cached_property
    def _log(self) -> Log:
        log, _ = self._run.replayed_logs.of_game(self.number)
        return log

    @cached_property
    def text(self) -> list[str]:
        """A text for each turn, which describes the public events."""
        return [*self._run.replayed_games.play(self.number)["story"]]

    @cached_property
    def decisions(self) -> Rows[ModelDecision]:
        """The models' decisions, ordered by turn and seat."""
        return Rows(self._run.read_decisions(self.number))

    def __repr__(self) -> str:
        return f"<PlayedGame {self.number}: {', '.join(self.players)}>"


class Run:
    """A run on disk. Close it, or use it in a `with` statement."""

    def __init__(self, path: str | Path) -> None:
        """Open a run folder, or a file written by `dubito export`.

        Raises:
            UsageError: The run is missing or damaged, or has another version.
        """
        self._stack = ExitStack()
        self.path = Path(path)
        with ExitStack() as stack:
            folder = stack.enter_context(unpack(self.path)) if self.path.is_file() else self.path
            self.stored: StoredRun = stack.enter_context(open_recorded_run(folder, Path.cwd()))
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def __repr__(self) -> str:
        return f"<Run {self.path}: {self.game}>"

    @property
    def game(self) -> str:
        """The name of the game."""
        return self.stored.planned.game

    @property
    def players(self) -> list[str]:
        return self.stored.names

    @property
    def counted(self) -> int:
        """The number of games included in the results: all games before the first unfinished one."""
        return self.stored.counts.counted

    @property
    def is_finished(self) -> bool:
        return self.stored.is_finished

    @property
    def results_digest(self) -> str:
        return self.stored.results_digest

    def ranking(self) -> Rows[documents.PlayerResult]:
        """Return the players, best first, with their rates and 95 % confidence intervals."""
        stored = self.stored
        return Rows(documents.players(stored.tally, stored.kinds, stored.relation, stored.game.results))

    def comparisons(self) -> Rows[documents.PairResult]:
        """Return every pair of contenders with its difference on the same deals, or nothing without contenders."""
        if len(self.stored.contenders) < 2:
            return Rows()
        comparison = compare_runs([self.stored])
        return Rows(documents.pairs(comparison.tally, comparison.contenders, comparison.results))

    def calibration(self) -> Rows[Calibration]:
        """Return how well stated probabilities match the truth, for each player that stated any."""
        return Rows(calibrations(self.stored.tally, self.stored.names))

    def games(self) -> Iterator[PlayedGame]:
        """Yield the counted games in order."""
        first = self.stored.planned.first_game
        for row in game_rows(self.stored, range(first, first + self.counted)):
            results = [str(bucket) for bucket in row["buckets"]]
            yield PlayedGame(
                row["game"], row["deal"], row["players"], results, row["measures"], row["capped"], _run=self
            )

    def read_decisions(self, game: int) -> Iterator[ModelDecision]:
        """Yield the models' decisions in a game."""
        log = ModelLog(self.stored.db)
        for row in self._decision_rows.rows_of_game(game):
            yield ModelDecision(
                seat=row["seat"],
                decision=row["decision"],
                turn=row["turn"],
                player=row["player"],
                model=row["model"],
                node=row["node"],
                messages=[*conversation(parse_stored_request(log.text(row["request"])))],
                reply=row["reply"],
                answer=json.loads(row["answer"]),
                outcome=row["outcome"],
                stated=row["p_bluff"],
                truth=None if row["truth"] is None else json.loads(row["truth"]),
                attempts=row["attempts"],
                usd=row["usd"],
            )

    @cached_property
    def replayed_games(self) -> ReplayedGames:
        """The run's games for replaying. Whether the run can be replayed is checked only once."""
        return ReplayedGames(self.stored)

    @cached_property
    def replayed_logs(self) -> ReplayedLogs:
        """The logs of the run's games."""
        return ReplayedLogs(self.stored)

    @cached_property
    def _decision_rows(self) -> DecisionRows:
        return DecisionRows(self.stored)

    def replay(self, workers: int | None = None) -> int:
        """Replay all games without a model and return the number of identical games.

        Raises:
            ReplayDiffers: A game, a sum or a call differs from the run.
        """
        check_replayable(self.stored)
        result = replay_run(self.stored, workers or default_workers(), lambda games: None)
        if result.difference is not None:
            details = "; ".join(one_line(detail, 400) for detail in result.difference.details)
            raise ReplayDiffers(f"{result.difference}: {details}")
        return result.games


def load(path: str | Path) -> Run:
    """Open a run from its folder, or from a file written by `dubito export`."""
    return Run(path)


def run(
    config: str | Path | Mapping[str, Any] | None = None,
    /,
    *,
    trust: bool = False,
    allow_unsandboxed: bool = False,
    **settings: Any,
) -> Run:
    """Play an experiment and return its run. Resume or return the run if its folder already has it.

    With programs and without a seed, each call draws a secret seed and starts a new run.

    Args:
        config: A YAML file, or a mapping with the same keys.
        trust: Start the programs that a file names. Those in a mapping are started in any case.
        allow_unsandboxed: Also start programs if this machine cannot keep them away from your files.
        **settings: Keys of a config, which override `config`: `games=100`, `output="runs/a"`.

    Raises:
        UsageError: A setting is wrong; nothing was started.
        RunStopped, BotError, GameError: The run stopped; its games are saved, and the same call resumes it.
    """
    here, file = Path.cwd(), Path(config) if isinstance(config, str | Path) else None
    content = read_config(file) if file else dict(config) if isinstance(config, Mapping) else {}
    _refuse_code({**content, **settings})
    checked = parse_config({**content, **settings}, str(file or "the config"))
    if checked.sources.translation:
        warnings.warn(checked.sources.translation, stacklevel=2)
    permits = Permits(trust or file is None, allow_unsandboxed)
    registry, calls = find_bots(here, checked.game), call_options(checked, here, permits)
    planned, calls = plan_experiment(checked, None, registry, calls)
    folder = choose_run_folder(checked.output, file, planned.experiment)
    if find_finished_run(planned, folder) is None:
        workers = checked.workers or default_workers()
        with open_executor(checked) as pool:
            played = play(
                planned,
                folder,
                RunOptions(
                    workers,
                    calls,
                    threading.Event(),
                    pool=pool,
                    config=config_to_store(checked, planned.experiment),
                ),
            )
        if played.failure is not None:
            raise played.failure
    return Run(folder)


def _refuse_code(value: Any, where: str = "") -> None:
    """Raise UsageError for a class or function in a config, which worker processes could not load."""
    if isinstance(value, Mapping | list | tuple):
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, entry in entries:
            _refuse_code(entry, f"{where}.{key}" if where else str(key))
    elif callable(value) or isinstance(value, Player):
        name = value.__name__ if isinstance(value, type | FunctionType) else type(value).__name__
        raise UsageError(
            f"set the name of a bot, game or prompt, not the Python object {one_line(name, 60)}",
            where=where,
            hint="save its code in a file, such as bots/manual/my_bot.py: worker processes load it by name from there",
        )
