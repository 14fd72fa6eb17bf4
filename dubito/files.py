"""Read and write files: text, YAML with stricter checks, and atomic writes.

YAML is refused if the YAML rules would silently choose a meaning, as with repeated keys. This module also defines the
base class of pydantic models for files and flags, and their error texts.
"""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from dubito.errors import RunStopped, UsageError, one_line

MAX_FILE_CHARS: Final = 16 << 20  # size limit of a file, in characters; the longest saved game needs a sixteenth
# Size limit of a YAML file, in characters. Parsing is slow; the manifest of a thousand models needs one million.
_MAX_YAML_CHARS: Final = 4 << 20
# Maximum number of values in a YAML file, enough for that manifest. Each takes a kilobyte of memory during parsing.
_MAX_YAML_VALUES: Final = 50_000
_MAX_NUMBER_CHARS: Final = 1000  # characters; Python takes a quarter of a second to parse ten thousand digits
# octal and sexagesimal numbers
_OTHER_BASE: Final = re.compile(r"[-+]?0_*[0-7][0-7_]*|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
# the parser's error, reported for the line after the mistake
_MAPPING_ERROR: Final = "mapping values are not allowed here"
_MISSING_SPACE: Final = re.compile(r"\s*(\w+:)[^\s:/]")
_OS_ERROR: Final = re.compile(r"\[Errno \d+\] ([^:]+)")
_MERGE: Final = "tag:yaml.org,2002:merge"


class MissingFile(UsageError):
    """A file does not exist."""


class UnreadableFile(UsageError):
    """A file exists but its content is invalid."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text)
        self.why = why


def read_text(path: Path) -> str:
    """Return a file's text. Raises UsageError with its name: MissingFile, UnreadableFile, or the system's error."""
    shown = one_line(str(path))
    try:
        check_is_file(path)
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_FILE_CHARS + 1)
    except OSError as error:
        kind = MissingFile if isinstance(error, FileNotFoundError | NotADirectoryError) else UsageError
        raise kind(f"cannot read {shown}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _unreadable(shown, "is not UTF-8 text") from None
    if len(text) > MAX_FILE_CHARS:
        raise _unreadable(shown, f"is too large: Dubito reads at most {MAX_FILE_CHARS >> 20} MB")
    return text


def _unreadable(shown: str, why: str) -> UnreadableFile:
    return UnreadableFile(f"{shown} {why}", why)


def check_is_file(path: Path) -> None:
    real = path.resolve()  # pipes of a shell, as in `<(...)`, have no such path
    if real.exists() and not real.is_file() and not real.is_dir():
        raise UsageError(f"cannot read {one_line(str(path))}: it is a pipe or a device; save it as a file")


def check_format(actual: object, known: int | str, shown: str) -> None:
    """Raise UsageError if a Dubito file's format is not among `known`.

    `actual` is None if the file does not specify a format.
    """
    if type(actual) is type(known) and actual == known:
        return
    theirs = "no format" if actual is None else f"format {one_line(str(actual), 60)}"
    raise UsageError(
        f"{shown} was written by another version of Dubito ({theirs}; this one reads {known}): use that version, or "
        "create the file again with this one"
    )


def describe_os_error(error: OSError) -> str:
    """Return why a file could not be written.

    Copying a folder raises a single error that wraps several and has no text.
    """
    if isinstance(error, shutil.Error):
        text = one_line(str(error.args[0][0][2]))
        match = _OS_ERROR.match(text)
        return match[1] if match else text
    return error.strerror or one_line(str(error))


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, so that it is either complete or missing. Raises RunStopped."""
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise RunStopped(f"cannot write {path}: {error.strerror}") from None


def read_yaml(path: Path) -> Any:
    """Return a YAML file's content, or None if empty. Raises UsageError with the file and, if known, the line."""
    try:
        text = read_text(path)
    except MissingFile as error:
        twin = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
        if not twin.is_file():
            raise
        raise MissingFile(f"{error}: did you mean {one_line(str(twin))}?") from None
    return from_yaml(text, one_line(str(path)))


def from_yaml(text: str, source: str) -> Any:
    """Parse YAML. Raises UsageError with the source and, if known, the line."""
    if len(text) > _MAX_YAML_CHARS:
        raise _unreadable(source, f"is too large: Dubito reads at most {_MAX_YAML_CHARS >> 20} MB of YAML")
    try:
        # Errors are ignored here. Parsing again yields a better message and handles escapes that JSON allows.
        with suppress(yaml.YAMLError):
            return yaml.load(text, _FastLoader if yaml.__with_libyaml__ else _StrictLoader)  # noqa: S506, SafeLoaders
        return yaml.load(text, _StrictLoader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        why, mark = one_line(error.problem or str(error)), error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        if mark and error.problem == _MAPPING_ERROR:
            # An earlier line can be the cause.
            lines = enumerate(text.splitlines()[: mark.line], 1)
            keys = [(number, match[1]) for number, each in lines if (match := _MISSING_SPACE.match(each))]
            if keys:
                line, why = f"line {keys[-1][0]}: ", f"a space is missing after `{keys[-1][1]}`"
        where = f"{source}, {line}" if mark else f"{source}: "
        raise UnreadableFile(f"{where}not valid YAML: {why}", line + why) from None
    except (
        *(yaml.YAMLError, ValueError, RecursionError),
        *(ArithmeticError, AttributeError, LookupError, TypeError),  # raised for a tag whose value has the wrong type
    ) as error:
        why = one_line(str(error))
        raise UnreadableFile(f"{source}: not valid YAML: {why}", why) from None


class _StrictLoader(yaml.SafeLoader):
    """A loader that refuses ambiguous YAML.

    Examples are repeated keys (YAML uses the last), `010` (YAML reads 8) and lone surrogates. Each alias (`*name`)
    counts as all the values it refers to, since ten lines of nested aliases could fill the memory.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = 0
        self._sizes: dict[str | None, int] = {}  # number of values in each anchored part
        self._flattened = set[yaml.Node]()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event, before = self.peek_event(), self._values  # type: ignore[no-untyped-call]
        is_alias = isinstance(event, yaml.AliasEvent)
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        if is_alias and anchor in self.anchors and anchor not in self._sizes:
            problem = f"`*{one_line(str(anchor), 60)}` refers to a part that contains it"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        self._values += self._sizes.get(anchor, 1) if is_alias else 1
        if self._values > _MAX_YAML_VALUES:
            problem = f"it has more than {_MAX_YAML_VALUES:,} values"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        if anchor is not None and not is_alias:
            self._sizes[anchor] = self._values - before
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the mapping's own keys, then add the keys of merged mappings (`<<`).

        A mapping's own key overrides merged ones, and the first of two merged mappings wins. PyYAML gets this
        wrong if a merged mapping merges a third.
        """
        if node in self._flattened:
            return
        self._flattened.add(node)
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:  # merged keys can repeat, since the mapping's own keys override them
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (list, dict)):
                raise yaml.MarkedYAMLError(
                    problem="a key must not be a list or a mapping", problem_mark=key_node.start_mark
                )
            if key in seen:
                shown = one_line(repr(key), 80)
                raise yaml.MarkedYAMLError(problem=f"the key {shown} is set twice", problem_mark=key_node.start_mark)
            seen.add(key)
        pairs = [pair for pair in node.value if pair[0].tag != _MERGE]
        for part in (part for key, part in node.value if key.tag == _MERGE):
            for mapping in part.value if isinstance(part, yaml.SequenceNode) else [part]:
                if not isinstance(mapping, yaml.MappingNode):
                    problem = "`<<` requires a mapping or a list of mappings"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mapping.start_mark)
                self.flatten_mapping(mapping)
                pairs += mapping.value
        node.value = [*{(key.tag, key.value): (key, value) for key, value in reversed(pairs)}.values()][::-1]

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Return a string. Surrogate pairs, with which JSON escapes an emoji, are joined."""
        value = super().construct_scalar(node)
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(value, str) else value
        except UnicodeDecodeError:
            problem = "a string contains half a character"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Return a number in base 10, 16 or 2, if it is not too long."""
        if len(node.value) > _MAX_NUMBER_CHARS:
            problem = f"a number has more than {_MAX_NUMBER_CHARS:,} characters"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if _OTHER_BASE.fullmatch(node.value):
            base = "60" if ":" in node.value else "8"
            problem = f"YAML reads {one_line(node.value, 60)} in base {base}: write the number in base 10, or quote it"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        is_whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)


