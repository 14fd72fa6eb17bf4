"""The rules of draw and defuse, one by one, with rulings D1-D4."""

from collections import Counter
from typing import Any

import pytest

from dubito.errors import IllegalOutput, UsageError
from dubito.files import NoRules
from dubito.game.streams import DealStreams
from dubito.games.defuse.engine import ALL_CARDS, State, deal, shuffle
from dubito.games.defuse.events import DrawEvent, EndEvent, HideEvent, LookEvent, PlaceEvent, PlayEvent, TakeEvent
from dubito.games.defuse.game import GAME
from tests.games.defuse.kit import deal_game, mutable_state, with_cards


def test_deal_matches_the_source() -> None:
    """D1: six cards each, including a defuse; the pile has 17 cards, including two defuses and the bomb."""
    for number in range(50):
        game = deal_game(number)
        assert [sum(hand.values()) for hand in game.hands] == [6, 6]
        assert [hand["defuse"] for hand in game.hands] == [1, 1]
        assert (len(game.pile), game.pile.count("defuse"), game.pile.count("bomb")) == (17, 2, 1)
        assert Counter(game.pile) + Counter(game.hands[0]) + Counter(game.hands[1]) == ALL_CARDS


def test_hands_are_dealt_from_the_end_before_the_bomb_goes_in() -> None:
    """D1: cards are dealt by `pop`, five to seat 0, then five to seat 1."""
    first = ["skip"] * 4 + ["bottom"] * 4 + ["shuffle"] * 4 + ["see"] * 8 + ["nothing"] * 4
    chance = DealStreams(0, 5).deck()
    shuffle(first, chance)
    game = deal(DealStreams(0, 5).deck())
    for seat, cards in enumerate((first[-5:], first[-10:-5])):
        assert Counter(game.hands[seat]) == Counter([*cards, "defuse"])
    rest = [*first[:-10], "defuse", "defuse", "bomb"]
    shuffle(rest, chance)
    assert game.pile == rest


def test_shuffle_is_uniform() -> None:
    chance, seen = DealStreams(0, 0).deck(), Counter[tuple[str, ...]]()
    for _ in range(12_000):
        pile = list("abcd")
        shuffle(pile, chance)
        seen[tuple(pile)] += 1
    assert len(seen) == 24
    assert all(400 < n < 600 for n in seen.values())


def test_a_draw_takes_the_top_and_ends_the_turn() -> None:
    game = with_cards("skip see bomb")
    assert game.apply("draw") == [DrawEvent(0, "top", False), TakeEvent("skip", only=0)]
    assert (game.seat, game.hands[0]["skip"], game.pile, game.turns_played) == (1, 1, ["bomb", "see"], 1)


def test_a_bottom_card_draws_from_the_bottom() -> None:
    game = with_cards("bomb see skip", "bottom")
    assert game.apply("bottom") == [PlayEvent(0, "bottom"), DrawEvent(0, "bottom", False), TakeEvent("skip", only=0)]
    assert (game.seat, game.pile, game.discard) == (1, ["see", "bomb"], ["bottom"])


def test_a_skip_ends_the_turn_without_a_draw() -> None:
    game = with_cards("bomb see", "skip")
    assert game.apply("skip") == [PlayEvent(0, "skip")]
    assert (game.seat, len(game.pile), game.hands[0]["skip"], game.turns_played) == (1, 2, 0, 1)


@pytest.mark.parametrize("pile", ["bomb see skip nothing", "see bomb", "bomb"])
def test_a_see_shows_three_from_the_top_to_one_seat(pile: str) -> None:
    """D3: a smaller pile shows fewer cards. Everybody observes that a see was played."""
    game = with_cards(pile, "see see")
    top = tuple(pile.split()[:3])
    assert game.apply("see") == [PlayEvent(0, "see"), LookEvent(top, only=0)]
    assert (game.seat, game.view().seen, game.pile) == (0, top, pile.split()[::-1])


def test_shuffle_forgets_seen_cards() -> None:
    game = with_cards("bomb see skip nothing defuse", "see shuffle")
    game.apply("see")
    before = list(game.pile)
    assert game.apply("shuffle") == [PlayEvent(0, "shuffle")]
    assert (game.seat, game.view().seen, sorted(game.pile)) == (0, (), sorted(before))
    assert game.pile != before


