"""Ask a player for its complete strategy for a small game, as stated probabilities or counted actions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dubito.errors import BotError, IllegalOutput, UsageError, one_line
from dubito.game import Ending, Player
from dubito.game.table import Entrant
from dubito.plugins.openspiel.policy.small import Move, SmallGame, StatesChances, states_chances
from dubito.plugins.openspiel.policy.tree import InfoState, Row
from dubito.store.spend import Spend

if TYPE_CHECKING:
    from dubito.llm.prompts import Prompt
    from dubito.model_settings import ModelSettings
    from dubito.seats.program import ProgramPlayer
    from dubito.workshop.trial import TrialAnswer, TrialOptions

_MAX_ROUNDING: Final = 1e-6  # tolerated rounding error of a bot's probabilities
_CUT_OFF: Final = Ending(True, (), [], [])  # the end of a game after one question


@dataclass(frozen=True)
class StatedPolicy:
    """A player's strategy, as stated or observed."""

    name: str
    rows: Mapping[str, Row]  # by information state string; complete
    failures: Mapping[str, str] = field(default_factory=dict)  # why the fallback was used, by state
    draws: int | None = None  # actions per state; None if it stated probabilities
    spent: Spend | None = None  # spent on a model in this run


def read_bot_policy(
    entrant: Entrant,
    game: SmallGame,
    states: Sequence[InfoState],
    draws: int,
    seed: int,
    program: "ProgramPlayer | None" = None,
    progress: Callable[[int], None] = lambda questions: None,
) -> StatedPolicy:
    """Return the probabilities from a hand-written bot's `chances`, or its frequencies over `draws` draws.

    Each draw uses a new instance with separate streams that has observed what its seat has observed. A bot that is a
    program needs its `program`, for which each draw is a game. Raises BotError if the bot fails.
    """
    if states_chances(entrant.bot):
        rows = {
            state.string: _Situation(entrant, game, state, number, seed, program).read_row()
            for number, state in enumerate(states)
        }
        return StatedPolicy(entrant.name, rows)
    moves = dict[str, Mapping[Move, float]]()
    for number, state in enumerate(list_starts(game, states)):
        situation, total = _Situation(entrant, game, state, number, seed, program), defaultdict[Move, float](float)
        for draw in range(draws):
            for move, share in situation.act(number * draws + draw).items():
                total[move] += share
        moves[state.string] = total
        progress((number + 1) * draws)
    return StatedPolicy(entrant.name, _build_rows(game, states, moves), draws=draws)


def list_starts(game: SmallGame, states: Sequence[InfoState]) -> list[InfoState]:
    """Return the states in which a turn starts, where players are asked."""
    return [state for state in states if not game.turn_of(state).made]


def _build_rows(
    game: SmallGame, states: Sequence[InfoState], moves: Mapping[str, Mapping[Move, float]]
) -> dict[str, Row]:
    """Return the probabilities of actions from those, in any unit, of the moves in the turn that starts in each state.

    All actions are equally likely in a state that no move reaches, which does not matter.
    """
    rows = dict[str, Row]()
    for state in states:
        start, made = game.turn_of(state)
        weights = dict.fromkeys(state.actions, 0.0)
        for move, share in moves[start].items():
            if len(move) > len(made) and move[: len(made)] == made:
                weights[move[len(made)]] += share
        total = sum(weights.values())
        rows[state.string] = {a: weight / total if total else 1 / len(weights) for a, weight in weights.items()}
    return rows


