"""Who plays whom, when and from which position; and every match's own seeds, which nothing else can shift.

The config of a tournament: what a user may say, checked, with every default in one place.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import shake_256
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.experiment.config import read_config
from dubito.files import Checked, describe_invalid
from dubito.plugins.tournament.match import MatchDraws
from dubito.plugins.tournament.programs import Program, bot, files_below
from dubito.plugins.tournament.rules import DIALECTS, Limits, load


class Pairing(NamedTuple):
    """All matches of two bots in one game: they are played one after the other."""

    game: int  # places in the lists of the config
    bots: tuple[int, int]  # the first of them has seat 0 in matches 0, 2, 4, ...


def rounds(bots: int) -> Iterator[list[tuple[int, int]]]:
    """The circle method: every two bots meet once, and in a round nobody plays twice."""
    circle = [*range(bots), *([-1] if bots % 2 else [])]  # -1: whoever meets it rests
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        yield sorted((min(pair), max(pair)) for pair in pairs if -1 not in pair)
        circle.insert(1, circle.pop())


def pairings(games: int, bots: int) -> list[Pairing]:
    return [Pairing(game, pair) for game in range(games) for pairs in rounds(bots) for pair in pairs]


def startable(waiting: Sequence[Pairing], busy: set[int]) -> Pairing | None:
    """The first of these whose bots are both free and wait for none before it.

    So a bot is in one match at a time, and meets its opponents in the same order however many pairs play at once.
    """
    taken = set(busy)
    for pairing in waiting:
        if taken.isdisjoint(pairing.bots):
            return pairing
        taken.update(pairing.bots)
    return None


def seats(match: int) -> tuple[int, int]:
    return (match % 2, 1 - match % 2)


@dataclass(frozen=True, slots=True)
class Seeds:
    """What a match is drawn from, 64 bits each."""

    chance: tuple[int]
    replacements: tuple[int, int]  # of each seat
    bots: tuple[int, int]  # told to each seat, for bots that want to play the same match again

    def draws(self) -> MatchDraws:
        return MatchDraws(self.chance[0], self.replacements)


class Source(NamedTuple):
    """What all seeds of a tournament come from."""

    seed: int  # public: bots' seeds need nothing else
    secret: str  # without which nobody can tell the other draws from what bots are told
    twins: bool = False  # a match and the next one, with seats swapped, have chance draws alike
    stay: bool = False  # bots stay for all matches of a seat, and are told one seed for all of them

    def seeds(self, game: str, pair: tuple[str, str], match: int) -> Seeds:
        """The seeds of one match."""
        where = f"seed {self.seed}, game {game}, pair {pair!r}, match"
        twin = match // 2 * 2 if self.twins else match
        (chance,) = _numbers(f"chance, secret {self.secret!r}, {where} {twin}", 1)
        one, other = _numbers(f"replacements, secret {self.secret!r}, {where} {match}", 2)
        told, told_other = _numbers(f"bots, {where} {match % 2 if self.stay else match}", 2)
        return Seeds((chance,), (one, other), (told, told_other))


def _numbers(text: str, count: int) -> list[int]:
    drawn = shake_256(f"dubito referee 2: {text}".encode()).digest(8 * count)
    return [int.from_bytes(drawn[8 * i : 8 * i + 8], "little") for i in range(count)]


_SMALL: Final = 1 << 20  # bytes of a file that is looked through for the secret
_LOOKED_AT: Final = 10_000  # files below the config's folder; 0.2 s


class BotConfig(Checked):
    """A bot with more to say of it than its command."""

    command: str | list[str]
    data: str | None = None  # a folder with a folder for each game
    network: bool = False


class TournamentConfig(Checked):
    """What a config file or the flags may say. Times are seconds."""

    games: list[str] = Field(min_length=1)
    bots: dict[str, str | list[str] | BotConfig] = Field(min_length=2)
    dialect: str = "v1"
    matches: int = Field(default=2500, ge=1, le=10**7)  # of each pair, from each position
    seed: int = 0
    move_seconds: float = Field(default=5.0, gt=0, le=86400)
    prepare_seconds: float = Field(default=5.0, ge=0, le=86400)
    chance_seconds: float = Field(default=0.2, ge=0, le=86400)
    ponder_seconds: float = Field(default=0.2, gt=0, le=86400)  # of dialect v2
    grace_seconds: float = Field(default=1.0, ge=0, le=3600)
    strikes: int = Field(default=3, ge=1)
    secret: str | None = Field(default=None, min_length=16, max_length=200)  # None: drawn when the tournament begins
    copies: bool = False  # one program may enter under several names
    twins: bool = False  # a match and its seat-swapped twin have the same chance draws
    memory_gb: float = Field(default=16.0, gt=0, le=10**6)
    data_gb: float = Field(default=128.0, ge=0, le=10**9)
    pairs: int | None = Field(default=None, ge=1, le=1024)  # that play at once; None: one for two cores
    output: str | None = Field(default=None, min_length=1)  # None: tournaments/NAME of the config

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
    bots: tuple[Program, ...]
    secret: str = ""  # of this tournament: the config's, or one that was drawn
    programs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # each bot's files and their digests
    hidden: tuple[Path, ...] = ()  # files that bots may not see: the config, and others in which its secret stands

    @property
    def source(self) -> Source:
        return source(self.config.model_dump(), self.secret)

    def identity(self) -> dict[str, Any]:
        """Everything that can change a match; a tournament of more matches begins alike."""
        said = self.config.model_dump(exclude={"bots", "matches", "pairs", "output", "secret", "copies"})
        entered = {bot.name: list(bot.command) for bot in self.bots}
        homes = {bot.name: str(bot.home) for bot in self.bots}
        network = [bot.name for bot in self.bots if bot.network]
        return said | {"bots": entered, "homes": homes, "network": network}


def source(identity: Mapping[str, Any], secret: str) -> Source:
    return Source(identity["seed"], secret, identity["twins"], stay=identity["dialect"] == "v2")


def tournament(path: Path, flags: Mapping[str, Any]) -> Tournament:
    """The tournament of a config file, with flags over it; raises UsageError with one sentence."""
    config = checked_config(dict(read_config(path)), str(path), flags)
    hidden = [path.absolute(), *([] if config.secret is None else _telling(path.absolute().parent, config.secret))]
    return Tournament(
        config, entered_bots(config, path.parent.absolute(), str(path)), hidden=tuple(dict.fromkeys(hidden))
    )


def _telling(folder: Path, secret: str) -> Iterator[Path]:
    """The files in a folder in which a secret stands, such as a copy of the config; of what lies deeper, as many as can
    be looked at in a moment."""
    for path in chain(folder.iterdir(), islice(files_below(folder), _LOOKED_AT)):
        with suppress(OSError):
            if path.is_file() and path.stat().st_size < _SMALL and secret.encode() in path.read_bytes():
                yield path


def checked_config(content: Mapping[str, Any], source: str, flags: Mapping[str, Any]) -> TournamentConfig:
    """The content of a config with flags over it, valid as far as can be told without its bots."""
    try:
        config = TournamentConfig.model_validate({**content, **flags})
    except ValidationError as error:
        raise UsageError(f"{source}: {_sentence(dict(error.errors()[0]))}") from None
    if config.dialect not in DIALECTS:
        hint = suggestion(config.dialect, DIALECTS)
        raise UsageError(f"{source}: dialect: there is no dialect {one_line(repr(config.dialect), 60)}: {hint}")
    for name in config.games:
        if config.games.count(name) > 1:
            raise UsageError(f"{source}: games: {one_line(name, 80)} stands there twice")
        DIALECTS[config.dialect](load(name))
    return config


def entered_bots(config: TournamentConfig, home: Path, source: str) -> tuple[Program, ...]:
    """The bots of a config, each of which can be started."""
    found: dict[str, Program] = {}
    for name, said in config.bots.items():
        entry = said if isinstance(said, BotConfig) else BotConfig(command=said)
        where = f"{source}: bots: {one_line(name, 60)}"
        if name.casefold() in found:
            raise UsageError(f"{where}: two bots of one name, but for capitals: their files would be the same")
        found[name.casefold()] = bot(name, entry.command, home, where, entry.data, entry.network)
    return tuple(found.values())


def _sentence(error: Mapping[str, Any]) -> str:
    """What is wrong with a config, of an error of its validation."""
    loc = [str(part) for part in error["loc"] if part not in ("str", "list[str]", "BotConfig")]
    where = one_line(": ".join(loc), 120)
    kind: Literal["missing", "extra_forbidden", "too_short"] | str = error["type"]
    if kind == "missing":
        return f"{where} is missing: say which {loc[-1]}"
    if kind == "extra_forbidden":
        known = TournamentConfig.model_fields if len(loc) == 1 else BotConfig.model_fields
        return f"unknown key '{where}': {suggestion(loc[-1], known)}"
    if kind == "too_short":
        return f"{where}: {'a tournament takes two bots at least' if loc[0] == 'bots' else 'must not be empty'}"
    return f"{where}: {describe_invalid(error, 'a list of lines such as `my_bot: python3 my_bot.py`')}"
