"""Gin rummy's rules, tested against the engine sentence by sentence."""

from itertools import combinations
from random import Random
from typing import Any

import pytest

from tests.plugins.openspiel.games.kit import Claims, after, do, legal, load, load_words, pyspiel

says = Claims()
CARDS = [rank + suit for suit in "scdh" for rank in "A23456789TJQK"]
SETS = {frozenset(meld) for n in (3, 4) for rank in range(13) for meld in combinations(range(rank, 52, 13), n)}
RUNS = {frozenset(range(13 * s + low, 13 * s + low + n)) for s in range(4) for n in (3, 4, 5) for low in range(14 - n)}
READY = "As 2s 3s 4c 5c 6c 7s 7d 7h 2h"  # three melds and a two
POOR = "Kc Ks Qd Qc Jh Jc 9s 9d 8c 6h"


def numbers(cards: str) -> list[int]:
    return [CARDS.index(card) for card in cards.split()]


def deal_gin(first: str, second: str, upcard: str, *acts: str, stock: str = "", game: str = "gin_rummy") -> Any:
    return after(load(game), numbers(f"{first} {second} {upcard} {stock}"), *acts)


def points(cards: Any) -> int:
    return sum(min(10, card % 13 + 1) for card in cards)


def leftovers(hand: frozenset[int]) -> set[frozenset[int]]:
    """Return what can remain of a hand after melds are removed."""
    found = {hand}
    for meld in SETS | RUNS:
        if meld <= hand:
            found |= leftovers(hand - meld)
    return found


def counts(hand: frozenset[int]) -> set[int]:
    rests = leftovers(hand)
    fewest = min(map(points, rests))
    return {fewest - max((points([card]) for card in rest), default=0) for rest in rests if points(rest) == fewest}


def play_knock(*acts: str, hands: tuple[str, str] = (READY, POOR), upcard: str = "Th", game: str = "gin_rummy") -> Any:
    return deal_gin(*hands, upcard, "draw upcard", "knock", *acts, game=game)


LAID = ("As2s3s", "4c5c6c", "7s7d7h", "pass")


@says(
    "Two players in seats 0 and 1 play one hand.",
    "A card is its rank and suit, such as Ts or 4h.",
    "The ranks from the lowest are A 2 3 4 5 6 7 8 9 T J Q K; the suits are s c d h (spades, clubs, diamonds, hearts).",
    "Each player is dealt 10 cards, unseen by the other.",
    "The next card is turned up (the upcard); the other 31 are the face-down stock.",
)
def test_ten_cards_each_are_dealt() -> None:
    state = deal_gin(READY, POOR, "Th")
    words = load_words(state.get_game())
    assert state.num_players() == 2
    assert list(words.names[:52]) == CARDS == [state.action_to_string(0, card).split()[-1] for card in range(52)]
    assert [sorted(hand) for hand in state.hands()] == [sorted(numbers(READY)), sorted(numbers(POOR))]
    assert words.describe_hand(state, 0) == (
        "As 2s 3s 7s 4c 5c 6c 7d 2h 7h (10 cards, deadwood 2); upcard: Th; stock: 31 cards; "
        "discard pile, the last one last: none; known in the hand of seat 1: none"
    )


@says(
    "A meld is three or four cards of one rank, or three to five cards of one suit in sequence.",
    "The ace is low only, and a card is in one meld at most.",
)
def test_meld_names_match_the_engine() -> None:
    game = load("gin_rummy")
    engine = pyspiel.gin_rummy.GinRummyUtils(13, 4, 10)
    assert {frozenset(meld) for meld in engine.all_melds(list(range(52)))} == SETS | RUNS
    state, names = game.new_initial_state(), load_words(game).names
    expected = [f"Player: 1 Action: {name[:1].upper()}{name[1:]}" for name in names]
    assert [state.action_to_string(1, action) for action in range(game.num_distinct_actions())] == expected
    threes = play_knock("Th", hands=("As 2s 3s 3c 3d 3h Kc Kd Kh 2h", POOR.replace("Kc", "8d")))
    assert {"As2s3s", "3s3d3h"} <= set(legal(threes))  # the 3s is part of a run or of a set
    do(threes, "As2s3s")
    assert "3c3d3h" in legal(threes)
    assert "3s3d3h" not in legal(threes)