def test_seen_cards_are_not_shown_to_the_next_player() -> None:
    game = with_cards("nothing see skip bomb", "see")
    game.apply("see")
    game.apply("draw")
    assert (game.seat, game.view().seen) == (1, ())


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_place_counts_from_the_top(place: int) -> None:
    """D2: 0 is the top, n the bottom. The other cards keep their order."""
    game = with_cards("bomb see skip", "defuse")
    assert game.apply("draw") == [DrawEvent(0, "top", True), PlayEvent(0, "defuse")]
    assert (game.seat, game.view().node, game.hands[0]["defuse"], game.turns_played) == (0, "place", 0, 0)
    assert game.apply(place) == [PlaceEvent(0), HideEvent(place, only=0)]
    pile = ["see", "skip"]
    pile.insert(place, "bomb")
    assert (game.pile[::-1], game.seat, game.view().node, game.turns_played) == (pile, 1, "turn", 1)


@pytest.mark.parametrize("act", ["draw", "bottom"])
def test_the_bomb_without_a_defuse_loses(act: str) -> None:
    game = with_cards("bomb", "bottom", "defuse")
    events = game.apply(act)
    assert events[-1] == EndEvent(0)
    assert (game.over, game.winner, game.ending().marks) == (True, 1, [0, 1])


def test_forfeit_gives_the_game_to_the_other_seat() -> None:
    game = deal_game()
    game.forfeit(0)
    ending = game.ending()
    assert (ending.marks, ending.capped, [counts[-1] for counts in ending.counts]) == ([0, 1], False, [1, 0])
    with pytest.raises(IllegalOutput, match="the game is over"):
        game.forfeit(1)


NOT_AT_TURN: list[tuple[Any, str]] = [
    ("see", "the hand holds no see card"),
    ("skip", "the hand holds no skip card"),
    ("bottom", "the hand holds no bottom card"),
    ("shuffle", "the hand holds no shuffle card"),
    ("nothing", "is one of draw, skip, bottom, shuffle, see, and not 'nothing'"),
    ("defuse", "and not 'defuse'"),
    (None, "and not None"),
    (0, "and not 0"),
    (["draw"], "and not a value of type list"),
]
NOT_AT_PLACE: list[tuple[Any, str]] = [
    (True, "a place from 0, the top, to 2, the bottom, and not to True"),
    (3.0, "and not to 3.0"),
    (-1, "and not to -1"),
    (3, "and not to 3"),
    (10**400, "and not to a value of type int"),
    ("0", "and not to '0'"),
    (None, "and not to None"),
]


@pytest.mark.parametrize("place", [False, True])
def test_illegal_output_changes_nothing(place: bool) -> None:
    """D4: a card that is not held or not playable, or a place outside 0..n."""
    game = with_cards("bomb see skip", "defuse nothing")
    if place:
        game.apply("draw")
    for output, words in NOT_AT_PLACE if place else NOT_AT_TURN:
        before = mutable_state(game)
        with pytest.raises(IllegalOutput) as caught:
            game.apply(output)
        assert words in str(caught.value)
        assert game.view().why_illegal(output) == str(caught.value)
        assert mutable_state(game) == before


def test_three_players_are_refused() -> None:
    with pytest.raises(UsageError, match="draw and defuse needs 2 players, not 3"):
        GAME.deal(NoRules(), 3, DealStreams(0, 0).deck())


def test_counts_match_the_actions() -> None:
    game = with_cards("bomb see skip", "defuse shuffle see", "skip")
    for output in ("see", "draw", 0, "skip", "shuffle"):
        game.apply(output)
    counts = [dict(zip(GAME.results.seat_counts, own, strict=True)) for own in game.ending().counts]
    wanted = {"turns": 2, "draw": 1, "see": 1, "shuffle": 1, "bombs": 1, "defuse": 1}
    assert {name: n for name, n in counts[0].items() if n} == wanted
    assert {name: n for name, n in counts[1].items() if n} == {"turns": 1, "skip": 1}


def conserved(game: State) -> Counter[str]:
    held = Counter[str]()
    for cards in (*game.hands, Counter(game.pile), Counter(game.discard)):
        held.update(cards)
    return held


def test_no_card_is_lost_or_made() -> None:
    chance = DealStreams(0, 1).seating()
    for number in range(60):
        game = deal_game(number)
        while not game.over:
            here = [act for act in ("draw", "skip", "bottom", "shuffle", "see") if game.why_illegal(act) is None]
            game.apply(chance.choice(here) if here else chance.randint(0, len(game.pile)))
            out = ALL_CARDS["bomb"] if game.over or game.node == "place" else 0
            assert conserved(game) + Counter(bomb=out) == ALL_CARDS
        assert game.turns_played + 1 == sum(counts.turns for counts in game.counts) < 60
