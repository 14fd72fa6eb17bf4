"""A game under test: its package, its bots, and the games that they play."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from dubito.errors import one_line
from dubito.game import Game, Player, State
from dubito.game.find import Registry, find_bots, package_of
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, GameCode, Table, step
from dubito.hooks import Flaw
from dubito.llm.prompts import prompt_names
from dubito.packages import MODULE
from dubito.workshop.recordings import Origin, RecordedPosition, record_positions

DEALS_PER_SIZE: Final = 6  # played at the smallest table and at the largest
MAX_POSITIONS: Final = 40  # approximate number per game, for checks of prompts
MAX_MOVES: Final = 5_000  # number of moves after which a game is considered endless


@dataclass(frozen=True)
class Subject:
    """A game under test, in the folder where it was found."""

    game: Game
    here: Path

    @cached_property
    def registry(self) -> Registry:
        return find_bots(self.here, self.game.name)

    @cached_property
    def folder(self) -> Path:
        return package_of(self.game, self.here).folder

    def file(self, name: str) -> str:
        return self.shown(self.folder / name)

    def shown(self, path: Path | str) -> str:
        path = self.here / path
        return one_line(str(path.relative_to(self.here) if path.is_relative_to(self.here) else path))

    @property
    def main(self) -> str:
        return self.file(MODULE)

    def state(self, deal: int, seats: int) -> State:
        state: State = self.game.deal(self.game.rules(), seats, DealStreams(0, deal).deck())
        return state

    def table(
        self,
        deal: int,
        seats: int,
        changed: Callable[[type[Player]], type[Player]] = lambda cls: cls,
        state: State | None = None,
    ) -> Table:
        """Seat the game's bots, selected by the deal and `changed`, in a new game or one in this `state`."""
        bots = self.registry.hand_written()
        places = [bots[(deal + 3 * seat) % len(bots)] for seat in range(seats)]
        entrants = [Entrant(bot.name, changed(bot.cls)) for bot in places]
        return Table(state or self.state(deal, seats), entrants, DealStreams(0, deal), deal=deal, number=deal)

    @cached_property
    def deals(self) -> list[tuple[int, int]]:
        return [(deal, seats) for seats in sorted({*self.game.seats}) for deal in range(DEALS_PER_SIZE)]

    @cached_property
    def outputs(self) -> dict[tuple[int, int], list[object]]:
        return {(deal, seats): [*self._outputs(deal, seats)] for deal, seats in self.deals}

    def _outputs(self, deal: int, seats: int) -> Iterator[object]:
        with GameCode(self.game, deal, deal) as code:
            table = self.table(deal, seats)
            code.state = table.state
            for _ in range(MAX_MOVES):
                if table.state.over:
                    return
                yield step(table, announce=True)[0]
        raise code.fault(
            f"the game has not ended after {MAX_MOVES:,} moves; limit the number of moves and set Ending.capped"
        )

    @cached_property
    def positions(self) -> list[list[RecordedPosition]]:
        """The questions from some games. Exceptions in the game's notebooks propagate."""
        games = [
            record_positions(self.table(deal, seats), Origin(None, 0, deal, deal), self.game, self.game.rules())
            for deal, seats in self.deals[::3]
        ]
        return [game[:: max(1, len(game) // MAX_POSITIONS)] for game in games]

    @cached_property
    def prompts(self) -> list[str]:
        return prompt_names(self.here, self.game)


Probe = Callable[[Subject], Iterator[Flaw]]  # yields a flaw for each problem that it finds
