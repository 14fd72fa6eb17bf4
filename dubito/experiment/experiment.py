"""A validated experiment: who plays whom, how often, and under which rules.

This module does not depend on code that reads configs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

# Pydantic depends on this package, which can be imported without Pydantic.
from annotated_types import Interval, MinLen

from dubito.errors import join_names, one_line
from dubito.game import LineupKind, PlayerKind
from dubito.game.find import DUBITO
from dubito.game.seeds import Seed

OnBotError = Literal["stop", "fallback", "forfeit"]
ProviderErrors = Literal["fallback", "suspend"]
OnUnusable = Literal["stop", "fallback"]
PROGRAM_BOT: Final = "ProgramBot"  # the bot of all players that are programs or agents
Count = Annotated[int, Interval(ge=0, le=10**12)]  # bounds of a plausible manifest, like those of `Sizes`
Sizes = Annotated[tuple[Annotated[int, Interval(ge=1, le=1000)], ...], MinLen(1)]


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """A bot with its settings and its player name.

    In a manifest, everything except the name can be missing.
    """

    name: str
    bot: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # sha256 of the bot's file
    # For model players: the digest of the prompt's sources, and the sha256 of the fallback's file.
    prompt: str = ""
    fallback: str = ""


def kind_of_player(player: PlayerSpec) -> PlayerKind:
    """Return this player's kind: a model, a built-in fake model, a program, an agent, or a bot in Python."""
    if player.bot == PROGRAM_BOT:
        return "agent" if player.settings.get("remote") else "program"
    if not player.prompt:
        return "hand-written"
    from dubito.model_settings import is_house  # imported late: processes that play hand-written bots do not need it

    return "fake model" if is_house(str(player.settings.get("base_url") or "")) else "model"


def player_labels(kinds: Mapping[str, PlayerKind]) -> Callable[[str], str]:
    """Return a function that labels players, adding their kind if the run has several kinds."""
    several = len({*kinds.values()}) > 1
    return lambda name: f"{one_line(name)} ({kinds[name]})" if several and name in kinds else one_line(name)


def describe_fake_models(kinds: Mapping[str, PlayerKind]) -> str | None:
    names = [one_line(name) for name, kind in kinds.items() if kind == "fake model"]
    return (
        f"These are fake models: a built-in server on this machine answers for {join_names(names)}." if names else None
    )


# What a run states about players of each kind and a replay cannot prove.
_MODEL_CLAIMS: Final = ("kind", "model", "server", "tokens", "dollars", "status codes")
_CLAIMS: Final[Mapping[PlayerKind, Sequence[str]]] = {
    "hand-written": (),
    "program": ("kind", "command", "files"),
    "agent": ("kind", "identity"),
    "model": _MODEL_CLAIMS,
    "fake model": _MODEL_CLAIMS,
}


def list_claims(kinds: Mapping[str, PlayerKind]) -> dict[str, list[str]]:
    """Return what a run states about its players, by name, without proof."""
    return {name: [*_CLAIMS[kind]] for name, kind in kinds.items() if _CLAIMS[kind]}