@says(
    "Cards in no meld are deadwood: A counts 1 point, T, J, Q and K 10, other cards their number.",
    "You may knock if your deadwood is at most 10, counted with the best melds among your 11 cards and without the "
    "highest other card.",
)
def test_knock_needs_low_deadwood() -> None:
    chance, melds, able = Random(17), sorted(map(sorted, SETS | RUNS)), 0
    for _ in range(150):
        hand = set(chance.choice(melds)) | set(chance.choice(melds))
        rest = [card for card in range(52) if card not in hand]
        hand |= set(chance.sample(rest, 11 - len(hand)))
        others = [card for card in range(52) if card not in hand]
        own = sorted(hand, key=lambda card: chance.random())
        state = after(load("gin_rummy"), [*own[1:], *chance.sample(others, 10), own[0]], "draw upcard")
        assert state.deadwood()[0] in counts(frozenset(hand))
        assert ("knock" in legal(state)) == (state.deadwood()[0] <= 10)
        able += "knock" in legal(state)
    assert 40 < able < 110


@says(
    "Seat 0 may take the first upcard or pass, then seat 1 the same; if both pass, seat 0 draws from the stock.",
    "Then they take turns.",
)
def test_first_upcard_is_offered_to_both() -> None:
    state = deal_gin(READY, POOR, "Th")
    assert (state.current_player(), legal(state)) == (0, ["draw upcard", "pass"])
    do(state, "pass")
    assert (state.current_player(), legal(state)) == (1, ["draw upcard", "pass"])
    took = state.clone()
    do(took, "draw upcard")
    do(took, "Kc")
    assert (took.current_player(), legal(took)) == (0, ["draw upcard", "draw stock"])
    do(state, "pass")
    assert (state.current_player(), legal(state)) == (0, ["draw stock"])
    state = deal_gin(READY, POOR, "Th", "draw upcard", "Th")
    assert (state.current_player(), legal(state)) == (1, ["draw upcard", "draw stock"])


@says(
    "On your turn you draw the upcard, or the top card of the stock, unseen by the other player.",
    "Then you discard a card, which becomes the new upcard, or knock.",
    "After a draw from the stock, the old upcard goes to the discard pile, out of play.",
)
def test_turn_draws_then_discards() -> None:
    state = deal_gin(READY, POOR, "Th", "pass", "pass", "draw stock", stock="Kd 3h")
    assert sorted(legal(state)) == sorted([*READY.split(), "Kd", "knock"])
    do(state, "Kd")
    assert [CARDS[card] for card in (*state.discard_pile(), state.upcard())] == ["Th", "Kd"]
    do(state, "draw upcard")
    assert "knock" not in legal(state)
    do(state, "Kc")
    assert state.known_cards()[1] == numbers("Kd")
    do(state, "draw stock")
    state.apply_action(numbers("3h")[0])
    words = load_words(state.get_game())
    assert words.history(state, 1) == [
        (None, "The cards are dealt. Yours: 9s Ks 8c Jc Qc Kc 9d Qd 6h Jh. The upcard is Th."),
        (0, "seat 0 passes on the upcard Th."),
        (1, "You pass on the upcard Th."),
        (0, "seat 0 draws a card from the stock."),
        (0, "seat 0 discards Kd."),
        (1, "You draw the upcard Kd."),
        (1, "You discard Kc."),
        (0, "seat 0 draws a card from the stock."),
    ]
    assert words.history(state, 0)[-1] == (0, "You draw 3h from the stock.")
    assert words.describe_hand(state, 0).endswith(
        "upcard: none; stock: 29 cards; discard pile, the last one last: Th Kc; known in the hand of seat 1: Kd"
    )


