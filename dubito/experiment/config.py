"""The config of an experiment: every setting with its type, default, help and group.

A setting is described once, by its field of `Config`. Its flag, `--help`, the messages about it, the table in
docs/settings.md and the JSON Schema all come from there: `python -m dubito.experiment.config` prints the schema.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from dubito.errors import UsageError, one_line, suggestion
from dubito.experiment.experiment import OnBotError, OnUnusable, ProviderErrors
from dubito.files import Checked, in_our_words, read_yaml
from dubito.game.find import DUBITO
from dubito.llm.request import Api
from dubito.llm.settings import SHORT_FORM_SETTINGS, ReplyPart, RulesRole

PlayerEntry = str | dict[str, Any]
Group = Literal["Players", "Games and rules", "Models", "Budget", "Statistics", "Output", "Cluster"]

_DAY: Final = 24 * 3600.0  # seconds


def _setting(group: Group, about: str, default: Any = None, metavar: str = "", usual: str = "", **checks: Any) -> Any:
    """Describe a setting of the config.

    Args:
        group: The heading in `dubito run --help` and in the docs.
        about: What the setting does.
        default: The value if nothing is set.
        metavar: What `--help` shows for the value, where the type does not tell.
        usual: The default in words, where the value does not tell.
        checks: Bounds and examples, as `pydantic.Field` takes them.
    """
    shown: dict[str, Any] = {"group": group, "metavar": metavar, "usual": usual}
    shown = {key: value for key, value in shown.items() if value}
    return Field(default=default, description=about, json_schema_extra=shown, **checks)


class BudgetConfig(Checked):
    """`budget` of a config. There is no limit where none is set."""

    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Most dollars.")
    calls: int | None = Field(default=None, ge=1, description="Most calls.")
    tokens: int | None = Field(default=None, ge=1, description="Most tokens, in and out.")


class StopConfig(Checked):
    """`stop` of a config: when a comparison is decided, and how many deals it may play."""

    within: float = Field(gt=0, le=10**6, allow_inf_nan=False, description="Points that count as no difference.")
    most: int = Field(ge=30, le=10**8, description="Most deals.")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, as its field describes it: one of a config, or a rule of a game."""

    key: str
    field: FieldInfo

    def _extra(self, name: str) -> str:
        extra = self.field.json_schema_extra
        return str(extra.get(name, "")) if isinstance(extra, dict) else ""

    @property
    def flag(self) -> str:
        return f"--{self.key.replace('_', '-')}"

    @property
    def group(self) -> str:
        return self._extra("group")

    @property
    def kind(self) -> Any:
        """The type of its values, leaving out None."""
        annotation = self.field.annotation
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return kinds[0] if get_origin(annotation) in (Union, UnionType) and len(kinds) == 1 else annotation

    @property
    def nested(self) -> type[Checked] | None:
        """The model of its own keys, if it has keys."""
        kind = self.kind
        return kind if isinstance(kind, type) and issubclass(kind, Checked) else None

    @property
    def metavar(self) -> str:
        """What stands for a value in `--help`."""
        kind = self.kind
        if shown := self._extra("metavar"):
            return shown
        if nested := self.nested:
            return ",".join(f"{key}=N" for key in nested.model_fields)
        if get_origin(kind) is Literal:
            return "|".join(map(str, get_args(kind)))
        if get_origin(kind) is list:
            return "N,N,..." if get_args(kind)[0] is int else "A,B,..."
        return "N" if kind in (int, float) else "NAME"

    @property
    def usual(self) -> str:
        """The default in words."""
        default = self.field.get_default(call_default_factory=True)
        if self.kind is bool:
            return self.flag[2:] if default else f"no-{self.flag[2:]}"
        return self._extra("usual") or ("none" if default in (None, [], {}) else str(default))

    @property
    def example(self) -> Mapping[str, Any]:
        """An example of a setting with keys of its own."""
        return dict((self.field.examples or [{}])[0])

    def parse(self, value: Any) -> Any:
        """Return a flag's value as a config would have it. Text that does not parse stays, and the check refuses it."""
        if not isinstance(value, str):
            return value
        if nested := self.nested:
            return self._parse_mapping(value, nested.model_fields)
        kinds = {kind if isinstance(kind, type) else type(kind) for kind in get_args(self.kind) or (self.kind,)}
        numbers = [] if str in kinds else [kind for kind in (int, float) if kinds & {kind, float}]
        if get_origin(self.kind) is list:
            return [_number(part.strip(), numbers) for part in value.split(",") if part.strip()]
        return _number(value, numbers)

    def _parse_mapping(self, text: str, fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for part in text.split(","):
            key, equals, value = (word.strip() for word in part.partition("="))
            if not key or not equals:
                example = ",".join(f"{key}={value}" for key, value in self.example.items())
                raise UsageError(f"{self.flag}: write it as {example}, not {one_line(repr(text), 60)}")
            if key in values:
                raise UsageError(f"{self.flag}: {one_line(key)} is set twice")
            values[key] = Setting(key, fields[key]).parse(value) if key in fields else value
        return values


def _number(text: str, kinds: Iterable[type[int] | type[float]]) -> int | float | str:
    """Return text as the first of these kinds that it fits; text that fits none stays."""
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Where a config comes from."""

    source: str
    flags: Collection[str]

    def where(self, *loc: str | int) -> str:
        """Return the flag that set it, or the file with the place in it."""
        key = str(loc[-1] if loc[0] == "rules" else loc[0])
        if key in self.flags:
            return f"--{key.replace('_', '-')}"
        return f"{self.source}: {'.'.join(map(str, loc))}"


class Config(Checked):
    """All settings of an experiment."""

    model_config = ConfigDict(str_min_length=1)

    table_sizes: list[int] | None = _setting("Players", "Table sizes; each deal draws one.", min_length=1, usual="all")
    bots: list[PlayerEntry] | None = _setting(
        "Players", "Bots and models that each deal draws its players from.", min_length=1, usual="all hand-written bots"
    )
    contenders: list[PlayerEntry] = _setting("Players", "Players compared with each other on the same deals.", [])
    on_bot_error: OnBotError = _setting("Players", "What to do when a bot breaks the rules or raises.", "stop")
    bot_deadline: float | None = _setting(
        "Players", "Most seconds that a bot may take for one turn or event.", metavar="SECONDS", gt=0, le=_DAY
    )
    game: str = _setting("Games and rules", "A game of `dubito games`.", DUBITO)
    rules: dict[str, Any] = _setting("Games and rules", "Rules of the game.", {})
    games: int = _setting("Games and rules", "Games; with m contenders a multiple of m.", 10_000, ge=1, le=10**9)
    seed: int = _setting("Games and rules", "Seed of the run.", 0, ge=0)
    base_url: str | None = _setting(
        "Models",
        "Server of models in the short form, such as openai:MODEL; `env` means OPENAI_BASE_URL or ANTHROPIC_BASE_URL.",
        metavar="URL|env",
        usual="the provider's",
    )
    api: Api | None = _setting("Models", "API of models in the short form.", usual="the provider's")
    api_key_env: str | None = _setting(
        "Models", "Variable with the key of that server: no other key is sent there.", usual="the provider's"
    )
    max_output: int | None = _setting("Models", "Most tokens of a reply, reasoning included.", usual="8192")
    read: ReplyPart | None = _setting("Models", "Take the whole reply, or its last JSON object.", usual="strict")
    system: RulesRole | None = _setting("Models", "Role of the message that states the rules.", usual="system")
    in_flight: int = _setting("Models", "Most games or questions at once when models play.", 32, ge=1, le=1024)
    patience: str | float = _setting(
        "Models", "Stop after an account has not answered for this long: 90s, 30m, 2h.", "30m", metavar="TIME"
    )
    provider_errors: ProviderErrors = _setting("Models", "What to do when a model cannot be reached.", "fallback")
    on_unusable: OnUnusable = _setting("Models", "What to do when no answer of a model can be used.", "stop")
    preflight: bool = _setting("Models", "Ask each model a real question before the start.", default=True)
    cache: str = _setting("Models", "Folder of cached replies, shared by runs.", "cache", metavar="FOLDER")
    offline: bool = _setting("Models", "Make no call: every reply must be in the cache.", default=False)
    budget: BudgetConfig = _setting(
        "Budget",
        "Hard limit on what it may spend.",
        BudgetConfig(),
        usual="no limit",
        examples=[{"usd": 5, "calls": 1000}],
    )
    prices: str | dict[str, Any] = _setting(
        "Budget", "Prices of models in USD per million tokens, over the list prices.", {}, metavar="FILE"
    )
    stop: StopConfig | None = _setting(
        "Statistics",
        "Stop when all contenders differ significantly or are known to be within N points, or after `most` deals.",
        usual="play all games",
        examples=[{"within": 3, "most": 1200}],
    )
    output: str | None = _setting("Output", "The run folder.", metavar="FOLDER", usual="runs/NAME")
    workers: int | None = _setting("Cluster", "Processes; results do not depend on it.", ge=1, usual="one per core")
    executor: str = _setting("Cluster", "Who plays: processes, or a plugin's executor such as dask.", "processes")
    scheduler: str | None = _setting("Cluster", "Dask scheduler.", metavar="ADDRESS", usual="a cluster on this machine")
    _said: ConfigSource = PrivateAttr(default_factory=lambda: ConfigSource("the config", frozenset()))

    @property
    def server(self) -> dict[str, Any]:
        return {key: value for key in SHORT_FORM_SETTINGS if (value := getattr(self, key)) is not None}

    @property
    def said(self) -> ConfigSource:
        return self._said


SETTINGS: Final[Mapping[str, Setting]] = {key: Setting(key, field) for key, field in Config.model_fields.items()}
# Settings without a flag, and why.
FILE_ONLY: Final[Mapping[str, str]] = {"rules": "each rule is a flag of its own"}


def read_config(path: Path) -> dict[str, Any]:
    """The mapping in a config file; raises UsageError naming the file and, where known, the line."""
    content = read_yaml(path)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a config consists of `key: value` lines, such as `games: 1000`")
    return content


def check(content: Mapping[str, Any], source: str, flags: Mapping[str, Any] | None = None) -> Config:
    """Return the config of a file's content with flags over it.

    Args:
        content: What the file holds.
        source: The name of the file in messages.
        flags: Flags by their keys, as text or as a config would have them. None means that a flag is not given. Keys
            that are no settings are rules of the game.

    Raises:
        UsageError: A key or value is wrong; the message says which one, where, and what it should be.
    """
    for key in content:
        if not isinstance(key, str):
            raise UsageError(f"{source}: unknown key {one_line(repr(str(key)), 60)}: keys are text")
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    over = {key: SETTINGS[key].parse(value) for key, value in given.items() if key in SETTINGS}
    if rules := {key: value for key, value in given.items() if key not in SETTINGS}:
        over["rules"] = rules
    merged = dict(content)
    for key, value in over.items():
        merged[key] = {**_mapping(key, content, source), **value} if isinstance(value, dict) else value
    said = ConfigSource(source, frozenset(given))
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")  # it explains others
        raise UsageError(sentence_of(dict(first), said)) from None
    config._said = said
    return config


def _mapping(key: str, content: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """Return the mapping that the file has under a key, for flags to add to."""
    value = content.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    raise UsageError(f"{source}: {key}: must be a mapping, not {one_line(repr(value), 60)}")


def sentence_of(error: Mapping[str, Any], said: ConfigSource) -> str:
    """Return what is wrong with a config as a sentence, given pydantic's error."""
    loc = tuple(part for part in error["loc"] if part not in ("constrained-str", "dict[str,any]"))
    if error["type"] in ("too_short", "string_too_short"):
        return f"{said.where(*loc)}: must not be empty"
    setting = SETTINGS.get(str(loc[0]))
    if error["type"] == "extra_forbidden":
        nested = setting.nested if setting and len(loc) > 1 else None
        key, where = one_line(str(loc[-1])), f"--{loc[0]}" if nested and loc[0] in said.flags else said.source
        return f"{where}: unknown key '{key}': {suggestion(key, (nested or Config).model_fields)}"
    example = ", ".join(f"{key}: {value}" for key, value in (setting.example if setting else {}).items())
    if error["type"] == "missing":
        return f"{said.where(*loc[:-1])}: {loc[-1]} is needed, as in {{{example}}}"
    if error["type"] == "model_type":
        return f"{said.where(*loc)}: {in_our_words(error, f'a mapping such as {{{example}}}')}"
    return f"{said.where(*loc)}: {in_our_words(error)}"


if __name__ == "__main__":
    print(json.dumps(Config.model_json_schema(), indent=2))
