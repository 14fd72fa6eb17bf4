"""Check that a game does not show hidden information to a seat, by comparing pairs of worlds (worlds.py).

In both worlds the seat holds the same cards. As long as it has observed the same events, its view, its facts and the
text shown to a person in its seat must be identical. Two kinds of differences are harder to judge:

- An event differs. The rules may intend to reveal this, so it is only an error if the game keeps the information secret
elsewhere (see `_Secrets`).
- The worlds differ in a move of another seat. The move may be public, unless the game announces other moves with events
but not this one.

If the worlds differ in a move of the seat itself, its events must tell. Otherwise its hand, view and legal moves must
be identical.

A game's own worlds (`world_pairs` in its `workshop` module) are also checked. Callers receive each turn of the seat in
both worlds, for example to compare prompts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from random import Random
from typing import Final, NamedTuple

from dubito.errors import BotError
from dubito.game import GameEvent, node_view
from dubito.game.log import Position
from dubito.game.streams import DealStreams
from dubito.game.table import step
from dubito.hooks import Flaw
from dubito.plugins.gamecheck.plain_data import (
    call_methods,
    difference,
    extract_path,
    find_file,
    find_line,
    first_path,
    to_plain,
)
from dubito.plugins.gamecheck.subject import MAX_MOVES, Subject
from dubito.plugins.gamecheck.worlds import (
    SKIPPED,
    SeatWorld,
    Variant,
    apply_in_both,
    build_pair,
    build_world,
    find_variants,
    is_allowed,
    is_known_to_mover,
    similar_outputs,
)

_CONTINUATIONS: Final = 4  # number of random continuations after an event that differs
_MAY_TELL: Final = "an event may reveal to seat"
_SILENT_MOVES: Final = 2  # moves of a pair at which unobserved differences are noted

# Called with a turn in two worlds (positions or None), and whether a leak would be certain.
Compared = Callable[[Position | None, Position | None, bool], Iterable[Flaw]]


class _Suspect(NamedTuple):
    """The first events that differ for the seat, after a move or the deal."""

    change: str
    event: GameEvent
    place: int  # index of the move, or -1 for the deal
    is_fresh: bool  # whether other seats held the same cards in both worlds before this move
    by_move: bool  # whether a seat has already moved differently, because it held different cards
    holders: frozenset[tuple[object, ...]]  # other seats that hold different cards now, with the difference
    in_words: bool  # whether the game's words show the difference only to viewers who see everything


class _Finding(NamedTuple):
    """A flaw whose certainty depends on all worlds."""

    file: str
    fact: str
    sentence: str
    sure: bool
    suspect: _Suspect | None = None
    variant: Variant | None = None
    deal: tuple[int, int] = (0, 0)


def check_leaks(subject: Subject, compared: Compared = lambda one, other, sure: ()) -> Iterator[Flaw]:
    """Yield each leak of hidden information to a seat once, along with the flaws that `compared` returns."""
    reported = set[tuple[str, str]]()
    pairs = subject.game.workshop.world_pairs()
    worlds = [(deal, seats, world) for deal, seats in subject.deals for world in find_variants(subject, deal, seats)]
    secrets, later = _Secrets(subject), list[_Finding]()
    for deal, seats, variant in worlds:
        pair = _Pair(subject, deal, seats, variant, secrets)
        for finding in pair.compare_own() if variant.is_own else pair.compare(compared):
            if isinstance(finding, Flaw):
                if finding.sure or pairs is None:
                    yield finding
            elif finding.sure and (finding.file, finding.fact) not in reported:
                reported.add((finding.file, finding.fact))
                yield Flaw(finding.file, finding.sentence)
            else:
                later.append(finding)
    yield from _judge(later, secrets, reported, only_sure=pairs is not None)
    if not secrets.are_there and any(_hands_differ(subject, deal, seats) for deal, seats in subject.deals):
        what = "no seat has the same cards in two different deals; does cards() show other seats' cards?"
        yield Flaw(subject.main, what, sure=False)
    for one, other in pairs or ():
        yield from compared(one, other, True)
        file, change = (
            find_file(subject, subject.game.facts, subject.file("facts.py")),
            _facts_differ(subject, one, other),
        )
        if change and (file, extract_path(change)) not in reported:
            reported.add((file, extract_path(change)))
            line = find_line(subject, file, extract_path(change))
            yield Flaw(file, f"facts() shows hidden information: {change}{line}")


def _judge(
    later: list[_Finding], secrets: "_Secrets", reported: set[tuple[str, str]], only_sure: bool
) -> Iterator[Flaw]:
    """Yield the findings that depend on all worlds, starting with the certain ones."""
    verdicts = [
        (finding, secrets.is_sure(finding)) for finding in later if (finding.file, finding.fact) not in reported
    ]
    leaking_event = any(sure and finding.suspect for finding, sure in verdicts)
    for finding, sure in sorted(verdicts, key=lambda each: not each[1]):
        if (finding.file, finding.fact) in reported or (only_sure and not sure):
            continue
        if sure or not (finding.suspect and leaking_event):  # other differences may follow from that event
            reported.add((finding.file, finding.fact))
            sentence = finding.sentence.replace(_MAY_TELL, "an event reveals to seat") if sure else finding.sentence
            yield Flaw(finding.file, sentence, sure)


def _facts_differ(subject: Subject, one: Position | None, other: Position | None) -> str:
    """Return what the facts show at only one of the two positions.

    The order of keys is ignored here, but compared by audit.py in prompts that show it.
    """
    if one is None or other is None or one == other:
        return ""
    here, there = (to_plain(subject.game.facts.facts(position)) for position in (one, other))
    return difference(here, there, ordered=False)


def _hands_differ(subject: Subject, deal: int, seats: int) -> bool:
    hands = [
        [build_world(subject, deal, seats, 0, draw).held_cards(seat) for seat in range(seats)] for draw in range(-1, 12)
    ]
    return any(hand != hands[0] for hand in hands)


def check_stale_cards(subject: Subject) -> Iterator[Flaw]:
    """Check that the cards a bot receives before its first move always reflect its current hand.

    The check ends at the first bot error, because stale cards may have caused it.
    """
    for deal, seats in subject.deals:
        table, failed = subject.table(deal, seats), False
        while not (table.state.over or failed or table.state.turns_played > MAX_MOVES):
            try:
                step(table)
            except BotError:
                failed = True
            for seat, player in enumerate(table.players):
                now = table.state.cards(seat, DealStreams(0, deal).seat(seat))
                if player and (change := difference(to_plain(player.cards), to_plain(now), ordered=False)):
                    what = f"{change} after turn {table.state.turns_played}; return an object that reads the state"
                    yield Flaw(
                        subject.main, f"cards() shows a seat's earlier cards instead of its current ones: {what}"
                    )
                    return
        if failed:
            return


class _Pair:
    """Two worlds that look the same to a seat, played until it sees a difference."""

    def __init__(self, subject: Subject, deal: int, seats: int, variant: Variant, secrets: "_Secrets") -> None:
        self.subject, self.deal, self.variant, self.secrets = subject, (deal, seats), variant, secrets
        self.one, self.other = build_pair(subject, self.deal, variant)
        self.suspect: _Suspect | None = None
        self.by_words = list[_Finding]()
        self.is_found, self.looks = False, 0
        self.is_skipped, self.draws = variant.instead is SKIPPED, 0

    def compare(self, compared: Compared) -> Iterator[_Finding | Flaw]:
        """Play both worlds while they look the same to the seat, and yield differences shown to the seat."""
        one, other, seat, move = self.one, self.other, self.variant.seat, self.variant.move
        if one.held_cards(seat) != other.held_cards(seat) or one.state.seat != other.state.seat:
            return
        self._observe([*one.state.start], [*other.state.start], -1)
        for place, output in enumerate(self.subject.outputs[self.deal]):
            if one.state.seat == seat and place > move:
                if one.held_cards(seat) != other.held_cards(seat):
                    if self.subject.game.has_facts and not self.suspect:
                        yield self._unreported_cards()
                    return  # the seat got different cards, so it has seen them
                yield from self._look(compared)
                if self.is_found or self.suspect:
                    return
            if not self._move(place, output):
                return
            if self.by_words:
                yield from self.by_words
                return

    def compare_own(self) -> Iterator[_Finding]:
        """Play both worlds until the seat observes which move it made, and yield what depends on the move before."""
        one, other, seat, move = self.one, self.other, self.variant.seat, self.variant.move
        for place, output in enumerate(self.subject.outputs[self.deal]):
            if one.state.seat == seat and place > move:
                if one.held_cards(seat) != other.held_cards(seat):
                    yield self._unreported_cards()
                    return
                if change := self._view_difference():
                    what = f"seat {seat} sees different views in two games with the same log: {change}"
                    sentence = f"{what}; report its move with an event that it sees"
                    yield self._finding(self.subject.main, "view", sentence)
                    return
            events = apply_in_both(one, other, output, self.variant.instead if place == move else None)
            if events is None or one.state.seat != other.state.seat or one.state.over or other.state.over:
                return
            if difference(one.observe(events[0]), other.observe(events[1])):
                return

    def _unreported_cards(self) -> _Finding:
        what = f"seat {self.variant.seat} holds different cards in two games with the same log"
        sentence = f"{what}; report the cards that it gets and loses with events that it sees"
        return self._finding(self.subject.main, "cards", sentence)

    def _view_difference(self) -> str:
        one, other = self.one, self.other
        views = one.state.view(), other.state.view()
        return (
            difference(to_plain(views[0]), to_plain(views[1]))
            or difference(one.legal(), other.legal(), "legal()")
            or difference(call_methods(views[0], one.seats), call_methods(views[1], one.seats))
        )

    def _look(self, compared: Compared) -> Iterator[_Finding | Flaw]:
        """Compare what the seat sees at its move."""
        findings = [*self._differences_at_move()]
        self.is_found = bool(findings)
        if not self.suspect:
            self.looks += 1
            if self.looks <= _SILENT_MOVES:
                self.secrets.note_silence(self.one, self.other, self.variant)
            yield from compared(self.one.position(), self.other.position(), self.variant.move < 0)
        yield from findings

    def _move(self, place: int, output: object) -> bool:
        """Make a move in both worlds and return whether they can still be compared."""
        one, other, mover, move = self.one, self.other, self.one.state.seat, self.variant.move
        events = apply_in_both(one, other, output, self.variant.instead if place == move else None)
        if events is None or one.state.seat != other.state.seat or one.state.over or other.state.over:
            return False
        if self.is_skipped and place >= move:
            # If the skipped move drew random numbers, all later draws differ.
            if place == move:
                self.draws = one.chance.draws
            elif one.chance.draws != self.draws and one.chance.draws != other.chance.draws:
                return False
        elif place == move and one.state.seat == mover and not is_known_to_mover(mover, one, other):
            return False
        # After a different move, differing events may reveal it. A move that others observe is not a secret.
        return not (self._observe(*events, place) and (place > move >= 0 or self.is_skipped))

    def _is_fresh(self, place: int) -> bool:
        """Return whether other seats always held the same cards in both worlds before this move."""
        pair = build_pair(self.subject, self.deal, self.variant)
        for output in self.subject.outputs[self.deal][: max(0, place)]:
            if _holders(*pair):
                return False
            apply_in_both(*pair, output)
        return place < 0 or not _holders(*pair)

    def _observe(self, here: list[GameEvent], there: list[GameEvent], place: int) -> bool:
        """Let the seat observe these events, note the first that differ, and return whether any differ."""
        one, other, seat = self.one, self.other, self.variant.seat
        changed = difference(one.observe(here), other.observe(there))
        if changed and not self.suspect:
            mine = [[event for event in events if event.only in (None, seat)] for events in (here, there)]
            pairs = zip(*mine, strict=False)
            event = next((pair[0] for pair in pairs if to_plain(pair[0]) != to_plain(pair[1])), [*mine[0], *mine[1]][0])
            fresh = self.variant.move < 0 and self._is_fresh(place)
            in_words = one.secret_words() != other.secret_words() and one.public_words() == other.public_words()
            holders = frozenset(_holders(one, other))
            self.suspect = _Suspect(changed, event, place, fresh, other.moved_differently, holders, in_words)
        elif not self.suspect and (change := difference(one.public_words(), other.public_words())):
            if self.is_skipped:  # the words tell everybody of the move
                return True
            self.by_words = [self._in_words(change)]
        return bool(changed)

    def _in_words(self, change: str) -> _Finding:
        """Return a finding for texts that differ although the events are equal."""
        file = find_file(self.subject, self.subject.game.words, self.subject.file("words.py"))
        part = extract_path(change).partition(".")[0]
        what = {"panels": "Panel.public", "describe_move": "Line.sentence"}.get(part, part)
        line = find_line(self.subject, file, part)
        return self._finding(file, what, f"{what} shows hidden information to seat {self.variant.seat}: {change}{line}")

    def _finding(self, file: str, fact: str, sentence: str) -> _Finding:
        sure = self.variant.move < 0 or self.variant.is_own
        return _Finding(file, fact, sentence, sure, None, self.variant, self.deal)

    def _differences_at_move(self) -> Iterator[_Finding]:
        """Yield differences at the seat's move, if all events that it observed were equal except the suspect."""
        subject, one, other, seat = self.subject, self.one, self.other, self.variant.seat
        words = find_file(subject, subject.game.words, subject.file("words.py"))
        facts = find_file(subject, subject.game.facts if subject.game.has_facts else None, subject.file("facts.py"))
        views = one.state.view(), other.state.view()
        main = find_file(subject, views[0], subject.main)
        in_view = self._view_difference()
        if self.suspect:
            if not in_view:
                what = f"{_MAY_TELL} {seat} hidden information: {self.suspect.change}"
                yield self._event_finding(self.suspect, what)
            return
        kind = "deals" if self.variant.move < 0 else "moves of another seat"
        worlds = f"differs for seat {seat} between two {kind} that look the same to it"
        shown = [
            ("view() shows", in_view, main),
            ("facts() shows", _facts_differ(subject, one.position(), other.position()), facts),
        ]
        if not in_view:  # otherwise the words just show the same difference as the view
            shown.append(("words show", difference(one.words_to_seat(), other.words_to_seat()), words))
        for what, change, file in shown:
            if change:
                line = find_line(subject, file, extract_path(change), views[0])
                yield self._finding(file, extract_path(change), f"{what} hidden information: {change} {worlds}{line}")

    def _event_finding(self, suspect: _Suspect, what: str) -> _Finding:
        """Return a finding for the file that creates the event or, if unknown, defines its class."""
        files = [find_file(self.subject, each, self.subject.main) for each in (self.one.state, suspect.event)]
        places = [(file, find_line(self.subject, file, type(suspect.event).__name__, call=True)) for file in files]
        file, line = next((place for place in places if place[1]), places[-1])
        sentence = f"{what}, which its view does not show{line}"
        return _Finding(file, extract_path(suspect.change), sentence, False, suspect, self.variant, self.deal)


