"""Count the lies of a run, for which its games are played again."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from dubito.errors import UsageError, one_line
from dubito.experiment.stored import Run, check_replayable, read_run
from dubito.game import Game, Lie, LieMark, State
from dubito.game.events import GameEvent
from dubito.game.moves import Forfeit, make_move, output_of
from dubito.game.table import step
from dubito.stats.players import cluster_sums
from dubito.stats.rates import Rate, Sums, clustered_rate
from dubito.stats.tally import build_outcome, read_record

LIES: Final[tuple[Lie, ...]] = get_args(Lie)
MAX_LIE_GAMES: Final = 1_000  # maximum number of games in which lies are counted, since each has to be replayed
STAKES: Final = (1, 4, 8, 16)  # lowest number of cards at stake of each band


LieRate = Literal["chosen", "forced", "willing", "caught", "hits", "alarms"]
_DENOMINATORS: Final[Mapping[LieRate, str]] = {
    "chosen": "plays",
    "forced": "plays",
    "willing": "free",
    "caught": "lies",
    "hits": "lies met",
    "alarms": "honest met",
}


@dataclass(frozen=True, slots=True)
class TrackedPlay:
    """A move that can be a lie. Players are indexes into `Experiment.players`."""

    game: int
    seat: int
    move: int  # the seat's own moves count from 1
    turn: int  # of the game, from 1
    player: int
    lie: Lie | None
    cards: int
    pile: int  # cards at stake, including the player's own
    hand: int  # cards in the player's hand before the move
    late: bool  # whether the move is in the second half of its game
    called: list[tuple[int, bool]]  # the players asked about it, and whether they called it a lie


@dataclass(frozen=True, slots=True)
class TrackedResponse:
    """A response to a play, which calls the play a lie or lets it pass."""

    game: int
    seat: int
    move: int
    turn: int
    player: int
    of: int  # the player who made the play
    is_lie: bool
    called: bool
    pile: int  # cards at stake
    hand: int  # cards in the player's hand
    late: bool  # whether the response is in the second half of its game


class MarkedMove(NamedTuple):
    """A move of a game that is played again."""

    seat: int
    move: int  # the seat's own moves count from 1
    turn: int  # of the game, from 1
    lie: Lie | None
    mark: LieMark | None


@dataclass(frozen=True, slots=True)
class TrackedGame:
    """The plays and responses of a game."""

    plays: list[TrackedPlay]
    responses: list[TrackedResponse]


def track_game(number: int, seats: Sequence[int], moves: Sequence[MarkedMove]) -> TrackedGame:
    """Match the plays of a game with the responses to them. `seats` contains the player of each seat."""
    plays, responses = list[TrackedPlay](), list[TrackedResponse]()
    called = list[tuple[int, bool]]()  # responses to the last play
    for place, (seat, move, turn, lie, mark) in enumerate(moves):
        player, late = seats[seat], 2 * place >= len(moves)
        if mark and mark.of is not None:
            called.append((player, mark.called))
            target = seats[mark.of]
            responses.append(
                TrackedResponse(
                    number, seat, move, turn, player, target, mark.is_lie, mark.called, mark.pile, mark.hand, late
                )
            )
        if mark and mark.cards:
            called = []
            pile = mark.pile + mark.cards
            plays.append(TrackedPlay(number, seat, move, turn, player, lie, mark.cards, pile, mark.hand, late, called))
    return TrackedGame(plays, responses)


@dataclass(frozen=True, slots=True)
class LieCounts:
    """Counts of lies in the first games of a run, by player and rate, summed deal by deal as y out of m.

    `chosen` (voluntary) and `forced` are shares of moves that can be lies, `willing` (voluntary) of those that can also
    be honest, `caught` of all lies. `hits` is the share of
    other players' lies that were called lies, and `alarms` is that share for their honest plays.
    """

    games: int
    sums: Mapping[tuple[int, LieRate], Sums]
    stated_lies: Mapping[str, int]  # how often each model player admitted to lying, if a node asks
    tracked_plays: Sequence[TrackedPlay] = ()
    tracked_responses: Sequence[TrackedResponse] = ()

    def plays(self, player: int) -> int:
        return self.sums[player, "chosen"].m

    def count(self, player: int, lie: LieRate) -> int:
        return self.sums[player, lie].y

    def share(self, player: int, lie: LieRate) -> Rate:
        return clustered_rate(*self.sums[player, lie])


def name_band(bands: Sequence[int], low: int) -> str:
    """Return the name of the band that begins with this number, such as `4 to 7`."""
    above = next((end for end in bands if end > low), None)
    if above is None:
        return f"{low} or more"
    return f"{low}" if above == low + 1 else f"{low} to {above - 1}"


def replay_moves(
    run: Run, number: int, watch: Callable[[Sequence[GameEvent]], None] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yield the moves of a game with the state before each, from its record or by playing its bots.

    After each move, `watch` is called with its events, including those that only one seat sees. Raises UsageError at
    the end if the outcome differs from the stored one.
    """
    game = run.game
    ((row, record),) = run.db.read("SELECT outcome, record FROM games WHERE game = ?", (number,))
    outcome = run.outcome(row)
    state = game.deal(run.resolved.rules, len(outcome.seats), run.deal_streams(number).deck())
    ended: State = state
    if record is None:
        table, _ = run.player.build_table(number)
        ended, outputs = table.state, []
        while not ended.over:
            outputs.append(step(table, announce=True)[0])
    else:
        outputs = [output_of(game, output) for output in read_record(record, run.db.path)["outputs"]]
    for output in outputs:
        yield state, output
        events = [] if output is None else make_move(state, output)
        if watch is not None:
            watch(events)
    replayed = build_outcome(ended, outcome.seats, outcome.contender_seat, [own[-1] for own in outcome.counts])
    if replayed.pack() != row:
        raise UsageError(f"game {number} of {one_line(str(run.folder))} is played differently now")