for _kind in ("int", "float"):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _StrictLoader.construct_number)


class _FastLoader(_StrictLoader):
    """The same loader with libyaml's parser, which is four times faster."""

    def __init__(self, text: str) -> None:
        super().__init__("")
        parts = yaml.CSafeLoader(text)
        for event in ("check_event", "peek_event", "get_event"):
            setattr(self, event, getattr(parts, event))


class CheckedModel(BaseModel):
    """A model that refuses extra keys and type conversion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoRules(CheckedModel):
    """The `rules` of a game without variants."""


UNION_PARTS: Final = ("constrained-int", "constrained-str", "dict[str,any]")  # in the place of a Pydantic error


def describe_fault(error: ValidationError, whole: str = "the file", within: str = "") -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"{one_line(within or whole)}: it is not JSON ({first['ctx']['error']})"
    parts = [*([within] if within else []), *(part for part in first["loc"] if part not in UNION_PARTS)]
    where = ".".join(map(str, parts)) or whole
    message = "Input is not valid" if first["type"] == "predicate_failed" else one_line(first["msg"])
    return f"{one_line(where)}: {message}"


# The expected value by pydantic's error type, with placeholders for the error's context.
_PROBLEMS: Final = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "mapping_type"), "must be a mapping"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "finite_number": "must be a finite number",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}


def describe_problem(error: Mapping[str, Any], mapping: str = "a mapping") -> str:
    """Describe the expected value, based on a pydantic error."""
    problem = _PROBLEMS.get(error["type"])
    if problem is None:
        return str(error["msg"])
    bounds = {name: f"{bound:.0f}" if isinstance(bound, float) and bound.is_integer() else bound
              for name, bound in error.get("ctx", {}).items()}  # fmt: skip
    return problem.format(**bounds).replace("a mapping", mapping)


def describe_invalid(error: Mapping[str, Any], mapping: str = "a mapping") -> str:
    """Describe the expected and the actual value."""
    return f"{describe_problem(error, mapping)}, not {one_line(repr(error['input']), 60)}"
