"""The schedule (R33): draws are uniform, deals independent, and contenders play one seat of each deal."""

from collections import Counter

from dubito.experiment.play import Lineup, draw_lineups
from dubito.game.streams import DealStreams
from tests.experiment.kit import experiment, outcomes

FIELD = ["StefaBot", "ClaudeBot", "SusBoi", "MrDoubt"]


def field_lineups(deals: int, **config: object) -> list[list[Lineup]]:
    of = experiment(bots=FIELD, **config)
    return [draw_lineups(of, deal, DealStreams(of.seed, deal)) for deal in range(deals)]


def within(count: int, n: int, p: float) -> bool:
    return bool(abs(count - n * p) <= 4.5 * (n * p * (1 - p)) ** 0.5)


def test_r33_sizes_and_bots_are_uniform_with_replacement() -> None:
    games = [deal[0] for deal in field_lineups(6000, table_sizes=[3, 5, 8])]
    sizes = Counter(len(game.seats) for game in games)
    assert sorted(sizes) == [3, 5, 8]
    assert all(within(count, 6000, 1 / 3) for count in sizes.values())
    for seat in range(3):
        bots = Counter(game.seats[seat] for game in games)
        assert all(within(bots[bot], 6000, 1 / 4) for bot in range(4))
    same = sum(game.seats[0] == game.seats[1] for game in games)
    assert within(same, 6000, 1 / 4), "drawn with replacement"


def test_r33_contenders_take_one_seat_among_the_same_neighbours() -> None:
    contenders = ["AdaptyBoi", "ClaudeBot", "RandomBoi"]
    places = [4, 1, 5]  # ClaudeBot is also an opponent; AdaptyBoi and RandomBoi come after the opponents
    plain = field_lineups(400, table_sizes=[3, 4])
    seats: Counter[tuple[int, int]] = Counter()
    for deal, games in enumerate(field_lineups(400, table_sizes=[3, 4], contenders=contenders, games=1200)):
        (field,) = plain[deal]
        assert [game.game for game in games] == [3 * deal, 3 * deal + 1, 3 * deal + 2]
        seat = games[0].contender_seat
        assert seat is not None
        seats[len(field.seats), seat] += 1
        for game, place in zip(games, places, strict=True):
            assert game.contender_seat == seat
            assert game.seats == [*field.seats[:seat], place, *field.seats[seat + 1 :]]
    assert len(seats) == 3 + 4, "every seat of both sizes is drawn"


def test_r33_twin_contenders_play_the_same_game() -> None:
    twins = [{"bot": "AdaptyBoi", "name": "One"}, {"bot": "AdaptyBoi", "name": "Two"}]
    played = outcomes(experiment(bots=FIELD, contenders=twins, games=200))
    for one, two in zip(played[::2], played[1::2], strict=True):
        assert (one.marks, one.counts, one.game_counts) == (two.marks, two.counts, two.game_counts)


def test_a_deal_does_not_depend_on_the_deals_before_it() -> None:
    long = outcomes(experiment(bots=FIELD, games=40))
    assert outcomes(experiment(bots=FIELD, games=20)) == long[:20]
    assert outcomes(experiment(bots=FIELD, games=40, seed=1)) != long
