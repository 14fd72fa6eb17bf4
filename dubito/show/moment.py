"""A moment of a recorded game, from which the game can be played on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.experiment.stored import Run
from dubito.game import Game, State
from dubito.game.events import EVERYTHING
from dubito.game.moves import Forfeit
from dubito.game.reader import Reader
from dubito.game.workshop import ForkStart
from dubito.show.person import Setup
from dubito.show.run import ReplayedGames


@dataclass(frozen=True)
class RunMoment:
    """The start of a turn."""

    run: Run
    number: int  # of the game in its run
    turn: int
    seat: int  # the seat to move
    players: Sequence[str]  # by seat
    start: ForkStart
    played: str  # what the seat to move did in the run

    @property
    def game(self) -> Game:
        return self.run.game

    def set_up(self) -> Setup:
        """Return the setup for a person in the seat to move."""
        game, planned = self.game, self.run.planned
        return Setup(
            [name for seat, name in enumerate(self.players) if seat != self.seat],
            self.seat,
            planned.seed,
            planned.deal_of(self.number),
            self.run.resolved.rules.model_dump(),
            game.name,
            f"{self.run}:{self.number}:{self.turn}",
            [game.output_to_json(output) for output in self.start.moves],
        )

    def change(self, settings: Sequence[str]) -> ForkStart:
        """Return the start after `KEY=VALUE` changes. Raises UsageError for an unknown key or an impossible value."""
        start, known = self.start, self.game.workshop.SETTABLE
        for setting in settings:
            key, _, value = setting.partition("=")
            if key not in known:
                can_be_set = f"known: {', '.join(known.values())}" if known else f"{self.game.name} has nothing to set"
                raise UsageError(f"--set {one_line(setting)}: unknown; {can_be_set}")
            start = self.game.workshop.change_start(start, key, value)
        return start

    def sample(self, start: ForkStart, seed: str) -> ForkStart:
        """Return another game that the seat to move cannot distinguish from this one. Raises UsageError."""
        _, log = start.replay()
        sampled = self.game.workshop.sample_start(self.run.resolved.rules, log.of(self.seat), Random(seed))
        if sampled is None:
            raise UsageError(f"the hidden cards of {self.game.name} cannot be sampled; use --worlds same")
        return sampled


def parse_moment(text: str) -> tuple[Path, int, int]:
    """Parse RUN:GAME:TURN. Raises UsageError."""
    run, *numbers = text.rsplit(":", 2)
    if len(numbers) < 2 or not run or not all(number.isdecimal() for number in numbers):
        raise UsageError(f"{one_line(text)} is not a moment; write RUN:GAME:TURN, such as runs/first:12:7")
    return Path(run), int(numbers[0]), int(numbers[1])


def find_moment(run: Run, number: int, turn: int) -> RunMoment:
    """Return the start of a turn.

    Raises UsageError if it does not exist, and CannotShowGame if the game cannot be replayed.
    """
    session, players, _ = ReplayedGames(run).replay(number)
    moves = [*session]
    place = next((place for place, move in enumerate(moves) if move.turn == turn), None)
    if place is None or isinstance(moves[place].output, Forfeit):
        last = moves[-1].turn - isinstance(moves[-1].output, Forfeit)
        raise UsageError(f"game {number} of {run} has no turn {turn}; its turns are 1 to {last}")
    game, rules, streams = run.game, run.resolved.rules, run.deal_streams(number)
    start = ForkStart(lambda: game.deal(rules, len(players), streams.deck()), [move.output for move in moves[:place]])
    try:
        state, _ = start.replay()
    except IllegalOutput as error:
        raise UsageError(f"game {number} of {run} cannot be replayed: {error}") from None
    return RunMoment(
        run, number, turn, moves[place].seat, players, start, describe_move(game, state, moves[place].output)
    )


def describe_move(game: Game, state: State, output: object) -> str:
    """Make a move and describe what everyone sees of it, with a note if it is a lie."""
    lie = game.lie(state, output)
    line = game.words.lines(state.apply(output, EVERYTHING), Reader())[0]
    said = line.said or line.truth
    return f"{said[:1].upper()}{said[1:]}{f' ({game.results.lie_words[0]})' if lie else ''}"
