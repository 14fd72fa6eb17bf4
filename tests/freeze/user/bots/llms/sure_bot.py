from bots.llms.openai_bot import OpenAIBot
from dubito.game_data import TurnData


class SureBot(OpenAIBot):
    """Doubts by itself what only a joker could make true; asks the model about the rest."""

    def should_doubt(self, p: TurnData) -> bool:
        if p.n_cards_played + self.cards.count(p.current_number) > 4:
            return True
        return super().should_doubt(p)