class _Situation:
    def __init__(
        self,
        entrant: Entrant,
        game: SmallGame,
        state: InfoState,
        number: int,
        seed: int,
        program: "ProgramPlayer | None",
    ) -> None:
        self._entrant, self._game, self._state, self._number, self._seed = entrant, game, state, number, seed
        self._program = program

    def read_row(self) -> Row:
        """Return the stated probability of every legal action, by number or name."""
        view = self._game.situation(self._state)
        with self._blame("chances"):
            player = self._player(self._number)
            assert isinstance(player, StatesChances)
            chances = dict(player.chances(view))
            row = {action: float(chances.pop(action, chances.pop(name, 0.0))) for action, name in view.names.items()}
        if chances or not all(0 <= share <= 1 for share in row.values()) or abs(sum(row.values()) - 1) > _MAX_ROUNDING:
            raise self._error("chances must give a probability for each legal action, and sum to 1")
        return row

    def act(self, draw: int) -> Mapping[Move, float]:
        """Return the probability of each move in this draw."""
        service = self._program.open_game(self._game.engine.num_players()) if self._program else None
        try:
            with self._blame("play"):
                moves = self._game.act(self._player(draw, service), self._state)
            if service and service.session:
                service.session.end(self._game.game.results, _CUT_OFF)
        except IllegalOutput as error:
            raise self._error(str(error)) from None
        finally:
            if service and service.session:
                service.session.close()
        return moves

    def _player(self, draw: int, service: object = None) -> Player:
        return self._game.player(self._entrant, self._state, draw, self._seed, service)

    @contextmanager
    def _blame(self, method: str) -> Iterator[None]:
        """Wrap an exception of a bot's code in a BotError."""
        try:
            yield
        except (IllegalOutput, UsageError):
            raise
        except Exception as error:
            raise self._error(one_line(f"{method} raised {type(error).__name__}: {error}")) from None

    def _error(self, reason: str) -> BotError:
        return BotError(self._entrant.name, self._state.seat, self._number, 0, 1, reason)


def read_model_policy(
    name: str,
    game: SmallGame,
    prompt: "Prompt",
    settings: "ModelSettings",
    states: Sequence[InfoState],
    draws: int | None,
    folder: Path,
    means: "TrialOptions",
) -> StatedPolicy:
    """Return a model's stated probabilities in each state, or its frequencies over a number of draws.

    The prompt's game determines which. All answers are stored in the folder. A missing answer counts as equal
    probabilities for all legal actions.
    """
    from dubito.workshop.recordings import RecordedPosition  # imported late because bots do not need it
    from dubito.workshop.trial import TrialEntry, run_trial

    asked = [(state, game.questions(prompt.game, state)) for state in list_starts(game, states)]
    of_turns = [position for _, questions in asked for position in questions.values()]
    positions = {f"{n:04}": RecordedPosition(prompt.game, position) for n, position in enumerate(of_turns)}
    entries = []
    for n in range(draws or 1):  # each draw is a separate answer
        sample = settings.model_copy(update={"sample": settings.sample + n})
        entries.append(TrialEntry(f"{name} {n}" if n else name, prompt, sample))
    trial = run_trial(entries, positions, folder, means)
    by_question = iter(zip(*trial.answers, strict=True))
    moves, causes = dict[str, Mapping[Move, float]](), dict[str, str]()
    for state, questions in asked:
        answers = {before: next(by_question) for before in questions}
        legal = game.answers(state)
        moves[state.string] = game.moves(state, {before: _share(legal, of) for before, of in answers.items()})
        if failed := [one.cause for of in answers.values() for one in of if one.cause]:
            causes[state.string] = failed[0]
    rows = _build_rows(game, states, moves)
    starts = {state.string: game.turn_of(state).start for state in states}
    failures = {string: causes[start] for string, start in starts.items() if start in causes}
    return StatedPolicy(name, rows, failures, draws, trial.spent)


def _share(legal: Sequence[object], answers: "Sequence[TrialAnswer]") -> dict[object, float]:
    """Return the stated or counted probabilities of the legal answers. Missing answers count as uniform."""
    shares: dict[object, float] = dict.fromkeys(legal, 0.0)
    for one in answers:
        any_answer = dict.fromkeys(legal, 1 / len(legal))
        chances = any_answer if one.cause else one.answer if isinstance(one.answer, dict) else {one.answer: 1.0}
        for answer, share in chances.items():
            if answer in shares:
                shares[answer] += share / len(answers)
    return shares
