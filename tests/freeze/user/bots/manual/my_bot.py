"""A bot to start from: copy this file to bots/manual/my_bot.py, then change what it answers.

File and class have one name (my_bot.py, MyBot); files that start with _ are no bots. Everything is
explained in docs/writing-a-bot.md.
"""

from bots.base import BotBase
from dubito.game_data import TurnData


class MyBot(BotBase):
    """One sentence for `dubito bots`: doubts big plays, bluffs as its setting `risk` says."""

    origin = "your name"

    def __init__(self, id: int, risk: float = 0.3) -> None:
        super().__init__(id)
        self.risk = risk  # a setting: another value can be given in a config

    def bluff_first_hand(self, p: TurnData) -> bool:
        """A. You open a round. True: random cards under a random number. False: honest cards."""
        return False

    def should_doubt(self, p: TurnData) -> bool:
        """C. Cards lie on the board as p.current_number. True: turn the last play over. False: play cards."""
        return p.n_cards_played == 3 or p.prev.n_cards == 0

    def bluff_regular(self, p: TurnData) -> bool:
        """D. Only asked when you hold the number. True: random cards all the same. False: honest ones."""
        if self.cards.count(p.current_number) == 3:
            return False  # an honest play puts down as many
        return self.rng.random() < self.risk  # self.rng, never the module random

    # B (maximize_first_hand) and E (maximize_regular) ask whether to play as many cards as possible: yes, unless
    # you write them too.