@says(
    "The knocker discards a card to the discard pile, such that at most 10 points can be left, then lays melds one at"
    " a time, and passes when at most that many are left in hand.",
)
def test_knock_needs_at_most_ten_points_left() -> None:
    state = play_knock()
    assert state.current_player() == 0
    for card in range(52):
        rest = frozenset(state.hands()[0]) - {card}
        fits = card in state.hands()[0] and min(map(points, leftovers(rest))) <= 10
        assert (CARDS[card] in legal(state)) == fits
    do(state, "Th")
    assert state.discard_pile() == numbers("Th")
    for laid in range(4):  # 44, 38, 23 or 2 points are left
        assert ("pass" in legal(state)) == (points(state.hands()[0]) <= 10) == (laid == 3)
        do(state, LAID[laid])
    assert state.current_player() == 1
    words = load_words(state.get_game())
    assert [line for _, line in words.history(state, 1)[2:]] == [
        "seat 0 knocks.",
        "seat 0 discards Th.",
        "seat 0 lays the meld As2s3s.",
        "seat 0 lays the meld 4c5c6c.",
        "seat 0 lays the meld 7s7d7h.",
        "seat 0 passes: no more melds.",
    ]
    assert words.describe_hand(state, 1).endswith(
        "discard pile, the last one last: Th; known in the hand of seat 0: none; seat 0 knocked; "
        "melds that you have laid: none; melds of seat 0: As2s3s, 4c5c6c, 7s7d7h; laid off: none"
    )


@says(
    "Then the other player may lay off cards, one at a time, on the knocker's melds (the fourth card of a rank, or "
    "the next card at either end of a sequence, at most two at each end) and passes; then lays their own melds "
    "likewise and passes, which ends the hand.",
    "Cards not laid are deadwood, even if they could form a meld.",
)
def test_cards_are_laid_off_on_the_knockers_melds() -> None:
    other = "7c 8c 9c Tc 3c 2c Ac Ks Kd Kh"
    state = play_knock("Th", *LAID, hands=(READY, other))
    assert legal(state) == ["3c", "7c", "pass"]  # the ends of the run, and a 7c that is also the fourth of its rank
    for card, then in {"7c": ["3c", "8c", "pass"], "8c": ["3c", "pass"], "3c": ["2c", "pass"], "2c": ["pass"]}.items():
        do(state, card)
        assert legal(state) == then, card  # neither 9c nor Ac, but two cards at each end
    do(state, "pass")
    assert legal(state) == ["pass", "KsKdKh"]
    unlaid = state.clone()
    do(unlaid, "pass")
    assert unlaid.is_terminal()
    assert unlaid.returns()[0] == 9 + 10 + 1 + 30 - 2
    do(state, "KsKdKh")
    do(state, "pass")
    assert state.is_terminal()
    assert state.returns()[0] == 9 + 10 + 1 - 2
    last = [line for _, line in load_words(state.get_game()).history(state, 1)[-4:]]
    assert last == [
        "You lay off 2c.",
        "You pass: no more cards to lay off.",
        "You lay the meld KsKdKh.",
        ("You pass: no more melds."),
    ]


GIN = "As 2s 3s 4c 5c 6c 7s 7d 7h 7c"


@says(
    "If the knocker has no deadwood (gin), nothing can be laid off.",
    "Gin adds 25.",
)
@pytest.mark.parametrize(("game", "bonus"), [("gin_rummy", 25), ("gin_rummy(gin_bonus=40)", 40)])
def test_gin_adds_a_bonus_and_allows_no_laying_off(game: str, bonus: int) -> None:
    other = "4s 8c 9h Jh Jc Qd Kc Ks 9d Qh"  # the 4s could be laid off if the knock were not gin
    laid = ("As2s3s", "4c5c6c", "7s7c7d7h", "pass")
    state = play_knock("Th", *laid, hands=(GIN, other), game=game)
    assert legal(state) == ["pass"]
    do(state, "pass")
    assert state.returns() == [4 + 8 + 9 + 60 + 9 + bonus, -(4 + 8 + 9 + 60 + 9 + bonus)]
    assert f"Gin adds {bonus}." in " ".join(load_words(state.get_game()).rules)


