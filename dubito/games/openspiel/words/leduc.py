"""Leduc poker in words: two to ten players, a card each and one for all, two rounds of betting."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dubito.games.openspiel.words.sentences import Line, chips, did, parameters, pot, ranks, seats_in_words

_KNOWN: Final = {"players", "action_mapping", "starting_player", "suit_isomorphism"}
_SUITS: Final = ("hearts", "spades")
_RAISES: Final = (2, 4)  # by round, in chips
_MOST_RAISES: Final = 2  # in a round
_PUT = re.compile(r"\[Ante: ([\d ]+)\]")  # in the engine's observation: by seat, the chips put in so far


def words(game: Any) -> "Leduc | None":
    """The words of this game; None for acts that mean another, cards without suits and a first seat that is none."""
    given = parameters(game)
    if given.keys() != _KNOWN or given["action_mapping"] or given["suit_isomorphism"]:
        return None
    first, players = given["starting_player"], given["players"]
    return Leduc(players, first) if 0 <= first < players else None


@dataclass(frozen=True)
class Leduc:
    """Leduc poker at so many seats, one of which acts first."""

    players: int
    first: int

    title: ClassVar[str] = "Leduc poker"
    names: ClassVar[tuple[str, ...]] = ("fold", "call", "raise")

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in force, a paragraph each."""
        order = ranks(self.players + 1)
        return (
            f"{seats_in_words(self.players)}. The deck has {2 * len(order)} cards, of the ranks {', '.join(order)}, "
            f"from the lowest to the highest, each once in {_SUITS[0]} and once in {_SUITS[1]}. Each player puts 1 "
            "chip into the pot and is dealt one card, unseen by the others.",
            "There are two rounds of betting; between them one more card is turned up, the community card. In each "
            f"round seat {self.first} begins, or the next one after it that has not folded, and the players act in the "
            "order of their seats.",
            "To call is to put in as many chips as it takes to have put in as many as whoever has put in most, which "
            "may be none. To raise is to put in these, and in the first round "
            f"{_RAISES[0]} chips more, in the second {_RAISES[1]}; there are at most {_MOST_RAISES} raises in a round, "
            "of all players together. To fold is to be out of the game; only a player who would have to put in chips "
            "to call may fold.",
            "A round is over when all who have not folded have called, or have called the last raise. When only one "
            "player has not folded, the game is over and that player takes the pot.",
            "After the second round the cards are compared: a card of the rank of the community card is a pair, which "
            "beats everything else; without a pair the highest rank wins. Suits count for nothing. Two with the same "
            "rank share the pot. The result of a player is the chips that it takes out of the pot less those that it "
            "has put in.",
        )

    def holds(self, state: Any, seat: int) -> str:
        """The card, the community card, and the chips in the pot."""
        dealt = [entry.action for entry in state.full_history() if entry.player < 0]
        own = self._card(dealt[seat]) if seat < len(dealt) else "no card yet"
        shown = self._card(dealt[self.players]) if len(dealt) > self.players else "none yet"
        return f"{own}; community card: {shown}; {pot(_put(state), seat)}"

    def history(self, state: Any, seat: int) -> list[Line]:
        """The deal, who called, raised and folded with what, and the community card."""
        entries = state.full_history()
        if len(entries) < self.players:
            return []
        replay = state.get_game().new_initial_state()
        for entry in entries[: self.players]:
            replay.apply_action(entry.action)
        lines: list[Line] = [(None, f"The cards are dealt. Yours: {self._card(entries[seat].action)}.")]
        for entry in entries[self.players :]:
            before = _put(replay)
            replay.apply_action(entry.action)
            if entry.player < 0:
                lines.append((None, f"The community card is {self._card(entry.action)}."))
            else:
                put = _put(replay)[entry.player] - before[entry.player]
                lines.append(did(entry.player, seat, self.names[entry.action], self._with(entry.action, put)))
        return lines

    def _with(self, action: int, put: int) -> str:
        """The chips that an act takes; none of a fold."""
        return "" if self.names[action] == "fold" else f", putting in {chips(put) if put else 'nothing'}"

    def _card(self, number: int) -> str:
        return f"the {ranks(self.players + 1)[number // 2]} of {_SUITS[number % 2]}"


def _put(state: Any) -> list[int]:
    found = _PUT.search(state.observation_string(0))
    assert found is not None
    return [int(count) for count in found[1].split()]
