from dubito.game_data import TurnData, TurnOutput
from dubito.player import PlayerAI


class Whole(PlayerAI):
    """Opens with what it has most of; then the truth, a doubt, or its lowest card as a lie."""

    def play(self, p: TurnData) -> TurnOutput:
        if self.is_first_turn(p):
            cards = self.cards.pick_most()
            return TurnOutput(False, cards[0] or p.playing_cards[0], cards)
        if self.can_play_truthfully(p):
            return self.play_truthfully(p, maximize=True)
        if p.can_doubt and self.rng.random() < 0.5:
            return self.doubt(p)
        return TurnOutput(False, None, [min(self.cards)])
