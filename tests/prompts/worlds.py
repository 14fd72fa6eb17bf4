"""A second world that one seat cannot tell from the first: the same game with other cards where it never looked.

Each physical card has a number, so that a card can be followed from hand to board to hand. What nobody has
shown yet, outside the seat's own hand, may be any of the cards not shown: it is shuffled, and the game
played again with the same physical cards.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from dubito.games.dubito.cards import COPIES, NUMBERS, Hand, TurnOutput
from dubito.games.dubito.engine import Rules, State
from dubito.games.dubito.events import Event, GameStartEvent
from dubito.games.dubito.facts import OwnPlay, Position

Move = tuple[bool, int | None, tuple[int, ...]]  # doubt, number, physical cards


class World:
    """A game of physical cards: what each one is, where it lies, and who has seen it."""

    def __init__(self, rules: Rules, deal: Sequence[Sequence[int]], values: Sequence[int]) -> None:
        self.values = list(values)
        self.deal = [list(hand) for hand in deal]
        self.game = State(rules, [Hand([values[card] for card in hand]) for hand in deal])
        self.hands = [list(hand) for hand in deal]
        self.board: list[int] = []
        self.moves: list[Move] = []
        counts = tuple(len(hand) for hand in deal)
        self.events: list[Event] = [GameStartEvent(tuple(range(len(deal))), counts)]
        self.own_plays: list[list[OwnPlay]] = [[] for _ in deal]
        self.shown: set[int] = set()

    def choose(self, seat: int, cards: Sequence[int]) -> tuple[int, ...]:
        """Physical cards of the hand for these values."""
        hand, chosen = list(self.hands[seat]), []
        for card in cards:
            chosen.append(next(one for one in hand if self.values[one] == card))
            hand.remove(chosen[-1])
        return tuple(chosen)

    def move(self, move: Move) -> list[Event]:
        """Make the move of the seat to move."""
        doubt, number, cards = move
        game = self.game
        seat, last, size = game.seat, game.last_player, game.n_cards_played
        if not doubt:
            plays = self.own_plays[seat]
            plays.append(OwnPlay(number or game.number, tuple(self.values[card] for card in cards)))
        events = game.apply(TurnOutput(doubt, number, [self.values[card] for card in cards]))
        if doubt:
            assert last is not None
            self._resolve(seat, last, size, events)
        else:
            for card in cards:
                self.hands[seat].remove(card)
            self.board += cards
        self.moves.append(move)
        self.events += events
        return events

    def _resolve(self, doubter: int, target: int, size: int, events: Sequence[Event]) -> None:
        resolved = events[0]
        loser = resolved.loser_id  # type: ignore[union-attr]
        self.shown.update(self.board)
        latest = self.board[-size:]
        gone = [] if loser == target else [card for card in latest if self.values[card] == 0]
        self.hands[loser] += [card for card in self.board if card not in gone]
        self.board = []
        left = Counter(self.game.hands[loser].cards)
        for card in list(self.hands[loser]):
            if left[self.values[card]] == 0:  # a set was discarded: everybody has seen it
                self.hands[loser].remove(card)
                self.shown.add(card)

    def unseen(self, seat: int) -> list[int]:
        """Physical cards that this seat has never seen."""
        return [card for card in range(len(self.values)) if card not in self.shown and card not in self.deal[seat]]

    def position(self, node: str, answers: dict[str, bool]) -> Position:
        """What the seat to move has."""
        game = self.game
        seat = game.seat
        hand, plays = tuple(sorted(game.hands[seat].cards)), tuple(self.own_plays[seat])
        return Position(game.rules, seat, node, hand, game.turn_data(), tuple(self.events), plays, answers)


def twin(world: World, chance: Random) -> World | None:
    """Another world with the same events so far, or None if this shuffle makes no such world."""
    seat = world.game.seat
    unseen = world.unseen(seat)
    values = list(world.values)
    mixed = [values[card] for card in unseen]
    chance.shuffle(mixed)
    for card, value in zip(unseen, mixed, strict=True):
        values[card] = value
    for hand in world.deal:
        held = Counter(values[card] for card in hand)
        if any(held[number] == COPIES for number in NUMBERS):
            return None
    other = World(world.game.rules, world.deal, values)
    start = 1
    for move in world.moves:
        events = other.move(move)
        if events != world.events[start : start + len(events)]:
            return None
        start += len(events)
    return other


def questions(game: State) -> Iterator[tuple[str, dict[str, bool]]]:
    """Every node that the walk may come to on this turn, with every way to get there."""
    if not game.number:
        yield "A", {}
        yield "B", {"A": True}
        yield "B", {"A": False}
        return
    before = {"C": False} if game.can_doubt else {}
    if game.can_doubt:
        yield "C", {}
    if game.number in game.hands[game.seat].cards:
        yield "D", before
        yield "E", before | {"D": True}
        yield "E", before | {"D": False}
    else:
        yield "E", before
