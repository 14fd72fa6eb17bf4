"""One game as a path down its tree: decisions of seats and outcomes of chance, one after another. Knows no pyspiel.

Below it is the game's own engine, which decides all that the rules decide. What an engine draws from a `Random` is
here decided by chance, an outcome at a time, and only then handed to the engine (`Draws`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy, deepcopy
from random import Random
from typing import Any, Final, NamedTuple, Self

from dubito.errors import IllegalOutput
from dubito.game import GameEvent, Player, Results

CHANCE: Final = -1  # these two as pyspiel has them
TERMINAL: Final = -4
_WAYS_ON: Final = 20  # unseen moves of others are tried so often before another world is drawn
_DECIDERS: Final = {CHANCE: "chance", TERMINAL: "anybody after the end"}

Pieces = dict[str, Any]  # parts of a tensor by name: numbers, or rows of them


class LogEntry(NamedTuple):
    """An entry of the log: what somebody saw of the game."""

    only: int | None  # the one seat that saw it; None: all
    text: str
    what: Any  # the engine's event; or a tuple of a word and numbers, where only a seat knows


class ChanceDraws:
    """Stands in for the `Random` of an engine: gives out what chance has decided, and nothing else.

    Raises IndexError if the engine draws more than that.
    """

    def __init__(self, order: Sequence[Any] = ()) -> None:
        self._order = order  # of the cards that are shuffled next
        self.places: list[float] = []

    def decide(self, place: int, of: int) -> None:
        """The next draw of one of so many, as engines make it by `int(random() * of)`, is this one."""
        self.places.append((place + 0.5) / of)

    def random(self) -> float:
        """The next draw."""
        return self.places.pop(0)

    def shuffle(self, cards: list[Any]) -> None:
        """Put all cards into the order that chance has decided."""
        assert self._order, "the engine has shuffled more often than chance has decided"
        cards[:], self._order = self._order, ()


class Course:
    """A game of one of our engines between two decisions, of a seat or of chance."""

    results: Results
    n_actions: int  # that seats have
    n_outcomes: int  # that chance has, at most

    player: int  # whose decision it is: a seat, CHANCE or TERMINAL
    actions: Sequence[int]  # that the seat may take, ascending
    outcomes: Sequence[tuple[int, float]]  # of chance, with their probabilities

    def __init__(self, players: int) -> None:
        self.players = players
        self.log: list[LogEntry] = []
        self.history: list[tuple[int, int]] = []  # who decided, and what
        self.engine: Any = None  # None: the deal is not over

    def apply(self, action: int) -> None:
        """Take an action or an outcome; raises IllegalOutput, and changes nothing, where it is not legal now."""
        legal = self.actions or [outcome for outcome, _ in self.outcomes]
        if action not in legal:
            raise IllegalOutput(
                f"{action} is not legal for {_DECIDERS.get(self.player, f'seat {self.player}')} here: "
                f"{', '.join(f'{each} ({self.words(self.player, each)})' for each in legal) or 'nothing'} is"
            )
        self.history.append((self.player, action))
        if self.player == CHANCE:
            self._chance(action)
        else:
            self.note(self.words(self.player, action), self.about(action), self.player)
            self._decide(action)

    def _chance(self, outcome: int) -> None:
        raise NotImplementedError

    def _decide(self, action: int) -> None:
        raise NotImplementedError

    def steps(self, player: Player) -> list[int]:
        """The decisions, from this one on, that come to what a bot of the harness does now; it is asked once.

        Raises UsageError if the bot does what no decisions come to.
        """
        raise NotImplementedError

    def words(self, player: int, action: int) -> str:
        """An action or, of CHANCE, an outcome in words."""
        raise NotImplementedError

    def about(self, action: int) -> tuple[Any, ...]:
        """The log's entry of a decision."""
        return ("did", action)

    def _ask_chance(self, pool: Iterable[int]) -> None:
        """One of these, each as likely as it is often in there."""
        counts = Counter(pool)
        total = counts.total()
        self.player, self.actions = CHANCE, ()
        self.outcomes = [(value, n / total) for value, n in sorted(counts.items()) if n]

    def _ask(self, seat: int, actions: Sequence[int]) -> None:
        self.player, self.actions, self.outcomes = seat, actions, ()

    def _end(self) -> None:
        self.player, self.actions, self.outcomes = TERMINAL, (), ()

    def note(self, text: str, what: Any, only: int | None = None) -> None:
        """Keep what everybody has seen, or one seat alone."""
        self.log.append(LogEntry(only, text, what))

    def _tell(self, events: Sequence[GameEvent]) -> None:
        """What the engine has announced."""
        for event in events:
            self.note(self.in_words(event), event, event.only)

    def in_words(self, event: Any) -> str:
        """An event of the engine, short."""
        raise NotImplementedError

    def seen(self, seat: int) -> Iterator[LogEntry]:
        """All that a seat has seen: nothing after it has left the game."""
        for entry in self.log:
            if entry.only is None or entry.only == seat:
                yield entry
                if getattr(entry.what, "leaves", None) == seat:
                    return

    def information(self, seat: int) -> str:
        """All that a seat knows, what it did itself included: the information state as text."""
        return "; ".join([entry.text for entry in self.seen(seat)])

    def __str__(self) -> str:
        """The whole truth, from which every action and outcome can be read."""
        told = [entry.text if entry.only is None else f"[{entry.only}: {entry.text}]" for entry in self.log]
        return "; ".join([*told, *self.undone()])

    def undone(self) -> Sequence[str]:
        """What chance has decided, but the engine has not been given yet."""
        raise NotImplementedError

    def recall(self, seat: int) -> Pieces:
        """The information state as numbers: as much as `information` says; rows that are not there yet are 0."""
        raise NotImplementedError

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the pieces of `recall`."""
        raise NotImplementedError

    def observation(self, seat: int) -> Pieces:
        """What a seat sees at this moment, as numbers for networks: one-hot, counts and shares."""
        raise NotImplementedError

    def observation_words(self, seat: int) -> str:
        """The same as text."""
        return "; ".join(
            f"{name} {' '.join(f'{n:g}' for n in values)}" for name, values in self.observation(seat).items()
        )

    def returns(self) -> list[float]:
        """The measure that ranks in the harness, by seat; 0 while the game goes on."""
        if self.player != TERMINAL:
            return [0.0] * self.players
        ending, measure = self.engine.ending(), self.results.measures[0]
        return [measure.values[self.results.bucket(mark, ending.capped)] / measure.scale for mark in ending.marks]

    def another(self, seat: int, chance: Random) -> list[int]:
        """The history of a game that this seat cannot tell from this one, drawn at random; the same one is to move.

        Read from what the seat has seen, never from what is hidden, and from whose move it is.
        """
        known = self.information(seat)
        while True:
            world = self.world(seat, chance)
            for _ in range(_WAYS_ON):
                ahead = deepcopy(world)
                while ahead.player not in (self.player, TERMINAL) and ahead.information(seat) == known:
                    ahead.apply(chance.choice(ahead.actions or [outcome for outcome, _ in ahead.outcomes]))
                if ahead.player == self.player and ahead.information(seat) == known:
                    return [action for _, action in ahead.history]

    def world(self, seat: int, chance: Random) -> Self:
        """Such a game, as far as the seat has seen it: the others may have gone on since."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy that shares what never changes: the entries of the log, and `shared`."""
        twin = copy(self)
        own = {name: value for name, value in vars(self).items() if name not in ("log", "history")}
        vars(twin).update(deepcopy(own, {id(one): one for one in self.shared()}))
        twin.log, twin.history = self.log[:], self.history[:]
        return twin

    def shared(self) -> Iterator[Any]:
        """Values that copies need not copy."""
        yield from ()


def one_hot(value: int, size: int) -> list[float]:
    """All 0 but one; all 0 for a value that is none of these."""
    return [float(place == value) for place in range(size)]
