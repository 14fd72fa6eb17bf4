"""Writes docs/settings.md from the fields of Config: `python -m tests.cli.settings_docs`."""

from collections.abc import Iterable
from typing import Final

from pydantic.fields import FieldInfo

from dubito.experiment.config import FILE_ONLY, SETTINGS, Setting
from tests.cli.kit import REPO

FILE: Final = REPO / "docs" / "settings.md"
_HEAD: Final = """# Settings of an experiment

A setting is a key of a config and a flag of `dubito run`: `table_sizes: [3, 4]` is `--table-sizes 3,4`. A flag
overrides the config. `base_url`, `api`, `api_key_env`, `max_output`, `read` and `system` apply to players in the short
form, such as `openai:MODEL`; any other player [has its own](writing-a-model-bot.md#from-a-config).

For completion and checks in an editor, write the JSON Schema and name it in the first line of a config:

```sh
python -m dubito.experiment.config > config.schema.json
```

```yaml
# yaml-language-server: $schema=config.schema.json
games: 1000
```
"""


def text() -> str:
    """The page: a table for each group."""
    groups = dict.fromkeys(setting.group for setting in SETTINGS.values())
    tables = [f"## {group}\n\n{_table(one for one in SETTINGS.values() if one.group == group)}" for group in groups]
    return "\n".join([_HEAD, *tables])


def _table(settings: Iterable[Setting]) -> str:
    rows = [row for setting in settings for row in _rows(setting)]
    head = [("key", "flag", "default", ""), ("---",) * 4]
    return "".join(f"| {' | '.join(row)} |\n" for row in [*head, *rows])


def _rows(setting: Setting) -> list[tuple[str, ...]]:
    """Return the rows of a setting and of its own keys."""
    flag = setting.flag if setting.kind is bool else f"{setting.flag} {setting.metavar}".replace("|", "\\|")
    default = str(setting.field.default).lower() if setting.kind is bool else setting.usual
    about = str(setting.field.description)
    row = (f"`{setting.key}`", FILE_ONLY.get(setting.key, f"`{flag}`"), default, about)
    nested = setting.nested.model_fields if setting.nested else {}
    keys = [(f"`{setting.key}.{key}`", "", _default(field), str(field.description)) for key, field in nested.items()]
    return [row, *keys]


def _default(field: FieldInfo) -> str:
    return "needed" if field.is_required() else "none"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
