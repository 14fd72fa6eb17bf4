"""Helpers for runs against a fake provider, with time accelerated on both sides."""

import time
from pathlib import Path
from typing import Any

from dubito.experiment.call_options import PATIENCE
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import RunResult
from dubito.model_settings import Api
from tests.foreign.server import Foreign
from tests.llm.kit import player_at, run_games, small


class FastClock(ModelProgress):
    """A clock that runs `scale` times as fast."""

    def __init__(self, scale: float) -> None:
        super().__init__(clock=lambda: time.monotonic() * scale)
        self._scale = scale

    def sleep(self, seconds: float, why: str) -> None:
        with self.waiting_for(why):
            time.sleep(seconds / self._scale)


def play_at(
    server: Foreign, folder: Path, in_flight: int, games: int = 130, protocol: Api = "chat", **calls: Any
) -> RunResult:
    player = player_at(server, protocol, prompt="plain", deadline=calls.pop("deadline", 300))
    of = small(player, games=games, turns=calls.pop("turns", 4))
    return run_games(of, folder, FastClock(server.habits.scale), in_flight=in_flight, **{"patience": PATIENCE} | calls)
