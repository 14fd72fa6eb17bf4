"""Kuhn poker in words: two to ten players, a card each, one bet."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dubito.games.openspiel.words.sentences import Line, did, parameters, pot, ranks, seats_in_words

_BET: Final = 1  # its action id


def words(game: Any) -> "Kuhn | None":
    """The words of this game; None if it has parameters that they know nothing of."""
    given = parameters(game)
    return Kuhn(given["players"]) if given.keys() == {"players"} else None


@dataclass(frozen=True)
class Kuhn:
    """Kuhn poker at so many seats."""

    players: int

    title: ClassVar[str] = "Kuhn poker"
    names: ClassVar[tuple[str, ...]] = ("pass", "bet")

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in force, a paragraph each."""
        cards = ranks(self.players + 1)
        return (
            f"{seats_in_words(self.players)}. The deck has {len(cards)} cards, from the lowest to the highest: "
            f"{', '.join(cards)}. Each player puts 1 chip into the pot and is dealt one card, unseen by the others; "
            "the last card stays unseen.",
            "Seat 0 begins, and the players act in the order of their seats. To bet is to put 1 more chip into the "
            "pot, to pass is to put in nothing.",
            "Once a player has bet, each of the others acts once more, in the order of the seats after that "
            "player: a bet then calls, with 1 more chip, and a pass folds. Nobody can raise. Then the game is over.",
            "If somebody has bet, the highest card among those who bet or called wins the pot; if everybody has "
            "passed, the game is over and the highest card of all wins it. The result of a player is the chips that it "
            "takes out of the pot less those that it has put in.",
        )

    def holds(self, state: Any, seat: int) -> str:
        """The card, and the chips in the pot."""
        done = state.history()
        put = [1] * self.players
        for entry in state.full_history()[self.players :]:
            put[entry.player] += entry.action == _BET
        return f"{self._card(done[seat]) if seat < len(done) else 'no card yet'}; {pot(put, seat)}"

    def history(self, state: Any, seat: int) -> list[Line]:
        """The deal, and who passed and bet."""
        entries = state.full_history()
        if len(entries) < self.players:
            return []
        lines: list[Line] = [(None, f"The cards are dealt. Yours: {self._card(entries[seat].action)}.")]
        has_bet = False
        for entry in entries[self.players :]:
            bets = entry.action == _BET
            then = f", and so {_folds_or_calls(bets, entry.player == seat)}" if has_bet else ""
            lines.append(did(entry.player, seat, self.names[entry.action], then))
            has_bet = has_bet or bets
        return lines

    def _card(self, number: int) -> str:
        return f"the {ranks(self.players + 1)[number]}"


def _folds_or_calls(bets: bool, own: bool) -> str:
    return f"{'call' if bets else 'fold'}{'' if own else 's'}"
