"""Facts of draw and defuse are true, known to the seat, and can be stored in files."""

import json
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from dubito.errors import UsageError
from dubito.files import NoRules
from dubito.game.events import EVERYTHING, NOBODY
from dubito.game.log import Log, Position
from dubito.game.position_file import dump_position, load_position
from dubito.game.words import parse_facts
from dubito.games.defuse.engine import BOMB, State
from dubito.games.defuse.events import DrawEvent, HandEvent, HideEvent, LookEvent, PileEvent, PlayEvent, TakeEvent
from dubito.games.defuse.facts import DefuseFacts
from dubito.games.defuse.fake_models import act, place
from dubito.games.defuse.game import GAME
from dubito.games.defuse.knowledge import Knowledge, Pile
from tests.games.defuse.kit import deal_game

ACTS = ("draw", "skip", "bottom", "shuffle", "see")


class Watched:
    """A game with its log."""

    def __init__(self, game: State) -> None:
        self.game, self.log = game, Log(game.start)

    def move(self, output: str | int) -> None:
        self.log.add(self.game.apply(output, EVERYTHING))

    def position(self, seat: int) -> Position[NoRules]:
        return Position(NoRules(), self.game.node, self.log.of(seat))

    def known(self, seat: int) -> Knowledge:
        return self.log.of(seat).fold(Knowledge, NoRules())

    def by_chance(self, chance: Random) -> str | int:
        if self.game.node == "place":
            return chance.randint(0, min(4, len(self.game.pile)))
        return chance.choice([act for act in ACTS if self.game.why_illegal(act) is None])


def games(many: int = 80) -> Iterator[Watched]:
    """Yield the questions of this many random games."""
    for deal in range(many):
        watched, chance = Watched(deal_game(deal)), Random(deal)
        while not watched.game.over:
            yield watched
            watched.move(watched.by_chance(chance))


def test_facts_match_the_engine() -> None:
    for watched in games():
        game = watched.game
        facts = DefuseFacts().facts(watched.position(game.seat))
        assert facts["hand"] == {card: n for card, n in game.hands[game.seat].items() if n}
        assert (facts["pile"], facts["own_cards"]) == (len(game.pile), sum(game.hands[game.seat].values()))
        assert facts["other_cards"] == sum(game.hands[1 - game.seat].values())
        assert Counter(facts["played"]) == Counter(game.discard)
        hidden = Counter(game.pile) + Counter(game.hands[1 - game.seat])
        assert facts["unseen"] == {card: n for card, n in hidden.items() if n}
        legal = [output for output in (*ACTS, *range(30)) if game.why_illegal(output) is None]
        assert facts["legal"] == legal


def test_known_cards_of_the_pile_are_right() -> None:
    """For both seats at every move. Some cards must be known, or the test would prove nothing."""
    known = sure = 0
    for watched in games():
        game = watched.game
        for seat in (0, 1):
            pile = watched.known(seat).pile
            real = game.pile[::-1]
            assert pile.size == len(real)
            others = [card for card in real if card != "bomb"] if pile.astray else real
            assert all(mine in (None, card) for mine, card in zip(pile.cards, others, strict=True))
            known += sum(card is not None for card in pile.cards)
            if game.node == "turn":
                between = pile.bomb_range()
                assert between is not None
                least, most = between
                assert least <= real.index("bomb") <= most
                for place in (0, -1):
                    if (chance := pile.chance_on(place)) in (0, 1):
                        assert chance == (real[place] == "bomb")
                        sure += 1
    assert min(known, sure) > 1000


def test_stated_chances_match_frequencies() -> None:
    """If the bomb is on top with a stated chance of about a tenth, it is there in about a tenth of cases."""
    text, came = 0.0, 0
    for watched in games():
        chance = watched.known(watched.game.seat).pile.chance_on(0) if watched.game.node == "turn" else 0
        if chance and chance < 1:
            text += chance
            came += watched.game.pile[-1] == "bomb"
    assert text > 40
    assert abs(came - text) < 3 * text**0.5


def test_chance_is_spread_over_unseen_places() -> None:
    pile = Pile()
    assert pile.chance_on(0) == 1 / 17
    pile.look(["see", "skip", "see"])
    assert [pile.chance_on(place) for place in (0, 2, 3, -1)] == [0, 0, 1 / 14, 1 / 14]
    pile.draw(top=True, bomb=False)
    assert [pile.chance_on(place) for place in (0, 2)] == [0, 1 / 14]
    pile.shuffle()
    assert pile.chance_on(0) == 1 / 16
    pile.place(None)
    assert (pile.chance_on(0), pile.chance_on(-1)) == (None, None)


def test_indistinguishable_worlds_have_the_same_facts() -> None:
    """The worlds differ in the pile below the seen cards and in the other hand, and get the same outputs."""
    found = different = 0
    for deal in range(60):
        here, there = Watched(deal_game(deal)), Watched(other_world(deal))
        different += here.game.pile != there.game.pile
        chance = Random(deal)
        while not here.game.over and not there.game.over:
            mine = [watched.position(0) for watched in (here, there)]
            if mine[0] != mine[1]:
                break  # seat 0 has seen the difference
            if here.game.seat == 0:
                assert DefuseFacts().facts(mine[0]) == DefuseFacts().facts(mine[1])
                found += 1
            output = here.by_chance(chance)
            if there.game.why_illegal(output) is not None or output == "shuffle":
                break
            here.move(output)
            there.move(output)
    assert found > 120
    assert different > 40


