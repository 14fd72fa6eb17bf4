"""RiskTaker, a CalculatingLiar with random moods."""

from bots.manual.bs.calculating_liar import CalculatingLiar
from dubito.games.bs.table import Table


class RiskTaker(CalculatingLiar):
    """Plays like CalculatingLiar; stricter at a quarter of the questions, and the opposite at a twentieth.

    Verbatim from a later collection of players; not on the question's scoreboard.
    """

    origin = "ImpEmp/bs 8dd538c"

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        mood = self.rng.random()
        accuses = self.is_suspicious(seat, number, n_cards, table, 3 if mood >= 0.75 else 4)
        return not accuses if mood < 0.05 else accuses
