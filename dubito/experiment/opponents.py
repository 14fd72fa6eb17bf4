"""Who a person can sit down with: hand-written bots, and model players with a way to ask."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dubito.errors import DubitoError, UsageError, one_line, suggestion
from dubito.experiment.config import Config
from dubito.experiment.experiment import Experiment, PlayerSpec, kind_of_player
from dubito.experiment.resolve import player, resolve, unsettled
from dubito.game import PlayerKind, Spec
from dubito.game.find import Registry
from dubito.game.table import Entrant
from dubito.llm.decide import Decider, GameServices, Journal
from dubito.llm.request import Quoting, Suspended
from dubito.llm.thoughts import Thought, with_listener
from dubito.sitting import Setup, Sitting, as_sentence

if TYPE_CHECKING:  # hand-written bots need no templates, retries and clients
    from dubito.experiment.models import Models


def company(config: Config, registry: Registry, names: Sequence[str] | None = None) -> Experiment:
    """An experiment whose field are those who may sit down: everybody, or those of these names.

    Everybody is the players of the config and, under their own names, all hand-written bots that can be used. A
    name is one of theirs, or an entry as in a config's `bots`, such as `openai:MODEL@PROMPT`. Raises UsageError.
    """
    said = resolve(config if config.bots else config.model_copy(update={"bots": []}), registry, fills_tables=False)
    known = {bot.name: unsettled(bot) for bot in registry.bots.values() if bot.kind == "manual"}
    known |= {spec.name: spec for spec in said.players}
    if names is not None:
        known = {name: known.get(name) or _entry(name, known, config, registry) for name in names}
    # Nobody stands in for a model that cannot be reached: the person can wait, and try again.
    return replace(said, field=tuple(known.values()), contenders=(), provider_errors="suspend")


def _entry(name: str, known: Iterable[str], config: Config, registry: Registry) -> PlayerSpec:
    there = name in registry.bots or ":" in name or any(broken.is_called(name) for broken in registry.broken)
    if not there:
        raise UsageError(f"nobody is named {one_line(name)!r}: {suggestion(name, known)}")
    return player(name, registry, config)


def trouble(error: DubitoError) -> str:
    """Why the bots of a person's game cannot go on, as a sentence without a server's words: they may hold cards."""
    text = error.brief if isinstance(error, Quoting) else str(error)
    return as_sentence(f"it waits {text}" if isinstance(error, Suspended) else text)


@dataclass(frozen=True, slots=True)
class Opponent:
    """One who may sit down."""

    name: str
    summary: str
    kind: PlayerKind
    asks: str | None  # the model that it asks


class Opponents:
    """The players of a company, by name, ready to be seated."""

    def __init__(self, company: Experiment, registry: Registry, models: "Models | None" = None) -> None:
        """`models` are the company's model players; None where there are none."""
        self._specs = {spec.name: spec for spec in company.field}
        self._registry, self._models = registry, models

    def choices(self) -> list[Opponent]:
        """All whose games can be taken up again, by name."""
        found = [self._choice(spec) for spec in self._specs.values() if self._registry.find(spec.bot).repeatable]
        return sorted(found, key=lambda choice: choice.name.casefold())

    def _choice(self, spec: PlayerSpec) -> Opponent:
        bot = self._registry.find(spec.bot)
        if not bot.cls.is_model:
            return Opponent(spec.name, bot.summary, kind_of_player(spec), None)
        model, prompt = (one_line(str(spec.settings[key])) for key in ("model", "prompt"))
        return Opponent(spec.name, f"Asks {model} with the prompt {prompt}.", kind_of_player(spec), model)

    def check(self, names: Sequence[str]) -> None:
        """Raise UsageError unless all of them may sit down to a game that can be taken up again."""
        for name in names:
            if not self._registry.find(self._find(name).bot).repeatable:
                raise UsageError(
                    f"{one_line(name)} draws from randomness that no seed reaches, so no game of it can be kept"
                )

    def try_again(self) -> None:
        """What was in the way may be fixed now: ask again, even where an outage had ended all asking."""
        if self._models is not None:
            self._models.try_again()

    def seat(self, setup: Setup, number: int) -> Sitting:
        """Deal the person's game, which has this number where what models are asked is kept.

        Raises UsageError for a bot that is none of these.
        """
        services = self._services(setup.bots, setup.seed, self.game.rules(**setup.rules))
        return Sitting(setup, self.game, self._entrants(setup.bots), self._registry.fallback, services, number)

    def alone(self, name: str, seed: int) -> tuple[Entrant, object | None]:
        """One of them for a seat at somebody else's table; if it is a model player, with its way to ask."""
        (entrant,) = self._entrants([name])
        return entrant, next(iter(self._services([name], seed, self.game.rules())), None)

    def among_themselves(
        self, names: Sequence[str], seed: int, rules: Any, hear: Callable[[Thought], None]
    ) -> tuple[list[Entrant], list[object]]:
        """These, seat by seat, for a game without a person; with what each needs. `hear` is told what models think.

        Raises UsageError for a bot that is none of these.
        """
        return self._entrants(names), self._services(names, seed, rules, lambda decider: with_listener(decider, hear))

    def kinds(self, names: Sequence[str]) -> list[PlayerKind]:
        """What decides for each of them; raises UsageError for a bot that is none of these."""
        return [kind_of_player(self._find(name)) for name in names]

    @property
    def game(self) -> Spec:
        """The game that they play."""
        return self._registry.game

    def _find(self, name: str) -> PlayerSpec:
        if name not in self._specs:
            raise UsageError(f"nobody here is named {one_line(name)!r}: {suggestion(name, self._specs)}")
        return self._specs[name]

    def _entrants(self, names: Sequence[str]) -> list[Entrant]:
        specs = [self._find(name) for name in names]
        return [Entrant(spec.name, self._registry.find(spec.bot).cls, spec.settings) for spec in specs]

    def _services(
        self,
        names: Sequence[str],
        seed: int,
        rules: Any,
        at_table: Callable[[Decider], Decider] = lambda decider: decider,
    ) -> list[object]:
        """By seat, a model player's way to ask in one game, and None for a hand-written bot; nothing without models."""
        if self._models is None:
            return []
        journal, services = Journal(), list[object]()
        for name in names:
            decider = self._models.deciders.get(name)
            own = decider and at_table(replace(decider, seed=seed, rules=rules))
            services.append(own and GameServices(own, journal))
        return services
