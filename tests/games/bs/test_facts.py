"""Facts of BS are true, equal in indistinguishable worlds, and can be stored in files."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.games.bs.engine import State
from dubito.games.bs.facts import (
    Asked,
    Notebook,
    Position,
    example_position,
    facts,
    from_json,
    sample_game,
    steady_facts,
    to_json,
)
from dubito.games.bs.table import SEATS
from dubito.games.bs.witness import BSRules, Witness
from dubito.games.bs.workshop import world_pairs
from dubito.games.bs.worlds import World
from tests.games.bs.kit import with_hands

DEALS = range(3)


def games() -> Iterator[tuple[State, Asked]]:
    """Yield the questions of some games, each with the engine's state."""
    for deal in DEALS:
        questions = sample_questions(deal)
        world, _ = questions[0]
        game = State(world.hands, world.rules.max_rounds, Random(world.deal))
        for _, asked in questions:
            yield game, asked
            game.apply(asked.output)


@cache
def sample_questions(deal: int) -> list[tuple[World, Asked]]:
    return [*sample_game(deal)]


def numbers(cards: Any) -> list[int]:
    return sorted(card.number for card in cards)


def test_facts_match_the_engine() -> None:
    for game, asked in games():
        told, seat = facts(asked.position), asked.position.seat
        public = game.public
        assert (told["node"], told["mover"], told["number"]) == (public.node, public.mover, public.number)
        assert (told["pile"], told["hands"], told["round"]) == (public.pile, list(public.hands), public.round)
        held = numbers(game.hands[seat].cards)
        assert told["hand"] == {str(number): n for number, n in sorted(Counter(held).items())}
        assert told["legal"] == (held if public.node == "cards" else [])
        assert (told["own_cards"], told["held_of_number"]) == (len(held), held.count(public.number))
        assert told["played"] == (public.n_cards or None)
        assert told["own_numbers"][0] == (public.number + (seat - public.mover) % 4) % 13
        assert sorted(told["own_numbers"]) == list(range(13))


def test_certain_cards_are_really_held() -> None:
    """The facts must also contain certain cards now and then, or the test would prove nothing."""
    certain, sure, own = 0, 0, 0
    for game, asked in games():
        witness, told = Witness(asked.position), facts(asked.position)
        for other in SEATS:
            real = Counter(numbers(game.hands[other].cards))
            for number in range(13):
                assert witness.count_known_cards(other, number) <= real[number]
                certain += witness.count_known_cards(other, number)
        in_pile = Counter(numbers(game.pile.cards))
        assert Counter(witness.own_pile_cards()) <= in_pile
        own += len(witness.own_pile_cards())
        if told["sure_lie"]:
            assert game._is_lie
            sure += 1
        played = Counter(numbers(game.pile.cards[-game.public.n_cards :])) if told["played"] else Counter[int]()
        assert played[told["number"]] <= 4 - told["placed"]
    assert min(certain, own) > 200
    assert sure > 5


def test_sizes_reveal_accuser_and_lie() -> None:
    for game, asked in games():
        records = Witness(asked.position).records
        counts = game.counts
        assert [record.plays for record in records] == [count.plays for count in counts]
        assert [record.lies for record in records] == [count.lies_accused for count in counts]
        assert [record.right for record in records] == [count.accusations_right for count in counts]
        drawn = [count.accusations_drawn for count in counts]
        assert [record.right + record.wrong for record in records] == drawn


def test_indistinguishable_worlds_have_the_same_facts() -> None:
    found = 0
    for here, there in world_pairs():
        assert (facts(here), to_json(here)) == (facts(there), to_json(there))
        found += 1
    assert found > 100


def test_facts_do_not_depend_on_unseen_cards() -> None:
    """Seats 1 to 3 hold and play different cards, and nobody looks at them."""
    worlds = []
    for hands in (([2] * 4, [3] * 4, [4] * 4), ([3] * 4, [4] * 4, [2] * 4)):
        game = with_hands([0, 0, 1, 5], *hands)
        books = [Notebook(seat, BSRules()) for seat in SEATS]
        books[0].observe(game.start, game.hands[0].cards)
        for output in (game.hands[0].cards[:1], False, False, False, game.hands[1].cards[:2], False):
            for event in game.apply(output):
                books[0].observe(event, game.hands[0].cards)
        assert game.seat == 2
        worlds.append(books[0]._turns)
    assert worlds[0] == worlds[1]


