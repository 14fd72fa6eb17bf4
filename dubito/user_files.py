"""Files that people write: text, and YAML that is refused where YAML itself would settle something in silence."""

from pathlib import Path
from typing import Any, Final

import yaml

from dubito.errors import UsageError, one_line

_MERGE: Final = "tag:yaml.org,2002:merge"


def read_text(path: Path) -> str:
    """The text of a file; raises UsageError that names it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(path))}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{one_line(str(path))} is not UTF-8 text") from None


def read_yaml(path: Path) -> Any:
    """What a YAML file holds, None if nothing; raises UsageError naming the file and, where known, the line."""
    return from_yaml(read_text(path), one_line(str(path)))


def from_yaml(text: str, source: str) -> Any:
    """What a text in YAML holds; raises UsageError naming its source and, where known, the line."""
    try:
        return yaml.load(text, _Careful)  # noqa: S506, a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{source}{line}: not readable as YAML: {one_line(error.problem or str(error))}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not readable as YAML: {one_line(str(error))}") from None


class _Careful(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping, where YAML would take the last, and halves of characters."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
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
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """A text; two halves of a character, as JSON escapes an emoji, become one."""
        value = super().construct_scalar(node)
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(value, str) else value
        except UnicodeDecodeError:
            problem = "a text holds half a character"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None
