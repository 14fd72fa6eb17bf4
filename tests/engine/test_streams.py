"""R27: named random streams are independent of each other and of everything else."""

import copy
import random
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from bots.manual.just_put_cards import JustPutCards
from dubito.game import Seating, make_player
from dubito.game.streams import DealStreams, SeatStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import Hand, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, deal_hands, deal_table
from dubito.games.dubito.events import Event

STREAMS = ("bot", "framework", "fallback")


def first(stream: Random) -> int:
    return stream.getrandbits(32)


def all_of(seed: int, deal: int) -> list[int]:
    streams = DealStreams(seed, deal)
    seats = [first(getattr(streams.seat(seat), name)) for seat in range(8) for name in STREAMS]
    return [first(streams.deck()), first(streams.seating()), *seats]


def test_r27_the_streams_never_change() -> None:
    """R27: literal values. If they change, every recorded seed leads to another game, which needs a decision record."""
    found = all_of(0, 0)
    assert found[:8] == [
        *(720610257, 391803179),
        *(2106730620, 3496004571, 2314995518),
        *(2718394186, 1313664023, 1423731342),
    ]
    assert found[-3:] == [843422181, 2420384283, 1733592309]
    found = all_of(12345, 678)
    assert found[:5] == [327049975, 185223899, 3284821316, 3836315129, 2596754415]
    assert found[-3:] == [703699359, 2872757820, 336526920]


def test_r27_the_deal_of_a_seed_never_changes() -> None:
    hands = deal_hands(DealStreams(0, 0).deck(), 8, Rules())
    assert [held.cards for held in hands][::7] == [[11, 3, 9, 6, 9, 5, 7], [12, 10, 6, 7, 9, 2]]


def test_r27_streams_are_distinct() -> None:
    """R27: compare 26 streams of several deals and runs, including neighbouring and swapped numbers."""
    keys = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 11), (11, 1), (12, 3), (1, 23), (-1, 1), (10**20, 5)]
    values = [value for key in keys for value in all_of(*key)]
    assert len(values) == 26 * len(keys)
    assert len(set(values)) == len(values)


def test_r27_stream_depends_only_on_its_name() -> None:
    """R27: earlier draws from other streams and the order of creation have no effect."""
    streams = DealStreams(3, 4)
    seats = [streams.seat(seat) for seat in (5, 2)]
    late = [first(seats[0].fallback), first(seats[0].bot), first(seats[1].framework)]
    fresh = DealStreams(3, 4)
    early = [first(fresh.seat(5).fallback), first(fresh.seat(5).bot), first(fresh.seat(2).framework)]
    assert late == early
    assert first(streams.deck()) == first(streams.deck())
    assert first(streams.seat(5).bot) == first(streams.seat(5).bot)


def test_r27_stream_continues_where_it_was() -> None:
    """R27: a seat has one object per stream name."""
    seat = DealStreams(3, 4).seat(0)
    for name in STREAMS:
        assert getattr(seat, name) is getattr(seat, name)
    assert first(seat.bot) != first(seat.bot)


@pytest.mark.parametrize("other", STREAMS)
@pytest.mark.parametrize("name", STREAMS)
def test_r27_streams_are_independent(name: str, other: str) -> None:
    """R27: a thousand draws from one stream do not affect the others."""
    seat, untouched = DealStreams(9, 9).seat(1), DealStreams(9, 9).seat(1)
    for _ in range(1000):
        first(getattr(seat, name))
    same = first(getattr(seat, other)) == first(getattr(untouched, other))
    assert same is (name != other)


def test_r27_a_deal_is_the_same_alone_and_in_a_batch() -> None:
    batch = [deal_hands(DealStreams(7, deal).deck(), 4, Rules())[0].cards for deal in range(18)]
    assert batch[17] == deal_hands(DealStreams(7, 17).deck(), 4, Rules())[0].cards
    assert all(one != other for one, other in pairwise(batch))


class Drawing(JustPutCards):
    """A JustPutCards that also draws from its own stream, as often as specified."""

    def __init__(self, id: int, *, draws: int) -> None:
        super().__init__(id)
        self.draws = draws

    def play(self, p: TurnData) -> TurnOutput:
        for _ in range(self.draws):
            self.rng.random()
        return super().play(p)