def told_of(game: State, seat: int, *moves: Any) -> list[str]:
    return list(facts_of(game, seat, *moves)["history"])


def facts_of(game: State, seat: int, *moves: Any) -> dict[str, Any]:
    """Return the facts of a seat after these moves."""
    book, dealt = Notebook(seat, BSRules()), [len(hand.cards) for hand in game.hands]
    book.observe(game.start, game.hands[seat].cards)
    for move in moves:
        if game.seat == seat:
            book.note_answer(game.view().node, move)
        for event in game.apply(move):
            book.observe(event, game.hands[seat].cards)
    position = book.position(game.view().node, game.view(), game.hands[seat].cards)
    assert len(set(dealt)) == 1
    return facts(position)


HANDS = [[n] * 4 + [n + 4] * 4 + [n + 8] * 4 + [12] for n in range(4)]


def test_the_history_tells_each_side_of_a_lie() -> None:
    plays = [with_hands(*HANDS).hands[0].cards[i] for i in (0, 4)]
    lie = (plays, False, True, False)
    caught = "seat 2 accuses: it was a lie"
    assert told_of(with_hands(*HANDS), 1, *lie) == [
        "Every seat is dealt 13 cards. Yours: 1 1 1 1 5 5 5 5 9 9 9 9 12.",
        "seat 0 plays 2 cards as 0s.",
        "You do not accuse.",
        f"{caught}; seat 0 picks up the pile; a card of seat 2 is the new pile.",
    ]
    assert told_of(with_hands(*HANDS), 0, *lie)[1:] == [
        "You play 2 cards as 0s: 0 4, a lie.",
        f"{caught}; you pick up the pile: 0 4 of seat 0 (as 0s); a card of seat 2 is the new pile.",
    ]
    last = told_of(with_hands(*HANDS), 2, *lie)[-1]
    assert last == "Your accusation counts: it was a lie; seat 0 picks up the pile; your 10 is the new pile."


NOBODY = (False, False, False)


def test_own_cards_on_the_pile_are_counted_as_placed() -> None:
    """Seat 0 lied with a 4, and holds the other three when it is asked for 4s."""
    hands = with_hands(*HANDS).hands
    moves = [([hands[0].cards[4]], *NOBODY), *(([hands[seat].cards[4]], *NOBODY) for seat in (1, 2, 3))]
    told = facts_of(with_hands(*HANDS), 0, *(move for turn in moves for move in turn))
    assert (told["number"], told["own_in_pile"], told["held_of_number"], told["placed"]) == (4, {"4": 1}, 3, 4)


def test_picked_up_cards_are_known_until_maybe_played() -> None:
    hands = with_hands(*HANDS).hands
    wrong = (hands[0].cards[:2], True, False, False)  # seat 1 takes two 0s
    unknown = ([hands[1].cards[4]], *NOBODY)
    seen = ([hands[1].cards[0]], True, False, False)  # seat 0 takes the 1, and sees that it was not a 0

    def known(*moves: Any) -> tuple[list[int], int]:
        player = facts_of(with_hands(*HANDS), 0, *moves)["players"][1]
        return player["known_cards"], player["put_down"]

    after = ([hands[2].cards[0]],)
    assert known(*wrong, *unknown, *after) == ([0, 0], 1)
    assert known(*wrong, *seen, *after) == ([0, 0], 0)
    third = facts_of(with_hands(*HANDS), 2, *wrong, *unknown)["players"]
    assert [player["known_cards"] for player in third if player["seat"] == 1] == [[0, 0]], (
        "everyone saw that it was honest"
    )


def test_picked_up_pile_reveals_earlier_lies() -> None:
    hands = with_hands(*HANDS).hands
    moves: tuple[Any, ...] = (hands[0].cards[:2], False, False, False, [hands[1].cards[4]], False, False, False)
    moves += (hands[2].cards[:1], False, True, False)
    assert told_of(with_hands(*HANDS), 1, *moves)[-3:] == [
        "seat 2 plays 1 card as 2s.",
        "You accuse.",
        "Your accusation counts: it was honest; you pick up the pile: 0 0 of seat 0 (as 0s), 5 of seat 1 (as "
        "1s), 2 of seat 2 (as 2s).",
    ]


