"""The facts for Dubito's prompts (`dubito.game.Facts`), as a mapping of plain values.

They are everything that a hand-written bot can see or derive, and nothing else. Players are identified by seat, never
by name. The players of the sample tables for prompts answer at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from dubito.game import Facts
from dubito.game.events import Listener
from dubito.game.log import Log, Position
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.games.dubito.bot import NODES, FiveNodes
from dubito.games.dubito.cards import JOKER, NUMBERS, PlayerData, TurnData
from dubito.games.dubito.engine import Rules, State, deal_table
from dubito.games.dubito.knowledge import Knowledge
from dubito.games.dubito.rules import DubitoRules
from dubito.games.dubito.sentences import card_name, card_names
from dubito.games.dubito.words import NODE_TEXTS, SCORING, WALK, WALK_AT_ONCE, effects, objective, rule_paragraphs


def _next_node(node: str, answer: bool, holds_number: bool) -> str | None:
    match node:
        case "A":
            return "B"
        case "C" if not answer:
            return "D" if holds_number else "E"
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


class DubitoFacts(Facts[DubitoRules | Rules]):
    AT_ONCE = {"walk": WALK_AT_ONCE}
    BRIEF = {
        *("question", "if_true", "if_false", "hand", "number", "board_cards", "last_player", "last_play", "sure_bluff"),
        *("prev", "prev_cards", "prev_about_to_win", "next", "next_cards"),
    }

    def facts(self, position: Position[DubitoRules | Rules]) -> dict[str, Any]:
        """Return the facts as JSON values.

        Every node has the same keys. Cards are words ("ace", "7", "joker"). Rates without data, and facts that do not
        apply to an empty board, are None.
        """
        known = position.known(Knowledge)
        everyone = known.players.values()
        rules, turn, hand = known.rules, known.turn(), sorted(known.hand.elements())
        question, if_true, if_false = effects(position.node, hand, turn, known.answers, rules.win_rule)
        return {
            **_describe_rules(rules, len(known.players)),
            "seat": position.seat,
            "history": known.history.copy(),
            "own_moves": known.own_moves.copy(),
            "own_plays": [play | {"cards": play["cards"].copy()} for play in known.own_plays],
            "node": position.node,
            "node_name": NODES[position.node],
            "question": question,
            "if_true": if_true,
            "if_false": if_false,
            "answers": dict(known.answers),
            "seats_in_game": known.active(),
            "places": {str(winner): place for winner, place in known.places.items()},
            "hand": {card_name(card): known.hand[card] for card in _IN_ORDER if known.hand[card]},
            "own_cards": turn.my_n_cards,
            "held_of_number": known.hand[turn.current_number] if turn.current_number else None,
            **_board(turn, known),
            **_neighbour("prev", turn.prev),
            "prev_chose_number": 0 < turn.board_cards == turn.n_cards_played and turn.last_player_id == turn.prev.id,
            "prev_about_to_win": turn.prev.n_cards == 0,
            **_neighbour("next", turn.next),
            **_rates(
                "table_",
                sum([data.doubts for data in everyone]),
                sum([data.not_first_turns for data in everyone]),
                sum([data.honest_times for data in everyone]),
                sum([data.dishonest_times for data in everyone]),
            ),
            "players": [_player(known, other) for other in known.active()],
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset(_describe_rules(Rules(), 3)) | {"seat"}

    def turn(self, position: Position[DubitoRules | Rules]) -> list[Position[DubitoRules | Rules]]:
        """Return this question and all that may follow in the same turn (R24), with the answers that lead to them.

        A question whose meaning depends on an earlier answer is listed once per answer.
        """
        known = position.known(Knowledge)
        holds_number = known.hand[known.number] > 0
        questions = [position]
        for question in questions:  # because the list keeps growing
            following = ((answer, _next_node(question.node, answer, holds_number)) for answer in (True, False))
            questions += [
                Position(position.rules, node, question.log.with_answer(question.node, answer))
                for answer, node in following
                if node
            ]
        return questions

    def example_position(self, node: str) -> Position[DubitoRules]:
        return example_position(node)


@lru_cache(maxsize=64)
def _describe_rules(rules: Rules, seats: int) -> dict[str, Any]:
    return {
        "rules": rules.stored_form(),
        "win_rule": rules.win_rule,
        "rule_text": rule_paragraphs(rules, seats),
        "objective": objective(seats),
        "scoring": SCORING,
        "walk": WALK,
        "node_texts": NODE_TEXTS,
        "meanings": _MEANINGS,
        "seats": list(range(seats)),
    }


def _board(turn: TurnData, known: Knowledge) -> dict[str, Any]:
    number, hand = turn.current_number, known.hand
    empty = number == 0
    elsewhere = known.count_elsewhere(number) + hand[number]
    jokers = known.rules.jokers - known.count_elsewhere(JOKER) - hand[JOKER]
    return {
        "numbers_in_play": card_names(turn.playing_cards),
        "sets_gone": card_names(known.sets_gone),
        "jokers_gone": known.jokers_gone,
        "board_cards": turn.board_cards,
        "streak": turn.streak,
        "can_doubt": turn.can_doubt,
        "number": None if empty else card_name(number),
        "number_elsewhere": None if empty else elsewhere,
        "last_player": turn.last_player_id,
        "last_play": None if empty else turn.n_cards_played,
        "sure_bluff": None if empty else turn.n_cards_played > known.rules.copies - elsewhere + jokers,
    }


def _neighbour(who: str, data: PlayerData) -> dict[str, Any]:
    rates = _rates(f"{who}_", data.doubts, data.not_first_turns, data.honest_times, data.dishonest_times)
    return {who: data.id, f"{who}_cards": data.n_cards, **rates}


def _rates(who: str, doubts: int, chances: int, honest: int, dishonest: int) -> dict[str, Any]:
    """Return the rate of doubts, and the shares of honest and dishonest plays among the doubted plays."""
    return {
        f"{who}doubt_rate": rate(doubts, chances),
        f"{who}honest_share": rate(honest, honest + dishonest),
        f"{who}bluff_rate": rate(dishonest, honest + dishonest),
    }


def rate(times: int, chances: int) -> float | None:
    return times / chances if chances else None


def _player(known: Knowledge, seat: int) -> dict[str, Any]:
    data = known.players[seat]
    return {
        "seat": seat,
        "cards": data.n_cards,
        "turns": data.turns,
        "chances_to_doubt": data.not_first_turns,
        "doubts": data.doubts,
        "doubted_plays": data.honest_times + data.dishonest_times,
        "honest_plays": data.honest_times,
        **_rates("", data.doubts, data.not_first_turns, data.honest_times, data.dishonest_times),
        "known_cards": _spread(known.certain[seat]),
        "put_down": known.down.get(seat, 0),
        "surely_holds": _spread(known.known_cards(seat)),
    }


def _spread(counts: Sequence[int]) -> list[str]:
    return [card_name(card) for card in _IN_ORDER if counts[card] for _ in range(counts[card])] if any(counts) else []


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


def sample_table(rules: Rules, size: int, deal: int) -> Table[State]:
    entrants = [Entrant(f"player {seat}", _RandomPlayer) for seat in range(size)]
    return deal_table(entrants, rules, DealStreams(_SEED, deal), deal=deal, number=deal)


_EXAMPLE_EVENTS: Final = 24  # enough for doubts, pick-ups and plays by the seat


@cache
def example_position(node: str) -> Position[DubitoRules]:
    """Return a fixed mid-game position at a table of four at which this node is asked."""
    table, rules, positions = sample_table(Rules(), 4, 0), DubitoRules(), list[Position[DubitoRules]]()
    log = table.keep_log()
    for seat, player in enumerate(table.players):
        assert player is not None
        player.report_answers(_Questions(rules, log, seat, positions))
    while not table.state.over:
        step(table)
        for position in positions:
            if position.node == node and len(position.known(Knowledge).history) >= _EXAMPLE_EVENTS:
                return position
        positions.clear()
    raise AssertionError(f"the example game never asks node {node}")


@dataclass(eq=False)
class _Questions(Listener):
    """Collects the questions of a seat."""

    rules: DubitoRules
    log: Log
    seat: int
    positions: list[Position[DubitoRules]]

    def note_question(self, node: str) -> None:
        self.positions.append(Position(self.rules, node, self.log.of(self.seat)))