def describe_claims(kinds: Mapping[str, PlayerKind]) -> str | None:
    players = dict[tuple[str, ...], list[str]]()
    for name, claims in list_claims(kinds).items():
        players.setdefault(tuple(claims), []).append(one_line(name))
    parts = [f"{join_names(claims)} of {join_names(names)}" for claims, names in players.items()]
    return f"Claimed by the run, not proven by a replay: {'; '.join(parts)}." if parts else None


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a run that is played separately (`shards.py`)."""

    number: Count  # counted from 1
    of: Count
    games: Count  # number of games in the whole run
    first_game: Count

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"


@dataclass(frozen=True, slots=True)
class StopRule:
    """The run ends once every pair differs significantly, or is known to be less than `within` apart (`stop.py`)."""

    within: Annotated[float, Interval(gt=0, le=10**6)]  # points of the first measure, or its own units if it has a span


# A book's two runs: against its opponents, and against exploiters of the rated player.
PartName = Literal["field", "exploiters"]


@dataclass(frozen=True, slots=True)
class BookPart:
    """The part of a leaderboard book that a run plays (`book.py`)."""

    name: str
    digest: str
    part: PartName


@dataclass(frozen=True)
class Experiment:
    """A validated experiment: everything that can change results, the number of games, and the bots' time limit."""

    games: Count  # in a shard, only its own games; with `stop`, the maximum
    table_sizes: Sizes  # ascending
    seed: Seed = field(repr=False)  # not in error messages, since it can be secret
    bots: Annotated[tuple[PlayerSpec, ...], MinLen(1)]  # the opponents
    contenders: tuple[PlayerSpec, ...]
    rules: Mapping[str, Any]  # every rule of the game
    on_bot_error: OnBotError
    provider_errors: ProviderErrors = "fallback"
    bot_deadline: float | None = None  # seconds
    game: str = DUBITO
    rules_version: int = 1
    game_source: str = ""  # the digest of a user's own game (`source_of`)
    lineup: LineupKind = "uniform"
    shard: Shard | None = None  # None for the whole run
    stop: StopRule | None = None  # None if all games are played
    book: BookPart | None = None  # None if the run does not play a book
    seed_sha256: str = ""  # the commitment to a secret seed; empty if the seed was known before the first game

    @cached_property
    def players(self) -> tuple[PlayerSpec, ...]:
        return self.bots + tuple(player for player in self.contenders if player not in self.bots)

    @cached_property
    def contender_places(self) -> tuple[int, ...]:
        """The indexes of the contenders in `players`."""
        return tuple(map(self.players.index, self.contenders))

    @property
    def names(self) -> list[str]:
        return [player.name for player in self.players]

    @property
    def kinds(self) -> dict[str, PlayerKind]:
        return {player.name: kind_of_player(player) for player in self.players}

    @property
    def claiming_kinds(self) -> dict[str, PlayerKind]:
        """The kinds of the players, and of the programs that advise them."""
        advisers = {player.name: player.settings.get("adviser") for player in self.players}
        programs = [name for name, one in advisers.items() if isinstance(one, Mapping) and "bot" not in one]
        if not programs:
            return self.kinds
        from dubito.llm.adviser import adviser_name  # imported late, since few models have advisers

        return self.kinds | dict.fromkeys(map(adviser_name, programs), "program")

    @property
    def has_programs(self) -> bool:
        """Whether programs or agents play or give advice, which could compute all cards from a known seed."""
        return not {*self.claiming_kinds.values()}.isdisjoint(("program", "agent"))

    @property
    def contender_seats(self) -> int:
        return 2 if [*self.table_sizes] == [2] else 1

    @property
    def games_per_deal(self) -> int:
        return max(1, len(self.contenders) * self.contender_seats)

    @property
    def deals(self) -> int:
        return self.games // self.games_per_deal

    def deal_of(self, game: int) -> int:
        """Return the number of the deal that a game belongs to."""
        return game // self.games_per_deal

    @property
    def first_game(self) -> int:
        return self.shard.first_game if self.shard else 0

    @property
    def game_numbers(self) -> range:
        return range(self.first_game, self.first_game + self.games)

    @property
    def deal_numbers(self) -> range:
        first = self.deal_of(self.first_game)
        return range(first, first + self.deals)

    @property
    def unsharded(self) -> "Experiment":
        return replace(self, games=self.shard.games, shard=None) if self.shard else self

    def identity(self) -> dict[str, Any]:
        """Return everything that can change a result.

        `games` is left out, since a longer run begins with the same games. The identity of a shard includes the length
        of the whole run, since this determines where the run is cut.
        """
        # With a fallback, the deadline determines who plays a turn.
        decisive = self.on_bot_error == "fallback" and self.bot_deadline is not None
        return {
            "game": self.game,
            "rules_version": self.rules_version,
            **({"game_source": self.game_source} if self.game_source else {}),
            **({"seed_sha256": self.seed_sha256} if self.seed_sha256 else {"seed": self.seed}),
            "table_sizes": list(self.table_sizes),
            "bots": [_player_identity(player) for player in self.bots],
            "contenders": [_player_identity(player) for player in self.contenders],
            "rules": dict(self.rules),
            "on_bot_error": self.on_bot_error,
            "provider_errors": self.provider_errors,
            **({"bot_deadline": self.bot_deadline} if decisive else {}),
            **({"stop": asdict(self.stop)} if self.stop else {}),
            **({"book": asdict(self.book)} if self.book else {}),
            **({"shard": asdict(self.shard)} if self.shard else {}),
        }

    def digest(self) -> str:
        """Return 8 hex digits that identify the run, except its secret seed. All its shards have the same digest."""
        from dubito.store.folder import without_key_names  # imported late, since workers need no run folder

        identity = without_key_names(self.unsharded.identity())
        identity.pop("seed_sha256", None)
        text = json.dumps(identity, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:8]


def _player_identity(player: PlayerSpec) -> dict[str, Any]:
    plain = asdict(player)
    return {key: value for key, value in plain.items() if value or key not in ("prompt", "fallback")}


FOLDER_NAME: Final = "{}-shard-{}-of-{}"  # name of the whole run, number of the shard, number of shards
