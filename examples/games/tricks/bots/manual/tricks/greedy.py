"""Greedy, a bot for Tricks."""

from games.tricks.game import CARDS, RANKS, TricksBot, TricksView, winning_place


class Greedy(TricksBot):
    """Leads its highest rank. Wins a trick as cheaply as it can, or discards its lowest rank."""

    def play_card(self, view: TricksView) -> str:
        cards = sorted(view.legal(), key=lambda card: (RANKS.index(card.split()[0]), CARDS.index(card)))
        if not view.trick:
            return cards[-1]
        wins = [card for card in cards if winning_place([*view.trick, card], view.trump) == len(view.trick)]
        return wins[0] if wins else cards[0]
