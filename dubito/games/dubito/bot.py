"""The base class of Dubito bots, with helper methods and the questions at nodes A-E."""

from collections.abc import Generator, Mapping
from typing import ClassVar, Final

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.game.events import Listener as Listener
from dubito.game.native import Loose, mypyc_attr
from dubito.games.dubito.cards import JOKER, MAX_PLAY, NUMBERS, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.events import Event


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class PlayerAI(Player[Loose[HandView]]):
    """The base class of Dubito's bots. A bot answers each turn with a `TurnOutput` (R28)."""

    uncertainty_value: ClassVar[float] = 0.05  # R22

    @property
    def rules(self) -> Loose[Rules]:
        """The read-only rules of this game: `jokers`, `win_rule`, `max_turns`."""
        if self._rules is None:
            rules = self._seating.rules
            self._rules = rules if isinstance(rules, Rules) else Rules()
        own: Loose[Rules] = self._rules
        return own

    @rules.setter
    def rules(self, rules: Loose[Rules]) -> None:
        self._rules = rules

    def play(self, p: TurnData) -> Loose[TurnOutput]:
        """Decide this turn. Override this method, or subclass `bots.base.BotBase` and answer A-E."""
        raise NotImplementedError(f"{type(self).__name__} does not implement play()")

    def observe(self, event: Loose[Event]) -> None:
        """Receive an event that the whole table sees (R26). Does nothing by default."""

    @classmethod
    def needs_events(cls) -> bool:
        return cls.observe is not PlayerAI.observe

    @classmethod
    def describe(cls, rules: Mapping[str, object], settings: Mapping[str, object]) -> str | None:
        """Return what a run reports about the bot in addition to its results. Empty by default."""
        return None

    def is_first_turn(self, p: TurnData) -> bool:
        """Return whether the board is empty, so that this turn opens a round."""
        return p.board_cards == 0

    def can_play_truthfully(self, p: TurnData) -> bool:
        """Return whether the hand holds the current number, not counting jokers (R22)."""
        return p.board_cards > 0 and self.cards.has(p.current_number)

    def prev_player_started_turn(self, p: TurnData) -> bool:
        """Return whether the only play on the board is the previous player's (R22)."""
        return 0 < p.board_cards == p.n_cards_played and p.last_player_id == p.prev.id

    def all_equal(self) -> bool:
        return self.cards.all_equal()

    def doubt(self, p: TurnData) -> Loose[TurnOutput]:
        return TurnOutput(True)

    def bluff(self, p: TurnData, *, maximize: bool) -> Loose[TurnOutput]:
        """Play random cards: three if `maximize`, else 1 to 3. An opening has a random number (R24)."""
        n = MAX_PLAY if maximize else self._draw(MAX_PLAY)
        cards = self.cards.pick_random(n)
        return TurnOutput(False, self._draw_number(p) if p.board_cards == 0 else None, cards)

    def play_truthfully(self, p: TurnData, *, maximize: bool) -> Loose[TurnOutput]:
        """Play honest cards (R24, R25).

        An opening plays all cards of the most common value, or one random card, and claims that value. Other turns play
        all matching cards, or a random number of them. Raises IllegalOutput if the hand does not hold the number.
        """
        if p.board_cards == 0:
            cards = self.cards.pick_most() if maximize else self.cards.pick_random(1)
            return TurnOutput(False, self._draw_number(p) if cards[0] == JOKER else cards[0], cards)
        cards = self.cards.pick_all(p.current_number)
        if not cards:
            raise IllegalOutput(f"play_truthfully needs a card of number {p.current_number} in the hand")
        n = len(cards) if maximize else self._draw(len(cards))
        return TurnOutput(False, None, cards[:n])

    def _draw(self, most: int) -> int:
        """Draw a uniform integer from 1 to `most`, using the framework's stream."""
        return 1 + int(self._seating.streams.framework.random() * most)

    def _draw_number(self, p: TurnData) -> int:
        # Jokers are honest under any number.
        numbers = p.playing_cards or NUMBERS[:1]
        return numbers[self._draw(len(numbers)) - 1]


