"""Write docs/settings.md from the settings' fields: `python -m tests.cli.settings_docs`."""

from collections.abc import Iterable
from typing import Final

from dubito.experiment.config import FILE_ONLY, SETTINGS
from dubito.model_settings import ModelSettings
from dubito.seats.program import ProgramSettings
from dubito.settings import Setting
from tests.cli.kit import REPO

FILE: Final = REPO / "docs" / "settings.md"
_HEAD: Final = """# Settings of an experiment

A setting is a key of a config and a flag of `dubito run`: `table_sizes: [3, 4]` is `--table-sizes 3,4`. A flag
overrides the config. `base_url`, `api`, `api_key_env`, `max_output`, `read` and `system` apply to players in the short
form, such as `openai:MODEL`; any other player [has its own](#model-players).

For completion and checks in an editor, write the JSON Schema and name it in the first line of a config:

```sh
python -m dubito.experiment.config > config.schema.json
```

```yaml
# yaml-language-server: $schema=config.schema.json
games: 1000
```
"""


_PLAYERS: Final = """## Model players

These are keys of a player's entry, next to `bot` and `name`: `{bot: OpenAIBot, model: MODEL, max_output: 4096}`. See
[writing a model bot](writing-a-model-bot.md#from-a-config).

"""


_PROGRAMS: Final = """## Programs and agents

The same for [programs](programs.md), as `{name: mine, process: [python3, my_bot.py]}`, and for
[agents](seat.md), as `{name: mine, remote: true}`.

"""


def text() -> str:
    """Return the page: one table for each group of settings, one for model players, and one for programs."""
    groups = dict.fromkeys(setting.group for setting in SETTINGS.values())
    tables = [f"## {group}\n\n{_table(one for one in SETTINGS.values() if one.group == group)}" for group in groups]
    players = [Setting(key, field) for key, field in ModelSettings.model_fields.items()]
    programs = [Setting(key, field) for key, field in ProgramSettings.model_fields.items()]
    tables += [_PLAYERS + _table(players, flags=False), _PROGRAMS + _table(programs, flags=False)]
    return "\n".join([_HEAD, *tables])


def _table(settings: Iterable[Setting], flags: bool = True) -> str:
    head = ("key", "flag" if flags else "value", "default", "meaning")
    rows = [row for setting in settings for row in _rows(setting, flags)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ("---", "---", "---", "---"), *rows])


def _rows(setting: Setting, flags: bool) -> list[tuple[str, str, str, str]]:
    """Return the table rows of a setting and of its nested keys."""
    value = "true or false" if setting.kind is bool else setting.metavar.replace("|", "\\|")
    flag = setting.flag if setting.kind is bool else f"{setting.flag} {value}"
    default = str(setting.field.default).lower() if setting.kind is bool else setting.usual
    shown = FILE_ONLY.get(setting.key, f"`{flag}`") if flags else f"`{value}`"
    nested = setting.keys_model.model_fields if setting.keys_model else {}
    keys = [Setting(key, field) for key, field in nested.items()]
    return [(f"`{setting.key}`", shown, default, setting.about)] + [
        (f"`{setting.key}.{one.key}`", "", one.usual, one.about) for one in keys
    ]


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
