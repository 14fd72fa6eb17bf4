"""Everything that one Dubito seat knows when asked a question, as a mapping of plain values.

This is everything that a hand-written bot can see or derive, and nothing else. Players are identified by seat, never by
name.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel

from dubito.games.dubito.bot import NODES, Listener
from dubito.games.dubito.cards import JOKER, NUMBERS, PlayerData, TurnData
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.events import CardsPlayedEvent, Event
from dubito.games.dubito.sentences import card_name
from dubito.games.dubito.witness import Memory, OwnPlay, Witness, names
from dubito.games.dubito.words import NODE_TEXTS, WALK, WALK_AT_ONCE, effects, objective, rule_paragraphs, scoring


@dataclass(frozen=True, slots=True)
class Position:
    """Everything that a seat has observed by the time it decides at a node."""

    rules: Rules
    seat: int
    node: str  # "A" to "E"
    hand: tuple[int, ...]  # sorted
    turn: TurnData
    events: tuple[Event, ...]  # what the seat observed, starting with the GameStartEvent
    own_plays: tuple[OwnPlay, ...]  # in the same order as the seat's own CardsPlayedEvents
    answers: Mapping[str, bool]  # earlier answers of this turn; D is missing if the bluff is forced


AT_ONCE: Final = {"walk": WALK_AT_ONCE}
BRIEF: Final = {"question", "if_true", "if_false", "hand", "number", "board_cards", "last_player", "last_play"} | {
    *("sure_bluff", "prev", "prev_cards", "prev_about_to_win", "next", "next_cards"),
}


def turn(position: Position) -> list[Position]:
    """Return this question and all that may follow in the same turn (R24), with the answers that lead to them.

    A question whose meaning depends on an earlier answer is listed once per answer.
    """
    questions = [position]
    for question in questions:  # because the list keeps growing
        following = (
            (_next_node(question, answer), {**question.answers, question.node: answer}) for answer in (True, False)
        )
        questions += [replace(question, node=node, answers=answers) for node, answers in following if node]
    return questions


def _next_node(position: Position, answer: bool) -> str | None:
    match position.node:
        case "A":
            return "B"
        case "C" if not answer:
            return "D" if position.turn.current_number in position.hand else "E"
        case "D":
            return "E"
        case _:
            return None


_IN_ORDER: Final = (*NUMBERS, JOKER)

# What the lines of prompts/shared/facts.jinja mean. `seat N` explains the lines with one player each.
_MEANINGS: Final = {
    "win_rule": "when an empty hand wins",
    "seat": "your seat",
    "hand, own_cards": "your cards, how many of each number and how many in all",
    "sets_gone, jokers_gone": "sets and jokers out of the game; all other numbers are still in play",
    "number, held_of_number": "the number of this round, and how many cards of it you hold, without jokers",
    "number_elsewhere": "how many cards of it cannot be in the last play: yours, those surely in other hands, those "
    "out of the game",
    "sure_bluff": "whether the last play must be a bluff, by what you know for certain",
    "board_cards": "cards on the board, the price of a wrong doubt or a caught bluff",
    "streak": "plays since the last doubt",
    "last_player, last_play": "who made the last play, and with how many cards",
    "prev_chose_number": "whether the seat before you opened this round and nobody has played since",
    "prev_about_to_win": "whether the seat before you has no cards and wins unless you doubt a bluff",
    "prev, next": "the seat before you, and the one after, which may doubt your play: seat; cards held; doubts, as a "
    "share of its turns on a board that was not empty; bluffs, as a share of its doubted plays. unknown: no such case "
    "yet, which proves nothing",
    "table": "these two shares for all players together",
    "seat N": "a player still in the game, in playing order from you: cards held; doubts out of turns on a board that "
    "was not empty; honest plays out of doubted ones; known: cards that everyone saw them pick up and that they held "
    "when the round began; less: how many cards they have played since, perhaps some of these",
    "node": "the question",
}


def facts(position: Position, memory: Memory | None = None) -> dict[str, Any]:
    """Return the facts as JSON values.

    Every node has the same keys. Cards are words ("ace", "7", "joker"). Rates without data, and facts that do not apply
    to an empty board, are None. Pass `memory` if the memory of the position's events is already built.
    """
    turn, seat = position.turn, position.seat
    memory = memory or Memory.of(seat, position.events, position.own_plays, position.rules.copies)
    witness = memory.witness
    active = witness.active()
    question, if_true, if_false = effects(position.node, position.hand, turn, position.answers, position.rules.win_rule)
    return {
        **_describe_rules(position.rules, len(witness.players)),
        "seat": seat,
        "history": memory.history.copy(),
        "own_moves": memory.own_moves.copy(),
        "own_plays": [play | {"cards": play["cards"].copy()} for play in memory.own_plays],
        "node": position.node,
        "node_name": NODES[position.node],
        "question": question,
        "if_true": if_true,
        "if_false": if_false,
        "answers": dict(position.answers),
        "seats_in_game": active,
        "places": {str(winner): place for winner, place in witness.places.items()},
        **_own_hand(position.hand, turn),
        **_board(position, witness),
        **_neighbour("prev", turn.prev),
        "prev_chose_number": 0 < turn.board_cards == turn.n_cards_played and turn.last_player_id == turn.prev.id,
        "prev_about_to_win": turn.prev.n_cards == 0,
        **_neighbour("next", turn.next),
        **_table(witness.players.values()),
        "players": [_player(witness, other) for other in active],
    }


def steady_facts() -> frozenset[str]:
    return frozenset(_describe_rules(Rules(), 3)) | {"seat"}


@lru_cache(maxsize=64)
def _describe_rules(rules: Rules, seats: int) -> dict[str, Any]:
    return {
        "rules": rules.stored_form(),
        "win_rule": rules.win_rule,
        "rule_text": rule_paragraphs(rules, seats),
        "objective": objective(seats),
        "scoring": scoring(),
        "walk": WALK,
        "node_texts": NODE_TEXTS,
        "meanings": _MEANINGS,
        "seats": list(range(seats)),
    }


def _own_hand(hand: tuple[int, ...], turn: TurnData) -> dict[str, Any]:
    counts = Counter(hand)
    return {
        "hand": {card_name(card): counts[card] for card in _IN_ORDER if card in counts},
        "own_cards": turn.my_n_cards,
        "held_of_number": hand.count(turn.current_number) if turn.current_number else None,
    }


def _board(position: Position, witness: Witness) -> dict[str, Any]:
    turn = position.turn
    number, hand = turn.current_number, position.hand
    empty = number == 0
    elsewhere = witness.count_elsewhere(number) + hand.count(number)
    jokers = position.rules.jokers - witness.count_elsewhere(JOKER) - hand.count(JOKER)
    return {
        "numbers_in_play": names(turn.playing_cards),
        "sets_gone": names(witness.sets_gone),
        "jokers_gone": witness.jokers_gone,
        "board_cards": turn.board_cards,
        "streak": turn.streak,
        "can_doubt": turn.can_doubt,
        "number": None if empty else card_name(number),
        "number_elsewhere": None if empty else elsewhere,
        "last_player": turn.last_player_id,
        "last_play": None if empty else turn.n_cards_played,
        "sure_bluff": None if empty else turn.n_cards_played > position.rules.copies - elsewhere + jokers,
    }


def _neighbour(who: str, data: PlayerData) -> dict[str, Any]:
    rates = _rates(f"{who}_", data.doubts, data.not_first_turns, data.honest_times, data.dishonest_times)
    return {who: data.id, f"{who}_cards": data.n_cards, **rates}


def _table(players: Collection[PlayerData]) -> dict[str, Any]:
    return _rates(
        "table_",
        sum([data.doubts for data in players]),
        sum([data.not_first_turns for data in players]),
        sum([data.honest_times for data in players]),
        sum([data.dishonest_times for data in players]),
    )


def _rates(who: str, doubts: int, chances: int, honest: int, dishonest: int) -> dict[str, Any]:
    """Return the rate of doubts, and the shares of honest and dishonest plays among the doubted plays."""
    return {
        f"{who}doubt_rate": rate(doubts, chances),
        f"{who}honest_share": rate(honest, honest + dishonest),
        f"{who}bluff_rate": rate(dishonest, honest + dishonest),
    }


def rate(times: int, chances: int) -> float | None:
    return times / chances if chances else None


def _player(witness: Witness, seat: int) -> dict[str, Any]:
    data = witness.players[seat]
    return {
        "seat": seat,
        "cards": data.n_cards,
        "turns": data.turns,
        "chances_to_doubt": data.not_first_turns,
        "doubts": data.doubts,
        "doubted_plays": data.honest_times + data.dishonest_times,
        "honest_plays": data.honest_times,
        **_rates("", data.doubts, data.not_first_turns, data.honest_times, data.dishonest_times),
        "known_cards": _spread(witness.hand_at_round_start(seat)),
        "put_down": witness.down.get(seat, 0),
        "surely_holds": _spread(witness.known_cards(seat)),
    }


def _spread(counts: Sequence[int]) -> list[str]:
    return [card_name(card) for card in _IN_ORDER if counts[card] for _ in range(counts[card])] if any(counts) else []


class Notebook(Listener):
    """The record of one seat in one game, kept by its player or an observer."""

    def __init__(self, seat: int, rules: Rules | BaseModel) -> None:
        """Start a notebook, with the rules of an engine or a config."""
        self.events: list[Event] = []
        self.own_plays: list[OwnPlay] = []
        self._rules = rules if isinstance(rules, Rules) else Rules(**rules.model_dump())
        self._memory = Memory(seat, self._rules.copies)
        self._last: Position | None = None  # the position that the memory belongs to
        self._seat = seat
        self._answers: dict[str, bool] = {}
        self._held = Counter[int]()  # the hand when the turn began

    def begin_turn(self, hand: Iterable[int]) -> None:
        self._answers = {}
        self._held = Counter(hand)

    def note_answer(self, node: str, answer: bool) -> None:
        self._answers[node] = answer

    def observe(self, event: Event, hand: Iterable[int], played: Sequence[int] | None = None) -> None:
        """Record an event.

        `hand` is the seat's current hand, and `played` the cards that it played. If `played` is omitted, the cards are
        inferred from the hand, because a substitute may have chosen them (R13).
        """
        self.events.append(event)
        own_play = None
        if isinstance(event, CardsPlayedEvent) and event.player_id == self._seat:
            gone = sorted((self._held - Counter(hand)).elements()) if played is None else played
            own_play = OwnPlay(event.declared_number, tuple(gone))
            self.own_plays.append(own_play)
        self._memory.watch(event, own_play)
        self._last = None

    def position(self, node: str, turn: TurnData, hand: Iterable[int]) -> Position:
        events, own_plays = tuple(self.events), tuple(self.own_plays)
        self._last = Position(
            self._rules, self._seat, node, tuple(sorted(hand)), turn, events, own_plays, dict(self._answers)
        )
        return self._last

    def facts(self, position: Position) -> dict[str, Any]:
        known = self._last is not None and position.events is self._last.events
        return facts(position, self._memory if known else None)