class Using(JustPutCards):
    """Plays according to numbers that it drew in `__init__`."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.first = self.rng.random()

    def maximize_regular(self, p: TurnData) -> bool:
        return self.rng.random() < self.first


def outputs(*entrants: Entrant) -> list[TurnOutput]:
    """Return the outputs of a game with four players."""
    table = deal_table(entrants, Rules(), DealStreams(5, 6))
    found = []
    while not table.state.over:
        found.append(step(table)[0])
    return found


@pytest.mark.parametrize("seat", range(4))
def test_r27_extra_draw_of_a_bot_does_not_change_the_deal(seat: int) -> None:
    """R27: neither the cards that the framework draws for it nor the other bots are affected."""
    games = []
    for draws in (0, 1, 7):
        entrants = [Entrant("Using", Using)] * 4
        entrants[seat] = Entrant("Drawing", Drawing, {"draws": draws})
        games.append(outputs(*entrants))
    assert games[0] == games[1] == games[2]
    assert len(games[0]) > 5


def test_r27_identical_bots_have_separate_streams() -> None:
    """R27: four instances of a class draw four different sequences, the same in every run."""
    tables = [deal_table([Entrant("Using", Using)] * 4, Rules(), DealStreams(5, deal)) for deal in (6, 6, 7)]
    drawn = [[player.first for player in table.players if isinstance(player, Using)] for table in tables]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0] + drawn[2])) == 8
    assert drawn[0] == [DealStreams(5, 6).seat(seat).bot.random() for seat in range(4)]


def test_r27_deal_does_not_depend_on_the_players() -> None:
    for_these = deal_table([Entrant("Using", Using)] * 4, Rules(), DealStreams(5, 6)).state.hands
    for_those = deal_table([Entrant("JustPutCards", JustPutCards)] * 4, Rules(), DealStreams(5, 6)).state.hands
    assert [held.cards for held in for_these] == [held.cards for held in for_those]
    assert [held.cards for held in for_these] == [
        held.cards for held in deal_hands(DealStreams(5, 6).deck(), 4, Rules())
    ]


def test_r27_nothing_touches_the_global_generator() -> None:
    random.seed(1)
    state = random.getstate()
    game = outputs(*[Entrant("Using", Using)] * 4)
    assert random.getstate() == state
    random.seed(2)
    assert outputs(*[Entrant("Using", Using)] * 4) == game


class Nosy(PlayerAI):
    """Draws from its stream before it calls its base class's `__init__`."""

    def __init__(self, id: int) -> None:
        self.early = self.rng.random()
        self.seat, self.held = self.id, sorted(self.cards)
        super().__init__(id)

    def observe(self, event: Event) -> None:
        self.early = 0.0


def test_r27_stream_seat_and_cards_are_available_in_init() -> None:
    """R27, R28: `self.rng`, `self.id` and `self.cards`."""
    streams, held = DealStreams(1, 2).seat(3), Hand([5, 1])
    player = make_player(Nosy, Seating(3, 0, 2, streams, partial(HandView, held)), {})
    assert isinstance(player, Nosy)
    assert (player.seat, player.held) == (3, [1, 5])
    assert player.early == DealStreams(1, 2).seat(3).bot.random()
    assert player.rng is streams.bot


def test_a_bot_may_be_copied_with_its_streams() -> None:
    """R27: a bot that looks ahead copies itself; the copy draws the same numbers and does not affect the original."""
    streams: SeatStreams = DealStreams(1, 2).seat(3)
    first(streams.bot)
    twin = copy.deepcopy(streams)
    assert first(twin.bot) == first(streams.bot)


def test_r27_a_stream_is_a_random_of_its_eight_bytes() -> None:
    """R27: like `Random`, a stream stores state between calls of `gauss()`."""
    seeds = bytes(range(200, 224))
    for place, name in enumerate(STREAMS):
        plain = Random(int.from_bytes(seeds[place * 8 : place * 8 + 8], "little"))
        assert getattr(SeatStreams(seeds), name).getstate() == plain.getstate()
        assert type(getattr(SeatStreams(seeds), name)) is Random
