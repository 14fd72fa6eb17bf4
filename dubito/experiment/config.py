"""The config of an experiment: what a user may say, checked, with every default in one place.

The same keys are spelled in YAML files and, with dashes, as flags of the command line.
"""

import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.games.dubito.rules import MAX_JOKERS, MAX_PLAYERS, MIN_PLAYERS, Rules, WinRule
from dubito.registry import Bot, Registry
from dubito.yaml_file import read_yaml

OnBotError = Literal["stop", "fallback"]
ProviderErrors = Literal["fallback", "suspend"]
TableSize = Annotated[int, Field(ge=MIN_PLAYERS, le=MAX_PLAYERS)]
PlayerEntry = str | dict[str, Any]


_DAY: Final = 24 * 3600.0  # seconds
_RULES = Rules()
PROVIDERS: Final[Mapping[str, Mapping[str, str]]] = {  # of short forms, with the settings that they stand for
    "openai": {"bot": "OpenAIBot"},
    "anthropic": {"bot": "AnthropicBot"},
    "house": {"bot": "OpenAIBot", "base_url": "house"},
}


class RulesConfig(BaseModel):
    """`rules` of a config; its defaults are those of `Rules`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    jokers: int = Field(default=_RULES.jokers, ge=0, le=MAX_JOKERS)
    win_rule: WinRule = _RULES.win_rule
    max_turns: int = Field(default=_RULES.max_turns, ge=1)


class BudgetConfig(BaseModel):
    """`budget` of a config: what a run may use up; a cap that is not given is none."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)


@dataclass(frozen=True, slots=True)
class _Said:
    """Where a config comes from."""

    source: str
    flags: Collection[str]

    def where(self, *loc: str | int) -> str:
        """The flag that said it, or the file with the place in it."""
        key = str(loc[-1] if loc[0] == "rules" else loc[0])
        if key in self.flags:
            return f"--{key.replace('_', '-')}"
        return f"{self.source}: {'.'.join(map(str, loc))}"


