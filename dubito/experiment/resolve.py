"""A config made an experiment, all of it checked before the start: its game, rules, bots and their settings; of model
players also prompts, keys, prices and fallbacks.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast
from unicodedata import normalize

from pydantic import BaseModel, ValidationError

from dubito.errors import UsageError, is_visible, near, nearest_first, one_line, suggestion
from dubito.experiment.config import Config, PlayerEntry, StopConfig, describe_config_error
from dubito.experiment.experiment import Experiment, OnUnusable, PlayerSpec, StopRule
from dubito.experiment.servers import identify_weights
from dubito.game import Game, Player
from dubito.game.find import Bot, Registry, source_of
from dubito.game.speech import name_character
from dubito.hooks import model_servers
from dubito.llm.budget import Caps
from dubito.llm.limiter import PATIENCE
from dubito.llm.pacer import parse_duration
from dubito.llm.price_list import (
    end_of_model_warning,
    find_charged_by_call,
    find_price,
    find_unpriced,
    old_price_warning,
    price_to_fill_in,
    read_prices,
)
from dubito.llm.prices import PICO, Price
from dubito.llm.settings import (
    ModelSettings,
    account_for,
    faults_in,
    ignored_address_variable,
    is_house,
    load_key,
    settings_for,
)
from dubito.settings import Setting

PROVIDERS: Final[Mapping[str, Mapping[str, Any]]] = {  # of short forms, with the settings that they stand for
    "openai": {"bot": "OpenAIBot"},
    "anthropic": {"bot": "AnthropicBot"},
    "house": {"bot": "OpenAIBot", "base_url": "house"},
    **{name: {"bot": "OpenAIBot", "base_url": name, **one.settings} for name, one in model_servers().items()},
}
_MAX_PATIENCE: Final = 7 * 24 * 3600.0  # seconds
_VERSION: Final = re.compile(r"[\w.-]*\d[\w.-]*|default|latest")  # after the @ of a model's name: 20250514, 001, q4_k_m


def resolve(config: Config, registry: Registry, fills_tables: bool = True) -> Experiment:
    """Find the bots of a config, enough of its game's for a table if it `fills_tables`; raises UsageError."""
    game = registry.game
    rules = parse_rules(config, game)
    sizes = _parse_table_sizes(config, *game.seats_by(rules))
    if config.on_bot_error == "forfeit" and not game.forfeits:
        raise UsageError(f"{config.said.where('on_bot_error')}: {game.name} has no forfeit: say stop or fallback")
    if config.bots is None:
        field = [default_player(bot) for bot in registry.hand_written()]
    else:
        field = _parse_players("bots", config.bots, registry, config)
    contenders = _parse_players("contenders", config.contenders, registry, config)
    _check_names(field, contenders)
    experiment = Experiment(
        games=config.games,
        table_sizes=sizes,
        seed=config.seed,
        bots=tuple(field),
        contenders=tuple(contenders),
        rules=rules.model_dump(),
        on_bot_error=config.on_bot_error,
        provider_errors=config.provider_errors,
        bot_deadline=config.bot_deadline,
        game=game.name,
        rules_version=game.rules_version,
        game_source=source_of(game, registry.working_directory),
        lineup=game.lineup,
    )
    _check_opponents(experiment, config, fills_tables)
    for spec in experiment.players:
        if why := rules_incompatibility(rules, registry.find(spec.bot).cls):
            raise UsageError(f"{one_line(spec.name)} {why}")
    if config.bot_deadline is not None and any(registry.find(spec.bot).cls.is_model for spec in experiment.players):
        raise UsageError(
            "bot_deadline: games with model players are played in threads, where no bot can be interrupted: take it out"
        )
    if config.stop is not None:
        return _with_stop_rule(experiment, config.stop, config, registry)
    _check_games(experiment, config)
    return experiment


def rules_incompatibility(rules: Any, cls: type[Player]) -> str | None:
    said: Callable[[Any], str | None] | None = getattr(cls, "cannot_play_by", None)
    return said(rules) if said else None


