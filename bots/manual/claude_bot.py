"""ClaudeBot, a bot of the source project isBre/Dubito: a heuristic written by a model. It does not ask one.

docs/bots.md has a table of its behaviour.
"""

from bots.base import BotBase
from dubito.game_data import TurnData

UNKNOWN = 0.5  # a rate without data
CARD_TERM = {1: 0.05, 2: 0.30, 3: 0.65}  # suspicion by the size of the last play
OPENER = 0.4  # the opener chose the number, so a bluff is less likely
FEW, MANY = 4, 18  # own cards
WITHOUT_NUMBER = 0.15  # without the number it must bluff, so it doubts sooner
SELDOM = 0.35  # below this doubt rate of the next player a bluff pays


class ClaudeBot(BotBase):
    """Doubts if its suspicion of the last play exceeds a threshold; bluffs if the next player seldom doubts."""

    origin = "isBre/Dubito, written by a Claude model"

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        return True

    def should_doubt(self, p: TurnData) -> bool:
        return p.prev.n_cards == 0 or self._suspicion(p) >= self._threshold(p)

    def bluff_regular(self, p: TurnData) -> bool:
        rate = p.next.doubts / p.next.not_first_turns if p.next.not_first_turns else UNKNOWN
        return rate < SELDOM and self.cards.count(p.current_number) < 3

    def maximize_regular(self, p: TurnData) -> bool:
        return True

    def _suspicion(self, p: TurnData) -> float:
        doubted = p.prev.honest_times + p.prev.dishonest_times
        dishonesty = p.prev.dishonest_times / doubted if doubted else UNKNOWN
        card_term = CARD_TERM[p.n_cards_played]
        if self.prev_player_started_turn(p):
            card_term *= OPENER
        return 0.5 * dishonesty + 0.5 * card_term

    def _threshold(self, p: TurnData) -> float:
        if p.my_n_cards <= FEW:
            threshold = 0.75
        elif p.my_n_cards >= MANY:
            threshold = 0.30
        else:
            threshold = 0.50
        return threshold if self.can_play_truthfully(p) else threshold - WITHOUT_NUMBER
