"""A tournament's schedule, the seeds of its matches, and its config with all defaults."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import shake_256
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.experiment.config import read_config
from dubito.files import CheckedModel, describe_invalid
from dubito.plugins.tournament.match import MatchStreams
from dubito.plugins.tournament.rules import DIALECTS, Limits, load
from dubito.sandbox.programs import BotProgram, Confinement, files_below, find_reads, load_bot


class Pairing(NamedTuple):
    """All matches of two bots in one game, played one after the other."""

    game: int  # index in the config's list of games
    bots: tuple[int, int]  # indexes; the first bot has seat 0 in matches 0, 2, 4, ...


def list_rounds(bots: int) -> Iterator[list[tuple[int, int]]]:
    """Yield rounds using the circle method: every pair meets once, and no bot plays twice in a round."""
    # A bot paired with -1 does not play.
    circle = [*range(bots), *([-1] if bots % 2 else [])]
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        yield sorted((min(pair), max(pair)) for pair in pairs if -1 not in pair)
        circle.insert(1, circle.pop())


def list_pairings(games: int, bots: int) -> list[Pairing]:
    return [Pairing(game, pair) for game in range(games) for pairs in list_rounds(bots) for pair in pairs]


def next_pairing(waiting: Sequence[Pairing], busy: set[int]) -> Pairing | None:
    """Return the first pairing whose bots are both free and not in an earlier waiting pairing.

    A bot therefore plays one match at a time, and meets its opponents in the same order regardless of the number of
    parallel pairs.
    """
    unavailable = set(busy)
    for pairing in waiting:
        if unavailable.isdisjoint(pairing.bots):
            return pairing
        unavailable.update(pairing.bots)
    return None


def match_seats(match: int) -> tuple[int, int]:
    return (match % 2, 1 - match % 2)


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of a match, 64 bits each."""

    chance: tuple[int]
    replacements: tuple[int, int]  # by seat
    bots: tuple[int, int]  # sent to each bot, so that it can reproduce a match

    def streams(self) -> MatchStreams:
        return MatchStreams(self.chance[0], self.replacements)


class SeedSource(NamedTuple):
    """The source of all seeds of a tournament."""

    # Public. The bots' own seeds depend on nothing else.
    seed: int
    # Prevents bots from predicting other draws from their own seeds.
    secret: str
    # A match and the next, which has swapped seats, have the same chance draws.
    twins: bool = False
    # A bot's process plays all matches of a seat with the same seed.
    stay: bool = False

    def seeds(self, game: str, pair: tuple[str, str], match: int) -> Seeds:

        where = f"seed {self.seed}, game {game}, pair {pair!r}, match"
        twin = match // 2 * 2 if self.twins else match
        (chance,) = _numbers(f"chance, secret {self.secret!r}, {where} {twin}", 1)
        one, other = _numbers(f"replacements, secret {self.secret!r}, {where} {match}", 2)
        bot_seed, other_bot_seed = _numbers(f"bots, {where} {match % 2 if self.stay else match}", 2)
        return Seeds((chance,), (one, other), (bot_seed, other_bot_seed))


def _numbers(text: str, count: int) -> list[int]:
    digest = shake_256(f"dubito referee 2: {text}".encode()).digest(8 * count)
    return [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(count)]


_GB: Final = 1 << 30
# Limits of the search for files that contain the secret; 10,000 files take 0.2 s.
_MAX_SEARCHED_BYTES: Final = 1 << 20
_MAX_SEARCHED_FILES: Final = 10_000


class BotConfig(CheckedModel):
    """A bot's config entry with settings in addition to its command."""

    command: str | list[str]
    data: str | None = None  # the bot's data, with a folder for each game
    network: bool = False
    reads: list[str] = []  # other files and folders that the bot can read


class TournamentConfig(CheckedModel):
    """The settings of a tournament. Times are in seconds."""

    games: list[str] = Field(min_length=1)
    bots: dict[str, str | list[str] | BotConfig] = Field(min_length=2)
    dialect: str = "v1"
    matches: int = Field(default=2500, ge=1, le=10**7)  # per pair and position
    seed: int = 0
    move_seconds: float = Field(default=5.0, gt=0, le=86400)
    prepare_seconds: float = Field(default=5.0, ge=0, le=86400)
    chance_seconds: float = Field(default=0.2, ge=0, le=86400)
    ponder_seconds: float = Field(default=0.2, gt=0, le=86400)  # only in dialect v2
    grace_seconds: float = Field(default=1.0, ge=0, le=3600)
    strikes: int = Field(default=3, ge=1)
    secret: str | None = Field(default=None, min_length=16, max_length=200)  # None to generate it at the start
    copies: bool = False  # allow the same program under several names
    twins: bool = False  # a match and its seat-swapped twin have the same chance draws
    memory_gb: float = Field(default=16.0, gt=0, le=10**6)
    data_gb: float = Field(default=128.0, ge=0, le=10**9)
    pairs: int | None = Field(default=None, ge=1, le=1024)  # played in parallel; None for one per two cores
    output: str | None = Field(default=None, min_length=1)  # None for tournaments/NAME, with the config's name

    @property
    def limits(self) -> Limits:
        return Limits(
            self.move_seconds,
            self.prepare_seconds,
            self.chance_seconds,
            self.ponder_seconds,
            self.grace_seconds,
            self.strikes,
        )


