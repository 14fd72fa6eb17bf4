"""A second engine, written from the rulings alone: slow, immutable, without counters.

A `World` is a tuple; everything else is computed from the log of all turns. It shares no code with `dubito` and has
a different structure: the board is a pile of plays, the list of winners shows who has left, and a turn is a chain
of functions from world to world. A move is None (a doubt) or the cards with the number (None on a regular turn).
Events are plain tuples.
"""

from itertools import combinations
from typing import NamedTuple

Move = tuple[tuple[int, ...], int | None] | None
Change = tuple[object, ...]


class Lay(NamedTuple):
    """A play on the pile."""

    seat: int
    cards: tuple[int, ...]


class Turn(NamedTuple):
    """A turn in the log."""

    seat: int
    free: bool
    opening: bool
    laid: tuple[int, ...]  # () for a doubt
    honest: bool  # this play, or the doubted one
    target: int | None  # the player who was doubted


class World(NamedTuple):
    """The state of a game between two turns."""

    contested: bool
    cap: int
    hands: tuple[tuple[int, ...], ...]
    pile: tuple[Lay, ...] = ()
    claim: int = 0
    mover: int = 0
    free: bool = False
    gone: tuple[int, ...] = ()
    sets: tuple[int, ...] = ()
    winners: tuple[int, ...] = ()
    pending: int | None = None
    log: tuple[Turn, ...] = ()
    end: str = ""  # "over" with two players left, "capped" after the last turn
    ranks: int = 13
    copies: int = 4


def seated(world: World) -> list[int]:
    return [seat for seat in range(len(world.hands)) if seat not in world.winners]


def neighbour(world: World, seat: int, way: int) -> int:
    size = len(world.hands)
    return next(other for step in range(1, size + 1) if (other := (seat + way * step) % size) not in world.winners)


def may_doubt(world: World) -> bool:
    return bool(world.pile) and world.pile[-1].seat not in world.winners


def moves(world: World) -> list[Move]:
    """Return all legal moves, without duplicates (R3, R4)."""
    if world.end:
        return []
    held = sorted(world.hands[world.mover])
    groups = {group for size in (1, 2, 3) for group in combinations(held, size)}
    claims: list[int | None] = [None] if world.pile else list(range(1, world.ranks + 1))
    found: list[Move] = [(group, claim) for group in groups for claim in claims]
    return [*found, None] if may_doubt(world) else found


def true(cards: tuple[int, ...], claim: int) -> bool:
    return set(cards) <= {claim, 0}


def changed(world: World, seat: int, hand: tuple[int, ...]) -> World:
    return world._replace(hands=tuple(hand if other == seat else old for other, old in enumerate(world.hands)))


def lay(world: World, cards: tuple[int, ...], number: int | None) -> tuple[World, list[Change]]:
    """Move cards face down from the hand to the pile (R3)."""
    seat, claim = world.mover, number or world.claim
    rest = list(world.hands[seat])
    for card in cards:
        rest.remove(card)
    turn = Turn(seat, world.free, not world.pile, cards, true(cards, claim), None)
    world = changed(world, seat, tuple(rest))._replace(
        pile=(*world.pile, Lay(seat, cards)), claim=claim, log=(*world.log, turn)
    )
    return world, [("played", seat, claim, len(cards))]


def turn_over(world: World) -> tuple[World, list[Change]]:
    """Resolve a doubt: the bluffer takes everything (R7), or the doubter all but the play's jokers (R6)."""
    target, shown = world.pile[-1]
    honest = true(shown, world.claim)
    below = tuple(card for play in world.pile[:-1] for card in play.cards)
    taken = below + (tuple(card for card in shown if card) if honest else shown)
    jokers = tuple(card for card in shown if not card) if honest else ()
    loser = world.mover if honest else target
    changes: Change = ("doubted", world.mover, target, not honest, shown, taken, world.claim, len(jokers))
    turn = Turn(world.mover, world.free, False, (), honest, target)
    world = changed(world, loser, world.hands[loser] + taken)
    return world._replace(pile=(), claim=0, gone=world.gone + jokers, log=(*world.log, turn)), [changes]


def drop_sets(world: World) -> tuple[World, list[Change]]:
    """Discard sets (R8). All hands are checked, although only one can have grown."""
    changes: list[Change] = []
    for seat in range(len(world.hands)):
        for number in range(1, world.ranks + 1):
            held = world.hands[seat]
            if held.count(number) == world.copies:
                changes.append(("discarded", seat, number))
                world = changed(world, seat, tuple(card for card in held if card != number))
                world = world._replace(gone=world.gone + (number,) * world.copies, sets=(*world.sets, number))
    return world, changes


def left_over(world: World) -> int:
    return min(2, len(world.hands) - 1)


def leave(world: World) -> tuple[World, list[Change]]:
    """Let empty hands win (R9, R10): first a pending winner; a new one waits if its play can still be contested."""
    last, before = world.log[-1], world.pending
    empty = [seat for seat in seated(world) if not world.hands[seat]]
    empty.sort(key=lambda seat: seat != before)
    world = world._replace(pending=None)
    changes: list[Change] = []
    for seat in empty:
        if len(seated(world)) == left_over(world):
            break
        if world.contested and last.laid and last.seat == seat:
            world = world._replace(pending=seat)
        else:
            world = world._replace(winners=(*world.winners, seat))
            changes.append(("won", seat, len(world.winners)))
    return world, changes


def hand_on(world: World) -> World:
    """Pass the turn unless it is a free turn (R7), the game is over (R10), or the cap is reached (R12)."""
    last = world.log[-1]
    if len(seated(world)) == left_over(world):
        return world._replace(end="over")
    if last.target is not None and not last.honest:
        return world._replace(free=True)
    spent = sum(not turn.free for turn in world.log)
    world = world._replace(free=False, mover=neighbour(world, world.mover, 1))
    return world._replace(end="capped") if spent >= world.cap else world


def after(world: World, move: Move) -> tuple[World, list[Change]]:
    """Return the world after a legal move, and its public events in order (R26)."""
    world, acted = turn_over(world) if move is None else lay(world, *move)
    world, dropped = drop_sets(world)
    world, left = leave(world)
    return hand_on(world), acted + dropped + left


def person(world: World, seat: int) -> tuple[int, ...]:
    """Return a player's id, cards, turns, later turns, doubts, honest times and dishonest times (R20, R23)."""
    own = [turn for turn in world.log if turn.seat == seat]
    doubted = [turn.honest for turn in world.log if turn.target == seat]
    return (
        seat,
        len(world.hands[seat]),
        len(own),
        sum(not turn.opening for turn in own),
        sum(turn.target is not None for turn in own),
        doubted.count(True),
        doubted.count(False),
    )


def counted(world: World, seat: int) -> tuple[int, int, int, int]:
    plays = [turn for turn in world.log if turn.seat == seat and turn.laid]
    caught = [turn for turn in world.log if turn.seat == seat and turn.target is not None and not turn.honest]
    return len(plays), sum(len(turn.laid) for turn in plays), sum(not turn.honest for turn in plays), len(caught)


def outcome(world: World, seat: int) -> str:
    if seat in world.winners:
        return "hard_wins" if world.winners[0] == seat else "soft_wins"
    return "unfinished" if world.end == "capped" else "losses"