def other_world(deal: int) -> State:
    """Return the same game with other cards in the opponent's hand and the lower pile, except the bomb."""
    game = deal_game(deal)
    theirs = [*Counter(game.hands[1]).elements()]
    below = [place for place, card in enumerate(game.pile[:9]) if card != "bomb"]
    for card in ("nothing", "see", "skip"):
        there = [place for place in below if game.pile[place] not in ("defuse", card)]
        if card in theirs and there:
            place = there[deal % len(there)]
            theirs[theirs.index(card)], game.pile[place] = game.pile[place], card
    return State([[*Counter(game.hands[0]).elements()], theirs], game.pile, Random(deal))


def test_draws_since_a_look_are_counted() -> None:
    watched = Watched(State([["defuse", "see"], ["defuse", "skip"]], PILE[::-1], Random(0)))
    counts = []
    for output in ("see", "draw", "draw", 2):
        watched.move(output)
        pile = watched.known(0).pile
        counts.append((pile.looked, pile.hidden, pile.cards[:2], pile.bomb_range()))
    assert counts == [
        (0, False, ["skip", "bomb"], (1, 1)),
        (1, False, ["bomb", "nothing"], (0, 0)),
        (2, False, ["nothing", None], (1, 14)),
        (2, True, ["nothing", None], (0, 15)),
    ]


PILE = ["skip", "bomb", "nothing", *["see"] * 14]


def test_log_determines_the_whole_game() -> None:
    for deal in range(20):
        watched, chance = Watched(deal_game(deal)), Random(deal)
        hands, pile, drawn = [list[str](), list[str]()], list[str](), ""
        while not watched.game.over:
            watched.move(watched.by_chance(chance))
        for event in watched.log.events:
            match event:
                case HandEvent(cards, seat):
                    hands[seat or 0] = [*cards]
                case PileEvent(cards):
                    assert event.only == NOBODY
                    pile = [*cards]
                case PlayEvent(seat, card):
                    hands[seat].remove(card)
                case DrawEvent(_, end):
                    drawn = pile.pop(0 if end == "top" else -1)
                    assert (drawn == BOMB) == event.bomb
                case TakeEvent(card, seat):
                    assert card == drawn
                    hands[seat or 0].append(card)
                case LookEvent(cards):
                    assert [*cards] == pile[:3]
                case HideEvent(place):
                    pile.insert(place, BOMB)
        assert pile == watched.game.pile[::-1]
        assert [Counter(hand) for hand in hands] == [+Counter(hand) for hand in watched.game.hands]


def test_position_is_read_as_it_was_written() -> None:
    for watched in games(5):
        position = watched.position(watched.game.seat)
        read = load_position(GAME, dump_position(GAME, position))
        assert read == position
        assert DefuseFacts().facts(read) == DefuseFacts().facts(position)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seat": 2}, "seat: seats are 0 to 1"),
        ({"seat": 1}, "log: it contains an event that seat 1 does not see"),
        ({"node": "C"}, "defuse has no node 'C'"),
        ({"format": "defuse position 1"}, "position was written by another version of Dubito"),
        ({"log": []}, "log: no game has this log"),
        ({"log": [{"event": "PlayEvent", "seat": 0, "card": "see"}]}, "log: no game has this log"),
        ({"log": [{"event": "PlayEvent", "seat": 0}]}, "log.0.card: Field required"),
    ],
)
def test_impossible_positions_are_refused(change: dict[str, object], words: str) -> None:
    plain = json.loads(dump_position(GAME, DefuseFacts().example_position("turn")))
    with pytest.raises(UsageError) as caught:
        load_position(GAME, json.dumps(plain | change))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("hand", "top", "bottom", "wanted"),
    [
        ("2x see", "0.00", "0.10", "draw"),
        ("1x defuse", "0.50", "0.10", "draw"),
        ("2x see, 1x skip", "0.50", "0.10", "see"),
        ("2x see, 1x skip, 1x bottom", "1.00", "0.00", "bottom"),
        ("1x skip, 1x bottom", "1.00", "unknown", "skip"),
        ("1x shuffle", "unknown", "unknown", "shuffle"),
        ("none", "1.00", "0.00", "draw"),
    ],
)
def test_house_avoids_a_likely_bomb(hand: str, top: str, bottom: str, wanted: str) -> None:
    assert act({"hand": hand, "bomb_on_top": top, "bomb_at_bottom": bottom}) == wanted


def test_the_house_reads_the_facts_of_a_prompt() -> None:
    values = parse_facts("=== facts ===\nnode: place\nhand: 1x see\npile: 9\n=== end of facts ===\n")
    assert place(values) == 9
    assert place(values | {"hand": "1x skip, 1x see"}) == 0
