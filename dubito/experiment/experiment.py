"""An experiment, checked: who plays whom, how often, by which rules. What plays it needs nothing that reads configs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Annotated, Any, Literal

from annotated_types import Interval, MinLen  # of pydantic's, which is not loaded with it

from dubito.errors import listed, one_line
from dubito.game import LineupKind, PlayerKind
from dubito.game.find import DUBITO

OnBotError = Literal["stop", "fallback", "forfeit"]
ProviderErrors = Literal["fallback", "suspend"]
OnUnusable = Literal["stop", "fallback"]
Count = Annotated[int, Interval(ge=0, le=10**12)]  # as far as a manifest is believed; so are seats
Sizes = Annotated[tuple[Annotated[int, Interval(ge=1, le=1000)], ...], MinLen(1)]


@dataclass(frozen=True, slots=True)
class PlayerSpec:
    """A bot with its settings, under the name it plays by; a manifest may leave out what is not decisive."""

    name: str
    bot: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # sha256 of the bot's file
    prompt: str = ""  # a model player's: digest of the prompt's sources, and sha256 of the fallback's file
    fallback: str = ""


def kind_of_player(player: PlayerSpec) -> PlayerKind:
    """What decides for this player of a run: a language model, the house in a model's place, or code."""
    if not player.prompt:
        return "hand-written"
    from dubito.llm.settings import is_house  # late: processes that play hand-written bots ask for nobody's kind

    return "stand-in" if is_house(str(player.settings.get("base_url") or "")) else "model"


def player_labels(kinds: Mapping[str, PlayerKind]) -> Callable[[str], str]:
    several = len({*kinds.values()}) > 1
    return lambda name: f"{one_line(name)} ({kinds[name]})" if several and name in kinds else one_line(name)


def describe_fake_models(kinds: Mapping[str, PlayerKind]) -> str | None:
    names = [one_line(name) for name, kind in kinds.items() if kind == "stand-in"]
    return f"Stand-ins are no language models: the embedded house answers for {listed(names)}." if names else None


def contender_seats(table_sizes: Sequence[int]) -> int:
    return 2 if list(table_sizes) == [2] else 1


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a run that is played apart (`shards.py`)."""

    number: Count  # from 1
    of: Count
    games: Count  # of the whole run
    first_game: Count

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"


@dataclass(frozen=True, slots=True)
class StopRule:
    """The run ends once every pair of contenders is told apart, or is known to be less than this apart (`stop.py`)."""

    within: Annotated[float, Interval(gt=0, le=10**6)]  # points of the first measure; its own units if it has a span


PartName = Literal["field", "exploiters"]  # of what is played by a book: who is rated, or who takes from it


@dataclass(frozen=True, slots=True)
class BookPart:
    """The book that a run is played by (`book.py`)."""

    name: str
    digest: str
    part: PartName


@dataclass(frozen=True, slots=True)
class Experiment:
    """A checked experiment: all that can change its results, how many games to play, and how long a bot may take."""

    games: Count  # of a shard: its own; the most there can be where the run may `stop` before
    table_sizes: Sizes  # ascending
    seed: int
    bots: Annotated[tuple[PlayerSpec, ...], MinLen(1)]  # the field
    contenders: tuple[PlayerSpec, ...]
    rules: Mapping[str, Any]  # all of the game's
    on_bot_error: OnBotError
    provider_errors: ProviderErrors = "fallback"
    bot_deadline: float | None = None  # seconds
    game: str = DUBITO
    rules_version: int = 1
    game_source: str = ""  # what identifies its play besides (`source_of`)
    lineup: LineupKind = "uniform"
    shard: Shard | None = None  # None: the whole run
    stop: StopRule | None = None  # None: all games are played
    book: BookPart | None = None  # None: it is played by none

    @property
    def players(self) -> tuple[PlayerSpec, ...]:
        return self.bots + tuple(player for player in self.contenders if player not in self.bots)

    @property
    def names(self) -> list[str]:
        return [player.name for player in self.players]

    @property
    def kinds(self) -> dict[str, PlayerKind]:
        return {player.name: kind_of_player(player) for player in self.players}

    @property
    def contender_seats(self) -> int:
        return contender_seats(self.table_sizes)

    @property
    def games_per_deal(self) -> int:
        return max(1, len(self.contenders) * self.contender_seats)

    @property
    def deals(self) -> int:
        return self.games // self.games_per_deal

    @property
    def first_game(self) -> int:
        return self.shard.first_game if self.shard else 0

    @property
    def game_numbers(self) -> range:
        return range(self.first_game, self.first_game + self.games)

    @property
    def deal_numbers(self) -> range:
        first = self.first_game // self.games_per_deal
        return range(first, first + self.deals)

    @property
    def whole(self) -> "Experiment":
        return replace(self, games=self.shard.games, shard=None) if self.shard else self

    def identity(self) -> dict[str, Any]:
        """Everything that can change a result; `games` is not of it, since a longer run begins alike, but a shard's
        whole run is, since it says where to cut."""
        decisive = self.on_bot_error == "fallback" and self.bot_deadline is not None  # it says who plays a turn
        return {
            "game": self.game,
            "rules_version": self.rules_version,
            **({"game_source": self.game_source} if self.game_source else {}),
            "seed": self.seed,
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
        """The identity as a short name, 8 hex digits; a shard has its whole run's."""
        from dubito.store.folder import without_key_names  # late: workers need no run folder

        identity = without_key_names(self.whole.identity())
        text = json.dumps(identity, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:8]


def _player_identity(player: PlayerSpec) -> dict[str, Any]:
    plain = asdict(player)
    return {key: value for key, value in plain.items() if value or key not in ("prompt", "fallback")}
