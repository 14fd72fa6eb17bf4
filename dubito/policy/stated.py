"""A player asked for its complete strategy for a small game: by its own word, or by counting what it does."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from dubito.errors import BotError, one_line
from dubito.game import Game, Seating, make_player
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant
from dubito.llm.prompts import Prompt
from dubito.llm.settings import ModelSettings
from dubito.policy.tree import InfoState, Row
from dubito.store.model_log import Spend
from dubito.workshop.recordings import RecordedPosition
from dubito.workshop.trial import TrialAnswer, TrialEntry, TrialMeans, ask

_OFF: Final = 1e-6  # what a bot's probabilities may sum to beside 1: rounding


@dataclass(frozen=True)
class StatedPolicy:
    """How a player plays, as far as it said so or was seen to."""

    name: str
    rows: Mapping[str, Row]  # by information state string; complete
    failures: Mapping[str, str] = field(default_factory=dict)  # by state: why the fallback's row stands there
    draws: int | None = None  # how often it acted in each state; None: it stated its probabilities
    spent: Spend | None = None  # by a model, now


def names_of(game: Game, state: InfoState) -> Mapping[int, str]:
    names: Mapping[int, str] = game.module("workshop").view_at(state.history).names
    return names


def of_bot(entrant: Entrant, game: Game, states: Sequence[InfoState], draws: int, seed: int) -> StatedPolicy:
    """What a hand-written bot states, where it has `chances`; else what it does in so many draws.

    Each draw is by an instance of its own, on streams of its own, which has observed what its seat has. Raises BotError
    where it fails.
    """
    states_them = callable(getattr(entrant.bot, "chances", None))
    rows: dict[str, Row] = {}
    for number, state in enumerate(states):
        situation = _Situation(entrant, game, state, number, seed)
        if states_them:
            rows[state.string] = situation.stated()
        else:
            done = Counter(situation.act(number * draws + draw) for draw in range(draws))
            rows[state.string] = {action: done[name] / draws for action, name in situation.view.names.items()}
    return StatedPolicy(entrant.name, rows, draws=None if states_them else draws)


class _Situation:
    def __init__(self, entrant: Entrant, game: Game, state: InfoState, number: int, seed: int) -> None:
        self._entrant, self._game, self._state, self._number, self._seed = entrant, game, state, number, seed
        self._workshop = game.module("workshop")
        self.view = self._workshop.view_at(state.history)

    def stated(self) -> Row:
        """What it says of every legal action, by its number or its name."""
        with self._blame("chances"):
            said = dict(self._player(self._number).chances(self.view))
            row = {action: float(said.pop(action, said.pop(name, 0.0))) for action, name in self.view.names.items()}
        if said or not all(0 <= share <= 1 for share in row.values()) or abs(sum(row.values()) - 1) > _OFF:
            raise self._error("chances must give a probability for each legal action, and sum to 1")
        return row

    def act(self, draw: int) -> str:
        """What it does in this draw, by name."""
        with self._blame("play"):
            output = self._player(draw).play(self.view)
        if why := self.view.why_illegal(output):
            raise self._error(why)
        return str(output)

    def _player(self, draw: int) -> Any:
        seat, entrant = self._state.seat, self._entrant
        streams = DealStreams(self._seed, draw).seat(seat)
        look = partial(self.view.look, seat)
        player = make_player(
            entrant.bot, Seating(seat, draw, draw, streams, look, None, self._game.rules()), entrant.settings
        )
        if player.observes():
            for event in self._workshop.events_at(self._state.history, seat):
                player.observe(event)
        return player

    @contextmanager
    def _blame(self, method: str) -> Iterator[None]:
        """What foreign code raises is its bot's error."""
        try:
            yield
        except Exception as error:
            raise self._error(one_line(f"{method} raised {type(error).__name__}: {error}")) from None

    def _error(self, reason: str) -> BotError:
        return BotError(self._entrant.name, self._state.seat, self._number, 0, 1, reason)


def of_model(
    name: str,
    prompt: Prompt,
    settings: ModelSettings,
    states: Sequence[InfoState],
    draws: int | None,
    folder: Path,
    means: TrialMeans,
) -> StatedPolicy:
    """What a model states of each state, or does in so many draws; all of it is kept in the folder.

    The prompt's game says which of the two is asked. Where no answer came, all legal actions are equally probable.
    """
    game, node = prompt.game, prompt.game.nodes[0].name
    workshop = game.module("workshop")
    found = {
        f"{n:04}": RecordedPosition(game, workshop.position_at(state.history, node)) for n, state in enumerate(states)
    }
    entries = []
    for n in range(draws or 1):  # draws are answers of their own
        sample = settings.model_copy(update={"sample": settings.sample + n})
        entries.append(TrialEntry(f"{name} {n}" if n else name, prompt, sample))
    trial = ask(entries, found, folder, means)
    taken = [[of_entry[n] for of_entry in trial.taken] for n in range(len(states))]
    rows, failures = dict[str, Row](), dict[str, str]()
    for state, answers in zip(states, taken, strict=True):
        ids = {of: action for action, of in names_of(game, state).items()}
        rows[state.string] = _row(ids, answers)
        if causes := [one.cause for one in answers if one.cause]:
            failures[state.string] = causes[0]
    return StatedPolicy(name, rows, failures, draws, trial.spent)


def _row(ids: Mapping[str, int], answers: Sequence[TrialAnswer]) -> Row:
    """What was stated, or how often each action was taken; an answer that never came counts as all equally probable."""
    row: defaultdict[int, float] = defaultdict(float)
    for one in answers:
        lot = {name: 1 / len(ids) for name in ids}
        said = lot if one.cause else one.answer if isinstance(one.answer, dict) else {one.answer: 1.0}
        for name, share in said.items():
            if name in ids:
                row[ids[name]] += share / len(answers)
    return {action: row[action] for action in ids.values()}
