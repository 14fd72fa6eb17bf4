"""Whether a seat is told what it cannot know, tried on any game: one deal beside another that the seat observed alike.

The other deal comes from the same stream of chance with one of its draws turned, so that it differs from the first in
as little as it can; the seat holds the same cards in both. Both games are then played by the same outputs, or by those
that another seat plays with the other card that it holds there. For as long as the seat observed the same events, what
it sees, what it holds and what a prompt may say must be the same. Where an event differs and nothing else that the seat
sees does, the event may be telling what is hidden; where hidden cards are shown in the end it differs too, so such a
flaw is not sure.

Of two moves of another seat that the seat observed alike the same is asked; whether those are public it cannot be known
here, so such a flaw is not sure either.

A game that says its own worlds (`world_pairs` of its module `workshop`) is held to these as well.

Whoever wants to hold anything else to all these worlds, prompts say, is told of each turn in two of them.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

from dubito.errors import BotError, IllegalOutput, UsageError, one_line
from dubito.game import Bool, Cards, Choice, GameEvent
from dubito.game.streams import DealStreams
from dubito.game.table import step
from dubito.llm.tape import common
from dubito.workshop.recordings import part
from dubito.workshop.subject import MOVES, Flaw, Subject

_DRAWS: Final = 120  # of a game's first draws of chance: those that may be turned
_WORLDS: Final = 10  # beside each deal, at most
_LATER: Final = 2  # beside it for each node that is asked but later in a game
_DEEP: Final = 6  # levels at which what a bot is given is looked at


class _Turned(Random):
    """A stream with one of its draws turned to another value."""

    def __init__(self, stream: Random, turned: int) -> None:
        super().__init__()
        self.setstate(stream.getstate())
        self.drawn, self._turned = 0, turned

    def _randbelow(self, n: int) -> int:
        """Under every draw of a whole number, a shuffle or a sample."""
        value, place = Random._randbelow(self, n), self.drawn  # type: ignore[attr-defined]
        self.drawn += 1
        return (value + 1) % n if place == self._turned else int(value)


@dataclass
class _World:
    """A game that is played beside another, as one seat has it."""

    subject: Subject
    seat: int
    state: Any
    notebook: Any
    chance: "_Turned"

    def held(self, seat: int) -> Any:
        """What a seat holds, as plain values."""
        return picture(self.state.cards(seat, DealStreams(0, 0).seat(seat)))

    def observe(self, events: list[GameEvent]) -> list[Any]:
        """Of these events those that the seat observes, as plain values."""
        told = [event for event in events if event.only in (None, self.seat)]
        if self.notebook is not None:
            for event in told:
                self.notebook.observe(event, self.state.cards(self.seat, DealStreams(0, 0).seat(self.seat)))
        return [{type(event).__name__: picture(event)} for event in told]

    def legal(self) -> Any:
        """What is listed as legal at the seat's move, as plain values."""
        return None if self.subject.game.walk else picture(self.subject.game.legal(self.state.view()))

    def position(self) -> Any:
        """The seat's move as a position; None where no prompt tells of the game."""
        if self.notebook is None:
            return None
        view, cards = self.state.view(), self.state.cards(self.seat, DealStreams(0, 0).seat(self.seat))
        return self.notebook.position(view.node, view, cards)


