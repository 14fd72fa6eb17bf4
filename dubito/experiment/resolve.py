"""Turn a config into an experiment, after checking the game, the rules, the bots and their settings.

For model players, the checks cover prompts, keys, prices and fallbacks.
"""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, cast
from unicodedata import normalize

from pydantic import BaseModel, ValidationError

from dubito.errors import UsageError, find_similar, is_visible, one_line, suggestion
from dubito.experiment.config import Config, PlayerEntry, describe_config_error
from dubito.experiment.experiment import PROGRAM_BOT, Experiment, PlayerSpec, StopRule, kind_of_player
from dubito.experiment.resolved import ResolvedPlayer, ResolvedRun
from dubito.game import Game, Player
from dubito.game.find import Bot, Registry, source_of
from dubito.game.speech import name_character
from dubito.hooks import model_servers
from dubito.settings import Setting

# A version after the @ of a model's name: 20250514, 001, q4_k_m.
_VERSION: Final = re.compile(r"[\w.-]*\d[\w.-]*|default|latest")


@cache
def providers() -> Mapping[str, Mapping[str, Any]]:
    """Return the providers of the short form, with the settings that each one implies."""
    from dubito.llm.protocols import protocols  # imported late, since many runs have no models

    return {
        **{wire.provider: {"bot": wire.bot} for wire in protocols().values() if wire.bot},
        "house": {"bot": "OpenAIBot", "base_url": "house"},
        **{name: {"bot": "OpenAIBot", "base_url": name, **one.settings} for name, one in model_servers().items()},
    }


