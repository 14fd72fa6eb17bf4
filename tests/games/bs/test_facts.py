"""Facts of BS are true, and depend only on what the seat has seen."""

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from dubito.errors import IllegalOutput, UsageError
from dubito.game.events import EVERYTHING
from dubito.game.log import Log, Position, SeatLog
from dubito.game.position_file import dump_position, load_position
from dubito.games.bs.cards import DECK, Card, TurnEvent
from dubito.games.bs.engine import State
from dubito.games.bs.facts import BSFacts, example_position, random_answer
from dubito.games.bs.game import GAME
from dubito.games.bs.knowledge import BSRules, Knowledge
from dubito.games.bs.table import SEATS
from tests.games.bs.kit import deal_game, questions, with_hands

DEALS = range(3)


def games() -> Iterator[tuple[State, Position[BSRules]]]:
    for deal in DEALS:
        yield from questions(deal)


def numbers(cards: Any) -> list[int]:
    return sorted(card.number for card in cards)


def test_facts_match_the_engine() -> None:
    for game, position in games():
        facts, seat = BSFacts().facts(position), position.seat
        public = game.public
        assert (facts["node"], facts["mover"], facts["number"]) == (public.node, public.mover, public.number)
        assert (facts["pile"], facts["hands"], facts["round"]) == (public.pile, list(public.hands), public.round)
        held = numbers(game.hands[seat].cards)
        assert facts["hand"] == {str(number): n for number, n in sorted(Counter(held).items())}
        assert facts["legal"] == (held if public.node == "cards" else [])
        assert (facts["own_cards"], facts["held_of_number"]) == (len(held), held.count(public.number))
        assert facts["played"] == (public.n_cards or None)
        assert facts["own_numbers"][0] == (public.number + (seat - public.mover) % 4) % 13
        assert sorted(facts["own_numbers"]) == list(range(13))


def test_certain_cards_are_really_held() -> None:
    """The facts must also contain certain cards now and then, or the test would prove nothing."""
    certain, sure, own = 0, 0, 0
    for game, position in games():
        facts = BSFacts().facts(position)
        known = position.known(Knowledge)
        for other in SEATS:
            real = Counter(numbers(game.hands[other].cards))
            for number in range(13):
                assert known.count_known_cards(other, number) <= real[number]
                certain += known.count_known_cards(other, number)
        in_pile = Counter(numbers(game.pile.cards))
        assert Counter(known.own_pile_cards()) <= in_pile
        own += len(known.own_pile_cards())
        if facts["sure_lie"]:
            assert game._is_lie
            sure += 1
        played = Counter(numbers(game.pile.cards[-game.public.n_cards :])) if facts["played"] else Counter[int]()
        assert played[facts["number"]] <= 4 - facts["placed"]
    assert min(certain, own) > 200
    assert sure > 5


def test_records_match_the_engine() -> None:
    for game, position in games():
        records = position.known(Knowledge).records
        counts = game.counts
        assert [record.plays for record in records] == [count.plays for count in counts]
        assert [record.lies for record in records] == [count.lies_accused for count in counts]
        assert [record.right for record in records] == [count.accusations_right for count in counts]
        drawn = [count.accusations_drawn for count in counts]
        assert [record.right + record.wrong for record in records] == drawn


def exchange_cards(hands: list[list[Card]], moves: list[Any], pair: list[Card]) -> tuple[list[list[Card]], list[Any]]:
    """Return the game in which two cards have changed places."""
    places = dict(zip(pair, pair[::-1], strict=True))
    hands = [[places.get(card, card) for card in hand] for hand in hands]
    return hands, [move if isinstance(move, bool) else [places.get(card, card) for card in move] for move in moves]


def log_of(deal: int, hands: list[list[Card]], moves: list[Any], seat: int) -> tuple[State, SeatLog]:
    state = State(hands, 1000, Random(deal))
    log = Log(state.start)
    for move in moves:
        log.add(state.apply(move, EVERYTHING))
    return state, log.of(seat)


def test_seat_has_the_same_hand_and_view_in_games_with_the_same_log() -> None:
    """Two cards that the seat has not seen change places."""
    found = 0
    for deal in DEALS:
        chance, moves = Random(deal), list[Any]()
        hands = [[*hand.cards] for hand in deal_game(deal).hands]
        game = State(hands, 1000, Random(deal))
        while not game.over and len(moves) < 120:
            seat = game.seat
            here, log = log_of(deal, hands, moves, seat)
            try:
                there, other = log_of(deal, *exchange_cards(hands, moves, chance.sample(DECK, 2)), seat)
            except IllegalOutput:
                other = SeatLog(seat)
            if log == other:
                found += [hand.cards for hand in here.hands] != [hand.cards for hand in there.hands]
                assert here.hands[seat].cards == there.hands[seat].cards
                assert (here.seat, vars_of(here.view())) == (there.seat, vars_of(there.view()))
            moves.append(random_answer(game.view(), game.hands[seat].cards, chance))
            game.apply(moves[-1])
    assert found > 30


