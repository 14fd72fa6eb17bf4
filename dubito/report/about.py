"""What a run was: its config, versions and digests."""

from collections.abc import Mapping
from typing import Any, Final

from dubito.report.parts import Block, Facts
from dubito.report.source import Source
from dubito.report.tables import Column, Table
from dubito.store.folder import to_yaml

_PLAYER: Final = [
    Column("player", "player", "text"),
    Column("role", "role", "text"),
    Column("bot", "bot", "text"),
    Column("settings", "settings", "text"),
    Column("source", "sha256 of its file", "text"),
    Column("prompt", "digest of its prompt", "text"),
    Column("fallback", "sha256 of its fallback's file", "text"),
]


def about(source: Source) -> list[Block]:
    """Facts of the run, and its players."""
    identity = source.manifest["identity"]
    games, turns, free = (sum(values[place] for _, values in source.tally.rows("sizes")) for place in range(3))
    facts = [
        ("results digest", source.results_digest),
        ("games", f"{games:,} of {source.planned:,}"),
        ("seed", f"{source.seed}"),
        ("table sizes", ", ".join(map(str, identity["table_sizes"]))),
        ("turns a game", f"{turns / games:.1f} without free turns, {(turns + free) / games:.1f} with them"),
        *((f"rules: {key}", f"{value}") for key, value in identity["rules"].items()),
        *((key, f"{identity[key]}") for key in ("on_bot_error", "bot_deadline", "provider_errors") if key in identity),
        *((f"version of {key}", f"{value}") for key, value in (source.manifest.get("versions") or {}).items()),
    ]
    cells = [
        [
            str(player["name"]),
            _role(source, player),
            str(player.get("bot")),
            to_yaml(player.get("settings") or {}).strip().removeprefix("{}") or None,
            *(str(player[key]) if player.get(key) else None for key in ("source", "prompt", "fallback")),
        ]
        for player in source.players
    ]
    return [Facts(facts), Table("players", "The players, and digests of what they were made of", _PLAYER, cells)]


def _role(source: Source, player: Mapping[str, Any]) -> str:
    identity = source.manifest["identity"]
    roles = [role for role, key in (("field", "bots"), ("contender", "contenders")) if player in identity[key]]
    return " and ".join(roles)
