"""Helpers: one decision through the whole pipeline and the real SDKs."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from dubito.games.dubito.engine import Rules
from dubito.games.dubito.facts import example_position
from dubito.llm.cache import ReplyCache
from dubito.llm.decide import Decider, Journal
from dubito.llm.limiter import Timing
from dubito.llm.pipeline import Pipeline, PipelineOptions
from dubito.llm.request import Place
from dubito.llm.settings import check_settings
from dubito.model_settings import Api
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from dubito.store.spend import Caps
from tests.llm.kit import Clock, Incoming, Response, Server, respond
from tests.prompts.kit import PROMPTS, REGISTRY

_PATIENCE: Final = 1e9  # seconds; many decisions share an account, and a long wait must not stop the others
IN_FLIGHT: Final = 4  # concurrent calls of an account

Answer = Callable[[Incoming], Response]


@dataclass(frozen=True, slots=True)
class Decided:
    """The result of one decision, with its tries and costs."""

    answer: bool | None  # None: the fallback answered
    outcome: str
    tries: tuple[str, ...]  # `received` or the kind of failure, for all attempts
    errors: tuple[str, ...]  # stored texts of failed tries
    assumed: tuple[bool, ...]  # whether each cost is unknown
    asked_again: str | None  # text of the last re-ask


class ServersAt:
    """Servers that are already running."""

    def __init__(self, address: Callable[[Api, str], str]) -> None:
        self._address = address

    def address(self, api: Api, server: str, model: str) -> str:
        return self._address(api, server)

    def slots(self, server: str) -> int:
        return IN_FLIGHT

    def call_fields(self, server: str, game: int) -> dict[str, int]:
        return {}


class Desk:
    """A run's pipeline over the real SDKs, without games. Time passes only in sleeps."""

    def __init__(self, folder: Path, address: Callable[[Api, str], str], patience: float = _PATIENCE) -> None:
        """Create the pipeline. `address` returns the address of `base_url: house` for a protocol."""
        folder.mkdir(exist_ok=True)
        self.clock = Clock()
        self._db = RunDb.create(folder / "run.db")
        self._log = ModelLog(self._db)
        options = PipelineOptions(
            in_flight=IN_FLIGHT,
            offline=False,
            suspend=False,
            servers=ServersAt(address),
            timing=Timing(patience, self.clock.sleep, lambda why: nullcontext(), self.clock, lambda: False),
        )
        self._pipeline = Pipeline(self._log, ReplyCache(folder / "cache"), Caps(), options)
        self._decisions = 0

    def __enter__(self) -> "Desk":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._pipeline.close()
        self._db.__exit__(kind, error, tb)

    def decide(self, protocol: Api, node: str = "C", number: int | None = None, **settings: Any) -> Decided:
        """Make one decision. The number determines its draw."""
        self._decisions += 1
        decision = self._decisions if number is None else number
        given = {"api": protocol, "model": "house-random", "base_url": "house", **settings}
        checked = check_settings("asker", given)
        prompt = PROMPTS[checked.prompt]
        player = Decider(
            name="asker",
            settings=checked,
            prompt=prompt,
            fallback=REGISTRY.find("RandomBoi").cls,
            asks=self._pipeline.build_asks("asker", checked, None),
            log=self._log,
            seed=0,
            rules=Rules(),
            count_outcome=lambda outcome: None,
        )
        place = Place("asker", 0, 0, 0, decision, 0, node)
        fell_back: list[bool] = []

        def otherwise() -> bool:
            fell_back.append(True)
            return False

        asked = player.begin(prompt.render(example_position(node)), prompt.form(node), place)
        answer = player.decide(asked, place, 1, Journal(), otherwise)
        return self._decided(decision, None if fell_back else answer)

    def _decided(self, decision: int, answer: bool | None) -> Decided:
        read = self._db.read
        ((outcome,),) = read("SELECT outcome FROM decisions WHERE decision = ?", (decision,))
        tries = read(
            "SELECT iif(state = 'failed', kind, state), error, assumed "
            "FROM tries WHERE decision = ? ORDER BY attempt, try",
            (decision,),
        )
        requests = read("SELECT request FROM attempts WHERE decision = ? ORDER BY attempt", (decision,))
        body = json.loads(self._log.text(requests[-1][0]))["body"]
        last = body.get("input", body.get("messages"))[-1]["content"] if len(requests) > 1 else None
        last = last[-1]["text"] if isinstance(last, list) else last
        errors = tuple(error for _, error, _ in tries if error is not None)
        assumed = tuple(bool(each) for _, _, each in tries)
        return Decided(answer, outcome, tuple(kind for kind, _, _ in tries), errors, assumed, last)


class Scene:
    """A pipeline to a server whose response the test sets before each decision."""

    def __init__(self, folder: Path) -> None:
        self._answer: Answer = lambda request: respond(request.protocol)
        self.server = Server(lambda request: self._answer(request))
        self.desk = Desk(folder, lambda api, _: self.server.base_url(api))

    def __call__(self, protocol: Api, answer: Answer, **settings: Any) -> Decided:
        """Make one decision. Its requests are in `server.requests`, and its waits in the clock."""
        self._answer = answer
        self.server.requests.clear()
        self.desk.clock.slept.clear()
        return self.desk.decide(protocol, **settings)


def first(*answers: Response) -> Answer:
    left = list(answers)
    return lambda request: left.pop(0) if left else respond(request.protocol)