def _with_stop_rule(experiment: Experiment, stop: StopConfig, config: Config, registry: Registry) -> Experiment:
    """The same, to be played until it is decided; raises UsageError."""
    if "games" in config.model_fields_set:
        where = config.said.where("games")
        raise UsageError(f"{where}: with `stop` its `most` says how many deals there are at most: take it out")
    if len(experiment.contenders) < 2:
        raise UsageError(f"{config.said.where('stop')}: it compares contenders: name at least two")
    measure = registry.game.results.measure(registry.game.results.headline[0])
    least, most = measure.span or (0, 100)
    if stop.within >= most - least:
        where = config.said.where("stop", "within")
        raise UsageError(f"{where}: must be less than {most - least:g}, all that {measure.name} can differ by")
    games = stop.most * experiment.games_per_deal
    return replace(experiment, games=games, stop=StopRule(stop.within))


def _check_games(experiment: Experiment, config: Config) -> None:
    """Refuse a number of games that is none of whole deals."""
    m = experiment.games_per_deal
    if config.games % m:
        below = config.games // m * m
        near = f"{below} or {below + m}" if below else f"{m}"
        n = f"{len(experiment.contenders)} contender{'s' * (len(experiment.contenders) > 1)}"
        all_play = f"the {n}, who all play every deal"
        each = all_play if m == len(experiment.contenders) else f"{m} ({n}, each in both seats of every deal)"
        raise UsageError(f"games: {config.games} is no multiple of {each}: say {near}")


def parse_rules(config: Config, game: Game) -> BaseModel:
    """The game's rules as the config has them, flags as the texts they are; raises UsageError."""
    rules = type(game.rules()).model_fields
    flags = rules.keys() & config.rules.keys() & config.said.flags
    said = config.rules | {key: Setting(key, rules[key]).parse(config.rules[key]) for key in flags}
    try:
        return game.rules(**said)
    except ValidationError as error:
        first: dict[str, Any] = {**error.errors()[0]}
        key, source = one_line(str(first["loc"][-1])), config.said
        first["loc"] = ("rules", *first["loc"])
        if first["type"] == "extra_forbidden":
            where = f"--{key.replace('_', '-')}" if key in source.flags else f"{source.source}: unknown key '{key}'"
            raise UsageError(f"{where}: {_known_rules(key, game)}") from None
        raise UsageError(describe_config_error(first, source)) from None


def _known_rules(key: str, game: Game) -> str:
    known = type(game.rules()).model_fields
    if not known:
        return f"{game.name} has no rules to vary: take it out"
    return f"{game.name} has no such rule: {suggestion(key, known)}"


def _parse_table_sizes(config: Config, least: int, most: int) -> tuple[int, ...]:
    if config.table_sizes is None:
        return tuple(range(least, most + 1))
    for place, size in enumerate(config.table_sizes):
        if not least <= size <= most:
            bound = f"at least {least}" if size < least else f"at most {most}"
            raise UsageError(f"{config.said.where('table_sizes', place)}: must be {bound}, not {size}")
    if len(set(config.table_sizes)) < len(config.table_sizes):
        raise UsageError(f"{config.said.where('table_sizes')}: a size stands twice")
    return tuple(sorted(config.table_sizes))


def _check_opponents(experiment: Experiment, config: Config, fills_tables: bool) -> None:
    """Where nobody sits twice at a table, the field must fill it; but a contender between two needs one other only."""
    most, n = max(experiment.table_sizes), len(experiment.bots)
    needed = 1 if experiment.contenders and experiment.lineup == "ordered_pairs" else most
    if fills_tables and experiment.lineup != "uniform" and n < needed:
        raise UsageError(
            f"{config.said.where('bots')}: {experiment.game} seats {most} different bots, not {n}: name more"
        )


def _parse_players(key: str, entries: Sequence[PlayerEntry], registry: Registry, config: Config) -> list[PlayerSpec]:
    """The players of these entries; an error says in which one it is."""
    players = []
    for place, entry in enumerate(entries):
        try:
            players.append(parse_player(entry, registry, config))
        except UsageError as error:
            raise UsageError(f"{config.said.where(key, place)}: {error}") from None
    return players