def picture(value: Any, deep: int = _DEEP) -> Any:
    """What a bot is given, as plain values that can be compared: of an object its public attributes."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if deep == 0 or isinstance(value, Random):
        return type(value).__name__
    if isinstance(value, dict):
        return {str(key): picture(each, deep - 1) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((picture(each, deep - 1) for each in value), key=repr)
    if isinstance(value, list | tuple | range):
        return [picture(each, deep - 1) for each in value]
    if hasattr(value, "__iter__") and hasattr(value, "__len__"):
        return [picture(each, deep - 1) for each in value]
    return {name: picture(each, deep - 1) for name, each in shown(value).items()}


def shown(value: Any) -> dict[str, Any]:
    """What an object shows of itself: its public attributes."""
    seen = {name: _attribute(value, name) for name in dir(value) if not name.startswith("_")}
    return {name: each for name, each in seen.items() if not callable(each)}


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except Exception as error:  # foreign code
        return type(error).__name__


Compared = Callable[[Any, Any, bool], Iterable[Flaw]]  # a turn in two worlds (positions or None), sure or not


def leaks(subject: Subject, compared: Compared = lambda one, other, sure: ()) -> Iterator[Flaw]:
    """What one seat or another is told that it cannot know, each thing once; and what is `compared` besides."""
    told = set[tuple[str, str]]()
    pairs = part(subject.game, "world_pairs", None)
    worlds = [(deal, seats, world) for deal, seats in subject.deals for world in _worlds(subject, deal, seats)]
    for deal, seats, world in worlds:
        for flaw, fact in _in_two_worlds(subject, deal, seats, world, compared):
            if (flaw.file, fact) not in told and (flaw.sure or pairs is None):
                told.add((flaw.file, fact))
                yield flaw
    if not any(world.hands for _, _, world in worlds):
        if any(_hands_differ(subject, deal, seats) for deal, seats in subject.deals):
            what = "no seat holds the same cards in two deals that differ: does cards() show what others hold?"
            yield Flaw(subject.main, what, sure=False)
        elif not worlds and pairs is None:
            what = "nothing was found that one seat knows and another does not: whether it stays hidden was not tried"
            yield Flaw(subject.main, what, sure=False)
    for one, other in pairs() if pairs else ():
        yield from compared(one, other, True)
        file, found = subject.file("facts.py"), _facts_differ(subject, one, other)
        if found and (file, _name_in(found)) not in told:
            told.add((file, _name_in(found)))
            yield Flaw(file, f"facts() shows what its seat cannot know: {found}{_line_of(subject, file, found)}")


def _facts_differ(subject: Subject, one: Any, other: Any) -> str:
    """What prompts are told otherwise at one position than at the other, if anything."""
    if one is None or other is None:
        return ""
    return _difference(*(picture(subject.game.facts.facts(position)) for position in (one, other)))


def _name_in(found: str) -> str:
    """Of what differs: its name."""
    return found.partition(":")[0]


def _line_of(subject: Subject, file: str, found: str) -> str:
    """Where a file first says the name of what differs, ` (line 7)`; empty where it does not."""
    name = _name_in(found).rpartition(".")[2]
    path = subject.here / file
    tree = ast.parse(path.read_bytes()) if path.is_file() else ast.Module([], [])
    lines = [
        getattr(node, "lineno", 0)
        for node in ast.walk(tree)
        if name in (getattr(node, "value", None), getattr(node, "attr", None), getattr(node, "name", None))
    ]
    return f" (line {min(lines)})" if lines else ""


def _hands_differ(subject: Subject, deal: int, seats: int) -> bool:
    """Whether some seat holds something else where some draw is turned."""
    hands = [
        [_world_of(subject, deal, seats, 0, turned).held(seat) for seat in range(seats)] for turned in range(-1, 12)
    ]
    return any(hand != hands[0] for hand in hands)


def stale_cards(subject: Subject) -> Iterator[Flaw]:
    """A bot is given its `self.cards` once, before its first move: what it has then must show what it holds now.

    Looked at until the first bot fails: it may have been misled by that.
    """
    for deal, seats in subject.deals:
        table, failed = subject.table(deal, seats), False
        while not (table.state.over or failed or table.state.turns_played > MOVES):
            try:
                step(table)
            except BotError:
                failed = True
            for seat, player in enumerate(table.players):
                now = table.state.cards(seat, DealStreams(0, deal).seat(seat))
                if player and (found := _difference(picture(player.cards), picture(now))):
                    what = f"{found} after turn {table.state.turns_played}: give an object that looks at the state"
                    yield Flaw(subject.main, f"cards() gives what a seat held before, not what it holds now: {what}")
                    return
        if failed:
            return


class _Other(NamedTuple):
    """How another game is made beside a deal that a seat observed alike: a draw is turned, or a move exchanged."""

    seat: int
    turned: int = -1  # the draw
    moved: int = -1  # the place among the outputs
    instead: Any = None  # the output there
    hands: bool = False  # whether another seat holds other cards at the deal


def _worlds(subject: Subject, deal: int, seats: int) -> Iterator[_Other]:
    """Draws to turn, first those by which another seat holds other cards; then moves to exchange."""
    chance, dealt = Random(deal), _world_of(subject, deal, seats, 0, -1)
    others, elsewhere = list[_Other](), list[_Other]()
    for turned in chance.sample(range(_DRAWS), _DRAWS):
        other = _world_of(subject, deal, seats, 0, turned)
        alike = [seat for seat in range(seats) if dealt.held(seat) == other.held(seat)]
        if alike and len(alike) < seats and len(others) < _WORLDS:
            others.append(_Other(chance.choice(alike), turned, hands=True))
        elif alike and other.chance.drawn > turned:
            elsewhere.append(_Other(chance.choice(alike), turned))
    yield from [*others, *elsewhere[: _WORLDS // 2]]
    if not subject.game.walk and seats > 1:
        met = Counter[str]()
        for node, moved in _other_moves(subject, deal, seats, chance):
            if met.total() < _WORLDS or met[node] < _LATER:
                met[node] += 1
                yield moved


def _other_moves(subject: Subject, deal: int, seats: int, chance: Random) -> Iterator[tuple[str, _Other]]:
    """Moves that could have been others, each with its node, for the next other seat to look at.

    It looks before its own move covers anything.
    """
    waiting = list[tuple[str, int, Any]]()  # node, place and what instead, of the seat that moves still
    state, outputs = subject.state(deal, seats), subject.outputs[deal, seats]
    for place, output in enumerate(outputs):
        mover, view = state.seat, state.view()
        like = [each for each in _like(subject, view.node, output, state, chance) if view.why_illegal(each) is None]
        state.apply(state.copy_of(output))
        if like:
            waiting.append((view.node, place, like[0]))
        if state.seat != mover:
            for node, moved, instead in waiting:
                yield node, _Other(state.seat, moved=moved, instead=instead)
            waiting.clear()


def _like(subject: Subject, node: str, output: Any, state: Any, chance: Random) -> list[Any]:
    """Outputs of the same kind as one, legal or not, in any order."""
    cards, kind = state.cards(state.seat, DealStreams(0, 0).seat(state.seat)), subject.game.node(node).answer
    answer = subject.game.answer_of(node, output)
    if isinstance(kind, Bool):
        answers: list[Any] = [not answer]
    elif isinstance(kind, Choice) and kind.options:
        answers = [each for each in chance.sample(kind.options, len(kind.options)) if each != answer]
    elif isinstance(kind, Cards) and isinstance(answer, list):
        held = [card for card in {*_leaves(picture(cards))} & {*kind.cards} if card not in answer]
        answers = [[*answer[:-1], card] for card in held] if answer else []
    else:
        answers = [answer + 1, answer - 1] if type(answer) is int and answer else []
    with suppress(IllegalOutput):
        return [subject.game.output_of(node, each, cards) for each in answers]
    return []


def _in_two_worlds(
    subject: Subject, deal: int, seats: int, world: _Other, compared: Compared
) -> Iterator[tuple[Flaw, str]]:
    """What the seat is told differently in a deal and in one like it, with the fact that tells."""
    seat = world.seat
    one, other = (_world_of(subject, deal, seats, seat, turned) for turned in (-1, world.turned))
    if one.held(seat) != other.held(seat) or one.state.seat != other.state.seat:
        return
    suspect = _difference(one.observe([one.state.start]), other.observe([other.state.start]))
    for place, output in enumerate(subject.outputs[deal, seats]):
        mover = one.state.seat
        if mover == seat and place > world.moved:
            if one.held(seat) != other.held(seat):  # it came to hold other cards: so it was shown
                return
            found = [*_at_its_move(one, other, suspect, sure=world.moved < 0)]
            if not suspect:
                yield from ((flaw, flaw.file) for flaw in compared(one.position(), other.position(), world.moved < 0))
            yield from found
            if found or suspect:
                return
        events = _both_moved(one, other, output, world.instead if place == world.moved else None)
        if events is None or one.state.seat != other.state.seat or one.state.over:
            return
        if place == world.moved and one.state.seat == mover and not _keeps(mover, one, other):
            return
        if mover == seat and one.notebook is not None:
            for each in (one, other):
                each.notebook.answered(one.subject.game.nodes[0].name, output)
        news = _difference(one.observe(events[0]), other.observe(events[1]))
        if news and place > world.moved >= 0:  # what was hidden is shown, for all that can be known here
            return
        suspect = suspect or news


def _keeps(mover: int, one: _World, other: _World) -> bool:
    """Whether what differs after a move of whom it is the turn again is what it holds, and nothing that its view shows
    beside what is legal: then the move may well be hidden."""
    sees = [
        {name: value for name, value in picture(shown(world.state.view())).items() if value != world.legal()}
        for world in (one, other)
    ]
    return one.held(mover) != other.held(mover) and sees[0] == sees[1]


def _world_of(subject: Subject, deal: int, seats: int, seat: int, turned: int) -> _World:
    game = subject.game
    chance = _Turned(DealStreams(0, deal).deck(), turned)
    state = game.deal(game.rules(), seats, chance)
    knows = game.module("facts") is not None and not game.walk
    return _World(subject, seat, state, game.facts.Notebook(seat, game.rules()) if knows else None, chance)


def _at_its_move(one: _World, other: _World, suspect: str, sure: bool) -> Iterator[tuple[Flaw, str]]:
    """What differs where it is the seat's move, after it observed the same events but for a `suspect` one."""
    main, facts = one.subject.main, one.subject.file("facts.py")
    sees = _difference(picture(one.state.view()), picture(other.state.view()))
    sees = sees or _difference(one.legal(), other.legal(), "legal()")
    says = _facts_differ(one.subject, one.position(), other.position())
    if suspect:
        if not sees:
            fact = _name_in(suspect)
            what = f"an event tells seat {one.seat} of what differs elsewhere, and nothing that it sees does: {suspect}"
            yield Flaw(main, what, sure=False), fact
        return
    two = "two deals that" if sure else "two moves of another that"
    alike = f"differs for seat {one.seat} between {two} it observed alike"
    for what, found, file in (("view()", sees, main), ("facts()", says, facts)):
        if found:
            line = _line_of(one.subject, file, found)
            yield Flaw(file, f"{what} shows what its seat cannot know: {found} {alike}{line}", sure), _name_in(found)


