"""What prompts are told of BS, and how its positions are kept (`dubito.game.Facts`).

Everything that a hand-written bot can see or derive is in the facts, and nothing else. Players are seats, never names;
cards are their numbers.
"""

from collections import Counter
from functools import lru_cache
from typing import Any, Final

from dubito.games.bs.cards import COPIES, NUMBERS
from dubito.games.bs.history import count, lines
from dubito.games.bs.notebook import Notebook, Position
from dubito.games.bs.positions import example_position, from_json, to_json
from dubito.games.bs.rule_text import OBJECTIVE, rule_sentences
from dubito.games.bs.rules_config import BSRules
from dubito.games.bs.table import SEATS
from dubito.games.bs.witness import Witness

__all__ = ["Notebook", "Position", "example_position", "facts", "from_json", "steady_facts", "to_json"]

_NODES: Final = {
    "cards": "Asked on your turn: which cards do you put down? The answer is their numbers, an entry a card and at "
    "least one: [4] is one 4, and [4, 4, 9] two 4s and a 9. Each of them has to be in your hand, as often as you name "
    "it.",
    "bs": "Asked after each play of another seat: do you accuse it of a lie? true: you do. false: you do not.",
}

# What each line of the shared partial means; `seat N` stands for the lines that tell of one seat each.
_MEANINGS: Final = {
    "seat": "your seat",
    "hand": "your cards, how many of each number",
    "own_cards": "how many cards you hold",
    "own_numbers": "the numbers that your turns ask for, the next turn first; each number comes once in "
    f"{NUMBERS} turns",
    "own_in_pile": "cards of the pile that you know, because they were yours",
    "pile": "how many cards lie on the pile, the play in question among them: the price of a lie that is found out, "
    "and of an accusation that fails",
    "round": "this round, and after which one nobody wins",
    "mover": "the seat whose turn it is",
    "number": "the number that this turn asks for",
    "held_of_number": "how many cards of it you hold",
    "placed": f"of the {COPIES} cards of that number, those that cannot be in the play: yours, your own on the pile, "
    "and those that are certain to be in other hands. On your own turn: those that nobody can put down unseen",
    "played": "how many cards the play has",
    "sure_lie": f"whether it is a lie for certain: played and placed make more than {COPIES}",
    "mover_wins": "whether the mover holds no card any more, and wins unless it is accused of a lie",
    "seat N": "a seat, in turn order from yours on: cards held; plays, and of those that were looked at how many were "
    "honest; accusations of its own that counted, and how many of them were right; known: cards that it took up and "
    "that you know of; less: how many cards, perhaps some of these, it has put down since. So `seat 3: 9 6 1/2 2/3 "
    "known 4 4 12 less 2` holds nine cards, made six plays, of which two were looked at and one was honest, accused "
    "three times, twice rightly, and took up two 4s and a 12 before it put down two cards, which may be among them",
    "node": "the question that is asked",
}


def facts(position: Position) -> dict[str, Any]:
    """The facts as plain values that JSON can hold; the keys are the same at every node, and None where it lacks one.

    Raises UsageError for turns that no game can produce.
    """
    witness = Witness(position)
    history, own_moves = lines(witness, position.dealt)
    return {
        **_rules_in_words(position.rules),
        "seat": position.seat,
        "history": history,
        "own_moves": own_moves,
        "node": position.node,
        **_question(position, witness),
        **_hand(position, witness),
        **_table(position, witness),
        "players": [_player(witness, (position.seat + ahead) % len(SEATS)) for ahead in SEATS],
    }


def steady_facts() -> frozenset[str]:
    """The facts that stay the same for one seat through a whole game."""
    return frozenset(_rules_in_words(BSRules())) | {"seat"}


@lru_cache(maxsize=8)
def _rules_in_words(rules: BSRules) -> dict[str, Any]:
    return {
        "rules": rules.model_dump(),
        "rule_text": rule_sentences(rules),
        "objective": OBJECTIVE,
        "node_texts": _NODES,
        "meanings": _MEANINGS,
        "seats": list(SEATS),
    }


def _question(position: Position, witness: Witness) -> dict[str, Any]:
    """What is asked on this very turn, and what the answers do; what may be played is listed."""
    if position.node == "cards":
        held = sorted(witness.hand.elements())
        return {
            "question": f"It is your turn, and it asks for {position.number}s. Which cards do you put down, said to be "
            f"{position.number}s?",
            "if_true": None,
            "if_false": None,
            "legal": held,
        }
    mover, pile = f"seat {position.mover}", count(witness.pile_size)
    then = f"; {mover} has no card left then, and wins." if not witness.hands[position.mover] else "."
    loses = "a card of yours, drawn by chance, is the new pile"
    if witness.hand.total() == 1:
        loses = "your last card is the new pile: you win"
    return {
        "question": f"{mover} has put down {count(position.turns[-1].n_cards)} as {position.number}s. Do you accuse it "
        "of a lie?",
        "if_true": f"if your accusation counts: a lie, and {mover} takes the pile of {pile}, and {loses}; honest, and "
        f"you take the pile of {pile}{then}",
        "if_false": f"unless another seat accuses it, the pile stays{then}",
        "legal": [],
    }


def _hand(position: Position, witness: Witness) -> dict[str, Any]:
    """The own cards, and the numbers that they will be asked for."""
    seat, turns = position.seat, len(position.turns)
    to_own = turns + (seat - turns) % len(SEATS)  # the place of the own turn that comes next, or is
    return {
        "hand": {str(number): witness.hand[number] for number in range(NUMBERS) if witness.hand[number]},
        "own_cards": witness.hand.total(),
        "own_numbers": [(to_own + len(SEATS) * ahead) % NUMBERS for ahead in range(NUMBERS)],
        "own_in_pile": dict(Counter(map(str, witness.own_in_pile()))),
    }


def _table(position: Position, witness: Witness) -> dict[str, Any]:
    """The turn that is not over."""
    number, mover = position.number, position.mover
    played = position.turns[-1].n_cards if position.node == "bs" else None
    placed = witness.placed(number)
    return {
        "round": (len(position.turns) - (position.node == "bs")) // len(SEATS) + 1,
        "max_rounds": position.rules.max_rounds,
        "mover": mover,
        "number": number,
        "pile": witness.pile_size,
        "hands": list(witness.hands),
        "held_of_number": witness.hand[number],
        "placed": placed,
        "played": played,
        "sure_lie": None if played is None else played + placed > COPIES,
        "mover_wins": None if played is None else not witness.hands[mover],
    }


def _player(witness: Witness, seat: int) -> dict[str, Any]:
    record = witness.records[seat]
    return {
        "seat": seat,
        "cards": witness.hands[seat],
        "plays": record.plays,
        "looked_at": record.lies + record.honest,
        "honest": record.honest,
        "accusations": record.right + record.wrong,
        "right": record.right,
        "known_cards": sorted(witness.known[seat].elements()),
        "put_down": witness.put_down[seat],
    }