class Config(BaseModel):
    """What a config file or the flags may say."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    games: int = Field(default=10_000, ge=1, le=10**9)
    table_sizes: list[TableSize] = Field(default=list(range(MIN_PLAYERS, MAX_PLAYERS + 1)), min_length=1)
    seed: int = 0
    bots: list[PlayerEntry] | None = Field(default=None, min_length=1)  # None: all hand-written ones
    contenders: list[PlayerEntry] = []
    rules: RulesConfig = RulesConfig()
    base_url: str | None = Field(default=None, min_length=1)  # of players in the short forms openai: and anthropic:
    api_key_env: str | None = Field(default=None, min_length=1)  # of the same players
    on_bot_error: OnBotError = "stop"
    bot_deadline: float | None = Field(default=None, gt=0, le=_DAY)  # seconds; None: a bot may take for ever
    provider_errors: ProviderErrors = "fallback"
    workers: int | None = Field(default=None, ge=1)  # None: one per core; hand-written runs
    in_flight: int = Field(default=32, ge=1, le=1024)  # games at once; runs with model players
    budget: BudgetConfig = BudgetConfig()
    prices: str | dict[str, Any] = {}  # USD per million tokens, by model; or a file that says it
    preflight: bool = True
    patience: str | float = "30m"  # how long an account may give no answer before the run stops
    cache: str = Field(default="cache", min_length=1)
    offline: bool = False
    output: str | None = Field(default=None, min_length=1)  # None: runs/NAME
    _said: _Said = PrivateAttr(default_factory=lambda: _Said("the config", frozenset()))

    def where(self, *key: str | int) -> str:
        """Where a user said this, for errors: the flag, or the file with the key."""
        return self._said.where(*key)


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """A bot with its settings, under the name it plays by."""

    name: str
    bot: str
    settings: Mapping[str, Any]
    source: str  # sha256 of the bot's file
    prompt: str = ""  # a model player's: digest of the prompt's sources, and sha256 of the fallback's file
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A checked experiment: all that can change its results, how many games to play, and how long a bot may take."""

    games: int
    table_sizes: tuple[int, ...]  # ascending
    seed: int
    field: tuple[PlayerSpec, ...]
    contenders: tuple[PlayerSpec, ...]
    rules: Rules
    on_bot_error: OnBotError
    provider_errors: ProviderErrors = "fallback"
    bot_deadline: float | None = None  # seconds

    @property
    def players(self) -> tuple[PlayerSpec, ...]:
        """Field, then the contenders that are not in it; a seat's player is a place in this list."""
        return self.field + tuple(player for player in self.contenders if player not in self.field)

    @property
    def games_per_deal(self) -> int:
        """One game, or one for each contender (R33)."""
        return max(1, len(self.contenders))

    @property
    def deals(self) -> int:
        """How many deals are played."""
        return self.games // self.games_per_deal

    def identity(self) -> dict[str, Any]:
        """Everything that can change a result; `games` is not of it, since a longer run begins alike."""
        decisive = self.on_bot_error == "fallback" and self.bot_deadline is not None  # it says who plays a turn
        return {
            "seed": self.seed,
            "table_sizes": list(self.table_sizes),
            "bots": [_plain(player) for player in self.field],
            "contenders": [_plain(player) for player in self.contenders],
            "rules": asdict(self.rules),
            "on_bot_error": self.on_bot_error,
            "provider_errors": self.provider_errors,
            **({"bot_deadline": self.bot_deadline} if decisive else {}),
        }

    def digest(self) -> str:
        """The identity as a short name, 8 hex digits."""
        text = json.dumps(self.identity(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:8]


def _plain(player: PlayerSpec) -> dict[str, Any]:
    plain = asdict(player)
    return {key: value for key, value in plain.items() if value or key not in ("prompt", "fallback")}


def read_config(path: Path) -> dict[str, Any]:
    """The mapping in a config file; raises UsageError naming the file and, where known, the line."""
    content = read_yaml(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a config is a list of `key: value` lines, such as `games: 1000`")
    return content


def check(content: Mapping[str, Any], source: str, flags: Mapping[str, Any] | None = None) -> Config:
    """The config of a file's content with flags over it; `source` names the file in errors.

    Flags use the config's spelling; those of `rules` go into its mapping. Raises UsageError with one
    sentence that says which key is wrong, where, and what it should be.
    """
    flags = {} if flags is None else flags
    for key in content:
        if not isinstance(key, str):
            raise UsageError(f"{source}: unknown key {one_line(repr(str(key)), 60)}: a key is a text")
    merged = dict(content) | {key: value for key, value in flags.items() if key in Config.model_fields}
    rules = {key: value for key, value in flags.items() if key in RulesConfig.model_fields}
    if rules:
        merged["rules"] = {**_mapping("rules", content, source), **rules}
    if "budget" in flags:
        merged["budget"] = {**_mapping("budget", content, source), **flags["budget"]}
    said = _Said(source, frozenset(flags))
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        raise UsageError(_sentence(dict(error.errors()[0]), said)) from None
    config._said = said
    if len(set(config.table_sizes)) < len(config.table_sizes):
        raise UsageError(f"{said.where('table_sizes')}: a size stands twice")
    return config


def _mapping(key: str, content: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """What the file says under a key that flags add to."""
    value = content.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    raise UsageError(f"{source}: {key}: must be a mapping, not {one_line(repr(value), 60)}")


_WORDS: Final = {
    "Input should be": "must be",
    "a valid integer": "a whole number",
    "a valid list": "a list",
    "a valid string": "a text",
    "a valid dictionary or instance of RulesConfig": "a mapping of rules",
    "a valid dictionary or instance of BudgetConfig": "a mapping such as {usd: 5}",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}


def _sentence(error: Mapping[str, Any], said: _Said) -> str:
    loc = tuple(part for part in error["loc"] if part not in ("str", "dict[str,any]"))
    if error["type"] in ("too_short", "string_too_short"):
        return f"{said.where(*loc)}: must not be empty"
    if error["type"] == "extra_forbidden":
        nested: dict[str, type[BaseModel]] = {"rules": RulesConfig, "budget": BudgetConfig}
        known = Config.model_fields if len(loc) == 1 else nested[str(loc[0])].model_fields
        key, where = one_line(str(loc[-1])), f"--{loc[0]}" if len(loc) > 1 and loc[0] in said.flags else said.source
        return f"{where}: unknown key '{key}': {suggestion(key, known)}"
    message = str(error["msg"])
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return f"{said.where(*loc)}: {message}, not {one_line(repr(error['input']), 60)}"


def resolve(config: Config, registry: Registry) -> Experiment:
    """Find the bots of a config and check their settings; raises UsageError."""
    if config.bots is None:
        field = [unsettled(bot) for bot in registry.hand_written()]
    else:
        field = _players("bots", config.bots, registry, config)
    contenders = _players("contenders", config.contenders, registry, config)
    _check_names(field, contenders)
    experiment = Experiment(
        config.games,
        tuple(sorted(config.table_sizes)),
        config.seed,
        tuple(field),
        tuple(contenders),
        Rules(**config.rules.model_dump()),
        config.on_bot_error,
        config.provider_errors,
        config.bot_deadline,
    )
    if config.bot_deadline is not None and any(registry.find(spec.bot).cls.is_model for spec in experiment.players):
        raise UsageError(
            "bot_deadline: games with model players are played in threads, where no bot can be interrupted: take it out"
        )
    m = experiment.games_per_deal
    if config.games % m:
        below = config.games // m * m
        near = f"{below} or {below + m}" if below else f"{m}"
        raise UsageError(
            f"games: {config.games} is no multiple of the {m} contenders, who all play every deal: say {near}"
        )
    return experiment


def _players(key: str, entries: Sequence[PlayerEntry], registry: Registry, config: Config) -> list[PlayerSpec]:
    """The players of these entries; an error says in which one it is."""
    players = []
    for place, entry in enumerate(entries):
        try:
            players.append(player(entry, registry, config))
        except UsageError as error:
            raise UsageError(f"{config.where(key, place)}: {error}") from None
    return players


def player(entry: PlayerEntry, registry: Registry, config: Config) -> PlayerSpec:
    """The player of an entry, be it of a config or typed at a command; raises UsageError."""
    if isinstance(entry, str):
        entry = _spelled_out(entry, registry, {"base_url": config.base_url, "api_key_env": config.api_key_env})
    settings = dict(entry)
    cls = settings.pop("bot", None)
    if not isinstance(cls, str):
        raise UsageError("an entry of bots or contenders needs the key `bot` with the name of a class")
    bot = registry.find(cls)
    name = settings.pop("name", cls)
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"the name of a player is a text, not {one_line(repr(name), 60)}")
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
    return _spec(bot, name, settings)


def _spelled_out(entry: str, registry: Registry, server: Mapping[str, str | None]) -> dict[str, Any]:
    """The short form of a player: a class name, or `openai:MODEL@PROMPT` (or `anthropic:`, `house:`).

    The provider ends at the first colon; `@` splits only before a known prompt or a path, since the name
    of a model may hold colons, slashes and @.
    """
    provider, colon, model = entry.partition(":")
    if not colon or provider not in PROVIDERS:
        return {"bot": entry}
    from dubito.llm.prompts import prompt_names  # only those who ask models need it

    known = PROVIDERS[provider]
    asks = {} if "base_url" in known else {key: value for key, value in server.items() if value}
    settings = {**asks, **known, "name": entry, "model": model}
    before, at, prompt = model.rpartition("@")
    home = registry.working_directory
    is_path = prompt.startswith((".", "/")) or ("/" in prompt and (home / prompt).is_dir())
    if at and before and (is_path or prompt in prompt_names(home)):
        settings |= {"model": before, "prompt": prompt}
    return settings


def _spec(bot: Bot, name: str, settings: Mapping[str, Any]) -> PlayerSpec:
    return PlayerSpec(name, bot.name, settings, bot.digest)


def unsettled(bot: Bot) -> PlayerSpec:
    """A bot under its own name, with no settings."""
    return _spec(bot, bot.name, {})


def _parameters(bot: Bot) -> list[inspect.Parameter]:
    """The settings of a bot: the parameters of `__init__` after self and id."""
    return list(inspect.signature(cast(Any, bot.cls).__init__).parameters.values())[2:]


def _check_setting(bot: Bot, key: object) -> None:
    parameters = _parameters(bot)
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
    for parameter in _parameters(bot):
        needed = parameter.default is parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        )
        if needed and parameter.name not in settings:
            raise UsageError(f"{one_line(name)} needs the setting '{parameter.name}' of {bot.name}")


def _check_names(field: Sequence[PlayerSpec], contenders: Sequence[PlayerSpec]) -> None:
    """Names are unique; only the very same player may be in the field and a contender too."""
    for group in (field, contenders):
        names = [player.name for player in group]
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
