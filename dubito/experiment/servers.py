"""The model servers that a run starts and stops: the built-in server, and the servers of plugins."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.hooks import import_place, model_servers
from dubito.llm.slots import GameSlots
from dubito.model_settings import HOUSE, Api, ModelSettings, embedded_kind, parse_faults

if TYPE_CHECKING:
    from dubito.house.server import House

_WEIGHTS = "?weights="


class StartedServer(Protocol):
    """A running server started by a plugin."""

    base_url: str  # for an SDK that uses the protocol in the players' settings
    slots: int  # number of calls that the server handles at once
    slot_field: str  # the field of a request's body that chooses one of them, by its number from 0


class StartFunction(Protocol):
    """The interface of the function named by a plugin's `ModelServer.place`."""

    def fingerprint(self, model: str) -> str:
        """Return a fingerprint of the model's weights. Raises UsageError if the model does not exist."""

    def start(self, model: str, in_flight: int, tell: Callable[[str], None]) -> AbstractContextManager[StartedServer]:
        """Serve a model. Raises UsageError or RunStopped on failure. `tell` receives notices."""


def identify_weights(name: str, settings: ModelSettings) -> ModelSettings:
    """Return the settings with a fingerprint of the model's weights in `base_url`, if a plugin serves it.

    The fingerprint prevents runs and the cache from confusing this model with another file of the same name.
    """
    kind = embedded_kind(settings.base_url or "")
    if kind is None or kind == HOUSE:
        return settings
    suffix = (settings.base_url or "").removeprefix(kind)
    starter: StartFunction = import_place(model_servers()[kind].place)
    identified = f"{_WEIGHTS}{starter.fingerprint(settings.model)}"
    if suffix not in ("", identified):
        raise UsageError(
            f"{one_line(name)}: base_url: {one_line(settings.model, 200)} has the weights {identified}, not "
            f"{one_line(suffix, 80)}"
        )
    return settings.model_copy(update={"base_url": f"{kind}{identified}"})


@dataclass(eq=False, slots=True)
class EmbeddedServers:
    """The servers of a run. Each is started when first needed."""

    game: Game
    in_flight: int
    running: ExitStack
    tell: Callable[[str], None]
    game_slots: GameSlots = field(default_factory=GameSlots)
    _houses: dict[str, "House"] = field(default_factory=dict)
    _started: dict[str, StartedServer] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def address(self, api: Api, server: str, model: str) -> str:
        """Return the base URL for an SDK of this protocol. Raises UsageError or RunStopped on failure."""
        kind = embedded_kind(server)
        assert kind is not None
        with self._lock:
            if kind == HOUSE:
                from dubito.house.core import house_policy
                from dubito.house.faults import Faults  # imported late, since most runs need no server
                from dubito.house.server import House

                # Different faults need separate servers. Unknown ones raise UsageError.
                faults = parse_faults(server)
                if server not in self._houses:
                    policy, failing = house_policy([self.game]), Faults.parse(faults) if faults else None
                    self._houses[server] = self.running.enter_context(House(policy=policy, faults=failing))
                return self._houses[server].base_url(api)
            if server not in self._started:
                starter: StartFunction = import_place(model_servers()[kind].place)
                started = starter.start(model, self.in_flight, self.tell)
                self._started[server] = self.running.enter_context(started)
                self.game_slots.limit(self.slots(server))
            return self._started[server].base_url

    def call_fields(self, server: str, game: int) -> Mapping[str, int]:
        """Return what the calls of a game add to the body of a request, which does not change its digest."""
        started, slot = self._started.get(server), self.game_slots.find(game)
        return {} if started is None or slot is None else {started.slot_field: slot}

    def slots(self, server: str) -> int:
        """Return how many calls this server accepts at once."""
        started = self._started.get(server)
        return self.in_flight if started is None else min(started.slots, self.in_flight)
