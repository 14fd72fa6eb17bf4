"""Writes docs/json.md from the objects themselves: `python -m tests.cli.json_docs`."""

from typing import Any, Final, get_args

from dubito.cli.documents import Document
from dubito.game import PlayerKind
from tests.cli.kit import REPO

FILE: Final = REPO / "docs" / "json.md"
_HEAD: Final = """# `--json`

With `--json` these commands print one object, and nothing else, to standard output; all else goes to standard error,
and the exit codes are the usual ones. An error before anything started prints no object. Keys stay as they are; new
ones may join, and a change that could break a reader raises the number in `format`. A rate is a share from 0 to 1, or
on the game's own scale where its measure has one; money is in dollars. `?` is what may be null; a *kind* is "model",
"stand-in", "hand-written" or "person".

```sh
dubito run examples/models.yaml --json > result.json
dubito runs --json | jq -r '.runs[] | select(.state == "stopped") | .folder'
```
"""
_COMMANDS: Final = ("run", "merge", "status", "compare", "bots", "games", "runs", "estimate", "cache stats", "rate")


def text() -> str:
    """The page."""
    parts = [_HEAD]
    named: dict[str, Any] = {}
    for command, document in zip(_COMMANDS, Document.__subclasses__(), strict=True):
        schema = document.model_json_schema()
        named |= schema.get("$defs", {})
        parts.append(f"## `dubito {command} --json`\n\n{_list(schema)}")
    parts.append("## Their parts\n")
    parts += [f"### {name}\n\n{part['description']}\n\n{_list(part)}" for name, part in sorted(named.items())]
    return "\n".join(parts)


def _list(schema: dict[str, Any]) -> str:
    """A line a key; keys of one type of which nothing more is said share a line."""
    lines: dict[str, list[str]] = {}  # by what stands behind the keys
    for key, of in schema["properties"].items():
        meaning = of.get("description")
        lines.setdefault(f"{_type(of)}{f'; {meaning}' if meaning else ''}", []).append(f"`{key}`")
    return "".join(f"- {', '.join(keys)}: {said}\n" for said, keys in lines.items())


def _type(of: dict[str, Any]) -> str:
    """A schema's type in words: `?` where it may be null, brackets around what a list has."""
    if "$ref" in of:
        name = of["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in of:
        return f'"{of["const"]}"'
    if "enum" in of:
        return ", ".join(f'"{value}"' for value in of["enum"]) if tuple(of["enum"]) != get_args(PlayerKind) else "kind"
    if "anyOf" in of:
        return " or ".join(_type(one) for one in of["anyOf"] if one != {"type": "null"}) + "?" * (
            {"type": "null"} in of["anyOf"]
        )
    if "prefixItems" in of:
        return f"({', '.join(map(_type, of['prefixItems']))})"
    if of.get("type") == "array":
        return f"list of {_type(of['items'])}"
    if of.get("type") == "object":
        return f"object of {_type(of['additionalProperties'])}"
    return str(of["type"])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