class _Secrets:
    """What a game keeps secret, according to all pairs of worlds."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._silent = set[tuple[bool, tuple[object, ...]]]()  # cards of other seats with unobserved differences
        self._announces: bool | None = None
        self.are_there = False

    def note_silence(self, one: SeatWorld, other: SeatWorld, variant: Variant) -> None:
        self._silent |= {(variant.after_deal, holder) for holder in _holders(one, other)}
        self.are_there = self.are_there or bool(self._silent)

    def is_sure(self, finding: _Finding) -> bool:
        variant, suspect = finding.variant, finding.suspect
        if finding.sure or variant is None:
            return finding.sure
        if suspect is None:
            return self._announces_moves()
        if variant.move >= 0 or suspect.by_move or not suspect.holders:
            return False
        if suspect.event.only is not None:
            return suspect.is_fresh
        if not (suspect.is_fresh or self._is_always_revealed(finding)):
            return False
        return (
            _is_for_one_seat(suspect.event)
            or suspect.in_words
            or any((variant.after_deal, holder) in self._silent for holder in suspect.holders)
        )

    def _announces_moves(self) -> bool:
        if self._announces is None:
            self._announces = any(self._is_announced(*deal) for deal in self._subject.deals)
        return self._announces

    def _is_announced(self, deal: int, seats: int) -> bool:
        return any(
            self._differs_later(deal, seats, variant)
            for variant in find_variants(self._subject, deal, seats)
            if variant.move >= 0 and variant.instead is not SKIPPED
        )

    def _differs_later(self, deal: int, seats: int, variant: Variant) -> bool:
        one, other = build_pair(self._subject, (deal, seats), variant)
        for place, output in enumerate(self._subject.outputs[deal, seats]):
            events = apply_in_both(one, other, output, variant.instead if place == variant.move else None)
            if events is None:
                return False
            if difference(to_plain(events[0]), to_plain(events[1])):
                return True
            if one.state.over or one.state.seat != other.state.seat:
                return False
        return False

    def _is_always_revealed(self, finding: _Finding) -> bool:
        """Return whether an event reveals the difference regardless of what the seats do."""
        if self._subject.game.has_walk:
            return False
        assert finding.variant is not None
        assert finding.suspect is not None
        kind, results = type(finding.suspect.event), list[bool]()
        for number in range(_CONTINUATIONS):
            one, other = build_pair(self._subject, finding.deal, finding.variant)
            results += self._reveals_by_chance(one, other, kind, Random(number), finding.deal)
        return len(results) > 1 and all(results)

    def _reveals_by_chance(
        self, one: SeatWorld, other: SeatWorld, kind: type, chance: Random, deal: tuple[int, int]
    ) -> list[bool]:
        """Play random moves in both worlds until an event of this kind occurs, and return whether it differs."""
        for output in self._subject.outputs[deal]:
            if one.state.over or one.state.seat != other.state.seat:
                return []
            events = apply_in_both(one, other, self._random_output(one, other, output, chance))
            if events is None:
                return []
            observed = [[each for each in world if type(each) is kind] for world in events]
            if any(observed):
                return [bool(difference(to_plain(observed[0]), to_plain(observed[1])))]
        return []

    def _random_output(self, one: SeatWorld, other: SeatWorld, output: object, chance: Random) -> object:
        game = self._subject.game
        if game.has_walk:
            return output
        views = [node_view(world.state) for world in (one, other)]
        legal = game.legal(views[0])
        outputs = (
            legal if legal is not None else similar_outputs(self._subject, views[0].node, output, one.state, chance)
        )
        both = [each for each in outputs[:20] if all(is_allowed(view, each) for view in views)]
        return chance.choice(both) if both else output


def _holders(one: SeatWorld, other: SeatWorld) -> set[tuple[object, ...]]:
    pairs = enumerate(zip(one.hands(), other.hands(), strict=True))
    return {(seat, *first_path(*hands)) for seat, hands in pairs if hands[0] != hands[1]}


def _is_for_one_seat(event: GameEvent) -> bool:
    return is_dataclass(event) and any(each.name == "only" for each in fields(event))