def test_a_history_only_grows_from_question_to_question() -> None:
    last: dict[int, tuple[list[str], int]] = {}
    for _, asked in sample_questions(0):
        told = facts(asked.position)
        before, moves = last.get(asked.position.seat, ([], 0))
        assert told["history"][: len(before)] == before
        assert len(told["own_moves"]) == moves, "each question follows one more move"
        assert all(told["history"][place].startswith("You ") for place in told["own_moves"])
        last[asked.position.seat] = (told["history"], moves + 1)


def test_steady_facts_and_keys_do_not_change() -> None:
    positions = [asked.position for _, asked in sample_questions(0) if asked.position.seat == 2]
    first = facts(positions[0])
    for position in positions:
        told = facts(position)
        assert told.keys() == first.keys()
        assert {key: told[key] for key in steady_facts()} == {key: first[key] for key in steady_facts()}
        json.dumps(told)


def test_turn_answered_by_a_substitute_can_be_stored() -> None:
    position = example_position("cards")
    turns = [turn for turn in position.turns if turn.answer is not None]
    text = to_json(position).replace('"answer": false', '"answer": null')
    assert len(turns) > 3
    assert len(facts(from_json(text))["own_moves"]) < len(facts(position)["own_moves"])


def broken(change: Any, node: str = "bs") -> str:
    """Return the error message for the example after this change."""
    plain = json.loads(to_json(example_position(node)))
    change(plain)
    with pytest.raises(UsageError) as error:
        from_json(json.dumps(plain))
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("this is not a position: ")


def own_turn(plain: dict[str, Any], **what: Any) -> None:
    next(turn for turn in plain["turns"] if turn["cards"]).update(what)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.pop("dealt"), "dealt: Field required"),
        (lambda p: p.update(format="dubito position 1"), "format: Input should be 'bs position 1'"),
        (lambda p: p.update(seat=4), "seat: seats are 0 to 3"),
        (
            lambda p: p.update(node="cards"),
            "turns: the last turn must be unfinished at node bs and finished at node cards",
        ),
        (lambda p: p.update(rules={"max_rounds": 4}), "turns: the game had already ended after max_rounds"),
        (lambda p: p["dealt"].pop(), "dealt: must contain 13 cards, at most 4 of each number"),
        (lambda p: p["turns"].pop(), "turns: the last turn must be unfinished at node bs and finished at node cards"),
        (lambda p: p["turns"][1].update(n_cards=14), "turns.1: n_cards: seat 1 holds 13"),
        (lambda p: p["turns"][0].update(pile=7), "turns.0: no turn can end with these sizes"),
        (lambda p: p["turns"][0].update(hands=[]), "turns.0: pile and hands: set both for a finished turn"),
        (lambda p: p["turns"][3].update(pile=None), "turns: only the last turn may lack pile and hands"),
        (
            lambda p: p["turns"][-1].update(answer=True),
            "turns.19: answer: must be empty because the position asks for it",
        ),
        (lambda p: p["turns"][1].update(cards=[1]), "turns.1: cards: list all cards that seat 0 played"),
        (lambda p: own_turn(p, answer=True), "turns.0: answer: a seat is not asked about its own play"),
        (lambda p: p["turns"][1].update(taken=[1, 2]), "turns.1: taken: must be the pile if seat 0 picks it up"),
        (lambda p: p["turns"][1].update(lost=1), "turns.1: lost: must be the card drawn from seat 0"),
    ],
)
def test_impossible_position_is_refused(change: Any, said: str) -> None:
    assert broken(change).startswith(said)


def test_invalid_json_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^this is not a position: the file: it is not JSON "):
        from_json("{")


def test_sizes_that_contradict_the_own_answer_are_refused() -> None:
    position = example_position("cards")
    place = next(n for n, turn in enumerate(position.turns) if turn.answer is False)
    assert isinstance(position, Position)
    assert broken(lambda p: p["turns"][place].update(answer=True), "cards") in (
        f"turns.{place}: answer: does not match the sizes",
    )
