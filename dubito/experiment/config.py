"""The config of an experiment: what a user may say, checked, with every default in one place.

The same keys are spelled in YAML files and, with dashes, as flags of the command line.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import Field, PrivateAttr, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.experiment.experiment import OnBotError, OnUnusable, ProviderErrors
from dubito.files import Checked, in_our_words, read_yaml
from dubito.game.find import DUBITO
from dubito.llm.request import Api
from dubito.llm.settings import SHORT_FORM_SETTINGS

PlayerEntry = str | dict[str, Any]

_DAY: Final = 24 * 3600.0  # seconds


class BudgetConfig(Checked):
    """`budget` of a config: what a run may use up; a cap that is not given is none."""

    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)


class StopConfig(Checked):
    """`stop` of a config: when a run of contenders has told them apart, and the most it may play."""

    within: float = Field(gt=0, allow_inf_nan=False, le=10**6)  # points of Score; where a measure has units, these
    most: int = Field(ge=30, le=10**8)  # deals


_NESTED: Final[Mapping[str, type[Checked]]] = {"budget": BudgetConfig, "stop": StopConfig}


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Where a config comes from."""

    source: str
    flags: Collection[str]

    def where(self, *loc: str | int) -> str:
        """The flag that said it, or the file with the place in it."""
        key = str(loc[-1] if loc[0] == "rules" else loc[0])
        if key in self.flags:
            return f"--{key.replace('_', '-')}"
        return f"{self.source}: {'.'.join(map(str, loc))}"


class Config(Checked):
    """What a config file or the flags may say."""

    game: str = Field(default=DUBITO, min_length=1)
    games: int = Field(default=10_000, ge=1, le=10**9)
    table_sizes: list[int] | None = Field(default=None, min_length=1)  # None: all that the game can have
    seed: int = Field(default=0, ge=0)
    bots: list[PlayerEntry] | None = Field(default=None, min_length=1)  # None: all hand-written ones
    contenders: list[PlayerEntry] = []
    rules: dict[str, Any] = {}  # checked by the game
    base_url: str | None = Field(default=None, min_length=1)  # of players in the short forms openai: and anthropic:
    api: Api | None = None  # of the same players; None: the provider's usual one
    api_key_env: str | None = Field(default=None, min_length=1)  # of the same players
    max_output: int | None = None  # of the same players, as the next two
    read: str | None = None
    system: str | None = None
    on_bot_error: OnBotError = "stop"
    bot_deadline: float | None = Field(default=None, gt=0, le=_DAY)  # seconds; None: a bot may take for ever
    provider_errors: ProviderErrors = "fallback"
    workers: int | None = Field(default=None, ge=1)  # None: one per core; hand-written runs
    executor: str = Field(default="processes", min_length=1)  # plays chunks of hand-written runs: or a plugin's
    scheduler: str | None = Field(default=None, min_length=1)  # of the executor; None: a cluster of this machine
    in_flight: int = Field(default=32, ge=1, le=1024)  # games at once; runs with model players
    budget: BudgetConfig = BudgetConfig()
    stop: StopConfig | None = None  # None: all games are played
    prices: str | dict[str, Any] = {}  # USD per million tokens, by model; or a file that says it
    preflight: bool = True
    patience: str | float = "30m"  # how long an account may give no answer before the run stops
    on_unusable: OnUnusable = "stop"  # when the first answers of a model player all come to nothing
    cache: str = Field(default="cache", min_length=1)
    offline: bool = False
    output: str | None = Field(default=None, min_length=1)  # None: runs/NAME
    _said: ConfigSource = PrivateAttr(default_factory=lambda: ConfigSource("the config", frozenset()))

    @property
    def server(self) -> dict[str, Any]:
        return {key: value for key in SHORT_FORM_SETTINGS if (value := getattr(self, key)) is not None}

    @property
    def said(self) -> ConfigSource:
        return self._said


def read_config(path: Path) -> dict[str, Any]:
    """The mapping in a config file; raises UsageError naming the file and, where known, the line."""
    content = read_yaml(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a config consists of `key: value` lines, such as `games: 1000`")
    return content


def check(content: Mapping[str, Any], source: str, flags: Mapping[str, Any] | None = None) -> Config:
    """The config of a file's content with flags over it; `source` names the file in errors.

    Flags use the config's spelling; those of `rules` go into its mapping. Raises UsageError with one
    sentence that says which key is wrong, where, and what it should be.
    """
    flags = {} if flags is None else flags
    for key in content:
        if not isinstance(key, str):
            raise UsageError(f"{source}: unknown key {one_line(repr(str(key)), 60)}: keys are text")
    merged = dict(content) | {key: value for key, value in flags.items() if key in Config.model_fields}
    rules = {key: value for key, value in flags.items() if key not in Config.model_fields}
    if rules:
        merged["rules"] = {**_mapping("rules", content, source), **rules}
    for key in _NESTED.keys() & flags.keys():
        merged[key] = {**_mapping(key, content, source), **flags[key]}
    said = ConfigSource(source, frozenset(flags))
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        raise UsageError(sentence_of(dict(error.errors()[0]), said)) from None
    config._said = said
    return config


def _mapping(key: str, content: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """What the file says under a key that flags add to."""
    value = content.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    raise UsageError(f"{source}: {key}: must be a mapping, not {one_line(repr(value), 60)}")


def sentence_of(error: Mapping[str, Any], said: ConfigSource) -> str:
    """What is wrong with a config, of an error of its validation."""
    loc = tuple(part for part in error["loc"] if part not in ("str", "dict[str,any]"))
    if error["type"] in ("too_short", "string_too_short"):
        return f"{said.where(*loc)}: must not be empty"
    if error["type"] == "extra_forbidden":
        known = Config.model_fields if len(loc) == 1 else _NESTED[str(loc[0])].model_fields
        key, where = one_line(str(loc[-1])), f"--{loc[0]}" if len(loc) > 1 and loc[0] in said.flags else said.source
        return f"{where}: unknown key '{key}': {suggestion(key, known)}"
    return f"{said.where(*loc)}: {in_our_words(error)}"
