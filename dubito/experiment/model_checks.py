"""The model players of an experiment, checked before the start: settings, prompts, keys, prices, fallbacks."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Final

from dubito.errors import UsageError, nearest_first, one_line
from dubito.experiment.experiment import Experiment, OnUnusable, PlayerSpec
from dubito.game import Player, Spec
from dubito.game.find import Registry
from dubito.llm.budget import Caps
from dubito.llm.gate import PATIENCE
from dubito.llm.prices import Price, charged_by_call, find_price, outdated, unpriced
from dubito.llm.settings import ModelSettings, account_of, faults_of, is_house, key_of, settings_for

_NO_CAPS: Final = Caps()


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a user says of a run's calls; nothing here changes a completed run's results."""

    in_flight: int
    cache: Path
    offline: bool
    caps: Caps = _NO_CAPS  # the budget
    prices: Mapping[str, Price] = field(default_factory=dict)  # the config's own, by model
    preflight: bool = True
    patience: float = PATIENCE
    on_unusable: OnUnusable = "stop"  # when the first answers of a player all come to nothing


def model_specs(experiment: Experiment, registry: Registry) -> list[PlayerSpec]:
    """The players that ask a model."""
    return [player for player in experiment.players if registry.find(player.bot).cls.is_model]


def settings_of(spec: PlayerSpec, registry: Registry) -> ModelSettings:
    """A model player's settings, checked, its class's defaults under them."""
    return settings_for(registry.find(spec.bot).cls, spec.name, spec.settings, registry.game)


def checked_models(experiment: Experiment, registry: Registry, options: CallOptions) -> Experiment:
    """The experiment with its model players' settings complete and their prompts and fallbacks identified.

    Raises UsageError for everything that can be wrong before a call is made.
    """

    def checked(spec: PlayerSpec) -> PlayerSpec:
        if not registry.find(spec.bot).cls.is_model:
            return spec
        from dubito.llm.prompts import load_prompt  # late, as the cache: most runs have no models

        settings = settings_of(spec, registry)
        prompt = load_prompt(settings.prompt, registry.working_directory, registry.game)
        fallback_of(spec.name, settings, registry)
        check_asking(spec.name, settings, registry.game, options)
        source = registry.find(settings.fallback).digest
        return replace(spec, settings=settings.model_dump(), prompt=prompt.digest, fallback=source)

    return replace(
        experiment,
        field=tuple(map(checked, experiment.field)),
        contenders=tuple(map(checked, experiment.contenders)),
    )


def check_asking(name: str, settings: ModelSettings, game: Spec, options: CallOptions) -> None:
    """Raise UsageError for what would stop a run at its first call: key, house, and what a budget has to know."""
    if not options.offline:
        key_of(account_of(settings), name)
    check_house(name, settings, game)
    if options.caps.usd is None:
        return
    if price_of_model(settings, options) is None:
        raise UsageError(
            f"{one_line(name)}: budget.usd needs a price of {one_line(settings.model)!r} at "
            f"{account_of(settings).server}, and there is none: say it in `prices`, or remove budget.usd"
        )
    _check_surcharges(name, settings, options)


def _check_surcharges(name: str, settings: ModelSettings, options: CallOptions) -> None:
    """Raise UsageError if a player's parameters ask for what costs more than its price says: no budget would hold."""
    price = price_of_model(settings, options)
    if price is None or not price.worst(1, 1):  # what costs nothing costs nothing in any mode
        return
    if (called := charged_by_call(settings.parameters)) is not None:
        raise UsageError(
            f"{one_line(name)}: parameters.{called}: the server charges for its tools by the call, which no price here "
            "says: remove the parameter, or budget.usd"
        )
    dear, model = unpriced(settings.parameters), one_line(settings.model)
    if dear is not None and settings.model not in options.prices:
        raise UsageError(
            f"{one_line(name)}: parameters.{one_line(dear)}: it costs more than the list price of {model!r}: say in "
            f"`prices.{model}` what it costs with it, or remove the parameter, or budget.usd"
        )


def check_cache(experiment: Experiment, registry: Registry, options: CallOptions) -> str | None:
    """What a user should know of the cache before the start; raises UsageError if it is needed and cannot be used."""
    if not model_specs(experiment, registry):
        return None
    from dubito.llm.cache import ReplyCache

    with closing(ReplyCache(options.cache, writes=not options.offline)) as cache:
        return cache.unshared


def check_house(name: str, settings: ModelSettings, game: Spec) -> None:
    """Raise UsageError if the house has not the model that it is to be asked for, or not the faults."""
    if not settings.base_url or not is_house(settings.base_url):
        return
    from dubito.house.core import models  # late: most runs need no server

    if settings.model not in models(game):
        known = ", ".join(nearest_first(settings.model, models(game)))
        raise UsageError(f"{one_line(name)}: the house has no model {one_line(settings.model, 80)!r}; it has {known}")
    faults = faults_of(settings.base_url)
    if faults:
        from dubito.house.faults import Faults  # late: most runs need no server

        try:
            Faults.parse(faults)
        except UsageError as error:
            raise UsageError(f"{one_line(name)}: base_url: {error}") from None


def fallback_of(name: str, settings: ModelSettings, registry: Registry) -> type[Player]:
    """The fallback's class; raises UsageError unless it is a hand-written bot that answers the nodes."""
    cls: type[Player] = registry.find(settings.fallback).cls
    game = registry.game
    if cls.is_model or not game.answers_nodes(cls):
        named = f"{game.nodes[0].name}-{game.nodes[-1].name}"
        raise UsageError(
            f"{one_line(name)}: fallback: {settings.fallback} does not answer the nodes {named} one by one: "
            f"choose a hand-written bot that does, such as {game.fallback}"
        )
    return cls


def price_of_model(settings: ModelSettings, options: CallOptions) -> Price | None:
    """The price of a player's model at its server; None if nobody said it."""
    return find_price(account_of(settings).server, settings.model, options.prices)


def outdated_prices(experiment: Experiment, registry: Registry, options: CallOptions, today: date) -> list[str]:
    """A sentence for each provider whose list prices are in use and were read too long ago."""
    every = [settings_of(spec, registry) for spec in model_specs(experiment, registry)]
    said = [outdated(account_of(one).server, one.model, options.prices, today) for one in every]
    return sorted({sentence for sentence in said if sentence})