@dataclass(frozen=True, slots=True)
class Tournament:
    config: TournamentConfig
    bots: tuple[BotProgram, ...]
    secret: str = ""  # from the config, or generated
    programs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by bot: its files with their digests
    hidden: tuple[Path, ...] = ()  # the config and files that contain the secret, which are hidden from bots
    allow_unsandboxed: bool = False  # start bots even if this machine cannot confine them

    @property
    def source(self) -> SeedSource:
        return seed_source(self.config.model_dump(), self.secret)

    def confine(self, cores: tuple[int, int] | None) -> Confinement:
        """Return the confinement of the bots of a process. `cores` are theirs, if there are enough."""
        return Confinement(int(self.config.memory_gb * _GB), cores, allow_unsandboxed=self.allow_unsandboxed)

    def identity(self) -> dict[str, Any]:
        """Return everything that can affect a match. The number of matches is not included."""
        settings = self.config.model_dump(exclude={"bots", "matches", "pairs", "output", "secret", "copies"})
        commands = {bot.name: list(bot.command) for bot in self.bots}
        homes = {bot.name: str(bot.home) for bot in self.bots}
        network = [bot.name for bot in self.bots if bot.network]
        return settings | {"bots": commands, "homes": homes, "network": network}


def seed_source(identity: Mapping[str, Any], secret: str) -> SeedSource:
    return SeedSource(identity["seed"], secret, identity["twins"], stay=identity["dialect"] == "v2")


def read_tournament(path: Path, flags: Mapping[str, Any]) -> Tournament:
    """Read a tournament from a config file, overridden by flags; raises UsageError."""
    config = validate_config(dict(read_config(path)), str(path), flags)
    hidden = [
        path.absolute(),
        *([] if config.secret is None else _secret_files(path.absolute().parent, config.secret)),
    ]
    return Tournament(config, load_bots(config, path.parent.absolute(), str(path)), hidden=tuple(dict.fromkeys(hidden)))


def _secret_files(folder: Path, secret: str) -> Iterator[Path]:
    """Yield files in and below a folder that contain the secret, such as copies of the config."""
    for path in chain(folder.iterdir(), islice(files_below(folder), _MAX_SEARCHED_FILES)):
        with suppress(OSError):
            if path.is_file() and path.stat().st_size < _MAX_SEARCHED_BYTES and secret.encode() in path.read_bytes():
                yield path


def validate_config(content: Mapping[str, Any], source: str, flags: Mapping[str, Any]) -> TournamentConfig:
    """Validate a config's content without its bots, overridden by flags."""
    try:
        config = TournamentConfig.model_validate({**content, **flags})
    except ValidationError as error:
        raise UsageError(f"{source}: {_describe_error(dict(error.errors()[0]))}") from None
    if config.dialect not in DIALECTS:
        hint = suggestion(config.dialect, DIALECTS)
        raise UsageError(f"{source}: unknown dialect {one_line(repr(config.dialect), 60)}", hint=hint)
    for name in config.games:
        if config.games.count(name) > 1:
            raise UsageError(f"{source}: games: {one_line(name, 80)} is listed twice")
        DIALECTS[config.dialect](load(name))
    return config


def load_bots(config: TournamentConfig, home: Path, source: str) -> tuple[BotProgram, ...]:
    """Return the bots in a config. Raises UsageError if one cannot be started."""
    programs: dict[str, BotProgram] = {}
    for name, value in config.bots.items():
        entry = value if isinstance(value, BotConfig) else BotConfig(command=value)
        where = f"{source}: bots: {one_line(name, 60)}"
        if name.casefold() in programs:
            raise UsageError(f"{where}: two bot names differ only in upper and lower case")
        program = load_bot(name, entry.command, home, where, entry.data, entry.network)
        programs[name.casefold()] = replace(program, reads=find_reads(entry.reads, home, where))
    return tuple(programs.values())


def _describe_error(error: Mapping[str, Any]) -> str:
    """Describe a validation error of a config."""
    loc = [str(part) for part in error["loc"] if part not in ("str", "list[str]", "BotConfig")]
    where = one_line(": ".join(loc), 120)
    kind: Literal["missing", "extra_forbidden", "too_short"] | str = error["type"]
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        known = TournamentConfig.model_fields if len(loc) == 1 else BotConfig.model_fields
        return f"unknown key '{where}': {suggestion(loc[-1], known)}"
    if kind == "too_short":
        return f"{where}: {'a tournament needs at least two bots' if loc[0] == 'bots' else 'must not be empty'}"
    return f"{where}: {describe_invalid(error, 'a list of lines such as `my_bot: python3 my_bot.py`')}"
