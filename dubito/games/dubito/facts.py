"""Collect, check and store Dubito's positions. The facts for prompts are in `knowledge`.

Positions are only collected from players that answer the nodes A-E one by one. The sample tables for prompts cover
every table size and both win rules, with players that answer at random.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, get_args

from dubito.errors import one_line
from dubito.game.record import PositionFile
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.games.dubito.bot import NODES, FiveNodes, Listener
from dubito.games.dubito.cards import JOKER, MAX_PLAY, NUMBERS, TurnData, TurnOutput
from dubito.games.dubito.engine import MAX_PLAYERS, MIN_PLAYERS, Rules, WinRule, deal_table
from dubito.games.dubito.events import CardsPlayedEvent, DiscardEvent, DoubtResolvedEvent, Event, GameStartEvent
from dubito.games.dubito.knowledge import AT_ONCE as AT_ONCE
from dubito.games.dubito.knowledge import BRIEF as BRIEF
from dubito.games.dubito.knowledge import Notebook as Notebook
from dubito.games.dubito.knowledge import Position as Position
from dubito.games.dubito.knowledge import facts as facts
from dubito.games.dubito.knowledge import rate as rate
from dubito.games.dubito.knowledge import steady_facts as steady_facts
from dubito.games.dubito.knowledge import turn as turn
from dubito.games.dubito.witness import Memory
from dubito.games.dubito.witness import OwnPlay as OwnPlay

Note = Callable[[int, Position], None]  # called with each question and its seat before the answer


class Questions:
    """Plays a game turn by turn and reports its players' questions."""

    def __init__(self, table: Table, rules: Any, note: Note) -> None:
        """Listen to a table's players before its game begins. `rules` are in the form that `Notebook` expects."""
        self._table = table
        self._seats = [_Seat(seat, rules, table, note) for seat in range(len(table.players))]
        self._notify(table.state.start)
        for seat, player in zip(self._seats, table.players, strict=True):
            if isinstance(player, FiveNodes):
                player.listeners += (seat,)

    def step(self) -> TurnOutput:
        state = self._table.state
        self._seats[state.seat].notebook.begin_turn(state.hands[state.seat].cards)
        output: TurnOutput
        output, events = step(self._table, announce=True)
        self._notify(events, output.cards or ())
        return output

    def _notify(self, events: Sequence[Event], played: Sequence[int] = ()) -> None:
        for seat, hand in zip(self._seats, self._table.state.hands, strict=True):
            for event in events:
                seat.notebook.observe(event, hand.cards, played)


class _Seat(Listener):
    def __init__(self, seat: int, rules: Any, table: Table, note: Note) -> None:
        self.notebook = Notebook(seat, rules)
        self._seat, self._table, self._note = seat, table, note

    def note_question(self, node: str) -> None:
        state = self._table.state
        self._note(self._seat, self.notebook.position(node, state.turn_data(), state.hands[self._seat].cards))

    def note_answer(self, node: str, answer: bool) -> None:
        self.notebook.note_answer(node, answer)


_SEED: Final = 0


class _RandomPlayer(FiveNodes):
    """Answers at random, at rates that produce doubts, sets, wins, and both long and short rounds."""

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 0.3

    def maximize_first_hand(self, p: TurnData) -> bool:
        return self.rng.random() < 0.7

    def should_doubt(self, p: TurnData) -> bool:
        return self.rng.random() < 0.2

    def bluff_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 0.3

    def maximize_regular(self, p: TurnData) -> bool:
        return self.rng.random() < 0.7


def sample_tables() -> Iterator[tuple[Table, Rules]]:
    """Yield each sample table, before its first turn, with its rules."""
    for win_rule in get_args(WinRule):
        for deal, size in enumerate(range(MIN_PLAYERS, MAX_PLAYERS + 1)):
            rules = Rules(win_rule=win_rule)
            yield sample_table(rules, size, deal), rules


def sample_table(rules: Rules, size: int, deal: int) -> Table:
    entrants = [Entrant(f"player {seat}", _RandomPlayer) for seat in range(size)]
    return deal_table(entrants, rules, DealStreams(_SEED, deal), deal=deal, number=deal)


_EXAMPLE_EVENTS: Final = 24  # enough for doubts, pick-ups and plays by the seat
# The nodes that may have been answered earlier in the turn (R24). C and D are absent if they were not asked.
_BEFORE: Final = {"A": [""], "B": ["A"], "C": [""], "D": ["", "C"], "E": ["", "C", "D", "CD"]}