def parse_player(entry: PlayerEntry, registry: Registry, config: Config) -> PlayerSpec:
    """The player of an entry, be it of a config or typed at a command; raises UsageError."""
    if isinstance(entry, str):
        entry = _expand_short_form(entry, registry, config.server)
    settings = dict(entry)
    if isinstance(said := settings.get("bot"), str) and ":" in said:  # the short form, and more
        spelled = _expand_short_form(said, registry, config.server)
        settings = {**spelled, **settings, "bot": spelled["bot"]}
    cls = settings.pop("bot", None)
    if not isinstance(cls, str):
        raise UsageError("an entry of bots or contenders needs the key `bot` with the name of a class")
    bot = registry.find(cls)
    name = settings.pop("name", cls)
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"the name of a player is a text, not {one_line(repr(name), 60)}")
    _check_name(name)
    for key in settings:
        _check_setting(bot, key)
    try:
        settings = json.loads(json.dumps(settings, allow_nan=False))
    except (TypeError, ValueError):
        raise UsageError(
            f"the settings of {one_line(name)} must be numbers, texts, booleans or lists of them"
        ) from None
    _check_complete(bot, name, settings)
    if bot.cls.is_model:
        from dubito.llm.settings import settings_for  # only those who ask models need it

        settings_for(bot.cls, name, settings)
    return PlayerSpec(name, bot.name, settings, bot.digest)


def _expand_short_form(entry: str, registry: Registry, server: Mapping[str, Any]) -> dict[str, Any]:
    """The short form of a player: a class name, or `openai:MODEL@PROMPT` (or `anthropic:`, `house:`).

    The provider ends at the first colon; `@` splits only before a prompt or a path, since the name of a model may hold
    colons, slashes and @; but none of the house's does. Raises UsageError for what is neither a prompt nor a version.
    """
    provider, colon, model = entry.partition(":")
    if not colon or provider not in PROVIDERS:
        return {"bot": entry}
    from dubito.llm.prompts import describe_unknown_prompt, prompt_names  # only those who ask models need it

    known = PROVIDERS[provider]
    asks = server
    if "base_url" in known:
        asks = {key: value for key, value in server.items() if key not in ("base_url", "api", "api_key_env")}
    if (api := asks.get("api")) and "base_url" not in asks and (api == "messages") != (provider == "anthropic"):
        raise UsageError(
            f"{one_line(entry)}: {provider} does not speak `api: {api}`: add --base-url with the server that does"
        )
    settings = {**known, **asks, "name": entry, "model": model}
    before, at, prompt = model.rpartition("@")
    home = registry.working_directory
    if not at or not before or before.endswith("/"):  # as @cf/meta/llama and workers-ai/@cf/meta/llama
        return settings
    is_path = prompt.startswith((".", "/")) or ("/" in prompt and (home / prompt).is_dir())
    prompts = prompt_names(home, registry.game)
    if provider == "house" or is_path or prompt in prompts:
        return settings | {"model": before, "prompt": prompt}
    if not _VERSION.fullmatch(prompt) or near(prompt, prompts):
        instead = f"{{bot: {known['bot']}, model: '{one_line(model)}'}}"
        unknown = describe_unknown_prompt(prompt, home, registry.game)
        raise UsageError(f"{unknown} (a model with @ in its name is written in a config as `{instead}`)")
    return settings


def default_player(bot: Bot) -> PlayerSpec:
    return PlayerSpec(bot.name, bot.name, {}, bot.digest)


def _bot_parameters(bot: Bot) -> list[inspect.Parameter]:
    """The settings of a bot: the parameters of `__init__` after self and id."""
    init = cast(Any, bot.cls).__init__
    if init is cast(Any, Player).__init__:  # compiled, it has no signature
        return []
    return list(inspect.signature(init).parameters.values())[2:]


def _check_setting(bot: Bot, key: object) -> None:
    parameters = _bot_parameters(bot)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    if key not in known:
        hint = suggestion(str(key), ["bot", "name", *known]) if known else "it has no settings"
        raise UsageError(f"{bot.name} has no setting '{one_line(str(key))}': {hint}")


