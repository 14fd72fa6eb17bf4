"""Write docs/json.md from the document classes: `python -m tests.cli.json_docs`."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, get_args

from dubito.game import PlayerKind
from dubito.plugins.deception.documents import DeceptionObject
from dubito.plugins.forge.documents import ForgeObject
from dubito.plugins.leaderboard.documents import RatingObject
from dubito.plugins.openspiel.policy.contenders import CorrectedResult
from dubito.plugins.openspiel.policy.documents import PolicyObject
from dubito.plugins.study.documents import ForkObject
from dubito.report.documents import Document
from tests.cli.kit import REPO

FILE: Final = REPO / "docs" / "json.md"
_HEAD: Final = """# `--json`

With `--json` these commands print one JSON object to standard output, and everything else to standard error. Exit
codes do not change. If nothing was started because of an error, no object is printed. Keys are never removed; a change
that could break a reader raises the number in `format`, such as "dubito run 1". A rate is a share from 0 to 1, or a
value on the scale of the game's measure; money is in dollars. `?` marks values that can be null, `[...]` a list and
`{...}` an object keyed by name. A *kind* is "model", "fake model", "program", "agent", "hand-written" or "person".

```sh
dubito examples copy models.yaml
dubito run models.yaml --json > result.json
dubito status runs --json | jq -r '.runs[] | select(.state == "stopped") | .folder'
python -m dubito.report.documents > output.schema.json    # all of this as a JSON Schema
```
"""
_OF_PLUGINS: Final[list[type[Document]]] = [RatingObject, DeceptionObject, PolicyObject, ForkObject, ForgeObject]
_COMMANDS: Final = (
    "run",
    "merge",
    "status",
    "compare",
    "bots",
    "games",
    "status FOLDER",
    "estimate",
    "cache stats",
    "models check",
    "prompts test",
    "rate",
    "deception",
    "policy",
    "fork",
    "forge",
)


def text() -> str:
    """Return the page: the keys of each command, then the parts that several commands share."""
    printed = [*(one for one in Document.__subclasses__() if one not in _OF_PLUGINS), *_OF_PLUGINS]
    schemas = {document.__name__: document.model_json_schema() for document in printed}
    compared = schemas["ComparisonObject"]
    compared["properties"] |= {"less_luck": {"type": "array", "items": {"$ref": "#/$defs/CorrectedResult"}}}
    compared["$defs"]["CorrectedResult"] = CorrectedResult.model_json_schema()
    parts = {name: part for schema in schemas.values() for name, part in schema.pop("$defs", {}).items()}
    uses = Counter(re.findall(r"\$defs/(\w+)", json.dumps([*schemas.values(), *parts.values()])))
    once = {name: part for name, part in parts.items() if uses[name] == 1 and name not in schemas}
    page = _Page(dict(zip(schemas, _COMMANDS, strict=True)), once)
    commands = [f"## `dubito {page.commands[name]} --json`\n\n{page.keys(schema)}" for name, schema in schemas.items()]
    apart = sorted(parts.keys() - page.inside.keys() - schemas.keys())
    others = [f"### {name}\n\n{parts[name]['description']}\n\n{page.keys(parts[name])}" for name in apart]
    return "\n".join([_HEAD, *commands, "## Shared parts\n", *others])


def _clause(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:].rstrip(".")


@dataclass(frozen=True)
class _Page:
    commands: dict[str, str]  # command -> its printed keys
    inside: dict[str, Any]  # parts that are used only once, and described there

    def keys(self, schema: dict[str, Any], indent: str = "") -> str:
        """Return one line per key. Keys with the same type and no description share a line."""
        lines: dict[str, list[str]] = {}  # description -> keys that share it
        for key, of in schema["properties"].items():
            if key == "format":
                continue
            here = [self.inside[name] for name in re.findall(r"\$defs/(\w+)", json.dumps(of)) if name in self.inside]
            text = [self.type(of), *(_clause(part["description"]) for part in here), of.get("description", "")]
            within = "".join(self.keys(part, f"{indent}  ") for part in here)
            lines.setdefault("; ".join(filter(None, text)) + f"\n{within}", []).append(f"`{key}`")
        return "".join(f"{indent}- {', '.join(keys)}: {rest}" for rest, keys in lines.items())

    def _part(self, name: str) -> str:
        if name in self.commands:
            return f"[`dubito {self.commands[name]}`](#dubito-{self.commands[name].replace(' ', '-')}---json)"
        return "object" if name in self.inside else f"[{name}](#{name.lower()})"

    def type(self, of: dict[str, Any] | bool) -> str:
        """Describe a schema's type: `?` if it can be null, brackets around the items of a list."""
        if isinstance(of, bool):
            return "any value"
        if "$ref" in of:
            return self._part(of["$ref"].rsplit("/", 1)[-1])
        if "const" in of:
            return f'"{of["const"]}"'
        if "enum" in of:
            is_kind = tuple(of["enum"]) == get_args(PlayerKind)
            return "kind" if is_kind else ", ".join(f'"{value}"' for value in of["enum"])
        if "anyOf" in of:
            known = [one for one in of["anyOf"] if one != {"type": "null"}]
            return " or ".join(map(self.type, known)) + "?" * (len(known) < len(of["anyOf"]))
        if "prefixItems" in of:
            return f"({', '.join(map(self.type, of['prefixItems']))})"
        if of.get("type") == "array":
            return f"[{self.type(of['items'])}]"
        if of.get("type") == "object":
            return f"{{{self.type(of['additionalProperties'])}}}"
        return str(of["type"])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
