"""A run that can be played: an experiment with its game, its players' bots, and what its models need.

Everything is found once in each process. `resolve` makes a run from a config, and `ResolvedRun.load` from an experiment
that was stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dubito.errors import UsageError, one_line
from dubito.experiment.experiment import PROGRAM_BOT, Experiment, PlayerSpec
from dubito.game import Game
from dubito.game.find import Bot, Registry

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dubito.llm.adviser import AdviserBot
    from dubito.llm.prompts import Prompt
    from dubito.model_settings import ModelSettings


@dataclass(frozen=True)
class ModelPart:
    """What a model player has in addition to its bot."""

    name: str
    settings: "ModelSettings"
    registry: Registry

    @cached_property
    def prompt(self) -> "Prompt":
        """The prompt on disk, which can be newer than that of a stored run. Raises UsageError."""
        from dubito.llm.prompts import load_prompt  # imported late, since many runs have no models

        return load_prompt(self.settings.prompt, self.registry.working_directory, self.registry.game)

    @cached_property
    def adviser(self) -> "AdviserBot | None":
        """The bot that advises it, if it has one. Raises UsageError."""
        if (given := self.settings.adviser) is None:
            return None
        from dubito.llm.adviser import AdviserBot, is_program_adviser  # imported late, since many runs have no models

        if is_program_adviser(self.settings):
            return AdviserBot(self.registry.find(PROGRAM_BOT).cls, "a program", "")
        bot = self.registry.find(given if isinstance(given, str) else given["bot"])
        return AdviserBot(bot.cls, bot.name, bot.summary)

    @cached_property
    def fallback(self) -> Bot:
        """The fallback. Raises UsageError unless it is a hand-written bot that answers every node."""
        fallback, game = self.registry.find(self.settings.fallback), self.registry.game
        if fallback.cls.is_model or fallback.cls.is_program or not game.answers_nodes(fallback.cls):
            nodes = f"{game.nodes[0].name}-{game.nodes[-1].name}"
            raise UsageError(
                f"{one_line(self.name)}: fallback: {fallback.name} does not answer the nodes {nodes} separately",
                hint=f"choose a hand-written bot that does, such as {game.fallback}",
            )
        return fallback


@dataclass(frozen=True)
class ResolvedPlayer:
    """A player with its bot and, if it is a model, what models need."""

    spec: PlayerSpec
    bot: Bot
    model: ModelPart | None = None

    @classmethod
    def build(cls, spec: PlayerSpec, bot: Bot, registry: Registry) -> "ResolvedPlayer":
        """Build the player of this bot. Raises UsageError if a model's settings are wrong."""
        if not bot.cls.is_model:
            return cls(spec, bot)
        from dubito.llm.settings import build_settings  # imported late, since many runs have no models

        settings = build_settings(bot.cls, spec.name, spec.settings, registry.game)
        return cls(spec, bot, ModelPart(spec.name, settings, registry))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def needs_calls(self) -> bool:
        """Whether its answers come from a model, a program or an agent."""
        return self.bot.cls.is_model or self.bot.cls.is_program


@dataclass(frozen=True)
class ResolvedRun:
    """An experiment with the bots of its players."""

    experiment: Experiment
    registry: Registry
    players: Sequence[ResolvedPlayer]  # in the order of `Experiment.players`

    @classmethod
    def load(cls, experiment: Experiment, registry: Registry) -> "ResolvedRun":
        """Find the bots of a stored experiment. Raises UsageError."""
        players = [ResolvedPlayer.build(spec, registry.find(spec.bot), registry) for spec in experiment.players]
        return cls(experiment, registry, players)

    @property
    def opponents(self) -> Sequence[ResolvedPlayer]:
        return [player for player in self.players if player.spec in self.experiment.bots]

    @property
    def game(self) -> Game:
        return self.registry.game

    @cached_property
    def rules(self) -> "BaseModel":
        rules: BaseModel = self.game.rules(**self.experiment.rules)
        return rules

    @cached_property
    def models(self) -> Sequence[tuple[PlayerSpec, ModelPart]]:
        return [(player.spec, player.model) for player in self.players if player.model is not None]

    def model(self, name: str) -> ModelPart:
        return next(model for spec, model in self.models if spec.name == name)

    @cached_property
    def programs(self) -> Sequence[PlayerSpec]:
        """The players that are programs or agents, and the programs that advise models."""
        own = [player.spec for player in self.players if player.bot.cls.is_program]
        return [*own, *self.advisers]

    @cached_property
    def advisers(self) -> Sequence[PlayerSpec]:
        """The programs that advise models."""
        if not self.models:
            return []
        from dubito.llm.adviser import adviser_name, is_program_adviser  # imported late, as above

        return [
            PlayerSpec(adviser_name(spec.name), PROGRAM_BOT, model.settings.adviser)
            for spec, model in self.models
            if isinstance(model.settings.adviser, dict) and is_program_adviser(model.settings)
        ]

    @property
    def has_records(self) -> bool:
        """Whether answers of models or programs are recorded. Such games are played in threads."""
        return any(player.needs_calls for player in self.players)
