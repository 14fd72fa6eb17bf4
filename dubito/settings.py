"""Settings described by their fields, for use in flags, `--help`, messages and docs."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo

from dubito.errors import UsageError, one_line
from dubito.files import CheckedModel, from_yaml


def setting(about: str, default: Any = None, group: str = "", metavar: str = "", usual: str = "", **checks: Any) -> Any:
    """Return the field for a setting.

    Args:
        about: What the setting does.
        default: The value if nothing is set; `...` if the setting is required.
        group: The heading in `dubito run --help` and in the docs.
        metavar: The placeholder in `--help`, if the type is not enough.
        usual: The default in words, if the value is not enough.
        checks: Bounds and examples, in the form that `pydantic.Field` expects.
    """
    shown: dict[str, Any] = {"group": group, "metavar": metavar, "usual": usual}
    shown = {key: value for key, value in shown.items() if value}
    return Field(default=default, description=about, json_schema_extra=shown, **checks)


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a config or model player, or a rule of a game, as described by its field."""

    key: str
    field: FieldInfo

    def _extra_text(self, name: str) -> str:
        extra = self.field.json_schema_extra
        return str(extra.get(name, "")) if isinstance(extra, dict) else ""

    @property
    def flag(self) -> str:
        return f"--{self.key.replace('_', '-')}"

    @property
    def group(self) -> str:
        return self._extra_text("group")

    @property
    def about(self) -> str:
        return self.field.description or "Rule of this game."

    @property
    def kind(self) -> Any:
        """The type of the setting's values, without None."""
        annotation = self.field.annotation
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return kinds[0] if get_origin(annotation) in (Union, UnionType) and len(kinds) == 1 else annotation

    @property
    def keys_model(self) -> type[CheckedModel] | None:
        """The model of the setting's keys, if it is a mapping with fixed keys."""
        kind = self.kind
        return kind if isinstance(kind, type) and issubclass(kind, CheckedModel) else None

    @property
    def metavar(self) -> str:
        """The placeholder for a value in `--help`."""
        if shown := self._extra_text("metavar"):
            return shown
        if nested := self.keys_model:
            return ",".join(f"{key}=N" for key in nested.model_fields)
        kinds = get_args(self.kind)
        several = {Literal: "|".join(map(str, kinds)), list: "N,N,..." if int in kinds else "A,B,...", dict: "YAML"}
        return several.get(get_origin(self.kind), "N" if self.kind in (int, float) else "NAME")

    @property
    def usual(self) -> str:
        """The default in words."""
        if (shown := self._extra_text("usual")) or self.field.is_required():
            return shown or "needed"
        default = self.field.get_default(call_default_factory=True)
        if self.kind is bool:
            return self.flag[2:] if default else f"no-{self.flag[2:]}"
        return str(default) if default or default == 0 else "none"

    @property
    def example(self) -> Mapping[str, Any]:
        """An example of a mapping with fixed keys."""
        return dict((self.field.examples or [{}])[0])

    def parse(self, value: Any) -> Any:
        """Return a flag's value in the form used in a config.

        Text that cannot be parsed is returned unchanged and refused by the check.
        """
        if not isinstance(value, str):
            return value
        if nested := self.keys_model:
            values, fields = dict[str, Any](), nested.model_fields
            for part in value.split(","):
                key, equals, text = (word.strip() for word in part.partition("="))
                if not key or not equals:
                    example = ",".join(f"{key}={shown}" for key, shown in self.example.items())
                    raise UsageError(f"{self.flag}: write it as {example}, not {one_line(repr(value), 60)}")
                if key in values:
                    raise UsageError(f"{self.flag}: {one_line(key)} is set twice")
                values[key] = Setting(key, fields[key]).parse(text) if key in fields else text
            return values
        if get_origin(self.kind) is dict:
            return from_yaml(value, self.flag)
        kinds = {kind if isinstance(kind, type) else type(kind) for kind in get_args(self.kind) or (self.kind,)}
        numbers = [] if str in kinds else [kind for kind in (int, float) if kinds & {kind, float}]
        if get_origin(self.kind) is list:
            return [_number(part.strip(), numbers) for part in value.split(",") if part.strip()]
        return _number(value, numbers)

    def to_words(self, value: Any) -> list[str]:
        """Return the words of a command that set this value: the inverse of `parse`."""
        if self.kind is bool:
            return [self.flag if value else f"--no-{self.flag[2:]}"]
        if self.keys_model is not None:
            return [self.flag, ",".join(f"{key}={each}" for key, each in value.items())]
        if isinstance(value, Mapping):
            return [self.flag, json.dumps(value, ensure_ascii=False)]
        return [self.flag, ",".join(map(str, value)) if isinstance(value, list) else str(value)]


def _number(text: str, kinds: Iterable[type[int] | type[float]]) -> int | float | str:
    """Convert text to the first of these types that fits, or return it unchanged if none does."""
    for kind in kinds:
        with suppress(ValueError):
            return kind(text)
    return text


_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)")


_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float | None:
    """Return the seconds in `1h2m3.5s` or `350ms`, or None for any other text."""
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
