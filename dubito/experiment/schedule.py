"""Who plays whom: every deal a function of (seed, deal number) alone (R33)."""

from dataclasses import dataclass

from dubito.experiment.config import Experiment
from dubito.streams import DealStreams


@dataclass(slots=True)
class Lineup:
    """One game of a deal: players by seat, as places in `Experiment.players`."""

    game: int
    seats: list[int]
    contender_seat: int | None


def lineups(experiment: Experiment, deal: int, streams: DealStreams) -> list[Lineup]:
    """The games of a deal: one, or one a contender, who takes the same seat among the same neighbours.

    Draws the table size, then the bots seat by seat with replacement, then the contenders' seat.
    """
    draw = streams.seating().random
    sizes, n_field = experiment.table_sizes, len(experiment.field)
    size = sizes[int(draw() * len(sizes))]
    seats = [int(draw() * n_field) for _ in range(size)]
    if not experiment.contenders:
        return [Lineup(deal, seats, None)]
    seat = int(draw() * size)
    first = deal * len(experiment.contenders)
    players = experiment.players
    return [
        Lineup(first + k, [*seats[:seat], players.index(contender), *seats[seat + 1 :]], seat)
        for k, contender in enumerate(experiment.contenders)
    ]