def _both_moved(
    one: _World, other: _World, output: Any, instead: Any
) -> tuple[list[GameEvent], list[GameEvent]] | None:
    """The events of this move in both worlds; None where the other world has no move like it."""
    mover = one.state.seat
    gone, come = (Counter(_leaves(world.held(mover))) for world in (one, other))
    try:
        its_own = output if mover == one.seat else _exchanged(one.subject, output, gone - come, come - gone)
        its_own = its_own if instead is None else instead
        there = [*other.state.apply(other.state.copy_of(its_own))]
    except (IllegalOutput, UsageError):
        return None
    return [*one.state.apply(one.state.copy_of(output))], there


def _exchanged(subject: Subject, output: Any, gone: Counter[Any], come: Counter[Any]) -> Any:
    """The output with what its seat does not hold there exchanged for what it holds instead."""
    instead = [*come.elements()]

    def exchanged(value: Any) -> Any:
        if isinstance(value, list):
            return [exchanged(each) for each in value]
        if isinstance(value, dict):
            return {key: exchanged(each) for key, each in value.items()}
        if type(value) is not bool and gone[value] and instead:
            gone[value] -= 1
            return instead.pop(0)
        return value

    return subject.game.output_from_json(exchanged(subject.game.output_to_json(output)))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _difference(one: Any, other: Any, where: str = "") -> str:
    """The first thing that differs, `hand: [1, 2] or [1, 3]`; empty where nothing does."""
    if one == other:
        return ""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        name = next(name for name in one if one[name] != other[name])
        return _difference(one[name], other[name], f"{where}.{name}" if where else str(name))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and isinstance(one[0], dict | list):
        place = next(place for place in range(len(one)) if one[place] != other[place])
        return _difference(one[place], other[place], where)
    first = common(repr(one).encode(), repr(other).encode()) + 1
    return f"{where or 'it'}: {one_line(repr(one), 60)} or {one_line(repr(other), 60)} (from byte {first} on)"