def resolve(config: Config, registry: Registry, fills_tables: bool = True) -> ResolvedRun:
    """Return the run that a config describes.

    Args:
        config: The config.
        registry: The game and its bots.
        fills_tables: Whether there must be enough bots to fill a table.

    Raises:
        UsageError: The config does not describe an experiment that can be played.
    """
    game = registry.game
    rules = rules_of_config(config, game)
    sizes = _parse_table_sizes(config, *game.seat_range(rules))
    if config.on_bot_error == "forfeit" and not game.forfeits:
        where = config.sources.locate("on_bot_error")
        raise UsageError(f"{game.name} does not support forfeits", where=where, hint="choose stop or fallback")
    if config.bots is None:
        opponents = [default_player(bot) for bot in registry.hand_written()]
    else:
        opponents = _parse_players("bots", config.bots, registry, config)
    contenders = _parse_players("contenders", config.contenders, registry, config)
    if config.conditions:
        from dubito.experiment.conditions import cross_conditions  # imported late, since few runs have conditions

        contenders = cross_conditions(contenders, config, registry)
    _check_names([player.spec for player in opponents], [player.spec for player in contenders])
    _check_agents(opponents)
    experiment = Experiment(
        games=config.games,
        table_sizes=sizes,
        seed=config.seed,
        bots=tuple(player.spec for player in opponents),
        contenders=tuple(player.spec for player in contenders),
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
    experiment = _set_games(experiment, config, game)
    by_name = {player.name: player for player in [*contenders, *opponents]}
    run = ResolvedRun(experiment, registry, [by_name[name] for name in experiment.names])
    for player in run.players:
        if problem := player.bot.cls.rules_incompatibility(rules):
            raise UsageError(f"{one_line(player.name)} {problem}")
    for _, model in run.models:
        if model.adviser and (problem := model.adviser.cls.rules_incompatibility(rules)):
            raise UsageError(f"{model.adviser.name} {problem}", where=f"{one_line(model.name)}: adviser")
    if config.bot_deadline is not None and run.has_records:
        raise UsageError(
            "bot_deadline: games with models or programs run in threads, where a bot cannot be interrupted",
            hint="remove bot_deadline",
        )
    return run


def _set_games(experiment: Experiment, config: Config, game: Game) -> Experiment:
    """Return the experiment with a whole number of deals. Raises UsageError if the config sets another number."""
    if config.stop is not None:
        if "games" in config.model_fields_set:
            where = config.sources.locate("games")
            raise UsageError(
                "`stop` already sets the maximum number of deals with `most`", where=where, hint="remove games"
            )
        if len(experiment.contenders) < 2:
            where = config.sources.locate("stop")
            raise UsageError("`stop` compares contenders", where=where, hint="name at least two")
        measure = game.results.measure(game.results.headline[0])
        least, most = measure.span or (0, 100)
        if config.stop.within >= most - least:
            where = config.sources.locate("stop", "within")
            raise UsageError(
                f"must be less than {most - least:g}, the largest difference in {measure.name}", where=where
            )
        games = config.stop.most * experiment.games_per_deal
        return replace(experiment, games=games, stop=StopRule(config.stop.within))
    m = experiment.games_per_deal
    if "games" not in config.model_fields_set:
        return replace(experiment, games=round_up(experiment.games, m))
    if config.games % m:
        below = config.games // m * m
        nearest = f"{below} or {below + m}" if below else f"{m}"
        n = f"{len(experiment.contenders)} contender{'s' * (len(experiment.contenders) > 1)}"
        reason = "each plays every deal" if m == len(experiment.contenders) else "in both seats of every deal"
        raise UsageError(f"games: {config.games} is not a multiple of {m} ({n}, {reason})", hint=f"use {nearest}")
    return experiment


def round_up(games: int, multiple: int) -> int:
    return -(-games // multiple) * multiple


def rules_of_config(config: Config, game: Game) -> BaseModel:
    """Return the rules that a config sets, either by flags or as values. Raises UsageError."""
    rules = type(game.rules()).model_fields
    flags = rules.keys() & config.rules.keys() & config.sources.flags
    values = config.rules | {key: Setting(key, rules[key]).parse(config.rules[key]) for key in flags}
    try:
        built: BaseModel = game.rules(**values)
    except ValidationError as error:
        first: dict[str, Any] = {**error.errors()[0]}
        key, sources = one_line(str(first["loc"][-1])), config.sources
        first["loc"] = ("rules", *first["loc"])
        if first["type"] == "extra_forbidden":
            where = f"--{key.replace('_', '-')}" if key in sources.flags else f"{sources.file}: unknown key '{key}'"
            hint = suggestion(key, rules) if rules else "remove it"
            known = "no such rule" if rules else "no configurable rules"
            raise UsageError(f"{game.name} has {known}", where=where, hint=hint) from None
        raise UsageError(describe_config_error(first, sources)) from None
    return built


def _parse_table_sizes(config: Config, least: int, most: int) -> tuple[int, ...]:
    if config.table_sizes is None:
        return tuple(range(least, most + 1))
    for place, size in enumerate(config.table_sizes):
        if not least <= size <= most:
            bound = f"at least {least}" if size < least else f"at most {most}"
            raise UsageError(f"{config.sources.locate('table_sizes', place)}: must be {bound}, not {size}")
    if len(set(config.table_sizes)) < len(config.table_sizes):
        raise UsageError(f"{config.sources.locate('table_sizes')}: a size is listed twice")
    return tuple(sorted(config.table_sizes))


def _check_opponents(experiment: Experiment, config: Config, fills_tables: bool) -> None:
    """Raise UsageError if there are too few opponents to fill a table with different bots.

    At a table with two seats, a contender needs only one opponent.
    """
    most, n = max(experiment.table_sizes), len(experiment.bots)
    needed = 1 if experiment.contenders and experiment.lineup == "ordered_pairs" else most
    if fills_tables and experiment.lineup != "uniform" and n < needed:
        where = config.sources.locate("bots")
        raise UsageError(f"{experiment.game} needs {most} different bots, not {n}", where=where, hint="name more")


def _parse_players(
    key: str, entries: Sequence[PlayerEntry], registry: Registry, config: Config
) -> list[ResolvedPlayer]:
    """Parse entries of `bots` or `contenders`. Errors name the entry."""
    players = []
    for place, entry in enumerate(entries):
        try:
            players.append(parse_player(entry, registry, config))
        except UsageError as error:
            raise UsageError(f"{config.sources.locate(key, place)}: {error}") from None
    return players


def parse_player(entry: PlayerEntry, registry: Registry, config: Config) -> ResolvedPlayer:
    """Return the player for an entry from a config or from the command line. Raises UsageError."""
    if isinstance(entry, str):
        entry = _expand_short_form(entry, registry, config.server)
    settings = dict(entry)
    if isinstance(bot_name := settings.get("bot"), str) and ":" in bot_name:
        # The short form can be combined with settings.
        expanded = _expand_short_form(bot_name, registry, config.server)
        settings = {**expanded, **settings, "bot": expanded["bot"]}
    cls = settings.pop("bot", PROGRAM_BOT if settings.keys() & {"process", "remote"} else None)
    if not isinstance(cls, str):
        raise UsageError("an entry of bots or contenders needs the key `bot`, set to the name of a bot")
    bot = registry.find(cls)
    name = settings.pop("name", cls)
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"a player's name must be a string, not {one_line(repr(name), 60)}")
    # Refuse a name that could be mistaken for another or that contains control characters.
    if (hidden := next((character for character in name if not is_visible(character)), None)) is not None:
        raise UsageError(
            f"the player name '{one_line(name, 60)}' contains {name_character(hidden)}",
            hint="use visible characters and plain spaces",
        )
    if name != name.strip() or "  " in name:
        raise UsageError(f"the player name '{name}' has extra spaces", hint="remove them")
    for key in settings:
        _check_setting(bot, key)
    try:
        settings = json.loads(json.dumps(settings, allow_nan=False))
    except (TypeError, ValueError):
        raise UsageError(f"{one_line(name)}'s settings must be numbers, strings, booleans or lists of these") from None
    _check_complete(bot, name, settings)
    if bot.cls.is_model and settings.get("adviser") is not None:
        settings["adviser"] = _complete_adviser(name, settings["adviser"], registry)
    if bot.cls.is_program:
        from dubito.seats.program import check_program  # imported late, since few runs have programs

        folder = bot.file.parent if bot.name != PROGRAM_BOT else None
        settings = check_program(name, settings, bot.cls.defaults, folder, registry.working_directory)
        bot = registry.find(PROGRAM_BOT)
    return ResolvedPlayer.build(PlayerSpec(name, bot.name, settings, bot.digest), bot, registry)


def _complete_adviser(name: str, adviser: object, registry: Registry) -> dict[str, Any]:
    """Return a model's adviser with the digest of its file, or the complete settings of a program."""
    where = f"{one_line(name)}: adviser"
    if not isinstance(adviser, str | dict):
        raise UsageError("must be the name of a bot, or {process: [WORD, ...]}", where=where)
    bot = registry.find(adviser) if isinstance(adviser, str) else registry.find(PROGRAM_BOT)
    if bot.cls.is_model or (isinstance(adviser, dict) and adviser.get("remote")):
        raise UsageError("models and agents give no advice", where=where, hint="name a hand-written bot or a program")
    if not bot.cls.is_program:
        return {"bot": bot.name, "source": bot.digest}
    from dubito.seats.program import check_program  # imported late, since few runs have programs

    own, folder = (adviser, None) if isinstance(adviser, dict) else ({}, bot.file.parent)
    return check_program(f"{name}'s adviser", own, bot.cls.defaults, folder, registry.working_directory)


def _expand_short_form(entry: str, registry: Registry, server: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for a player in short form: a bot, or `openai:MODEL@PROMPT` (or `anthropic:`, `house:`...).

    The provider ends at the first colon. Model names may contain colons, slashes and @, so `@` is a separator only
    before a prompt or a path; names of built-in models never contain it. Raises UsageError if what follows `@` is
    neither a prompt nor a version.
    """
    provider, colon, model = entry.partition(":")
    if not colon or provider not in providers():
        return {"bot": entry}
    # Imported late, since only model players need them.
    from dubito.llm.conditions import split_condition
    from dubito.llm.prompts import describe_unknown_prompt, prompt_names
    from dubito.llm.protocols import find_protocol

    provided = providers()[provider]
    server_settings = server
    if "base_url" in provided:
        server_settings = {key: value for key, value in server.items() if key not in ("base_url", "api", "api_key_env")}
    api = server_settings.get("api")
    if api and "base_url" not in server_settings and find_protocol(api).provider != provider:
        raise UsageError(
            f"{one_line(entry)}: {provider} does not support `api: {api}`", hint="set --base-url to a server that does"
        )
    settings = {**provided, **server_settings, "name": entry, "model": model}
    before, at, prompt = model.rpartition("@")
    home = registry.working_directory
    if not at or not before or before.endswith("/"):  # @cf/meta/llama, workers-ai/@cf/meta/llama
        return settings
    base, _ = split_condition(prompt)
    is_path = prompt.startswith((".", "/")) or ("/" in prompt and (home / base).is_dir())
    prompts = prompt_names(home, registry.game)
    if provider == "house" or is_path or base in prompts:
        return settings | {"model": before, "prompt": prompt}
    if not _VERSION.fullmatch(prompt) or find_similar(prompt, prompts):
        long_form = f"{{bot: {provided['bot']}, model: '{one_line(model)}'}}"
        unknown = describe_unknown_prompt(base, home, registry.game)
        raise UsageError(f"{unknown} (for a model with @ in its name, write `{long_form}` in a config)")
    return settings


def default_player(bot: Bot) -> ResolvedPlayer:
    return ResolvedPlayer(PlayerSpec(bot.name, bot.name, {}, bot.digest), bot)


def _bot_parameters(bot: Bot) -> list[inspect.Parameter]:
    """Return a bot's settings, which are the parameters of `__init__` after self and id."""
    init = cast(Any, bot.cls).__init__
    if init is cast(Any, Player).__init__:  # compiled classes have no signature
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
            raise UsageError(f"{one_line(name)}: {bot.name} needs the setting '{parameter.name}'")


def _check_names(opponents: Sequence[PlayerSpec], contenders: Sequence[PlayerSpec]) -> None:
    """Raise UsageError unless names are unique.

    A contender can also be an opponent if both are the same player.
    """
    for group in (opponents, contenders):
        names = [normalize("NFC", player.name) for player in group]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"two players are named '{one_line(name)}'", hint="rename one of them: {bot: ..., name: ...}"
                )
    by_name = {player.name: player for player in opponents}
    for player in contenders:
        if by_name.get(player.name, player) != player:
            raise UsageError(
                f"the contender '{one_line(player.name)}' has the same name as a different opponent",
                hint="rename one of them",
            )


def _check_agents(opponents: Sequence[ResolvedPlayer]) -> None:
    """Refuse agents as opponents.

    Each agent plays one game at a time, so games with several agents could deadlock.
    """
    for player in opponents:
        if kind_of_player(player.spec) == "agent":
            raise UsageError(
                f"{one_line(player.name)}: an agent can only be a contender", hint="move it from bots to contenders"
            )
