"""Tables to try a prompt on: every size under both win rules, with players who answer by chance."""

from collections.abc import Iterator
from typing import Final, get_args

from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.games.dubito.dealing import deal_table
from dubito.games.dubito.game_data import TurnData
from dubito.games.dubito.player import FiveNodes
from dubito.games.dubito.rules import MAX_PLAYERS, MIN_PLAYERS, Rules, WinRule

_SEED: Final = 0


class _ByChance(FiveNodes):
    """Chances under which all kinds of things happen: doubts, sets, wins, long and short rounds."""

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 0.3

    def maximize_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 0.7

    def should_doubt(self, p: TurnData) -> bool:
        return self.rng.random() < 0.2

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 0.3

    def maximize_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 0.7


def sample_tables() -> Iterator[tuple[Table, Rules]]:
    """All of them, before their first turn, each with its rules."""
    for win_rule in get_args(WinRule):
        for deal, size in enumerate(range(MIN_PLAYERS, MAX_PLAYERS + 1)):
            rules = Rules(win_rule=win_rule)
            yield sample_table(rules, size, deal), rules


def sample_table(rules: Rules, size: int, deal: int) -> Table:
    """A table of such players."""
    entrants = [Entrant(f"player {seat}", _ByChance) for seat in range(size)]
    return deal_table(entrants, rules, DealStreams(_SEED, deal), deal=deal, number=deal)
