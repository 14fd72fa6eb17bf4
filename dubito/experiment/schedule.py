"""Who plays whom: every deal a function of (seed, deal number) alone (R33)."""

from collections.abc import Callable
from dataclasses import dataclass

from dubito.experiment.experiment import Experiment
from dubito.game.streams import DealStreams


@dataclass(slots=True)
class Lineup:
    """One game of a deal: players by seat, as places in `Experiment.players`."""

    game: int
    seats: list[int]
    contender_seat: int | None


def lineups(experiment: Experiment, deal: int, streams: DealStreams) -> list[Lineup]:
    """The games of a deal: one, or one a contender, who takes the same seat among the same neighbours.

    Where two sit at every table each contender plays two games, one in each seat, against the same other player.
    Draws the table size, then the bots seat by seat as the game has it, then the contenders' seat.
    """
    draw = streams.seating().random
    sizes = experiment.table_sizes
    size = sizes[int(draw() * len(sizes))]
    seats = _drawn(experiment, deal, size, draw)
    if not experiment.contenders:
        return [Lineup(deal, seats, None)]
    seat = int(draw() * size)
    games = []
    for contender in experiment.contenders:
        whole = _with(experiment.players.index(contender), seat, seats, experiment)
        if experiment.contender_seats == 1:
            games.append((whole, seat))
        else:
            games += [(whole if at == seat else whole[::-1], at) for at in (0, 1)]
    first = deal * experiment.games_per_deal
    return [Lineup(first + k, whole, at) for k, (whole, at) in enumerate(games)]


def _drawn(experiment: Experiment, deal: int, size: int, draw: Callable[[], float]) -> list[int]:
    """The bots of the field at the seats of a deal."""
    n_field = len(experiment.field)
    if experiment.lineup == "uniform":
        return [int(draw() * n_field) for _ in range(size)]
    if n_field == 1:  # whom every contender meets
        return [0] * size
    if experiment.lineup == "ordered_pairs":  # each against each, in either seat, turn by turn
        first, second = divmod(deal % (n_field * (n_field - 1)), n_field - 1)
        return [first, second + (second >= first)]
    left = list(range(n_field))
    return [left.pop(int(draw() * len(left))) for _ in range(size)]


def _with(contender: int, seat: int, seats: list[int], experiment: Experiment) -> list[int]:
    """The contender in this seat. Where nobody sits twice and it was drawn for another seat, the two change places."""
    whole = [*seats]
    if experiment.lineup != "uniform" and contender in whole:
        whole[whole.index(contender)] = whole[seat]
    whole[seat] = contender
    return whole