@says(
    "The knocker's result is the other player's deadwood minus their own.",
    "If the knocker's deadwood is higher, the knocker loses 25 more.",
    "The other player's result is the opposite.",
)
def test_results_are_differences_of_points() -> None:
    def results(other: str, *acts: str, game: str = "gin_rummy") -> list[float]:
        state = play_knock("Th", *LAID, "pass", *acts, "pass", hands=(READY, other), game=game)
        assert state.is_terminal()
        returns: list[float] = state.returns()
        return returns

    assert results(POOR) == [92 - 2, 2 - 92]
    melded = ("TsTcTd", "8c8d8h", "9s9d9h")
    assert results("Ts Tc Td 8d 8c 8h 9s 9d 9h Ac", *melded) == [-1 - 25, 1 + 25]
    assert results("Ts Tc Td 8d 8c 8h 9s 9d 9h 2c", *melded) == [0, 0]  # equal deadwood is not an undercut
    assert results("Ts Tc Td 8d 8c 8h 9s 9d 9h Ac", *melded, game="gin_rummy(undercut_bonus=7)") == [-8, 8]
    state = deal_gin(POOR, READY, "Th", "pass", "draw upcard", "knock", "Th", *LAID, "pass", "pass")
    assert state.returns() == [-90, 90]


def stock_of(state: Any) -> list[str]:
    return [CARDS[card] for card in range(52) if all(card not in held for held in (*state.hands(), [state.upcard()]))]


def drained(first: str, second: str) -> Any:
    """Play a hand in which everyone draws from the stock and discards that card, until two cards are left."""
    state = deal_gin(first, second, "Th", "pass", "pass")
    for card in stock_of(state)[:29]:
        assert legal(state)[-1] == "draw stock"
        do(state, "draw stock")
        state.apply_action(numbers(card)[0])
        do(state, card)
    return state


@says(
    "When a discard leaves 2 cards in the stock, the other player may only pass, or knock by taking the upcard if "
    "that makes their deadwood low enough.",
    "After a pass both results are 0.",
)
def test_game_ends_or_is_knocked_when_two_cards_are_left() -> None:
    state = drained(READY, POOR)
    assert (state.stock_size(), state.current_player()) == (2, 1)
    assert legal(state) == ["pass"]
    do(state, "pass")
    assert state.is_terminal()
    assert state.returns() == [0, 0]
    state = drained(POOR, READY)
    assert legal(state) == ["pass", "knock"]
    upcard = CARDS[state.upcard()]
    do(state, "knock")
    assert len(state.hands()[1]) == 11
    assert load_words(state.get_game()).history(state, 0)[-1] == (1, f"seat 1 knocks with the upcard {upcard}.")
    for act in (upcard, *LAID, "pass", "pass"):
        do(state, act)
    assert state.returns() == [-90, 90]


@says(
    "Both results are also 0 if a player draws the upcard and at once discards it and the other player then does the "
    "same",
)
def test_drawing_and_discarding_the_upcard_twice_ends_the_game() -> None:
    state = deal_gin(READY, POOR, "Th", "draw upcard", "Th", "draw upcard")
    other = state.clone()
    do(other, "Kc")
    do(other, "draw upcard")
    do(other, "Kc")
    assert not other.is_terminal()
    do(state, "Th")
    assert state.is_terminal()
    assert state.returns() == [0, 0]


@says(
    "and if the upcard is drawn for the 50th time, not counting the first one.",
)
def test_game_ends_with_the_fiftieth_upcard() -> None:
    state = deal_gin(READY, POOR, "Th", "draw upcard", "Th")
    for turn in range(49):
        do(state, "draw upcard")
        do(state, CARDS[state.hands()[1 - turn % 2][0]])
    assert not state.is_terminal()
    do(state, "draw upcard")
    assert state.is_terminal()
    assert state.returns() == [0, 0]


def test_every_sentence_is_played() -> None:
    assert says.left(load_words(load("gin_rummy")).rules) == ""


def test_other_sizes_are_reported() -> None:
    state = after(load("gin_rummy(hand_size=7,knock_card=5)"), range(15))
    rules_text = " ".join(load_words(state.get_game()).rules)
    assert state.stock_size() == 37
    for part in (
        "is dealt 7 cards,",
        "the other 37 are the face-down stock",
        "at most 5, counted with",
        "your 8 cards",
        "at most 5 points",
    ):
        assert part in rules_text
    assert load_words(state.get_game()).describe_hand(state, 1).startswith("8s 9s Ts Js Qs Ks Ac (7 cards, deadwood 1)")
