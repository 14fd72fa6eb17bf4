"""The embedded servers of a run: the house, started when a player first needs it."""

import threading
from typing import TYPE_CHECKING

from dubito.game import Spec
from dubito.llm.settings import faults_of
from dubito.llm.wire import Protocol

if TYPE_CHECKING:
    from dubito.house.server import House


class EmbeddedHouses:
    """The embedded servers, each started when first needed: one, or one for each kind of faults."""

    def __init__(self, game: Spec) -> None:
        """They have the models of this game."""
        self._game = game
        self._houses: dict[str, House] = {}
        self._lock = threading.Lock()

    def address(self, api: Protocol, server: str) -> str:
        """The base URL for an SDK of this protocol; raises UsageError for faults that there are not."""
        from dubito.house.faults import Faults  # late: most runs need no server
        from dubito.house.policy import house_policy
        from dubito.house.server import House

        faults = faults_of(server)
        with self._lock:
            if server not in self._houses:
                policy, failing = house_policy([self._game]), Faults.parse(faults) if faults else None
                self._houses[server] = House(policy=policy, faults=failing).__enter__()
            return self._houses[server].base_url(api)

    def close(self) -> None:
        """Stop those that run."""
        for house in self._houses.values():
            house.__exit__(None, None, None)
