"""Player 2 of the source's controller, with Java's random number generator."""

from bots.manual.bs.player1 import Player1
from dubito.games.bs.table import Table

SEED = 20
ACCUSES = 0.2
FACTOR = 0x5DEECE66D
MASK = 2**48 - 1


class JavaRandom:
    """The generator of java.util.Random: a 48-bit state, advanced twice per draw."""

    def __init__(self, seed: int) -> None:
        self.state = (seed ^ FACTOR) & MASK

    def random(self) -> float:
        """Return the next number in [0, 1): the top 26 bits of a state, then the top 27 of the next."""
        first = (self.state * FACTOR + 0xB) & MASK
        second = self.state = (first * FACTOR + 0xB) & MASK
        return ((first >> 22 << 27) + (second >> 21)) / 2**53


class Player2(Player1):
    """Plays like Player1; accuses at the same fifth of the questions in every game, whatever was played.

    Verbatim: its generator starts every game with the fixed seed 20, so its answers never change.
    It won 5.76 ± 0.14 % of its games in the pool of the seven verbatim players.
    """

    origin = "prakol16/bs"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.java = JavaRandom(SEED)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return self.java.random() < ACCUSES
