"""Second worlds: games that differ in a single random draw, or in a single move by another seat.

Both games are played with the same outputs, except where the other seat holds a different card and plays that one.
leaks.py compares what a seat sees in both.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Final, NamedTuple, TypeVar

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Bool, Cards, Choice, GameEvent, State, View, node_view
from dubito.game.events import EVERYTHING
from dubito.game.log import Log, Position
from dubito.game.reader import Reader
from dubito.game.streams import DealStreams
from dubito.game.table import copy_output
from dubito.game.words import Line, Teller, Words
from dubito.plugins.gamecheck.plain_data import list_leaves, public_attributes, to_plain
from dubito.plugins.gamecheck.subject import Subject

T = TypeVar("T")
_MAX_DRAWS: Final = 120  # the first draws of a game can be changed
_MAX_WORLDS: Final = 10  # per deal, of each kind
_MAX_LATER_DRAWS: Final = 8  # per deal, of draws during the game
_MAX_LATER_MOVES: Final = 2  # per deal, for each node
_MAX_ALTERNATIVES: Final = 2  # alternatives to one move
_MAX_OWN_MOVES: Final = 6  # per deal


class _ChangedRandom(Random):
    """A random stream with a different value for one draw."""

    def __init__(self, stream: Random, changed: int) -> None:
        super().__init__()
        self.setstate(stream.getstate())
        self.draws, self._changed, self._inside = 0, changed, False

    def _is_changed(self) -> bool:
        self.draws += 1
        return self.draws - 1 == self._changed

    def _randbelow(self, n: int) -> int:
        """Draw an integer for shuffles, samples and choices."""
        self._inside = True
        value = int(Random._randbelow(self, n))  # type: ignore[attr-defined]
        self._inside = False
        shift = 1 + self._changed % max(1, min(3, n - 1))
        return (value + shift) % n if self._is_changed() else value

    def getrandbits(self, k: int) -> int:
        value = super().getrandbits(k)
        return value ^ 1 if not self._inside and self._is_changed() else value

    def random(self) -> float:
        value = super().random()
        return (value + 0.3 + 0.1 * (self._changed % 4)) % 1 if self._is_changed() else value


SKIPPED: Final = object()  # in place of an output: the seat, which moves again, does not make the move


class Variant(NamedTuple):
    """How a second world differs (in a draw or a move), and the seat to which both worlds should look the same."""

    seat: int
    draw: int = -1
    move: int = -1  # index of the output that is replaced
    instead: object = None  # the output in the second world
    node: str = ""  # node of the move
    after_deal: bool = False  # whether the draw happens during the game
    is_own: bool = False  # whether the seat itself makes the move, which it then knows


@dataclass
class SeatWorld:
    """One of two compared games, from the perspective of a seat."""

    subject: Subject
    seats: int
    seat: int
    state: State
    log: Log
    chance: _ChangedRandom
    teller: Teller | None = None  # according to the game's words
    lines: list[Line] = field(default_factory=list)  # lines about the last move
    moved_differently: bool = False  # whether a seat moved differently than in the first world

    def held_cards(self, seat: int) -> object:
        return to_plain(self.cards(seat))

    def cards(self, seat: int) -> object:
        return self.state.cards(seat, DealStreams(0, 0).seat(seat))

    def hands(self) -> list[object]:
        return [None if seat == self.seat else self.held_cards(seat) for seat in range(self.seats)]

    def apply(self, output: object) -> list[GameEvent]:
        mover, copy = self.state.seat, copy_output(self.state, output)
        events = [*self.state.apply(copy, EVERYTHING)]
        if self.teller is not None:
            self.lines = [*self.teller.describe_move(mover, copy, events)]
        return events

    def observe(self, events: Sequence[GameEvent]) -> list[object]:
        """Return the events that the seat observes, as plain data."""
        self.log.add(events)
        observed = [event for event in events if event.only in (None, self.seat)]
        return [{type(event).__name__: to_plain(event)} for event in observed]

    def legal(self) -> object:
        return None if self.subject.game.has_walk else to_plain(self.subject.game.legal(self.state.view()))

    def position(self) -> Position | None:
        """Return the position at the first question of the seat's move, or None if the game has no facts."""
        game, state = self.subject.game, self.state
        if not game.has_facts:
            return None
        bot = SimpleNamespace(cards=self.cards(self.seat))
        node = next(game.walk(bot, state.view())) if game.has_walk else node_view(state).node
        return Position(game.rules(), node, self.log.of(self.seat))

    def public_words(self) -> dict[str, object]:
        """Return the game's texts that everyone sees."""
        if self.teller is None:
            return {}
        panels = [panel.known() for panel in self.teller.panels()]
        return {"panels": panels, "describe_move": [line.sentence for line in self.lines if line.sentence]}

    def secret_words(self) -> list[str]:
        return [panel.truth for panel in self.teller.panels()] if self.teller is not None else []

    def words_to_seat(self) -> dict[str, object]:
        """Return the text that a person in this seat reads at its move."""
        words = own_words(self.subject)
        if words is None:
            return {}
        state, seat = self.state, self.seat
        shown: dict[str, object] = {
            "describe_view": [*words.describe_view(state, seat, Reader())],
            "hand": [*words.hand(state, seat)],
        }
        shown |= {"key_hint": words.key_hint(state)}
        if not self.subject.game.has_walk:
            shown |= {"choices": [*words.choices(state)], "playable_cards": [*words.playable_cards(state, seat)]}
        return shown