def replay_game(run: Run, number: int) -> list[MarkedMove]:
    return [*track_moves(run.registry.game, replay_moves(run, number))]


def track_moves(game: Game, moves: Iterable[tuple[State, Any]]) -> Iterator[MarkedMove]:
    """Yield the moves of a game, each with its lies. `moves` contains each move with the state before it."""
    count = Counter[int]()
    for state, output in moves:
        count[state.seat] += 1
        is_move = output is not None and not isinstance(output, Forfeit)
        marks = (game.lie(state, output), game.lie_mark(state, output)) if is_move else (None, None)
        yield MarkedMove(state.seat, count[state.seat], state.turns_played + 1, *marks)


class _LieCounter:
    """Counts the lies of games, deal by deal."""

    def __init__(self, run: Run) -> None:
        self._run = run
        results, names = run.registry.game.results, run.experiment.names
        habit = results.habit(results.lies)
        places = {"plays": habit.of, "lies": habit.count, "caught": results.found_out}
        self._places = {key: results.counts.index(count) for key, count in places.items() if count}
        self.sums = {(player, rate): [0] * 6 for player in range(len(names)) for rate in _DENOMINATORS}
        self.plays, self.responses = list[TrackedPlay](), list[TrackedResponse]()

    def add_deal(self, games: range) -> None:
        run, own = self._run, Counter[tuple[int, str]]()
        for game in games:
            outcome = run.outcome_of(game)
            for player, counts in zip(outcome.seats, outcome.counts, strict=True):
                for key, place in self._places.items():
                    own[player, key] += counts[place]
            moves = replay_game(run, game)
            for move in moves:
                if move.lie:
                    own[outcome.seats[move.seat], move.lie] += 1
            tracked = track_game(game, outcome.seats, moves)
            for one in tracked.responses:
                own[one.player, "lies met" if one.is_lie else "honest met"] += 1
                own[one.player, "hits" if one.is_lie else "alarms"] += one.called
            self.plays += tracked.plays
            self.responses += tracked.responses
        for player in range(len(run.experiment.players)):
            own[player, "willing"] = own[player, "chosen"]
            own[player, "free"] = own[player, "plays"] - own[player, "forced"]
        for (player, rate), sums in self.sums.items():
            deal_sums = cluster_sums(own[player, _DENOMINATORS[rate]], own[player, rate])
            self.sums[player, rate] = [a + b for a, b in zip(sums, deal_sums, strict=True)]


def count_lies(run: Run, max_games: int = MAX_LIE_GAMES) -> LieCounts:
    """Count the lies in a run's first games, using whole deals. Raises UsageError if a bot plays differently now."""
    experiment, counter = run.experiment, _LieCounter(run)
    count = min(max_games, run.db.game_count())
    games = experiment.game_numbers[: count // experiment.games_per_deal * experiment.games_per_deal]
    for first in range(games.start, games.stop, experiment.games_per_deal):
        counter.add_deal(range(first, first + experiment.games_per_deal))
    sums = {key: Sums(*values) for key, values in counter.sums.items()}
    stated_lies = run.model_log.count_yes(run.game.results.lie_nodes, games.stop)
    return LieCounts(len(games), sums, stated_lies, counter.plays, counter.responses)


def count_lies_in_folder(folder: Path) -> LieCounts | None:
    """Count the lies of the run in this folder.

    Returns None if the game has no lies or bot files have changed.
    """
    run = read_run(folder)
    with run.db:
        if not run.game.has_lies:
            return None
        check_replayable(run)
        return count_lies(run) if run.has_same_bots else None
