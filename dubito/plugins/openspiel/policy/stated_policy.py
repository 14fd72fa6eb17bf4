"""Ask a player for its complete strategy for a small game, as stated probabilities or counted actions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dubito.errors import BotError, IllegalOutput, UsageError, one_line
from dubito.game import Ending, Player
from dubito.game.table import Entrant
from dubito.plugins.openspiel.policy.small import SmallGame, StatesChances, states_chances
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
    states_them = states_chances(entrant.bot)
    rows: dict[str, Row] = {}
    for number, state in enumerate(states):
        situation = _Situation(entrant, game, state, number, seed, program)
        if states_them:
            rows[state.string] = situation.read_row()
        else:
            counts = Counter(situation.act(number * draws + draw) for draw in range(draws))
            progress((number + 1) * draws)
            del counts[None]
            # A state that the bot never reaches does not matter.
            played = counts or Counter[int | None](state.actions)
            rows[state.string] = {action: played[action] / played.total() for action in state.actions}
    return StatedPolicy(entrant.name, rows, draws=None if states_them else draws)


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

    def act(self, draw: int) -> int | None:
        """Return the action in this draw."""
        service = self._program.open_game(self._game.engine.num_players()) if self._program else None
        try:
            with self._blame("play"):
                action = self._game.act(self._player(draw, service), self._state)
            if service and service.session:
                service.session.end(self._game.game.results, _CUT_OFF)
        except IllegalOutput as error:
            raise self._error(str(error)) from None
        finally:
            if service and service.session:
                service.session.close()
        return action

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

    prompt_game = prompt.game
    positions = {
        f"{n:04}": RecordedPosition(prompt_game, game.position(prompt_game, state)) for n, state in enumerate(states)
    }
    entries = []
    for n in range(draws or 1):  # each draw is a separate answer
        sample = settings.model_copy(update={"sample": settings.sample + n})
        entries.append(TrialEntry(f"{name} {n}" if n else name, prompt, sample))
    trial = run_trial(entries, positions, folder, means)
    answers_by_state = [[of_entry[n] for of_entry in trial.answers] for n in range(len(states))]
    rows, failures = dict[str, Row](), dict[str, str]()
    for state, answers in zip(states, answers_by_state, strict=True):
        rows[state.string] = _row(game.answers(state), answers)
        if causes := [one.cause for one in answers if one.cause]:
            failures[state.string] = causes[0]
    return StatedPolicy(name, rows, failures, draws, trial.spent)


def _row(ids: Mapping[object, int], answers: "Sequence[TrialAnswer]") -> Row:
    """Return the stated or counted probabilities. Missing answers count as uniform."""
    row: defaultdict[int, float] = defaultdict(float)
    for one in answers:
        any_action = {name: 1 / len(ids) for name in ids}
        chances = any_action if one.cause else one.answer if isinstance(one.answer, dict) else {one.answer: 1.0}
        for name, share in chances.items():
            if name in ids:
                row[ids[name]] += share / len(answers)
    return {action: row[action] for action in ids.values()}
