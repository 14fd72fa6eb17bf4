"""Read a run folder: its experiment, results and model calls.

Reports, comparisons, estimates and replays start here.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from dubito import __version__
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.counts import GameCounts, count_games
from dubito.experiment.experiment import (
    Count,
    Experiment,
    PlayerSpec,
    kind_of_player,
    player_labels,
)
from dubito.experiment.resolved import ResolvedRun
from dubito.files import describe_fault
from dubito.game import Game, PlayerKind
from dubito.game.find import NoSuchGame, Registry, find_bots, find_game, package_of, source_of
from dubito.game.seeds import SeedSecrecy, hash_seed
from dubito.game.streams import DealStreams
from dubito.packages import missing_game_hint
from dubito.stats.ranking import Contender, RankingRow, ranking, relate_players
from dubito.stats.relation import Relation
from dubito.stats.tally import Outcome, Tally, load_tally, read_outcome, read_tally
from dubito.store.folder import DATABASE, MANIFEST, SEED_FILE, read_manifest
from dubito.store.run_db import RunDb
from dubito.store.secret import read_secret
from dubito.store.spend import PlayerLog, Spend

if TYPE_CHECKING:
    from dubito.experiment.chance import ChanceLine
    from dubito.experiment.models import Models
    from dubito.experiment.play import ChunkPlayer
    from dubito.llm.prompts import Prompt
    from dubito.llm.recording import ReplayRecording
    from dubito.store.model_log import ModelLog


class _Manifest(BaseModel):
    """The contents of a run's `manifest.yaml`."""

    games: Count
    identity: Experiment
    versions: dict[str, Any]
    not_enforced: list[str] = []


_PLAYER: Final = TypeAdapter(PlayerSpec)
_EXPERIMENT_KEYS: Final = {
    "game",
    "seed",
    "seed_sha256",
    "table_sizes",
    "bots",
    "contenders",
    "rules",
    "on_bot_error",
    "shard",
    "stop",
    "book",
}


def read_player_kinds(manifest: Mapping[str, Any]) -> dict[str, PlayerKind]:
    """Return each player's kind from the manifest of a run or a test of prompts. Raises UsageError."""
    every = manifest["identity"]
    entries = [one for key in ("bots", "contenders", "prompts") for one in every.get(key) or ()]
    try:
        return {player.name: kind_of_player(player) for player in map(_PLAYER.validate_python, entries)}
    except ValidationError as error:
        raise UsageError(f"{MANIFEST} is damaged: {describe_fault(error)}") from None


def list_contenders(experiment: Experiment, run: int = 0) -> list[Contender]:
    """Return the contenders of a run. `run` is its index among several runs."""
    within, kinds = experiment.stop.within if experiment.stop else None, experiment.kinds
    return [
        Contender(player.name, run, experiment.contender_seats, kinds[player.name], within)
        for player in experiment.contenders
    ]


