from bots.manual.stefa_bot import StefaBot
from dubito.game_data import TurnData, TurnOutput


class Careful(StefaBot):
    """StefaBot until it is caught bluffing; then honest whenever it holds the number."""

    caught = False

    def play(self, p: TurnData) -> TurnOutput:
        self.caught = p.me.dishonest_times > 0
        return super().play(p)

    def bluff_regular(self, p: TurnData) -> bool:
        return not self.caught and super().bluff_regular(p)