def _check_complete(bot: Bot, name: str, settings: Mapping[str, Any]) -> None:
    for parameter in _bot_parameters(bot):
        needed = parameter.default is parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        )
        if needed and parameter.name not in settings:
            raise UsageError(f"{one_line(name)} needs the setting '{parameter.name}' of {bot.name}")


def _check_name(name: str) -> None:
    """Refuse a name that looks like another one or steers what shows it."""
    if (hidden := next((one for one in name if not is_visible(one)), None)) is not None:
        raise UsageError(
            f"the name '{one_line(name, 60)}' of a player holds {name_character(hidden)}: "
            "use characters that everybody can see, and plain spaces"
        )
    if name != name.strip() or "  " in name:
        raise UsageError(f"the name '{name}' of a player has spaces at an end or side by side: take them out")


def _check_names(field: Sequence[PlayerSpec], contenders: Sequence[PlayerSpec]) -> None:
    """Names are unique; only the very same player may be in the field and a contender too."""
    for group in (field, contenders):
        names = [normalize("NFC", player.name) for player in group]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"two players are named '{one_line(name)}': give one a name of its own, {{bot: ..., name: ...}}"
                )
    named = {player.name: player for player in field}
    for player in contenders:
        if named.get(player.name, player) != player:
            raise UsageError(
                f"the contender '{one_line(player.name)}' has the name of another player of the field: rename one"
            )


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


def call_options(config: Config, working_directory: Path) -> CallOptions:
    """Return the options of calls that a config sets. Raises UsageError if its prices or its patience are invalid."""
    usd = config.budget.usd
    return CallOptions(
        in_flight=config.in_flight,
        cache=Path(config.cache),
        offline=config.offline,
        caps=Caps(config.budget.calls, config.budget.tokens, None if usd is None else int(Decimal(repr(usd)) * PICO)),
        prices=read_prices(config.prices, "prices", working_directory),
        preflight=config.preflight,
        patience=_parse_patience(config.patience),
        on_unusable=config.on_unusable,
    )


def _parse_patience(text: str | float) -> float:
    """Return `30m` in seconds. Raises UsageError."""
    seconds = parse_duration(text.replace(" ", "")) if isinstance(text, str) else None
    if seconds is None or not 1 <= seconds <= _MAX_PATIENCE:
        raise UsageError(
            f"patience: must be a time from 1s to 7d, such as 90s, 30m or 2h, not {one_line(repr(text), 60)}"
        )
    return seconds


def model_specs(experiment: Experiment, registry: Registry) -> list[PlayerSpec]:
    return [player for player in experiment.players if registry.find(player.bot).cls.is_model]


def model_settings(spec: PlayerSpec, registry: Registry) -> ModelSettings:
    return settings_for(registry.find(spec.bot).cls, spec.name, spec.settings, registry.game)


def check_models(experiment: Experiment, registry: Registry, options: CallOptions) -> Experiment:
    """The experiment with its model players' settings complete and their prompts and fallbacks identified.

    Raises UsageError for everything that can be wrong before a call is made.
    """

    def checked(spec: PlayerSpec) -> PlayerSpec:
        if not registry.find(spec.bot).cls.is_model:
            return spec
        from dubito.llm.prompts import load_prompt  # late, as the cache: most runs have no models

        settings = model_settings(spec, registry)
        prompt = load_prompt(settings.prompt, registry.working_directory, registry.game)
        find_fallback(spec.name, settings, registry)
        check_model_calls(spec.name, settings, registry.game, options)
        if settings.play == "drawn" and settings.api != "decisions" and prompt.description.say != "odds":
            raise UsageError(
                f"{one_line(spec.name)}: play: drawn: its answers say no probability to draw by: choose a prompt with "
                "`say: odds`, such as mixed, or `api: decisions`"
            )
        settings = identify_weights(spec.name, settings)
        source = registry.find(settings.fallback).digest
        return replace(spec, settings=settings.model_dump(), prompt=prompt.digest, fallback=source)

    return replace(
        experiment,
        bots=tuple(map(checked, experiment.bots)),
        contenders=tuple(map(checked, experiment.contenders)),
    )


