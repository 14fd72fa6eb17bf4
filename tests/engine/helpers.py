"""Helpers for engine tests: positions and moves in letters, random games, scripted players.

Cards are written `*` (joker), A, 2-9, T, J, Q, K; hands are separated by `/`. A move is `doubt`, `A*` on a
regular turn, or `A* as 7` when it opens a round.
"""

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random
from typing import Any, Literal, cast

from dubito.game import GameEvent
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import COPIES, JOKER, NUMBERS, Hand, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, WinRule, deal_hands, why_illegal

LETTERS = "*A23456789TJQK"
Deal = Literal["full", "short", "clumped"]
WIN_RULES: tuple[WinRule, ...] = ("immediate", "contested")


def cards(text: str) -> list[int]:
    return [LETTERS.index(letter) for letter in text]


def position(
    hands: str, win_rule: WinRule = "immediate", max_turns: int = 1000, ranks: int = 13, copies: int = 4
) -> State:
    rules = Rules(win_rule=win_rule, max_turns=max_turns, ranks=ranks, copies=copies, duel=hands.count("/") == 1)
    return State(rules, [Hand(cards(hand), copies) for hand in hands.split("/")])


def output(move: str) -> TurnOutput:
    """Parse a move's output from its letters."""
    if move == "doubt":
        return TurnOutput(True)
    laid, _, number = move.partition(" as ")
    return TurnOutput(False, LETTERS.index(number) if number else None, cards(laid))


def run(game: State, *moves: str) -> list[GameEvent]:
    """Apply the moves and return the events of the last one."""
    events: list[GameEvent] = []
    for move in moves:
        events = game.apply(output(move))
    return events


def hand(game: State, seat: int) -> str:
    return "".join(LETTERS[card] for card in sorted(game.hands[seat].cards))


def snapshot(game: State) -> dict[str, Any]:
    """Return the whole state of a game, including private attributes, as comparable values."""
    state: dict[str, Any] = twin(cast(Any, game).__getstate__())
    state.pop("_events", None)  # the list of the current turn
    state["hands"] = [(held.cards, held.counts) for held in state["hands"]]
    return state


def twin(one: Any) -> Any:
    return next(twins(one, 1))


def twins(one: Any, many: int) -> Iterator[Any]:
    kept = pickle.dumps(one)
    return (pickle.loads(kept) for _ in range(many))  # noqa: S301, our own


def legal_outputs(game: State) -> Sequence[TurnOutput]:
    held = game.hands[game.seat]
    return _legal_outputs(tuple(sorted(held.cards)), tuple(held.counts), game.number, game.can_doubt, game.rules.ranks)


@cache
def _legal_outputs(
    held: tuple[int, ...], counts: tuple[int, ...], number: int, can_doubt: bool, ranks: int
) -> list[TurnOutput]:
    """Filter all candidates by the one rule of legality."""
    groups = sorted({group for n in range(5) for group in combinations(held, n)})
    numbers = (None,) if number else (None, *range(15))
    plays = [TurnOutput(False, declared, group) for group in groups for declared in numbers]
    candidates = [TurnOutput(True), TurnOutput(True, None, (JOKER,)), *plays]
    return [one for one in candidates if why_illegal(one, list(counts), number, can_doubt, ranks) is None]


@dataclass(frozen=True)
class Setup:
    """The table, rules and deal of a random game, and how its players behave.

    A short deck has few numbers, and a clumped deal gives each seat three cards of one number. Both make sets and wins
    frequent.
    """

    seed: int
    players: int
    rules: Rules
    deal: Deal
    doubt: float
    honest: float


def new_game(setup: Setup) -> State:
    rng = Random(f"deal {setup.seed}")
    if setup.deal == "full":
        return State(setup.rules, deal_hands(rng, setup.players, setup.rules))
    deal = short_deal if setup.deal == "short" else clumped_deal
    while True:
        hands = deal(rng, setup.players, setup.rules.jokers)
        if all(hands) and not any(held.count(number) == COPIES for held in hands for number in NUMBERS):
            return State(setup.rules, [Hand(held) for held in hands])


def short_deal(rng: Random, players: int, jokers: int) -> list[list[int]]:
    """Deal a deck with few numbers in the usual way."""
    most = rng.randint((players + 3) // 2, players + 1)
    pile = [*NUMBERS[:most]] * COPIES + [JOKER] * jokers
    rng.shuffle(pile)
    return [pile[seat::players] for seat in range(players)]


def clumped_deal(rng: Random, players: int, jokers: int) -> list[list[int]]:
    """Deal three cards of one number to all seats but the first or the first two.

    Those get the fourth cards and the jokers.
    """
    few = rng.randint(1, 2)
    rest = [*NUMBERS[: players - few]] + [JOKER] * jokers
    rng.shuffle(rest)
    return [rest[seat::few] for seat in range(few)] + [[number] * 3 for number in NUMBERS[: players - few]]


def random_output(game: State, rng: Random, setup: Setup) -> TurnOutput:
    """Return a legal output: a doubt with about the setup's probability, otherwise cards, honest or not."""
    if game.can_doubt and rng.random() < (0.9 if _would_empty(game) else setup.doubt):
        return TurnOutput(True)
    held = game.hands[game.seat].cards
    most = min(3, len(held))
    picked = rng.sample(held, rng.randint(1, most))
    number = game.number or rng.choice(NUMBERS)
    if rng.random() < setup.honest:
        number = game.number or picked[0] or number
        matching = [card for card in held if card in (number, JOKER)]
        picked = rng.sample(matching, rng.randint(1, min(3, len(matching)))) if matching else picked
    return TurnOutput(False, None if game.number else number, picked)


def _would_empty(game: State) -> bool:
    heaps = [Counter(game.hands[seat].cards + game.board) for seat in (game.seat, game.last_player) if seat is not None]
    return any(set(heap.values()) == {COPIES} for heap in heaps)


def random_game(setup: Setup) -> Iterator[tuple[State, TurnOutput]]:
    game, rng = new_game(setup), Random(f"moves {setup.seed}")
    while not game.over:
        yield game, random_output(game, rng, setup)


def in_play(game: State) -> Counter[int]:
    return Counter([card for held in game.hands for card in held.cards] + game.board)


class Scripted(PlayerAI):
    """Makes the given moves in order, and records what it saw and observed."""

    def __init__(self, id: int, *, moves: Sequence[str] = ()) -> None:
        super().__init__(id)
        self.moves = list(moves)
        self.seen: list[TurnData] = []
        self.observed: list[GameEvent] = []

    def play(self, p: TurnData) -> TurnOutput:
        self.seen.append(p)
        return output(self.moves.pop(0))

    def observe(self, event: GameEvent) -> None:
        self.observed.append(event)


def scripted(*moves: str) -> Entrant:
    return Entrant("Scripted", Scripted, {"moves": moves})


def table(game: State, *entrants: Entrant | type[PlayerAI], fallback: type[PlayerAI] | None = None) -> Table[State]:
    seated = [one if isinstance(one, Entrant) else Entrant(one.__name__, one) for one in entrants]
    seated += [scripted()] * (len(game.hands) - len(seated))
    return Table(game, seated, DealStreams(0, 5), deal=5, number=7, fallback=fallback)


def script(at: Table, seat: int) -> Scripted:
    player = at.players[seat]
    assert isinstance(player, Scripted)
    return player
