"""A chunk as work for any executor: a text goes out to a worker, bytes come back.

A worker finds game and bots where it runs: code does not travel, its digests do. A worker that has other bytes
refuses the run.
"""

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dubito import __version__
from dubito.errors import BotError, RunStopped, UsageError, one_line
from dubito.experiment.chunk import ChunkPlayer, ChunkResult
from dubito.experiment.experiment import Experiment, PlayerSpec, Shard
from dubito.game import Results
from dubito.game.find import Registry, digest_of_game, find_bots
from dubito.stats.tally import Tally

_LENGTH: Final = struct.Struct("<Q")  # of the head of what comes back
_loading = threading.Lock()  # workers may be threads of one process
leave_off: Callable[[], bool] = lambda: False  # noqa: E731, set where a worker can be told to, between two deals


def job_of(experiment: Experiment, registry: Registry) -> str:
    """An experiment as the text that any worker plays its chunks from."""
    bots = {player.bot for player in experiment.players} | {registry.game.fallback}
    job = {
        "dubito": __version__,
        "engine": digest_of_game(registry.game, registry.working_directory),
        "bots": {name: registry.find(name).digest for name in sorted(bots)},
        "home": str(registry.working_directory.resolve()),
        "experiment": asdict(experiment),
    }
    return json.dumps(job)


def play_chunk(job: str, number: int, part: int = 0, of: int = 1) -> bytes:
    """Play a chunk, or a part of it, where this runs; what `played_from` reads, a refusal too."""
    try:
        with _loading:
            player = _player(job)
    except UsageError as error:
        return _packed({"refused": f"the worker {socket.gethostname()}, process {os.getpid()}, refuses: {error}"})
    played = player.play(number, leave_off, part, of)
    head = {
        "number": played.number,
        "deals": played.deals,
        "tally": played.tally.to_json(),
        "first_fallback": played.first_fallback and played.first_fallback.args,
        "error": played.error and played.error.args,
        "stopped": played.stopped,
        "lengths": [len(row) for row in played.outcomes],
    }
    return _packed(head, b"".join(played.outcomes))


def played_from(packed: bytes, results: Results) -> ChunkResult:
    """What `play_chunk` played; raises RunStopped if it refused to."""
    begin = _LENGTH.size + _LENGTH.unpack_from(packed)[0]
    head = json.loads(packed[_LENGTH.size : begin])
    if "refused" in head:
        raise RunStopped(head["refused"])
    ends = [begin]
    for length in head["lengths"]:
        ends.append(ends[-1] + length)
    return ChunkResult(
        head["number"],
        head["deals"],
        [packed[first:end] for first, end in pairwise(ends)],
        tally=Tally.from_json(head["tally"], results),
        first_fallback=_error_of(head["first_fallback"]),
        error=_error_of(head["error"]),
        stopped=head["stopped"],
    )


def _packed(head: Mapping[str, Any], rows: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return _LENGTH.pack(len(text)) + text + rows


def _error_of(arguments: list[Any] | None) -> BotError | None:
    return None if arguments is None else BotError(*arguments)


@lru_cache(maxsize=4)  # runs that one worker plays chunks of in turn
def _player(job: str) -> ChunkPlayer:
    """The experiment of a job with the bots that are here; raises UsageError if they are not the job's."""
    content = json.loads(job)
    experiment, home = _experiment_of(content["experiment"]), Path(content["home"])
    if content["dubito"] != __version__:
        raise UsageError(f"this worker has dubito {__version__}, the run has {content['dubito']}: install that on it")
    registry = find_bots(home if home.is_dir() else Path.cwd(), experiment.game)
    if digest_of_game(registry.game, registry.working_directory) != content["engine"]:
        raise UsageError(
            f"its package of the game {experiment.game} differs from the run's: copy the run's to the worker"
        )
    for name, digest in content["bots"].items():
        if (bot := registry.find(name)).digest != digest:
            file = one_line(str(bot.file))
            raise UsageError(f"its file of {name}, {file}, differs from the run's: copy the run's to the worker")
    return ChunkPlayer(experiment, registry)


def _experiment_of(content: Mapping[str, Any]) -> Experiment:
    players = {key: tuple(PlayerSpec(**spec) for spec in content[key]) for key in ("field", "contenders")}
    shard = content["shard"] and Shard(**content["shard"])
    return Experiment(**{**content, **players, "table_sizes": tuple(content["table_sizes"]), "shard": shard})