def check_model_calls(name: str, settings: ModelSettings, game: Game, options: CallOptions) -> None:
    """Raise UsageError for what would stop a run at its first call: key, house, and what a budget has to know."""
    if not options.offline:
        load_key(account_for(settings), name)
    check_house(name, settings, game)
    if settings.api == "decisions":
        from dubito.llm.questions import check_askable  # late: few players are asked so

        check_askable(name, game)
    if options.caps.usd is None:
        return
    if price_of_model(settings, options) is None:
        raise UsageError(
            f"{one_line(name)}: budget.usd needs a price of {one_line(settings.model)!r} at "
            f"{account_for(settings).server}, and there is none: remove budget.usd, or add this line, with the numbers "
            "of its page in USD per million tokens (those here are the dearest that are known): "
            f"{price_to_fill_in(settings.model)}"
        )
    _check_surcharges(name, settings, options)


def _check_surcharges(name: str, settings: ModelSettings, options: CallOptions) -> None:
    """Raise UsageError if a player's parameters ask for what costs more than its price says: no budget would hold."""
    price = price_of_model(settings, options)
    if price is None or not price.worst(1, 1):  # what costs nothing costs nothing in any mode
        return
    if (called := find_charged_by_call(settings.parameters)) is not None:
        raise UsageError(
            f"{one_line(name)}: parameters.{called}: the server charges for its tools by the call, which no price here "
            "says: remove the parameter, or budget.usd"
        )
    dear, model = find_unpriced(settings.parameters, price), one_line(settings.model)
    if dear is not None and settings.model not in options.prices:
        raise UsageError(
            f"{one_line(name)}: parameters.{one_line(dear)}: the list price of {model!r} does not say what that costs: "
            f"say in `prices.{model}` what it costs with it, or remove the parameter, or budget.usd"
        )


def check_cache(experiment: Experiment, registry: Registry, options: CallOptions) -> str | None:
    """What a user should know of the cache before the start; raises UsageError if it is needed and cannot be used."""
    if not model_specs(experiment, registry):
        return None
    from dubito.llm.cache import ReplyCache

    with closing(ReplyCache(options.cache, writes=not options.offline)) as cache:
        return cache.unshared


def check_house(name: str, settings: ModelSettings, game: Game) -> None:
    """Raise UsageError if the house has not the model that it is to be asked for, or not the faults."""
    if not settings.base_url or not is_house(settings.base_url):
        return
    from dubito.house.core import models_of  # late: most runs need no server

    if settings.model not in models_of(game):
        known = ", ".join(nearest_first(settings.model, models_of(game)))
        raise UsageError(f"{one_line(name)}: the house has no model {one_line(settings.model, 80)!r}; it has {known}")
    faults = faults_in(settings.base_url)
    if faults:
        from dubito.house.faults import Faults  # late: most runs need no server

        try:
            Faults.parse(faults)
        except UsageError as error:
            raise UsageError(f"{one_line(name)}: base_url: {error}") from None


def find_fallback(name: str, settings: ModelSettings, registry: Registry) -> type[Player]:
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
    return find_price(account_for(settings).server, settings.model, options.prices, settings.api)


def end_of_model_warnings(experiment: Experiment, registry: Registry, today: date) -> list[str]:
    every = [model_settings(spec, registry) for spec in model_specs(experiment, registry)]
    said = [end_of_model_warning(account_for(one).server, one.model, today) for one in every]
    return sorted({sentence for sentence in said if sentence})


def old_price_warnings(experiment: Experiment, registry: Registry, options: CallOptions, today: date) -> list[str]:
    every = [model_settings(spec, registry) for spec in model_specs(experiment, registry)]
    said = [old_price_warning(account_for(one).server, one.model, options.prices, today) for one in every]
    return sorted({sentence for sentence in said if sentence})


def unused_address_warnings(experiment: Experiment, registry: Registry) -> list[str]:
    settings = [model_settings(spec, registry) for spec in model_specs(experiment, registry)]
    variables = {name for each in settings if (name := ignored_address_variable(each))}
    return [
        f"note: {name} is set but not used. To ask that server, set `base_url: env` or --base-url env"
        for name in sorted(variables)
    ]