NODES: Final = {
    "A": "bluff_first_hand",
    "B": "maximize_first_hand",
    "C": "should_doubt",
    "D": "bluff_regular",
    "E": "maximize_regular",
}


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class FiveNodes(PlayerAI):
    """A player whose turns consist of the questions at nodes A-E. Bots subclass it as `bots.base.BotBase`."""

    listeners: tuple[Listener, ...] = ()

    def report_answers(self, listener: Listener) -> None:
        self.listeners += (listener,)

    def play(self, p: TurnData) -> Loose[TurnOutput]:
        """Ask A and B, or C, D (if the number is held) and E (R24).

        Raises IllegalOutput for an answer that is not a bool (R13). With listeners (model players, rehearsals,
        recorders), `_play_with_listeners` asks the same questions. An override can update its own state and must end
        with `return super().play(p)`.
        """
        if self.listeners:
            return self._play_with_listeners(p)
        if p.board_cards == 0:
            if (bluff := self.bluff_first_hand(p)) is not True and bluff is not False:
                raise _not_a_bool("A", bluff)
            if (maximize := self.maximize_first_hand(p)) is not True and maximize is not False:
                raise _not_a_bool("B", maximize)
        else:
            if p.can_doubt:
                if (doubt := self.should_doubt(p)) is True:
                    return self.doubt(p)
                if doubt is not False:
                    raise _not_a_bool("C", doubt)
            bluff = True  # a hand without the number must bluff, so D is skipped (R25)
            if self.cards.has(p.current_number) and (bluff := self.bluff_regular(p)) is not True and bluff is not False:
                raise _not_a_bool("D", bluff)
            if (maximize := self.maximize_regular(p)) is not True and maximize is not False:
                raise _not_a_bool("E", maximize)
        if bluff:
            return self.bluff(p, maximize=maximize)
        return self.play_truthfully(p, maximize=maximize)

    def _play_with_listeners(self, p: TurnData) -> Loose[TurnOutput]:
        """Ask the same questions as `play`, and report them and their answers to the listeners.

        This is a separate method because checking for listeners in `play` made bots' games 5 to 12 % slower.
        """
        walk = five_questions(self, p)
        try:
            node = next(walk)
            while True:
                node = walk.send(self._ask(node, p))
        except StopIteration as end:
            output: Loose[TurnOutput] = end.value
            return output

    def _ask(self, node: str, p: TurnData) -> bool:
        for listener in self.listeners:
            listener.note_question(node)
        answer = getattr(self, NODES[node])(p)
        if answer is not True and answer is not False:
            raise _not_a_bool(node, answer)
        for listener in self.listeners:
            listener.note_answer(node, answer)
        return answer

    def bluff_first_hand(self, p: TurnData) -> Loose[bool]:
        """Answer A, opening: True plays random cards under a random number, False plays honestly."""
        raise _not_implemented_error("A", self)

    def maximize_first_hand(self, p: TurnData) -> Loose[bool]:
        """Answer B, opening: True, the default, plays as many cards as possible."""
        return True

    def should_doubt(self, p: TurnData) -> Loose[bool]:
        """Answer C, regular turn: True doubts the last play, False plays."""
        raise _not_implemented_error("C", self)

    def bluff_regular(self, p: TurnData) -> Loose[bool]:
        """Answer D, regular turn with the number in hand: True bluffs anyway."""
        raise _not_implemented_error("D", self)

    def maximize_regular(self, p: TurnData) -> Loose[bool]:
        """Answer E, regular turn: True, the default, plays as many cards as possible."""
        return True


def five_questions(player: FiveNodes, p: TurnData) -> Generator[str, bool, Loose[TurnOutput]]:
    """Yield the nodes of a turn (`Game.walk`) and return the player's output (R24)."""
    if p.board_cards == 0:
        bluff = yield "A"
        maximize = yield "B"
    else:
        if p.can_doubt and (yield "C"):
            return player.doubt(p)
        bluff = not player.cards.has(p.current_number) or (yield "D")  # a hand without the number must bluff (R25)
        maximize = yield "E"
    return player.bluff(p, maximize=maximize) if bluff else player.play_truthfully(p, maximize=maximize)


def missing_nodes(cls: type[Player]) -> list[str]:
    """Return the required nodes that this class does not answer, such as `C (should_doubt)`.

    A bot that overrides `play` and answers no node does not need them.
    """
    if not issubclass(cls, FiveNodes):
        return []
    missing = [node for node in "ACD" if getattr(cls, NODES[node]) is getattr(FiveNodes, NODES[node])]
    if missing == ["A", "C", "D"] and cls.play is not FiveNodes.play:
        return []
    return [f"{node} ({NODES[node]})" for node in missing]


def _not_a_bool(node: str, answer: object) -> IllegalOutput:
    kind = "None" if answer is None else f"a value of type {type(answer).__name__}"
    return IllegalOutput(f"node {node} ({NODES[node]}) answered {kind}, not True or False")


def _not_implemented_error(node: str, player: PlayerAI) -> IllegalOutput:
    return IllegalOutput(f"{type(player).__name__} does not implement node {node} ({NODES[node]}) yet")