@dataclass(frozen=True)
class Run:
    """A run folder that is open for reading."""

    folder: Path
    identity: Mapping[str, Any]  # the identity in the manifest
    versions: Mapping[str, Any]  # versions of the software that produced the run
    planned: Experiment  # the experiment with all games that were planned
    db: RunDb
    home: Path  # the folder to search for the user's games
    is_revealed: bool  # whether a secret seed is in the manifest
    not_enforced: Sequence[str] = ()  # what programs could do in this run
    shown: str = ""  # the run as the user named it, if the folder is a temporary one

    def __str__(self) -> str:
        return one_line(self.shown or str(self.folder))

    def strip_folder(self, message: str) -> str:
        return message.replace(f"{self.folder}/", "")

    @cached_property
    def game(self) -> Game:
        """The game that the run played. Raises UsageError if it is not installed."""
        try:
            return find_game(self.planned.game, self.home)
        except NoSuchGame:
            raise UsageError(
                f"{self} contains games of {one_line(self.planned.game, 60)} (sources "
                f"{one_line(self.planned.game_source[:12])}), which is not installed",
                hint=missing_game_hint(self.versions.get("game")),
            ) from None

    @property
    def changed_game(self) -> str | None:
        """Return a message if the installed game differs from the one the run used."""
        here, planned = package_of(self.game, self.home), self.planned
        changed = f"the game {self.game.name} has changed: the run has"
        if (now := self.game.rules_version) != planned.rules_version:
            return f"{changed} version {planned.rules_version} of its rules, {here.origin} has {now}"
        if here.is_own or (source := source_of(self.game, self.home)) == planned.game_source:
            return None
        then, hint = one_line(planned.game_source[:12]), missing_game_hint(self.versions.get("game"))
        return f"{changed} sources {then}, {here.origin} has {source[:12]}; to get the run's version, {hint}"

    @property
    def other_settings(self) -> dict[str, Any]:
        return {key: value for key, value in self.identity.items() if key not in _EXPERIMENT_KEYS}

    @cached_property
    def game_count(self) -> int:
        return self.db.game_count()

    @property
    def public_seed(self) -> int | str | None:
        """The seed, or None while it is secret. Only this may be shown."""
        return self.planned.seed if self.is_revealed or not self.planned.seed_sha256 else None

    @property
    def seed_secrecy(self) -> SeedSecrecy:
        return "secret" if self.planned.seed_sha256 else "known"

    @property
    def can_go_on(self) -> bool:
        """Whether more games can be played: never with a secret seed that has been revealed."""
        return not (self.is_revealed and self.planned.seed_sha256)

    @property
    def secrecy_in_words(self) -> str:
        if self.public_seed is None:
            return "is secret until the run ends"
        return "was secret during play" if self.planned.seed_sha256 else "was known"

    @property
    def seed_in_words(self) -> str:
        """The seed or, while it is secret, its SHA-256, and whether it was known during play."""
        seed = f"SHA-256 {self.planned.seed_sha256}" if self.public_seed is None else self.public_seed
        return f"{seed} ({self.secrecy_in_words})"

    @cached_property
    def model_log(self) -> "ModelLog":
        from dubito.store.model_log import ModelLog  # imported late, since runs of bots have no calls

        return ModelLog(self.db)

    @cached_property
    def counts(self) -> GameCounts:
        return count_games(self.db, self.planned.first_game, self.planned.games_per_deal)

    @property
    def deals(self) -> int:
        return self.game_count // self.planned.games_per_deal

    @cached_property
    def names(self) -> list[str]:
        return self.planned.names

    @cached_property
    def kinds(self) -> dict[str, PlayerKind]:
        return self.planned.kinds

    @cached_property
    def contenders(self) -> list[str]:
        return [player.name for player in self.planned.contenders]

    @property
    def label(self) -> Callable[[str], str]:
        return player_labels(self.kinds)

    def describe_missing_game(self, number: int, games: range) -> str:
        numbers = f"games {games.start} to {games.stop - 1}" if games else "no finished game"
        return f"game {number} does not exist; {one_line(str(self.folder))} has {numbers}"

    @cached_property
    def tally(self) -> Tally:
        return load_tally(self.db, self.game.results)

    @cached_property
    def rows(self) -> list[RankingRow]:
        """All players, best first."""
        return ranking(self.tally, self.names, self.game.results)

    @cached_property
    def relation(self) -> Relation:
        """The relation of the contenders if several are compared, or else of all players."""
        return relate_players(self.tally, self.names, list_contenders(self.planned), self.game.results)

    @property
    def is_decided(self) -> bool:
        n = len(self.planned.contenders)
        return self.planned.stop is not None and len([*self.tally.rows("decided")]) == n * (n - 1) // 2

    @property
    def is_finished(self) -> bool:
        return self.game_count >= self.planned.games or self.is_decided

    @cached_property
    def results_digest(self) -> str:
        return self.db.results_digest()

    @cached_property
    def models(self) -> dict[str, PlayerLog]:
        log = self.model_log
        logged = set(log.players())
        return {name: log.player(name) for name in self.names if name in logged}

    @cached_property
    def spent(self) -> Spend:
        return self.model_log.spent()

    def outcome(self, row: bytes) -> Outcome:
        return read_outcome(row, self.game.results, len(self.names), self.folder / DATABASE)

    def outcome_of(self, game: int) -> Outcome:
        ((row,),) = self.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
        return self.outcome(row)

    def deal_streams(self, game: int) -> DealStreams:
        return DealStreams(self.planned.seed, self.planned.deal_of(game))

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment, reduced to the counted games. Raises UsageError if its rules do not fit the game."""
        try:
            rules = self.game.rules(**self.planned.rules).model_dump()
        except (TypeError, ValueError):  # including Pydantic's ValidationError
            raise UsageError(f"{self.folder / MANIFEST} is damaged: its identity cannot be read") from None
        return replace(self.planned, games=self.game_count, rules=rules, game=self.game.name, lineup=self.game.lineup)

    @cached_property
    def registry(self) -> Registry:
        return find_bots(self.home, self.game.name)

    @cached_property
    def mismatches(self) -> list[str]:
        """The differences between this installation and the one that produced the run."""
        version = self.versions.get("dubito")
        other = [f"the run was made by dubito {version}, but this is {__version__}"] if version != __version__ else []
        return [*other, *self.changed]

    @property
    def changed(self) -> list[str]:
        """The mismatches that concern the game or bot files."""
        changes = [self.changed_game] if self.changed_game else []
        for spec in self.experiment.players:
            if self.registry.find(spec.bot).digest != spec.source:
                changes.append(f"{spec.bot}'s file has changed")
            fallback = spec.settings.get("fallback")
            if spec.fallback and self.registry.find(str(fallback)).digest != spec.fallback:
                changes.append(f"the file of {fallback}, {one_line(spec.name)}'s fallback, has changed")
            adviser = spec.settings.get("adviser") or {}
            if "bot" in adviser and self.registry.find(adviser["bot"]).digest != adviser["source"]:
                changes.append(f"the file of {adviser['bot']}, {one_line(spec.name)}'s adviser, has changed")
        return changes

    @cached_property
    def has_same_bots(self) -> bool:
        """Whether bot files are unchanged, or answers are recorded so that a replay can compare them."""
        same = all(player.bot.digest == player.spec.source for player in self.resolved.players)
        return self.resolved.has_records or same

    @cached_property
    def resolved(self) -> ResolvedRun:
        """The run with the bots of this installation. Raises UsageError if one is missing."""
        return ResolvedRun.load(self.experiment, self.registry)

    @cached_property
    def chance(self) -> "ChanceLine | None":
        """The results of random play in a run with models or programs, or None if bots are missing or have changed."""
        from dubito.experiment.chance import find_chance  # imported late, since listing runs does not need it

        try:
            return None if self.changed else find_chance(self.resolved, self.deals)
        except UsageError:
            return None

    @cached_property
    def player(self) -> "ChunkPlayer":
        from dubito.experiment.play import ChunkPlayer  # imported late, since listing runs does not need it

        return ChunkPlayer(self.resolved)

    def replay_models(self, recording: "ReplayRecording", stored_prompts: bool = False) -> "Models | None":
        """Return the players that answer from the recording (models and programs), or None if there are none.

        With `stored_prompts`, they use the prompts stored in the run, since those on disk may be newer.
        """
        run = self.resolved
        if not run.has_records:
            return None
        from dubito.experiment.models import Models, build_decider, build_program
        from dubito.llm.prompts import Prompt

        players = {}
        for spec, model in run.models:
            stored = self.model_log.prompt(spec.prompt)
            try:
                prompt = None if stored_prompts else model.prompt
            except UsageError:
                # The prompt on disk is missing.
                if not stored:
                    raise
                prompt = None
            if prompt is None:
                prompt = Prompt(Path(model.settings.prompt), stored, self.game)
            elif change := _prompt_change(spec, stored, prompt):
                self.mismatches.append(change)
            players[spec.name] = build_decider(model, run, prompt, recording, recording, lambda outcome: None)
        return Models(
            players,
            {spec.name: build_program(spec, run, lambda inner: recording) for spec in run.programs},
        )

    def changed_prompts(self) -> list[str]:
        """Return the mismatches that concern prompts. Raises UsageError for a prompt that is missing now."""
        log = self.model_log
        changes = [_prompt_change(spec, log.prompt(spec.prompt), model.prompt) for spec, model in self.resolved.models]
        return [change for change in changes if change]


def _prompt_change(spec: PlayerSpec, stored: Mapping[str, str], prompt: "Prompt") -> str | None:
    """Describe how a player's prompt differs from the stored one, or return None if it is the same."""
    if prompt.digest == spec.prompt:
        return None
    changed = sorted(name for name in {*stored, *prompt.sources} if stored.get(name) != prompt.sources.get(name))
    return f"{one_line(spec.name)}'s prompt has changed: {', '.join(changed)}"


