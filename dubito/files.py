"""Files that people write, read as text and as YAML, which is refused where YAML itself would settle something in
silence; what they say in files and flags, checked by pydantic; and files of ours, written whole.
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

LARGEST: Final = 16 << 20  # characters of a file that is read whole: the longest saved game takes a sixteenth
_LARGEST_YAML: Final = 4 << 20  # characters: it is read slowly, and the manifest of a thousand models takes one million
_MOST_VALUES: Final = 50_000  # of a YAML file: those of that manifest; each takes a kilobyte while it is read
_LONGEST_NUMBER: Final = 1000  # characters: Python takes a quarter of a second for ten thousand digits
_OTHER_BASE: Final = re.compile(r"[-+]?0_*[0-7][0-7_]*|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")  # 8 and 60
_NO_MAPPING: Final = "mapping values are not allowed here"  # so the parser says it, of the line behind
_NO_SPACE: Final = re.compile(r"\s*(\w+:)[^\s:/]")
_OS_ERROR: Final = re.compile(r"\[Errno \d+\] ([^:]+)")
_MERGE: Final = "tag:yaml.org,2002:merge"


class Missing(UsageError):
    """There is no such file."""


class Unreadable(UsageError):
    """A file is there, and is not what it should be."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text)
        self.why = why


def read_text(path: Path) -> str:
    """The text of a file; raises UsageError that names it: Missing, Unreadable, or what the system says."""
    shown = one_line(str(path))
    try:
        check_is_file(path)
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        kind = Missing if isinstance(error, FileNotFoundError | NotADirectoryError) else UsageError
        raise kind(f"cannot read {shown}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _unreadable(shown, "is not UTF-8 text") from None
    if len(text) > LARGEST:
        raise _unreadable(shown, f"is too large: what is read from it has at most {LARGEST >> 20} MB")
    return text


def _unreadable(shown: str, why: str) -> Unreadable:
    return Unreadable(f"{shown} {why}", why)


def check_is_file(path: Path) -> None:
    real = path.resolve()  # of a shell's own pipe, as in `<(...)`, there is none
    if real.exists() and not real.is_file() and not real.is_dir():
        raise UsageError(f"cannot read {one_line(str(path))}: it is a pipe or a device; save it as a file")


def check_format(found: object, known: int | str, shown: str) -> None:
    """Raise UsageError if a file of ours has another format than this version reads. None: it states no format."""
    if type(found) is type(known) and found == known:
        return
    theirs = "no format" if found is None else f"format {one_line(str(found), 60)}"
    raise UsageError(
        f"{shown} was written by another version of Dubito ({theirs}; this one reads {known}): use that version, or "
        "make it again with this one"
    )


def reason_of(error: OSError) -> str:
    """Return why a file could not be written. Several errors of a copied folder are one without a text of its own."""
    if isinstance(error, shutil.Error):
        text = one_line(str(error.args[0][0][2]))
        found = _OS_ERROR.match(text)
        return found[1] if found else text
    return error.strerror or one_line(str(error))


def write_whole(path: Path, text: str) -> None:
    """Write a file in one piece: it is there complete, or not at all. Raises RunStopped."""
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
    """What a YAML file holds, None if nothing; raises UsageError naming the file and, where known, the line."""
    try:
        text = read_text(path)
    except Missing as error:
        twin = path.with_suffix(".yml" if path.suffix == ".yaml" else ".yaml")
        if not twin.is_file():
            raise
        raise Missing(f"{error}: did you mean {one_line(str(twin))}?") from None
    return from_yaml(text, one_line(str(path)))


def from_yaml(text: str, source: str) -> Any:
    """What a text in YAML holds; raises UsageError naming its source and, where known, the line."""
    if len(text) > _LARGEST_YAML:
        raise _unreadable(source, f"is too large: a file in YAML has at most {_LARGEST_YAML >> 20} MB")
    try:
        with suppress(yaml.YAMLError):  # then once more, for the error's words, and for what JSON may escape
            return yaml.load(text, _Quick if yaml.__with_libyaml__ else _Careful)  # noqa: S506, SafeLoaders
        return yaml.load(text, _Careful)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        why, mark = one_line(error.problem or str(error)), error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        if mark and error.problem == _NO_MAPPING and (before := _without_space(text.splitlines()[: mark.line])):
            line, why = f"line {before[0]}: ", f"a space is missing after `{before[1]}`"
        where = f"{source}, {line}" if mark else f"{source}: "
        raise Unreadable(f"{where}not readable as YAML: {why}", line + why) from None
    except (
        *(yaml.YAMLError, ValueError, RecursionError),
        *(ArithmeticError, AttributeError, LookupError, TypeError),  # of a tag whose value is none of its kind
    ) as error:
        why = one_line(str(error))
        raise Unreadable(f"{source}: not readable as YAML: {why}", why) from None


def _without_space(lines: list[str]) -> tuple[int, str] | None:
    found = [(number, match[1]) for number, line in enumerate(lines, 1) if (match := _NO_SPACE.match(line))]
    return found[-1] if found else None


class _Careful(yaml.SafeLoader):
    """Refuses what YAML would settle in silence: a repeated key, of which it takes the last; `010` for 8; half a
    character. Each alias (`*name`) counts as all the values it stands for: ten lines of them can fill any memory."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = 0
        self._sizes: dict[str | None, int] = {}  # of anchored parts, in values
        self._flattened = set[yaml.Node]()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event, before = self.peek_event(), self._values  # type: ignore[no-untyped-call]
        anchor, is_alias = getattr(event, "anchor", None), isinstance(event, yaml.AliasEvent)
        if is_alias and anchor in self.anchors and anchor not in self._sizes:
            problem = f"`*{one_line(str(anchor), 60)}` stands inside the part that it names"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        self._values += self._sizes.get(anchor, 1) if is_alias else 1
        if self._values > _MOST_VALUES:
            problem = f"it has more than {_MOST_VALUES:,} values"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        if anchor is not None and not is_alias:
            self._sizes[anchor] = self._values - before
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the mapping's own keys, then add those of the mappings merged into it (`<<`): of equal keys the own
        one counts, else the first. PyYAML would take others where a merged mapping merges a third."""
        if node in self._flattened:
            return
        self._flattened.add(node)
        self._check_keys(node)
        pairs = [pair for pair in node.value if pair[0].tag != _MERGE]
        for part in (part for key, part in node.value if key.tag == _MERGE):
            for mapping in part.value if isinstance(part, yaml.SequenceNode) else [part]:
                if not isinstance(mapping, yaml.MappingNode):
                    problem = "`<<` takes a mapping, or a list of mappings"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mapping.start_mark)
                self.flatten_mapping(mapping)
                pairs += mapping.value
        node.value = [*{(key.tag, key.value): (key, value) for key, value in reversed(pairs)}.values()][::-1]

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:  # the keys of another mapping: those that stand here go over them
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (list, dict)):
                raise yaml.MarkedYAMLError(problem="a key is a list or a mapping", problem_mark=key_node.start_mark)
            if key in seen:
                said = one_line(repr(key), 80)
                raise yaml.MarkedYAMLError(problem=f"the key {said} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """A text; two halves of a character, as JSON escapes an emoji, become one."""
        value = super().construct_scalar(node)
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(value, str) else value
        except UnicodeDecodeError:
            problem = "a text holds half a character"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Return a number in base 10, 16 or 2 that is not too long to be read or written."""
        if len(node.value) > _LONGEST_NUMBER:
            problem = f"a number has more than {_LONGEST_NUMBER:,} characters"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        if _OTHER_BASE.fullmatch(node.value):
            base = "60" if ":" in node.value else "8"
            problem = f"YAML reads {one_line(node.value, 60)} in base {base}: write the number in base 10, or quote it"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        is_whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Careful.add_constructor(f"tag:yaml.org,2002:{_kind}", _Careful.construct_number)


class _Quick(_Careful):
    """The same, where libyaml takes the text apart, in a quarter of the time."""

    def __init__(self, text: str) -> None:
        super().__init__("")
        parts = yaml.CSafeLoader(text)
        for event in ("check_event", "peek_event", "get_event"):
            setattr(self, event, getattr(parts, event))


class Checked(BaseModel):
    """No key more than these, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoRules(Checked):
    """The `rules` of a game that has nothing to vary."""


def fault(error: ValidationError, whole: str = "the file", within: str = "") -> str:
    first = error.errors()[0]
    where = ".".join(map(str, (*([within] if within else []), *first["loc"]))) or whole
    return f"{one_line(where)}: {one_line(first['msg'])}"


_WORDS: Final = {
    "Input should be": "must be",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid list": "a list",
    "a valid string": "a text",
    "a valid boolean": "true or false",
    "a valid dictionary": "a mapping",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
_OF_CLASS: Final = re.compile(r" or instance of \w+")


def in_our_words(error: Mapping[str, Any], mapping: str = "a mapping") -> str:
    """What a value has to be, and what it is instead, of an error of pydantic's."""
    message = _OF_CLASS.sub("", str(error["msg"]))
    for theirs, ours in {**_WORDS, "a valid dictionary": mapping}.items():
        message = message.replace(theirs, ours)
    return f"{message}, not {one_line(repr(error['input']), 60)}"
