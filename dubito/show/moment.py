"""A moment of a recorded game, from which the game can be played on."""

from collections.abc import Sequence
from dataclasses import dataclass

from dubito.commands import build_command
from dubito.errors import IllegalOutput, UsageError
from dubito.experiment.stored import Run
from dubito.game import Game, State
from dubito.game.events import EVERYTHING
from dubito.game.moves import Forfeit
from dubito.game.reader import Reader
from dubito.game.record import DealChange
from dubito.game.workshop import ForkStart
from dubito.packages import games_path_words
from dubito.show.person import Setup, start_of_turn
from dubito.show.run import ReplayedGames


@dataclass(frozen=True)
class RunMoment:
    """The start of a turn."""

    run: Run
    address: str  # RUN:GAME:TURN, as the user can write it
    number: int  # of the game in its run
    turn: int
    seat: int  # the seat to move
    players: Sequence[str]  # by seat
    start: ForkStart
    played: str  # what the seat to move did in the run

    @property
    def game(self) -> Game:
        return self.run.game

    def set_up(self, settings: Sequence[str] = (), sample: str | None = None, seat: int | None = None) -> Setup:
        """Return the setup in which another player takes a seat, by default the one to move.

        `settings` are KEY=VALUE changes of what the seat has. With a seed `sample`, the hidden cards are sampled, so
        that the seat cannot distinguish them from the real ones. Raises UsageError.
        """
        game, planned, rules, start = self.game, self.run.planned, self.run.resolved.rules, self.start
        seat = self.seat if seat is None else seat
        if not 0 <= seat < len(self.players):
            raise UsageError(f"--seat {seat}: choose a seat from 0 to {len(self.players) - 1}")
        change, begun = None, [game.output_to_json(output) for output in start.moves]
        if settings or sample is not None:
            change = DealChange(seat, begun, [*settings], sample)
            begun = [game.output_to_json(output) for output in change.apply(game, rules, start.deal).moves]
        return Setup(
            [name for place, name in enumerate(self.players) if place != seat],
            seat,
            planned.seed,
            planned.deal_of(self.number),
            rules.model_dump(),
            game.name,
            self.address,
            begun,
            change,
        )


def play_on(run: str, number: int, kinds: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what a game's page says about playing on: the command, without the turn, which follows `:`.

    `kinds` are the players' kinds. The result is empty if one of them can only play a game from its start.
    """
    if not {"program", "agent"}.isdisjoint(kinds):
        return {}
    command = build_command("web", *games_path_words(), "--from", f"{run}:{number}", program="dubito")
    return {"play_on": {"command": command}}


def find_moment(run: Run, number: int, turn: int) -> RunMoment:
    """Return the start of a turn.

    Raises UsageError if it does not exist, and CannotShowGame if the game cannot be replayed.
    """
    session, players, _ = ReplayedGames(run).replay(number)
    moves = [*session]
    if (place := start_of_turn(moves, turn)) is None:
        last = moves[-1].turn - isinstance(moves[-1].output, Forfeit)
        raise UsageError(f"game {number} of {run} has no turn {turn}; its turns are 1 to {last}")
    game, rules, streams = run.game, run.resolved.rules, run.deal_streams(number)
    start = ForkStart(lambda: game.deal(rules, len(players), streams.deck()), [move.output for move in moves[:place]])
    try:
        state, _ = start.replay()
    except IllegalOutput as error:
        raise UsageError(f"game {number} of {run} cannot be replayed: {error}") from None
    address, played = f"{run}:{number}:{turn}", describe_move(game, state, moves[place].output)
    return RunMoment(run, address, number, turn, moves[place].seat, players, start, played)


def describe_move(game: Game, state: State, output: object) -> str:
    """Make a move and describe what everyone sees of it, with a note if it is a lie."""
    lie = game.lie(state, output)
    line = game.words.lines(state.apply(output, EVERYTHING), Reader())[0]
    sentence = line.sentence or line.truth
    return f"{sentence[:1].upper()}{sentence[1:]}{f' ({game.results.lie_words[0]})' if lie else ''}"