def read_run(folder: Path, home: Path | None = None) -> Run:
    """Open the run in this folder. The caller closes its store.

    Raises UsageError if the run cannot be read. The user's own games are searched for in `home`, or else in the working
    directory.
    """
    content = read_manifest(folder)
    manifest = _parse_manifest(content, folder)
    if not (folder / DATABASE).exists():
        raise UsageError(f"{one_line(str(folder))} has no {DATABASE}")
    db, home = RunDb.open(folder / DATABASE), Path.cwd() if home is None else home
    identity, is_revealed = content["identity"], "seed" in content
    return Run(folder, identity, manifest.versions, manifest.identity, db, home, is_revealed, manifest.not_enforced)


def _parse_manifest(content: Mapping[str, Any], folder: Path) -> _Manifest:
    """Parse a manifest.

    It is validated as strict JSON, where lists become tuples and no other value changes its type.
    """
    shown, identity = one_line(str(folder / MANIFEST)), {**content["identity"], "games": content.get("games")}
    if "seed_sha256" in identity:
        if "seed" in identity:
            raise UsageError(f"{shown} is damaged: identity has both a seed and its SHA-256")
        identity["seed"] = seed = content["seed"] if "seed" in content else read_secret(folder)
        if not isinstance(seed, str) or hash_seed(seed) != identity["seed_sha256"]:
            where = MANIFEST if "seed" in content else SEED_FILE
            raise UsageError(f"{shown} is damaged: the seed in {where} does not match its SHA-256, seed_sha256")
    try:
        return _Manifest.model_validate_json(
            json.dumps({**content, "identity": identity}, default=str, skipkeys=True), strict=True
        )
    except ValidationError as error:
        raise UsageError(f"{shown} is damaged: {describe_fault(error)}") from None


def load_seed(folder: Path) -> tuple[int | str, str]:
    """Return a run's seed, and the SHA-256 if it is or was secret. Raises UsageError."""
    planned = _parse_manifest(read_manifest(folder), folder).identity
    return planned.seed, planned.seed_sha256


@contextmanager
def open_recorded_run(folder: Path, home: Path | None = None, shown: str = "") -> Iterator[Run]:
    run = replace(read_run(folder, home), shown=shown)
    with store_errors_as_usage_errors(), run.db:
        yield run


@contextmanager
def store_errors_as_usage_errors() -> Iterator[None]:
    """Report an unreadable store as a UsageError, since nothing has been started yet."""
    try:
        yield
    except RunStopped as error:
        raise UsageError(str(error)) from None


def read_replayable_run(folder: Path, home: Path | None = None) -> Run:
    run = read_run(folder, home)
    check_replayable(run)
    return run


def check_replayable(run: Run) -> None:
    run.db.check(run.planned.first_game)
    read_tally(run.db, run.game.results)
    _ = run.mismatches
