"""The facts for BS prompts, and how positions are stored (`dubito.game.Facts`).

The facts contain everything that a hand-written bot can see or derive, and nothing else. Players are identified by
seat, never by name; cards are numbers. Lines of the history never change.

Sample positions come from games between players that answer at random.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from random import Random
from typing import Any, Final

from dubito.game import GameEvent
from dubito.game.record import PositionFile
from dubito.game.words import pluralize
from dubito.games.bs.cards import COPIES, DECK, NUMBERS, Card
from dubito.games.bs.engine import State
from dubito.games.bs.table import SEATS, View
from dubito.games.bs.witness import BSRules, Laid, Number, Seen, Witness
from dubito.games.bs.witness import Notebook as Notebook
from dubito.games.bs.witness import Position as Position
from dubito.games.bs.words import OBJECTIVE, rule_paragraphs
from dubito.games.bs.worlds import Output, World


def lines(witness: Witness, dealt: Iterable[int]) -> tuple[list[str], list[int]]:
    """Return the history and the indices of the seat's own plays and answers."""
    history = [f"Every seat is dealt {NUMBERS} cards. Yours: {numbers(dealt)}."]
    own = []
    for seen in witness.turns:
        if seen.mover == witness.seat:
            own.append(len(history))
        history.append(_play(seen))
        if seen.turn.answer is not None:
            own.append(len(history))
            history.append("You accuse." if seen.turn.answer else "You do not accuse.")
        if seen.turn.is_over:
            history.append(_ending(seen, witness.seat))
    return history, own


def numbers(cards: Iterable[int]) -> str:
    return " ".join(map(str, cards)) or "none"


def _play(seen: Seen) -> str:
    put = f"{pluralize(seen.turn.n_cards)} as {seen.number}s"
    if not seen.turn.cards:
        return f"seat {seen.mover} plays {put}."
    kind = "honest" if set(seen.turn.cards) == {seen.number} else "a lie"
    return f"You play {put}: {numbers(seen.turn.cards)}, {kind}."


def _ending(seen: Seen, own: int) -> str:
    turn, accuser = seen.turn, seen.accuser
    if accuser is None:
        return f"Nobody accuses: {pluralize(turn.pile or 0)} on the pile."
    who = f"seat {accuser} accuses" if accuser != own else "Your accusation counts"
    taker = seen.mover if seen.lie else accuser
    take = (
        f"you pick up the pile: {', '.join(map(_describe_laid, seen.shown))}"
        if taker == own
        else f"seat {taker} picks up the pile"
    )
    if not seen.lie:
        return f"{who}: it was honest; {take}."
    card = f"a card of seat {accuser} is the new pile" if accuser != own else f"your {turn.lost} is the new pile"
    return f"{who}: it was a lie; {take}; {card}."


def _describe_laid(laid: Laid) -> str:
    how = "drawn" if laid.number is None else f"as {laid.number}s"
    return f"{numbers(sorted(laid.cards))} of seat {laid.seat} ({how})"