def _find_fault(position: Position) -> str | None:
    """Explain why no game can reach this position, checking only what prompts depend on."""
    start, turn = position.events[0] if position.events else None, position.turn
    if not isinstance(start, GameStartEvent) or sum(isinstance(event, GameStartEvent) for event in position.events) > 1:
        return "events: the first event, and no other, must be the start of the game"
    n = len(start.player_ids)
    least, most = position.rules.seats
    if not least <= n <= most or start.player_ids != [*range(n)] or position.seat not in range(n):
        return f"events.0: player_ids must be the seats from 0 to at most {most - 1}, including the player's own"
    if len(start.initial_card_counts) != n:
        return "events.0: initial_card_counts and player_ids differ in length"
    highest = position.rules.ranks
    if not all(JOKER <= card <= highest for card in _cards(position)):
        return f"a card is not between {JOKER} and {highest}"
    if not all(NUMBERS[0] <= number <= highest for number in _numbers(position)):
        return f"a number is not between {NUMBERS[0]} and {highest}"
    played = [
        event.n_cards
        for event in position.events
        if isinstance(event, CardsPlayedEvent) and event.player_id == position.seat
    ]
    if played != [len(play.cards) for play in position.own_plays] or not all(1 <= n <= MAX_PLAY for n in played):
        return f"own_plays: does not match the plays of seat {position.seat} in events"
    if not _is_asked(position):
        return f"node {one_line(position.node)} is not asked here, or not after these answers"
    return _contradiction(position, turn.prev.id, turn.next.id)


def _is_asked(position: Position) -> bool:
    """Return whether this node is asked on this turn (R24)."""
    node, turn = position.node, position.turn
    if node not in NODES or set(position.answers) not in map(set, _BEFORE[node]):
        return False
    if node in "AB":
        return turn.board_cards == 0
    if position.answers.get("C") or not 0 < turn.n_cards_played <= turn.board_cards:
        return False
    return {"C": turn.can_doubt, "D": turn.current_number in position.hand}.get(node, True)


def _contradiction(position: Position, before: int, after: int) -> str | None:
    """Return where the events contradict the turn data."""
    turn, seat = position.turn, position.seat
    try:
        witness = Memory.of(seat, position.events, position.own_plays, position.rules.copies).witness
    except LookupError:
        return "events: a player is not at the table"
    around = witness.active()
    if seat not in around or len(around) < position.rules.seats[0] or (around[-1], around[1]) != (before, after):
        return "turn: prev and next do not match the events"
    neighbours = [witness.players[other] for other in (seat, before, after)]
    if neighbours != [turn.me, turn.prev, turn.next] or not len(position.hand) == turn.my_n_cards == turn.me.n_cards:
        return "turn: me, prev, next or the hand does not match the events"
    if (witness.board_cards, witness.streak, witness.last_player) != (
        turn.board_cards,
        turn.streak,
        turn.last_player_id,
    ):
        return "turn: the board does not match the events"
    return None


def _cards(position: Position) -> Iterator[int]:
    yield from position.hand
    for play in position.own_plays:
        yield from play.cards
    for event in position.events:
        if isinstance(event, DoubtResolvedEvent):
            yield from event.latest_cards + event.board_cards


def _numbers(position: Position) -> Iterator[int]:
    yield from position.turn.playing_cards
    yield position.turn.current_number or NUMBERS[0]
    for play in position.own_plays:
        yield play.number
    for event in position.events:
        if isinstance(event, (CardsPlayedEvent, DoubtResolvedEvent)):
            yield event.declared_number
        elif isinstance(event, DiscardEvent):
            yield event.card_number


_FILE: Final = PositionFile(Position, "dubito position 1", _find_fault, usual=False)
to_json, from_json = _FILE.to_json, _FILE.from_json


@cache
def example_position(node: str) -> Position:
    """Return a fixed mid-game position at a table of four at which this node is asked."""
    table, positions = sample_table(Rules(), 4, 0), list[Position]()
    questions = Questions(table, Rules(), lambda _, position: positions.append(position))
    while not table.state.over:
        questions.step()
        for position in positions:
            if position.node == node and len(position.events) >= _EXAMPLE_EVENTS:
                return position
        positions.clear()
    raise AssertionError(f"the example game never asks node {node}")
