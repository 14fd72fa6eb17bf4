"""The facts for BS prompts (`dubito.game.Facts`).

The facts contain everything that a hand-written bot can see or derive, and nothing else. Players are identified by
seat, never by name; cards are numbers. Lines of the history never change.

Sample positions come from games between players that answer at random.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from random import Random
from typing import Any, Final

from dubito.errors import pluralize
from dubito.game import Facts
from dubito.game.events import EVERYTHING
from dubito.game.log import Log, Position
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import COPIES, DECK, NUMBERS, Card
from dubito.games.bs.engine import State
from dubito.games.bs.knowledge import BSRules, Knowledge
from dubito.games.bs.table import SEATS, View
from dubito.games.bs.words import OBJECTIVE, rule_paragraphs

_HONEST_CHANCE: Final = 0.85  # chance of an honest play if the hand has the number
_ACCUSE_CHANCE: Final = 0.1


class RandomPlayer(BSBot):
    """A player that answers at random, so that all kinds of positions occur."""

    def play(self, view: View) -> Any:
        return random_answer(view, list(self.cards), self.rng)


def random_answer(view: View, cards: Sequence[Card], chance: Random) -> bool | Sequence[Card]:
    """Return a random legal answer for this view and these cards."""
    if view.node == "bs":
        return chance.random() < _ACCUSE_CHANCE
    held = [card for card in cards if card.number == view.number]
    if held and chance.random() < _HONEST_CHANCE:
        return held
    return chance.sample(cards, min(len(cards), chance.randint(1, 2)))


_EXAMPLE_DEAL: Final = 1
_EXAMPLE_TURNS: Final = 20  # enough for accusations and for players to have picked up piles


@cache
def example_position(node: str) -> Position[BSRules]:
    """Return a fixed position from the middle of a random game at which this node is asked."""
    chance, rules, deck = Random(_EXAMPLE_DEAL), BSRules(), list(DECK)
    chance.shuffle(deck)
    hands = [deck[first : first + NUMBERS] for first in range(0, len(deck), NUMBERS)]
    state = State(hands, rules.max_rounds, Random(_EXAMPLE_DEAL))
    log = Log(state.start)
    while state.public.node != node or state.turns_played + (node == "bs") < _EXAMPLE_TURNS:
        log.add(state.apply(random_answer(state.view(), state.hands[state.seat].cards, chance), EVERYTHING))
    return Position(rules, node, log.of(state.seat))


_NODES: Final = {
    "cards": "Which cards do you play? Asked on your turn. Answer with their numbers, one entry per card and at least "
    "one: [4] is one 4, [4, 4, 9] is two 4s and a 9. You must hold each of them, as often as you name it.",
    "bs": "Do you accuse the player of lying? Asked after another seat's play. true: you do. false: you do not.",
}

# What the lines of prompts/bs/shared/facts.jinja mean. `seat N` explains the lines with one seat each.
_MEANINGS: Final = {
    "seat": "your seat",
    "hand, own_cards": "your cards, how many of each number and how many in all",
    "own_numbers": f"the numbers your turns ask for, the next turn first; each comes once in {NUMBERS} turns",
    "own_in_pile": "cards on the pile that you know because they were yours",
    "pile": "how many cards are on the pile, including the play in question: the price of a caught lie or a wrong "
    "accusation",
    "round": "this round, and the round after which nobody wins",
    "mover, number": "the seat whose turn it is, and the number the turn asks for",
    "held_of_number": "how many cards of it you hold",
    "placed": f"how many of its {COPIES} cards you can locate: yours, your own on the pile, and those certainly in "
    "other hands. None of these can be in another seat's play",
    "played": "how many cards the play has",
    "sure_lie": f"whether it must be a lie: played and placed add up to more than {COPIES}",
    "mover_wins": "whether the mover has no cards left and wins unless caught lying",
    "seat N": "a seat, in turn order from you: cards held; plays; honest plays out of accused ones; right "
    "accusations out of those that counted; known: cards you know it picked up; less: how many cards it has "
    "played since, perhaps some of these",
    "node": "the question",
}


class BSFacts(Facts[BSRules]):
    BRIEF = {"question", "hand", "number", "pile", "hands", "placed", "sure_lie", "mover_wins"}

    def facts(self, position: Position[BSRules]) -> dict[str, Any]:
        """Return the facts as JSON values. Every node has the same keys; facts that do not apply are None."""
        known = position.known(Knowledge)
        number, mover = known.number, known.mover
        started = known.turns + (known.play is not None)
        to_own = started + (known.seat - started) % len(SEATS)  # index of the seat's current or next turn
        played = None if known.play is None else known.play.n_cards
        # the cards of this number in the hand, among the own cards on the pile, and certainly in other hands
        in_hands = sum(known.count_known_cards(seat, number) for seat in SEATS)
        placed = known.hand[number] + known.own_pile_cards().count(number) + in_hands
        return {
            **_describe_rules(position.rules),
            "seat": position.seat,
            "history": known.history.copy(),
            "own_moves": known.own_moves.copy(),
            "node": position.node,
            **_question(position.node, known),
            "hand": {str(held): known.hand[held] for held in range(NUMBERS) if known.hand[held]},
            "own_cards": known.hand.total(),
            "own_numbers": [(to_own + len(SEATS) * ahead) % NUMBERS for ahead in range(NUMBERS)],
            "own_in_pile": dict(Counter(map(str, known.own_pile_cards()))),
            "round": known.turns // len(SEATS) + 1,
            "max_rounds": position.rules.max_rounds,
            "mover": mover,
            "number": number,
            "pile": known.pile_size,
            "hands": list(known.hands),
            "held_of_number": known.hand[number],
            "placed": placed,
            "played": played,
            "sure_lie": None if played is None else played + placed > COPIES,
            "mover_wins": None if played is None else not known.hands[mover],
            "players": [_player(known, (position.seat + ahead) % len(SEATS)) for ahead in SEATS],
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset(_describe_rules(BSRules())) | {"seat"}

    def example_position(self, node: str) -> Position[BSRules]:
        return example_position(node)


@lru_cache(maxsize=8)
def _describe_rules(rules: BSRules) -> dict[str, Any]:
    return {
        "rules": rules.model_dump(),
        "rule_text": rule_paragraphs(rules),
        "objective": OBJECTIVE,
        "node_texts": _NODES,
        "meanings": _MEANINGS,
        "seats": list(SEATS),
    }


def _question(node: str, known: Knowledge) -> dict[str, Any]:
    """Return the question, the effects of its answers, and the legal cards."""
    if node == "cards":
        held = sorted(known.hand.elements())
        return {
            "question": f"Your turn asks for {known.number}s. Which cards do you play, as {known.number}s?",
            "if_true": None,
            "if_false": None,
            "legal": held,
        }
    assert known.play is not None
    mover, pile = f"seat {known.mover}", pluralize(known.pile_size)
    then = f"; {mover} then has no cards left and wins." if not known.hands[known.mover] else "."
    loses = "a random card of yours is the new pile"
    if known.hand.total() == 1:
        loses = "your last card is the new pile, and you win"
    return {
        "question": f"{mover} played {pluralize(known.play.n_cards)} as {known.number}s. Do you accuse it of lying?",
        "if_true": f"if your accusation counts: if it is a lie, {mover} picks up the pile of {pile}, and {loses}; if "
        f"it is honest, you pick up the pile{then}",
        "if_false": f"unless another seat accuses, the pile stays{then}",
        "legal": [],
    }


def _player(known: Knowledge, seat: int) -> dict[str, Any]:
    record = known.records[seat]
    return {
        "seat": seat,
        "cards": known.hands[seat],
        "plays": record.plays,
        "looked_at": record.lies + record.honest,
        "honest": record.honest,
        "accusations": record.right + record.wrong,
        "right": record.right,
        "known_cards": sorted(known.known[seat].elements()),
        "put_down": known.put_down[seat],
    }