_HONEST_CHANCE: Final = 0.85  # chance of an honest play if the hand has the number
_ACCUSE_CHANCE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a game and its answer."""

    position: Position
    output: Output


def sample_game(deal: int) -> Iterator[tuple[World, Asked]]:
    """Yield the questions of a random game, each with the game so far."""
    chance, deck, rules = Random(deal), list(DECK), BSRules()
    chance.shuffle(deck)
    hands = [tuple(deck[first : first + NUMBERS]) for first in range(0, len(deck), NUMBERS)]
    state = State(hands, rules.max_rounds, Random(deal))
    books = [Notebook(seat, rules) for seat in SEATS]
    world = World(deal, tuple(hands), rules=rules)

    def notify(events: Sequence[GameEvent]) -> None:
        for event in events:
            for seat, book in enumerate(books):
                book.observe(event, state.hands[seat].cards)

    notify([state.start])
    while not state.over:
        seat, view = state.seat, state.view()
        output = random_answer(view, state.hands[seat].cards, chance)
        yield world, Asked(books[seat].position(view.node, view, state.hands[seat].cards), output)
        books[seat].note_answer(view.node, output)
        world = replace(world, moves=(*world.moves, output))
        notify(state.apply(output))


def random_answer(view: View, cards: Sequence[Card], chance: Random) -> Output:
    """Return a random legal answer for this view and these cards."""
    if view.node == "bs":
        return chance.random() < _ACCUSE_CHANCE
    held = [card for card in cards if card.number == view.number]
    if held and chance.random() < _HONEST_CHANCE:
        return held
    return chance.sample(cards, min(len(cards), chance.randint(1, 2)))


_EXAMPLE_DEAL: Final = 1
_EXAMPLE_TURNS: Final = 20  # enough for accusations and for players to have picked up piles


def _find_fault(position: Position) -> str | None:
    """Explain why no game can reach this position, or return None. Raises UsageError for impossible turns."""
    seat, turns = position.seat, position.turns
    if seat not in SEATS:
        return f"seat: seats are 0 to {SEATS[-1]}"
    if len(position.dealt) != NUMBERS or max(Counter(position.dealt).values()) > COPIES:
        return f"dealt: must contain {NUMBERS} cards, at most {COPIES} of each number"
    if any(not turn.is_over for turn in turns[:-1]):
        return "turns: only the last turn may lack pile and hands"
    if (position.node == "bs") != bool(turns and not turns[-1].is_over):
        return "turns: the last turn must be unfinished at node bs and finished at node cards"
    if (position.node == "cards") != (position.mover == seat):
        return f"node: seat {seat} is not asked this on seat {position.mover}'s turn"
    if position.node == "bs" and turns[-1].answer is not None:
        return f"turns.{len(turns) - 1}: answer: must be empty because the position asks for it"
    if len(turns) - (position.node == "bs") >= len(SEATS) * position.rules.max_rounds:
        return "turns: the game had already ended after max_rounds"
    return "turns: the game had already ended" if 0 in Witness(position).hands and position.node == "cards" else None


_FILE: Final = PositionFile(Position, "bs position 1", _find_fault, {"dealt": tuple[Number, ...]})
to_json, from_json = _FILE.to_json, _FILE.from_json


@cache
def example_position(node: str) -> Position:
    """Return a fixed position from the middle of a random game at which this node is asked."""
    return next(
        position.position
        for _, position in sample_game(_EXAMPLE_DEAL)
        if position.position.node == node and len(position.position.turns) >= _EXAMPLE_TURNS
    )


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


BRIEF: Final = {"question", "hand", "number", "pile", "hands", "placed", "sure_lie", "mover_wins"}


def facts(position: Position) -> dict[str, Any]:
    """Return the facts as JSON values. Every node has the same keys; facts that do not apply are None.

    Raises UsageError for impossible turns.
    """
    witness = Witness(position)
    history, own_moves = lines(witness, position.dealt)
    return {
        **_describe_rules(position.rules),
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
    return frozenset(_describe_rules(BSRules())) | {"seat"}


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


def _question(position: Position, witness: Witness) -> dict[str, Any]:
    """Return the question, the effects of its answers, and the legal cards."""
    if position.node == "cards":
        held = sorted(witness.hand.elements())
        return {
            "question": f"Your turn asks for {position.number}s. Which cards do you play, as {position.number}s?",
            "if_true": None,
            "if_false": None,
            "legal": held,
        }
    mover, pile = f"seat {position.mover}", pluralize(witness.pile_size)
    then = f"; {mover} then has no cards left and wins." if not witness.hands[position.mover] else "."
    loses = "a random card of yours is the new pile"
    if witness.hand.total() == 1:
        loses = "your last card is the new pile, and you win"
    return {
        "question": f"{mover} played {pluralize(position.turns[-1].n_cards)} as {position.number}s. Do you accuse it "
        "of lying?",
        "if_true": f"if your accusation counts: if it is a lie, {mover} picks up the pile of {pile}, and {loses}; if "
        f"it is honest, you pick up the pile{then}",
        "if_false": f"unless another seat accuses, the pile stays{then}",
        "legal": [],
    }


def _hand(position: Position, witness: Witness) -> dict[str, Any]:
    """Return the seat's cards and the numbers that its turns will ask for."""
    seat, turns = position.seat, len(position.turns)
    to_own = turns + (seat - turns) % len(SEATS)  # index of the seat's current or next turn
    return {
        "hand": {str(number): witness.hand[number] for number in range(NUMBERS) if witness.hand[number]},
        "own_cards": witness.hand.total(),
        "own_numbers": [(to_own + len(SEATS) * ahead) % NUMBERS for ahead in range(NUMBERS)],
        "own_in_pile": dict(Counter(map(str, witness.own_pile_cards()))),
    }


def _table(position: Position, witness: Witness) -> dict[str, Any]:
    number, mover = position.number, position.mover
    played = position.turns[-1].n_cards if position.node == "bs" else None
    placed = witness.count_located(number)
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
