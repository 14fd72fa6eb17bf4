"""The config of an experiment: every setting with its type, default, help and group.

Each setting is described once, by its field in `Config`. Its flag, its `--help` text, error messages, docs/settings.md
and the JSON Schema (printed by `python -m dubito.experiment.config`) are derived from that field.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, PrivateAttr, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from dubito.errors import UsageError, join_names, one_line, suggestion
from dubito.experiment.experiment import OnBotError, OnUnusable, ProviderErrors
from dubito.files import UNION_PARTS, CheckedModel, describe_invalid, read_yaml
from dubito.game.find import DUBITO
from dubito.game.seeds import SEED_FORMAT, TEXT_PATTERN, parse_seed
from dubito.model_settings import SHORT_FORM_SETTINGS, Api, ModelSettings, ReplyPart, RulesRole
from dubito.settings import Setting, setting

PlayerEntry = str | dict[str, Any]
ConditionEntry = str | dict[str, Any]

_DAY: Final = 24 * 3600.0  # seconds


def _model_setting(key: str) -> Any:
    """Return a setting that applies to all models in the short form, such as openai:MODEL."""
    own = Setting(key, ModelSettings.model_fields[key])
    return setting(
        f"{own.about[:-1]} (for models such as openai:MODEL).", group="Models", metavar=own.metavar, usual=own.usual
    )


class BudgetConfig(CheckedModel):
    """The `budget` section of a config. Unset limits do not apply."""

    usd: float | None = setting("Maximum cost in dollars.", gt=0, allow_inf_nan=False)
    calls: int | None = setting("Maximum number of calls.", ge=1)
    tokens: int | None = setting("Maximum number of tokens, input plus output.", ge=1)


class StopConfig(CheckedModel):
    """The `stop` section of a config: when a comparison is decided, and the maximum number of deals."""

    within: float = setting(
        "Difference in points below which players count as equal.", ..., gt=0, le=10**6, allow_inf_nan=False
    )
    most: int = setting("Maximum number of deals.", ..., ge=30, le=10**8)


@dataclass(frozen=True, slots=True)
class SettingSources:
    """Where the settings of a config were set: in its file or by flags."""

    file: str
    flags: frozenset[str]
    translation: str = ""  # what became of a config of the source project

    def locate(self, *loc: str | int) -> str:
        """Return the flag that set a value, or else the file and the key."""
        key = str(loc[-1] if loc[0] == "rules" else loc[0])
        if key in self.flags:
            return f"--{key.replace('_', '-')}"
        return f"{self.file}: {'.'.join(map(str, loc))}"


class Config(CheckedModel):
    """All settings of an experiment."""

    model_config = ConfigDict(str_min_length=1)

    table_sizes: list[int] | None = setting("Table sizes to draw from.", group="Players", usual="all", min_length=1)
    bots: list[PlayerEntry] | None = setting(
        "Bots and models to draw players from.", group="Players", usual="all hand-written bots", min_length=1
    )
    contenders: list[PlayerEntry] = setting("Players compared with each other on the same deals.", [], group="Players")
    conditions: list[ConditionEntry] = setting(
        "Conditions under which each model among the contenders plays, such as silent,must-not-lie.",
        [],
        group="Players",
    )
    on_bot_error: OnBotError = setting(
        "What to do when a bot breaks the rules or raises an exception.", "stop", group="Players"
    )
    bot_deadline: float | None = setting(
        "Time limit for a bot's turn or event, in seconds.", group="Players", metavar="SECONDS", gt=0, le=_DAY
    )
    game: str = setting("Name of the game; `dubito games` lists them.", DUBITO, group="Games and rules")
    rules: dict[str, Any] = setting("Rules of the game.", {}, group="Games and rules")
    games: int = setting(
        "Number of games; with m contenders, a multiple of m.",
        10_000,
        group="Games and rules",
        usual="10000; 20 if a model is paid, or its price unknown, without games, budget or stop",
        ge=1,
        le=10**9,
    )
    seed: Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=TEXT_PATTERN)] = setting(
        "Seed of the run.", 0, group="Games and rules", metavar="N", usual="0; secret if programs or agents play"
    )
    base_url: str | None = _model_setting("base_url")
    api: Api | None = _model_setting("api")
    api_key_env: str | None = _model_setting("api_key_env")
    max_output: int | None = _model_setting("max_output")
    read: ReplyPart | None = _model_setting("read")
    system: RulesRole | None = _model_setting("system")
    in_flight: int = setting(
        "Maximum number of games or questions at once when models play.", 32, group="Models", ge=1, le=1024
    )
    patience: str | float = setting(
        "Stop if an account does not answer for this long, such as 90s, 30m or 2h.",
        "30m",
        group="Models",
        metavar="TIME",
    )
    provider_errors: ProviderErrors = setting("What to do when a model cannot be reached.", "fallback", group="Models")
    on_unusable: OnUnusable = setting("What to do when none of a model's answers are usable.", "stop", group="Models")
    preflight: bool = setting("Ask each model a real question before the first game.", default=True, group="Models")
    cache: str = setting("Folder for cached replies, shared by runs.", "cache", group="Models", metavar="FOLDER")
    offline: bool = setting("Make no calls: every reply must be in the cache.", default=False, group="Models")
    budget: BudgetConfig = setting(
        "Spending limit.", BudgetConfig(), group="Budget", usual="none", examples=[{"usd": 5, "calls": 1000}]
    )
    prices: str | dict[str, Any] = setting(
        "Model prices in USD per million tokens, used instead of the list prices.", {}, group="Budget", metavar="FILE"
    )
    stop: StopConfig | None = setting(
        "Stop when all contenders differ significantly or are known to be within N points of each other, or after "
        "`most` deals.",
        group="Statistics",
        examples=[{"within": 3, "most": 1200}],
    )
    output: str | None = setting("The run folder.", group="Output", metavar="FOLDER", usual="runs/NAME")
    workers: int | None = setting(
        "Number of processes; results do not depend on it.", group="Cluster", usual="one per core", ge=1
    )
    executor: str = setting(
        "Where games run: in processes, or on a plugin's executor such as dask.", "processes", group="Cluster"
    )
    scheduler: str | None = setting(
        "Address of the Dask scheduler.", group="Cluster", metavar="ADDRESS", usual="a cluster on this machine"
    )
    _sources: SettingSources = PrivateAttr(default_factory=lambda: SettingSources("the config", frozenset()))

    @field_validator("seed", mode="before")
    @classmethod
    def _read_seed(cls, seed: Any) -> Any:
        try:
            return parse_seed(seed) if isinstance(seed, str) else seed
        except ValueError:
            raise PydanticCustomError("seed", "must be {format}", {"format": SEED_FORMAT}) from None

    @property
    def server(self) -> dict[str, Any]:
        return self.model_dump(include={*SHORT_FORM_SETTINGS}, exclude_none=True)

    @property
    def sources(self) -> SettingSources:
        return self._sources


SETTINGS: Final[Mapping[str, Setting]] = {key: Setting(key, field) for key, field in Config.model_fields.items()}
# Settings without a flag, and why.
FILE_ONLY: Final[Mapping[str, str]] = {"rules": "each rule has its own flag"}


def read_config(path: Path) -> dict[str, Any]:
    """Return the mapping in a config file. Raises UsageError with the file and, if known, the line."""
    content = read_yaml(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError("a config consists of `key: value` lines, such as `games: 1000`", where=str(path))
    return content


# Keys in an experiment.yaml of the source project (github.com/isBre/Dubito), and ours.
# None: the run folder has such files anyway.
_SOURCE_KEYS: Final[Mapping[str, str | None]] = {
    "n_experiments": "games",
    "available_players": "table_sizes",
    "output_file": None,
    "output_html": None,
    "output_dir": None,
}


def _translate_source_config(content: Mapping[str, Any], source: str) -> tuple[Mapping[str, Any], str]:
    """Translate a config of the source project. Also return a sentence that states what became of its keys."""
    theirs = [key for key in content if key in _SOURCE_KEYS]
    translated = {key: value for key, value in content.items() if key not in _SOURCE_KEYS}
    changes, left_out = list[str](), list[str]()
    for key in theirs:
        if (ours := _SOURCE_KEYS[key]) is None:
            left_out.append(key)
        elif ours in content:
            changes.append(f"{key} is ignored, since {ours} is set")
        else:
            translated[ours] = content[key]
            changes.append(f"{key} is now {ours}: {one_line(str(content[key]), 60)}")
    if left_out:
        changes.append(f"{join_names(left_out)} left out, since the run folder has all_games.yaml and the report")
    if theirs and "bots" not in content:
        changes.append("bots is not set, so all hand-written bots in bots/manual play")
    return translated, f"{source} is translated from isBre/Dubito: {'; '.join(changes)}" if theirs else ""


def parse_config(content: Mapping[str, Any], source: str, flags: Mapping[str, Any] | None = None) -> Config:
    """Return the config from a file's content, which flags override.

    Args:
        content: The mapping in the file.
        source: The name of the file in messages.
        flags: Flags by key, as text or as values of a config. None means that a flag is not set. Keys that are
            not settings are rules of the game.

    Raises:
        UsageError: A key or a value is wrong. The message names it, its location, and what is expected.
    """
    for key in content:
        if not isinstance(key, str):
            raise UsageError(f"unknown key {one_line(repr(str(key)), 60)}", where=source, hint="keys must be strings")
    content, translation = _translate_source_config(content, source)
    set_flags = {key: value for key, value in (flags or {}).items() if value is not None}
    overrides = {key: SETTINGS[key].parse(value) for key, value in set_flags.items() if key in SETTINGS}
    if rules := {key: value for key, value in set_flags.items() if key not in SETTINGS}:
        overrides["rules"] = rules
    merged = dict(content)
    for key, value in overrides.items():
        in_file = content.get(key)
        if isinstance(value, dict) and in_file is not None:
            if not isinstance(in_file, dict):
                problem = f"{key}: must be a mapping, not {one_line(repr(in_file), 60)}"
                raise UsageError(problem, where=source)
            value = {**in_file, **value}
        merged[key] = value
    sources = SettingSources(source, frozenset(set_flags), translation)
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        # An unknown key often explains the other errors, such as a missing one.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        raise UsageError(describe_config_error(dict(first), sources)) from None
    config._sources = sources
    return config


def describe_config_error(error: Mapping[str, Any], sources: SettingSources) -> str:
    """Describe a Pydantic error, naming the flag or key that caused it."""
    loc = tuple(part for part in error["loc"] if part not in UNION_PARTS)
    if error["type"] in ("too_short", "string_too_short"):
        return f"{sources.locate(*loc)}: must not be empty"
    setting = SETTINGS.get(str(loc[0]))
    if error["type"] == "extra_forbidden":
        nested = setting.keys_model if setting and len(loc) > 1 else None
        key, where = one_line(str(loc[-1])), f"--{loc[0]}" if nested and loc[0] in sources.flags else sources.file
        return f"{where}: unknown key '{key}': {suggestion(key, (nested or Config).model_fields)}"
    example = ", ".join(f"{key}: {value}" for key, value in (setting.example if setting else {}).items())
    if error["type"] == "missing":
        return f"{sources.locate(*loc[:-1])}: {loc[-1]} is required, as in {{{example}}}"
    if error["type"] == "model_type":
        return f"{sources.locate(*loc)}: {describe_invalid(error, f'a mapping such as {{{example}}}')}"
    return f"{sources.locate(*loc)}: {describe_invalid(error)}"


if __name__ == "__main__":
    print(json.dumps(Config.model_json_schema(), indent=2))
