"""What a run was: its config, versions and digests."""

from typing import Final

from dubito.experiment.stored_run import StoredPlayer, StoredRun
from dubito.report.parts import Block, NamedValues
from dubito.report.result_table import Column, ResultTable
from dubito.report.standings import turns_a_game
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


def about(source: StoredRun) -> list[Block]:
    """Facts of the run, and its players."""
    identity = source.identity
    facts = [
        ("results digest", source.results_digest),
        ("games", f"{source.tally.games:,} of {source.games:,}"),
        *((("shard", f"{identity.shard.number} of {identity.shard.of}"),) if identity.shard else ()),
        ("game", identity.game),
        ("seed", f"{source.seed}"),
        ("table sizes", ", ".join(map(str, identity.table_sizes))),
        ("turns a game", turns_a_game(source.tally, source.game.results)),
        *((f"rules: {key}", f"{value}") for key, value in identity.rules.items()),
        ("on_bot_error", identity.on_bot_error),
        *((key, f"{value}") for key, value in (identity.model_extra or {}).items()),
        *((f"version of {key}", f"{value}") for key, value in source.manifest.versions.items()),
    ]
    cells = [
        [
            player.name,
            _role(source, player),
            player.bot,
            to_yaml(player.settings).strip().removeprefix("{}") or None,
            *(digest or None for digest in (player.source, player.prompt, player.fallback)),
        ]
        for player in source.players
    ]
    return [
        NamedValues(facts),
        ResultTable("players", "The players, and digests of what they were made of", _PLAYER, cells),
    ]


def _role(source: StoredRun, player: StoredPlayer) -> str:
    roles = {"field": source.identity.bots, "contender": source.identity.contenders}
    return " and ".join(role for role, players in roles.items() if player in players)
