"""Play deals in one process. The outcomes depend only on the experiment and the deal numbers.

Read `draw_lineups` first, which decides who plays whom, and then `ChunkPlayer`. Its `play` method plays games of
hand-written bots, and `play_with_models` plays and records one game. A chunk is 1,000 deals that are stored together.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from dubito.errors import BotError, DubitoError, GameError
from dubito.experiment.experiment import Experiment
from dubito.experiment.resolved import ResolvedRun
from dubito.game import Ending, Player
from dubito.game.bot_deadline import limit_bot_time
from dubito.game.flaws import find_ending_flaws
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, GameCode, Table, play_game, step
from dubito.stats.players import Statement
from dubito.stats.tally import Outcome, Tally, build_outcome, sum_deals

if TYPE_CHECKING:
    from dubito.experiment.models import Models
    from dubito.llm.decide import Journal


@dataclass(slots=True)
class Lineup:
    """One game of a deal: players by seat, as indexes into `Experiment.players`."""

    game: int
    seats: list[int]
    contender_seat: int | None


def draw_lineups(experiment: Experiment, deal: int, streams: DealStreams) -> list[Lineup]:
    """Return the games of a deal: one, or one for each contender in the same seat against the same opponents (R33).

    The opponents are drawn from all bots, so a contender that is also an opponent can meet a copy of itself. If every
    table has two seats, each contender plays two games, one in each seat.

    First the table size is drawn, then the bots seat by seat as the game's `lineup` says, then the contenders' seat.
    """
    seats, contender_seat = _draw_seats(experiment, deal, streams)
    return [_build_lineup(experiment, deal, place, seats, contender_seat) for place in range(experiment.games_per_deal)]


def draw_lineup(experiment: Experiment, deal: int, place: int, streams: DealStreams) -> Lineup:
    """Return a single game of a deal, by its index in `draw_lineups`."""
    return _build_lineup(experiment, deal, place, *_draw_seats(experiment, deal, streams))


def _draw_seats(experiment: Experiment, deal: int, streams: DealStreams) -> tuple[list[int], int | None]:
    """Draw a bot for each seat, as an index into `Experiment.bots`, and if there are contenders, their seat."""
    draw = streams.seating().random
    sizes, n = experiment.table_sizes, len(experiment.bots)
    size = sizes[int(draw() * len(sizes))]
    if experiment.lineup == "uniform":
        seats = [int(draw() * n) for _ in range(size)]
    elif n == 1:  # the opponent of every contender
        seats = [0] * size
    elif experiment.lineup == "ordered_pairs":  # all ordered pairs in turn
        first, second = divmod(deal % (n * (n - 1)), n - 1)
        seats = [first, second + (second >= first)]
    else:
        remaining = list(range(n))
        seats = [remaining.pop(int(draw() * len(remaining))) for _ in range(size)]
    return seats, int(draw() * size) if experiment.contenders else None


def _build_lineup(
    experiment: Experiment, deal: int, place: int, drawn: list[int], contender_seat: int | None
) -> Lineup:
    game, seats = deal * experiment.games_per_deal + place, [*drawn]
    if contender_seat is None:
        return Lineup(game, seats, None)
    contender, seat = divmod(place, experiment.contender_seats)
    seats[contender_seat] = experiment.contender_places[contender]
    if experiment.contender_seats == 1:
        return Lineup(game, seats, contender_seat)
    return Lineup(game, seats if seat == contender_seat else seats[::-1], seat)


DEALS_PER_CHUNK: Final = 1000  # changing it would change every results digest


def chunk_numbers(experiment: Experiment) -> range:
    deals = experiment.deal_numbers
    return range(deals.start // DEALS_PER_CHUNK, -(-deals.stop // DEALS_PER_CHUNK))


def deals_of_chunk(experiment: Experiment, number: int) -> range:
    return range(number * DEALS_PER_CHUNK, min((number + 1) * DEALS_PER_CHUNK, experiment.deal_numbers.stop))


def split_evenly(deals: range, of: int) -> list[range]:
    return [deals[len(deals) * k // of : len(deals) * (k + 1) // of] for k in range(of)]


def chunk_number(deals: range) -> int:
    return deals.start // DEALS_PER_CHUNK


def first_game_of_chunk(experiment: Experiment, number: int) -> int:
    return number * DEALS_PER_CHUNK * experiment.games_per_deal


def is_full_chunk(deals: int) -> bool:
    return deals == DEALS_PER_CHUNK


@dataclass(slots=True)
class ChunkResult:
    """The result of a chunk: all of its deals, or those before a stop or an error."""

    number: int
    deals: int = 0
    outcomes: list[bytes] = field(default_factory=list)
    decision_digests: list[bytes] = field(default_factory=list)  # digests for each game with model players
    records: list[str] = field(default_factory=list)  # deal and outputs of each game with model players, as JSON
    tally: Tally = field(default_factory=Tally)
    first_fallback: BotError | None = None
    error: DubitoError | None = None
    stopped: bool = False
    decided: bool = False  # the last deal decided the run (`stop.py`)

    def append(self, later: "ChunkResult") -> "ChunkResult":
        """Return this result joined with the next deals of its chunk.

        This result must not have ended early, by a stop, a decision or an error.
        """
        return ChunkResult(
            self.number,
            self.deals + later.deals,
            self.outcomes + later.outcomes,
            self.decision_digests + later.decision_digests,
            self.records + later.records,
            self.tally + later.tally,
            self.first_fallback or later.first_fallback,
            later.error,
            later.stopped,
            later.decided,
        )


@dataclass(frozen=True, slots=True)
class GamePlayed:
    """A finished game with model players."""

    number: int
    outcome: Outcome
    decision_digest: bytes
    record: str
    bot_error: BotError | None
    fallback_seats: frozenset[int] = frozenset()  # seats for which a fallback answered at least once
    statements: tuple[Statement, ...] = ()


class ChunkPlayer:
    """Plays the deals of an experiment with loaded bots."""

    def __init__(self, run: ResolvedRun) -> None:
        self.experiment = experiment = run.experiment
        self.results = run.game.results
        self._game, self._rules = run.game, run.game.rules_of_run(experiment.rules)
        self._entrants = []
        for player in run.players:
            # Compiled classes accept neither settings nor a deadline.
            cls = player.bot.cls if player.spec.settings else player.bot.fastest
            if experiment.bot_deadline is not None:
                cls = limit_bot_time(player.bot.cls, experiment.bot_deadline, self._game.nodes)
            self._entrants.append(Entrant(player.name, cls, player.spec.settings))
        self._fallback: type[Player] | None = None
        if experiment.on_bot_error == "fallback":
            self._fallback = run.registry.fallback
        self._forfeits = experiment.on_bot_error == "forfeit"
        self._ending_is_sound = False  # checked when the first game ends

    def play(self, deals: range, stop: Callable[[], bool]) -> ChunkResult:
        """Play deals of one chunk between hand-written bots. `stop` is checked before each deal."""
        result = ChunkResult(chunk_number(deals))
        finished: list[list[Outcome]] = []
        for deal in deals:
            if stop():
                result.stopped = True
                break
            try:
                finished.append(self._play_deal(deal, result))
            except (BotError, GameError) as error:
                result.error = error
                break
        result.deals = len(finished)
        try:
            result.outcomes = [outcome.pack() for outcomes in finished for outcome in outcomes]
            result.tally = sum_deals(finished, self.results)
        except Exception:
            for deal, outcomes in zip(deals, finished, strict=False):
                for outcome in outcomes:
                    self._check_ending(outcome, deal)
            raise
        return result

    def _check_ending(self, outcome: Outcome, deal: int) -> None:
        """Raise GameError if the ending of a game is invalid. Later endings are checked only after an error."""
        counts = [own[:-1] for own in outcome.counts]
        ending = Ending(outcome.capped, outcome.game_counts, outcome.marks, counts)
        for flaw in find_ending_flaws(ending, self.results, len(outcome.seats)):
            raise GameCode(self._game, deal * self.experiment.games_per_deal, deal).fault(flaw)

    def _play_deal(self, deal: int, result: ChunkResult) -> list[Outcome]:
        streams = DealStreams(self.experiment.seed, deal)
        outcomes = []
        for lineup in draw_lineups(self.experiment, deal, streams):
            with GameCode(self._game, lineup.game, deal) as code:
                table = self._build_table(deal, lineup, streams)
                code.state = table.state
                play_game(table)
                outcomes.append(self._build_outcome(table, lineup, code))
            if table.errors and result.first_fallback is None:
                result.first_fallback = table.errors[0]
        return outcomes

    def _build_outcome(self, table: Table, lineup: Lineup, code: GameCode) -> Outcome:
        """Return the outcome of a finished game. Raises GameError if this process's first ending is invalid."""
        if not self._ending_is_sound:
            for flaw in find_ending_flaws(table.state.ending(), self.results, len(lineup.seats)):
                raise code.fault(flaw)
            self._ending_is_sound = True
        return build_outcome(table.state, lineup.seats, lineup.contender_seat, table.fallback_turns)

    def play_with_models(self, deal: int, lineup: Lineup, streams: DealStreams, models: "Models") -> GamePlayed:
        """Play one game with model players and record its outputs. Raises BotError, GameError or RunStopped."""
        from dubito.llm.decide import Journal  # imported late, since games without models have none
        from dubito.seats.program import close_programs, end_programs

        journal = Journal()
        with GameCode(self._game, lineup.game, deal) as code:
            table = self._build_table(deal, lineup, streams, models, journal)
            code.state = table.state
            try:
                played = self._play_recorded(table, lineup, journal, code)
                end_programs(table.services, self.results, table.state.ending())
                return played
            finally:
                close_programs(table.services)

    def _play_recorded(self, table: Table, lineup: Lineup, journal: "Journal", code: GameCode) -> GamePlayed:
        deal_json, outputs = self._game.deal_to_json(table.state), []
        statements: list[Statement] = []
        while not table.state.over:
            truth = self._game.truth(table.state)  # players have no access to it
            output, _ = step(table)
            if output is not None:
                outputs.append(self._game.output_to_json(output))
            new = journal.stated[len(statements) :]
            statements += [Statement(each.seat, each.stated, each.impossible, bool(truth)) for each in new]
        if self._forfeits and table.errors:
            from dubito.game.moves import Forfeit  # imported late, since games without models have no record

            outputs.append(asdict(Forfeit(table.errors[0].seat)))
        outcome = self._build_outcome(table, lineup, code)
        record = json.dumps({**deal_json, "outputs": outputs}, separators=(",", ":"))
        return GamePlayed(
            lineup.game,
            outcome,
            journal.digest(),
            record,
            table.errors[0] if table.errors else None,
            frozenset(journal.fallback_seats),
            tuple(statements),
        )

    def build_table(self, game: int, models: "Models | None" = None) -> tuple[Table, Lineup]:
        """Return the table of a game before its first turn, and its lineup.

        `models` answers for model players.
        """
        deal, place = divmod(game, self.experiment.games_per_deal)
        streams = DealStreams(self.experiment.seed, deal)
        lineup = draw_lineup(self.experiment, deal, place, streams)
        return self._build_table(deal, lineup, streams, models), lineup

    def _build_table(
        self,
        deal: int,
        lineup: Lineup,
        streams: DealStreams,
        models: "Models | None" = None,
        journal: "Journal | None" = None,
    ) -> Table:
        entrants, services = [self._entrants[player] for player in lineup.seats], list[object]()
        if models is not None:
            from dubito.llm.decide import Journal  # imported late, since games without models have none

            journal = journal or Journal()
            services = [models.service(entrant.name, journal, len(entrants)) for entrant in entrants]
        return Table(
            self._game.deal(self._rules, len(lineup.seats), streams.deck()),
            entrants,
            streams,
            deal=deal,
            number=lineup.game,
            fallback=self._fallback,
            forfeits=self._forfeits,
            services=services,
        )