def own_words(subject: Subject) -> Words | None:
    """Return the game's words, or None if it only has the default ones."""
    words = subject.game.words
    return None if type(words) is Words else words


def build_world(subject: Subject, deal: int, seats: int, seat: int, draw: int) -> SeatWorld:
    """Deal a game with a different value for one draw, unless `draw` is -1."""
    game, chance = subject.game, _ChangedRandom(DealStreams(0, deal).deck(), draw)
    state = game.deal(game.rules(), seats, chance)
    words = own_words(subject)
    teller = words.teller(state, Reader()) if words else None
    return SeatWorld(subject, seats, seat, state, Log(), chance, teller)


def build_pair(subject: Subject, deal: tuple[int, int], variant: Variant) -> tuple[SeatWorld, SeatWorld]:
    one, other = (build_world(subject, *deal, variant.seat, draw) for draw in (-1, variant.draw))
    return one, other


def find_variants(subject: Subject, deal: int, seats: int) -> Iterator[Variant]:
    """Yield draws to change, starting with those that change another seat's cards, then moves to exchange."""
    chance, dealt = Random(deal), build_world(subject, deal, seats, 0, -1)
    at_deal, by_others, elsewhere = dealt.chance.draws, list[Variant](), list[Variant]()
    for draw in chance.sample(range(_MAX_DRAWS), _MAX_DRAWS):
        if draw >= at_deal:
            continue
        other = build_world(subject, deal, seats, 0, draw)
        unchanged = [seat for seat in range(seats) if dealt.held_cards(seat) == other.held_cards(seat)]
        if unchanged and len(unchanged) < seats and len(by_others) < _MAX_WORLDS:
            by_others.append(Variant(chance.choice(unchanged), draw))
        elif unchanged:
            elsewhere.append(Variant(chance.choice(unchanged), draw))
    yield from [*by_others, *elsewhere[: _MAX_WORLDS // 2]]
    for output in subject.outputs[deal, seats]:
        dealt.apply(output)
    for draw in _spread_out(range(at_deal, dealt.chance.draws), _MAX_LATER_DRAWS):
        # One of two observers is not the seat for which the draw was made.
        for seat in chance.sample(range(seats), min(2, seats)):
            yield Variant(seat, draw, after_deal=True)
    if not subject.game.has_walk and seats > 1:
        moves = [*_alternative_moves(subject, deal, seats, chance)]
        yield from _choose_moves([variant for variant in moves if not variant.is_own])
        if subject.game.has_facts:
            yield from _spread_out([variant for variant in moves if variant.is_own], _MAX_OWN_MOVES)


def _spread_out(values: Sequence[T], n: int) -> list[T]:
    """Return up to `n` of these values, spread evenly, because secrets can arise at any time of a game."""
    return [values[place * len(values) // n] for place in range(n)] if len(values) > n else [*values]


def _choose_moves(variants: Sequence[Variant]) -> Iterator[Variant]:
    """Yield moves from the whole game, at least a few for each node."""
    moves, spread = Counter[str](), _spread_out(variants, _MAX_WORLDS)
    for variant in variants:
        if variant in spread or moves[variant.node] < _MAX_LATER_MOVES:
            moves[variant.node] += 1
            yield variant


def _alternative_moves(subject: Subject, deal: int, seats: int, chance: Random) -> Iterator[Variant]:
    """Yield alternative moves, with the next other seat as the observer, and with the seat itself.

    The check happens before the next other seat moves, which could hide the difference.
    """
    waiting = list[tuple[str, int, object]]()  # node, index and alternative output of the seat that moves
    state, outputs = subject.state(deal, seats), subject.outputs[deal, seats]
    for place, output in enumerate(outputs):
        mover, view = state.seat, node_view(state)
        alternatives = [
            each for each in similar_outputs(subject, view.node, output, state, chance) if is_allowed(view, each)
        ]
        state.apply(copy_output(state, output))
        if alternatives:
            yield Variant(mover, move=place, instead=alternatives[0], node=view.node, is_own=True)
        waiting += [(view.node, place, each) for each in alternatives[:_MAX_ALTERNATIVES]]
        if state.seat == mover and not state.over:
            waiting.append((view.node, place, SKIPPED))
        if state.seat != mover and not state.over:
            for node, moved, instead in waiting:
                yield Variant(state.seat, move=moved, instead=instead, node=node)
            waiting.clear()


def is_allowed(view: View, output: object) -> bool:
    return view.why_illegal(output) is None


def similar_outputs(subject: Subject, node: str, output: object, state: State, chance: Random) -> list[object]:
    """Return outputs of the same type in random order, including illegal ones."""
    cards, kind = state.cards(state.seat, DealStreams(0, 0).seat(state.seat)), subject.game.node(node).answer
    answer = subject.game.answer_of(node, output)
    if isinstance(kind, Bool):
        answers: list[object] = [not answer]
    elif isinstance(kind, Choice) and kind.options:
        answers = [each for each in chance.sample(kind.options, len(kind.options)) if each != answer]
    elif isinstance(kind, Cards) and isinstance(answer, list):
        held = [card for card in {*list_leaves(to_plain(cards))} & {*kind.cards} if card not in answer]
        answers = [[*answer[:-1], card] for card in held] if answer else []
    else:
        answers = [answer + 1, answer - 1] if type(answer) is int and answer else []
    with suppress(IllegalOutput):
        return [subject.game.output_of(node, each, cards) for each in answers]
    return []


def apply_in_both(
    one: SeatWorld, other: SeatWorld, output: object, instead: object = None
) -> tuple[list[GameEvent], list[GameEvent]] | None:
    """Make a move in both worlds and return its events, or None if it is impossible in the second world."""
    if instead is SKIPPED:
        return one.apply(output), []
    mover = one.state.seat
    other_output = output
    try:
        if mover != one.seat and (hands := (one.held_cards(mover), other.held_cards(mover)))[0] != hands[1]:
            removed, added = (Counter(list_leaves(hand)) for hand in hands)
            other_output = _exchange_cards(one.subject, output, removed - added, added - removed)
        other_output = other_output if instead is None else instead
        events = other.apply(other_output)
        other.moved_differently = other.moved_differently or other_output != output
    except (IllegalOutput, UsageError):
        return None
    return one.apply(output), events


def _exchange_cards(subject: Subject, output: object, removed: Counter[object], added: Counter[object]) -> object:
    """Return the output with each removed card replaced by an added one."""
    instead = [*added.elements()]

    def exchange(value: object) -> object:
        if isinstance(value, list):
            return [exchange(each) for each in value]
        if isinstance(value, dict):
            return {key: exchange(each) for key, each in value.items()}
        if type(value) is not bool and removed[value] and instead:
            removed[value] -= 1
            return instead.pop(0)
        return value

    return subject.game.output_from_json(exchange(subject.game.output_to_json(output)))


def is_known_to_mover(mover: int, one: SeatWorld, other: SeatWorld) -> bool:
    """Return whether a seat that moves again holds the difference, which its view only shows in the legal moves.

    In that case the move may be hidden from others.
    """
    worlds = (one, other)
    views, legal = [public_attributes(world.state.view()) for world in worlds], [world.legal() for world in worlds]
    without_legal = [
        {name: plain for name, value in view.items() if (plain := to_plain(value)) != moves}
        for view, moves in zip(views, legal, strict=True)
    ]
    return one.held_cards(mover) != other.held_cards(mover) and without_legal[0] == without_legal[1]
