"""A bot for Dubito: change the answers.

It is known by the name of its class. docs/writing-a-bot.md explains what it is asked.
"""

from bots.base import BotBase
from dubito.game_data import TurnData


class MyBot(BotBase):
    """Doubts big plays and bluffs with probability `risk` (`dubito bots` shows this line)."""

    origin = "your name"

    def __init__(self, id: int, risk: float = 0.3) -> None:
        super().__init__(id)
        self.risk = risk  # a setting, which a config can change

    def bluff_first_hand(self, p: TurnData) -> bool:
        """Answer A: open with a bluff (random cards, random number) or with honest cards?"""
        return False

    def should_doubt(self, p: TurnData) -> bool:
        """Answer C: doubt the last play, claimed as p.current_number, or play cards?"""
        return p.n_cards_played == 3 or p.prev.n_cards == 0

    def bluff_regular(self, p: TurnData) -> bool:
        """Answer D, asked only if you hold the number: bluff with random cards or be honest?"""
        if self.cards.count(p.current_number) == 3:
            return False  # an honest play is as large as a bluff
        return self.rng.random() < self.risk  # self.rng, never the module random

    # B (maximize_first_hand) and E (maximize_regular) ask whether to play as many cards as possible. They return
    # True unless you override them.