def vars_of(view: Any) -> list[Any]:
    return [getattr(view, name) for name in ("node", "number", "mover", "n_cards", "pile", "hands", "round")]


def told_of(game: State, seat: int, *moves: Any) -> list[str]:
    return list(facts_of(game, seat, *moves)["history"])


def facts_of(game: State, seat: int, *moves: Any) -> dict[str, Any]:
    """Return the facts of a seat after these moves."""
    log = Log(game.start)
    for move in moves:
        log.add(game.apply(move, EVERYTHING))
    return BSFacts().facts(Position(BSRules(), game.public.node, log.of(seat)))


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
    facts = facts_of(with_hands(*HANDS), 0, *(move for turn in moves for move in turn))
    assert (facts["number"], facts["own_in_pile"], facts["held_of_number"], facts["placed"]) == (4, {"4": 1}, 3, 4)


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
    for _, position in games():
        if len(position.log) == 2:
            last.clear()  # a new game
        facts = BSFacts().facts(position)
        before, moves = last.get(position.seat, ([], 0))
        assert facts["history"][: len(before)] == before
        assert len(facts["own_moves"]) == moves, "each question follows one more move"
        assert all(facts["history"][place].startswith("You ") for place in facts["own_moves"])
        last[position.seat] = (facts["history"], moves + 1)


def test_steady_facts_and_keys_do_not_change() -> None:
    positions = [position for _, position in games() if position.seat == 2]
    first = BSFacts().facts(positions[0])
    for position in positions:
        facts = BSFacts().facts(position)
        assert facts.keys() == first.keys()
        assert {key: facts[key] for key in BSFacts().steady_facts()} == {
            key: first[key] for key in BSFacts().steady_facts()
        }
        json.dumps(facts)


def test_position_is_read_as_it_was_written() -> None:
    for node in ("cards", "bs"):
        position = example_position(node)
        read = load_position(GAME, dump_position(GAME, position))
        assert read == position
        assert BSFacts().facts(read) == BSFacts().facts(position)


def broken(change: Any) -> str:
    """Return the error message for the example after this change."""
    plain = json.loads(dump_position(GAME, example_position("bs")))
    change(plain)
    with pytest.raises(UsageError) as error:
        load_position(GAME, json.dumps(plain))
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix("this is not a position: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.pop("log"), "log: Field required"),
        (lambda p: p.update(format="dubito position 2"), "format: it is 'dubito position 2', not 'bs position 2'"),
        (lambda p: p.update(seat=4), "seat: seats are 0 to 3"),
        (lambda p: p.update(node="C"), "bs has no node 'C'"),
        (lambda p: p.update(rules={"max_rounds": 0}), "max_rounds: Input should be greater than or equal to 1"),
        (lambda p: p["log"][0].update(event="Deal"), "log.0: event: 'Deal' is not an event of bs"),
        (lambda p: p["log"][0].update(hands="13"), "log.0.hands: Input should be a valid array"),
        (lambda p: p["log"][1].update(only=3), "log: it contains an event that seat 0 does not see"),
        (lambda p: p["log"].clear(), "log: no game has this log"),
    ],
)
def test_impossible_position_is_refused(change: Any, message: str) -> None:
    assert broken(change).startswith(message)


def test_file_of_an_earlier_version_is_refused() -> None:
    assert "position was written by another version of Dubito" in broken(lambda p: p.update(format="bs position 1"))


def test_invalid_json_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^this is not a position: the file: it is not JSON "):
        load_position(GAME, "{")


def test_log_does_not_change_when_the_game_goes_on() -> None:
    game = deal_game(0)
    log = Log(game.start)
    before = log.of(1)
    for output in (game.hands[0].cards[:1], False, False, False):
        log.add(game.apply(output, EVERYTHING))
    assert [type(event).__name__ for event in before] == ["DealEvent", "HandEvent"]
    assert before.fold(Knowledge, BSRules()).turns == 0
    assert before.latest().fold(Knowledge, BSRules()).turns == 1
    assert before.fold(Knowledge, BSRules()).turns == 0
    assert isinstance(before.latest()[-1], TurnEvent)
