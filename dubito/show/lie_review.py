"""Review how a seat handled lies in a game: how many it caught, believed and told, and its best and worst decisions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from dubito.errors import pluralize
from dubito.game import Game, LieMark, State
from dubito.game.moves import Forfeit, make_move
from dubito.game.reader import Reader


class KeyMove(NamedTuple):
    """A decision that moved many cards."""

    pile: int
    turn: int
    text: str  # a sentence


@dataclass
class LieReview:
    """The reactions and lies of one seat, described to a reader."""

    reader: Reader
    faced: int = 0  # lies that the seat could call
    caught: int = 0
    calls: int = 0
    lies: int = 0  # the seat's own
    exposed: set[int] = field(default_factory=set)  # the turns in which others called the seat's lies
    best: KeyMove | None = None
    worst: KeyMove | None = None

    def note_reaction(self, lie_mark: LieMark, turn: int, me: int, lie: str) -> None:
        """Note the seat's reaction to another seat's play."""
        assert lie_mark.of is not None
        who, mover = self.reader.starts(me), self.reader.name(lie_mark.of)
        self.faced += lie_mark.is_lie
        self.calls += lie_mark.called
        if lie_mark.called and lie_mark.is_lie:
            self.caught += 1
            self.best = _larger(self.best, lie_mark.pile, turn, f"{who} caught {mover}'s {lie}")
        elif lie_mark.called:
            self.worst = _larger(self.worst, lie_mark.pile, turn, f"{who} did not believe {mover}, who was honest")

    def note_caller(self, lie_mark: LieMark, turn: int, caller: int, lie: str) -> None:
        """Note that another seat called the seat's lie."""
        self.exposed.add(turn)
        assert lie_mark.of is not None
        who, liar = self.reader.starts(caller), self.reader.name(lie_mark.of)
        self.worst = _larger(self.worst, lie_mark.pile, turn, f"{who} caught {liar} in a {lie}")

    def figures(self, lie: str, call: str) -> list[tuple[str, str, str]]:
        """Return three figures with a title and a note each, or none if the seat neither faced nor told a lie."""
        if not (self.faced or self.calls or self.lies):
            return []
        wrong = self.calls - self.caught
        return [
            (f"{lie.capitalize()}s caught", f"{self.caught} of {self.faced}", "that you could call"),
            (f"Your {lie}s", str(self.lies), f"{len(self.exposed)} caught"),
            (f"Wrong {call}s", str(wrong), f"of {self.calls}"),
        ]


def _larger(known: KeyMove | None, pile: int, turn: int, text: str) -> KeyMove:
    new = KeyMove(pile, turn, f"{text}, with {pluralize(pile)} on the pile.")
    return new if known is None or new.pile > known.pile else known


def review_lies(
    game: Game, state: State, outputs: Iterable[object], me: int, reader: Reader, repeated: int = 0
) -> LieReview:
    """Play the outputs, starting from the deal `state`, and review for a reader how the seat `me` handled lies.

    The review leaves out the first `repeated` outputs. It is empty if the game has no lies.
    """
    review = LieReview(reader)
    if not game.has_lie_marks or not game.has_lies:
        return review
    lie = game.results.lie_words[0]
    for place, output in enumerate(outputs):
        if place >= repeated and not isinstance(output, Forfeit):
            seat, turn, lie_mark = state.seat, state.turns_played + 1, game.lie_mark(state, output)
            review.lies += seat == me and game.lie(state, output) is not None
            if lie_mark is not None and lie_mark.of is not None:
                if seat == me:
                    review.note_reaction(lie_mark, turn, me, lie)
                elif lie_mark.of == me and lie_mark.called and lie_mark.is_lie:
                    review.note_caller(lie_mark, turn, seat, lie)
        make_move(state, output)
    return review
