"""Flags that say who sits down with a person; the players themselves are experiment/opponents.py's.

Bots and models at a table of their own, as flags say it: who sits there, and their game move by move.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from dubito.cli.calls import call_options, note_unused_addresses
from dubito.cli.narrator import check_save, faults_of
from dubito.cli.options import rules_from
from dubito.cli.output import note
from dubito.errors import UsageError
from dubito.experiment.config import Config, check, read_config
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import check_cache, checked_models, model_specs
from dubito.game import PlayerKind, Spec
from dubito.game.bot_deadline import in_time
from dubito.game.find import DUBITO, Registry, find_bots, find_games
from dubito.game.record import Forfeit, records_of
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.game.words import labels
from dubito.show.person import Opponents, Thought, company
from dubito.store.folder import DATABASE, MANIFEST
from dubito.store.lock import claimed
from dubito.store.run_db import RunDb

_USUAL: Final[Mapping[str, str | None]] = {}
_AT_A_TABLE: Final = 60.0  # seconds of patience at the most: a person waits


@contextmanager
def opponents(
    config: Path | None,
    names: Sequence[str] | None,
    games: Path,
    first: int,
    stopped: Callable[[], bool],
    server: Mapping[str, str | None] = _USUAL,
    game: str | None = None,
) -> Iterator[Opponents]:
    """The opponents of these names, or all that the config and the bot files define.

    What models are asked is kept in `games`, which this process holds alone for as long as this lasts; the budget is
    for all that is kept there. `first` is a number that no game there has; `server` holds the config's keys `base_url`
    and `api_key_env` where they were given as flags. Raises UsageError.
    """
    here, said = Path.cwd(), _config(config, server, game)
    registry, calls = find_bots(here, said.game), call_options(said, here)
    calls = replace(calls, patience=min(calls.patience, _AT_A_TABLE), on_unusable="fallback")  # who sits there plays on
    together = checked_models(company(said, registry, names), registry, calls)
    if not model_specs(together, registry):
        yield Opponents(together, registry)
        return
    note_unused_addresses(together, registry)
    if warning := check_cache(together, registry, calls):
        note(warning)
    from dubito.experiment.models import serving  # late: hand-written bots need no way to ask

    with ExitStack() as stack:
        stack.enter_context(claimed(games, "--games"))
        db = stack.enter_context(_store(games))
        yield Opponents(
            together,
            registry,
            stack.enter_context(serving(together, registry, db, calls, ModelProgress(), stopped, first)),
        )


def _config(file: Path | None, server: Mapping[str, str | None], game: str | None) -> Config:
    """What a file and flags say; raises UsageError where they are of two games."""
    flags = {key: value for key, value in server.items() if value is not None}
    content = {} if file is None else read_config(file)
    if game is not None and content.get("game", DUBITO) != game:
        if file is not None:
            raise UsageError(f"{file} is for another game: use a config with `game: {game}`, or drop --game")
        flags["game"] = game
    return check(content, str(file or "the command"), flags)


def others(but: Spec) -> dict[str, Opponents]:
    """The hand-written bots of all games but one, by the game's name; of games that have some."""
    here, found = Path.cwd(), {}
    for spec in find_games(here):
        if spec.name != but.name:
            registry = find_bots(here, spec.name)
            found[spec.name] = Opponents(company(check({"game": spec.name}, "the command"), registry), registry)
    return {name: opponents for name, opponents in found.items() if opponents.choices()}


def _store(games: Path) -> RunDb:
    file = games / DATABASE
    if (games / MANIFEST).exists():
        raise UsageError(f"{games} is the folder of a run: choose another --games")
    if file.exists():
        RunDb.open(file).__exit__()
    return RunDb.create(file)


Hear = Callable[[Thought], None]


@dataclass(frozen=True, kw_only=True)
class TableOrder:
    """The game that was asked for."""

    names: Sequence[str]
    game: str
    seed: int
    deal: int
    on_bot_error: str
    bot_deadline: float | None
    save: Path | None
    config: Path | None
    games: Path
    server: Mapping[str, str | None]  # the config's keys `base_url` and `api_key_env`, where they were given as flags
    rules: Mapping[str, Any]  # as flags say them

    @property
    def streams(self) -> DealStreams:
        """Where its deck and chance come from."""
        return DealStreams(self.seed, self.deal)


class BotsGame:
    """A game of bots among themselves, move by move."""

    def __init__(self, wanted: TableOrder, registry: Registry, company: Opponents | None, number: int) -> None:
        """`company` is of those that ask models, None where nobody does; `number` the game's where it is kept."""
        self.wanted, self.spec = wanted, registry.game
        self.rules = rules_from(wanted.rules, self.spec)
        self.number = None if company is None else number
        self._registry, self._company = registry, company
        self.label = labels(list(wanted.names), None)
        self._unsaid: Exception | None = None  # why a thought could not be told: nobody reads on, the disk is full
        if wanted.on_bot_error == "forfeit" and not self.spec.forfeits:
            raise UsageError(
                f"--on-bot-error forfeit: a game of {self.spec.name} cannot be forfeited: choose stop or fallback"
            )
        self.dealt()  # raises UsageError where so many cannot play it, before anything begins

    @property
    def kinds(self) -> list[PlayerKind]:
        """What decides for each seat."""
        names = self.wanted.names
        return ["hand-written" for _ in names] if self._company is None else self._company.kinds(names)

    def dealt(self) -> Any:
        """The game just dealt, the same each time."""
        return self.spec.deal(self.rules, len(self.wanted.names), self.wanted.streams.deck())

    def begin(self, hear: Hear) -> None:
        """Seat everybody; `hear` is told what models think. Raises BotError."""
        wanted, spec = self.wanted, self.spec
        entrants, services = self._seated(self._outside(hear))
        if wanted.bot_deadline is not None:
            entrants = [
                each if each.bot.is_model else replace(each, bot=in_time(each.bot, wanted.bot_deadline, spec.nodes))
                for each in entrants
            ]
        self.game = self.dealt()
        self._recorder = records_of(spec).recorder(self.game, self.rules.model_dump())
        self._turn = 1
        self._table = Table(
            self.game,
            entrants,
            wanted.streams,
            deal=wanted.deal,
            number=self.number or 0,
            fallback=self._registry.fallback if wanted.on_bot_error == "fallback" else None,
            forfeits=wanted.on_bot_error == "forfeit",
            services=services,
        )

    def _outside(self, hear: Hear) -> Hear:
        """The same, but what it raises is left for `move`: raised within a bot's turn it would be blamed on the bot."""

        def told(thought: Thought) -> None:
            try:
                hear(thought)
            except Exception as error:
                self._unsaid = error

        return told

    def _seated(self, hear: Hear) -> tuple[list[Entrant], list[object]]:
        if self._company is not None:
            return self._company.among_themselves(self.wanted.names, self.wanted.seed, self.rules, hear)
        return [Entrant(name, self._registry.find(name).cls) for name in self.wanted.names], []

    def asks_a_model(self, seat: int) -> bool:
        """Whether the player there may take its time."""
        return self._table.entrants[seat].bot.is_model

    def move(self) -> tuple[Any, Sequence[Any]]:
        """Make the next move: what was given back, None by a forfeit, and what was observed of it.

        Raises BotError where a bot fails and nothing else was asked for, and what `hear` raised.
        """
        self._turn = self.game.turns_played + 1
        output, events = step(self._table, announce=True)
        if self._unsaid is not None:
            raise self._unsaid
        if output is not None:
            self._recorder.add(self._turn, output, events)
        return output, events

    def faults(self) -> tuple[list[str], Forfeit | None]:
        """What bots have done wrong since the last time, in sentences, and whether that has ended the game."""
        faults, forfeit = faults_of(self._table, self.spec)
        if forfeit is not None:
            self._recorder.add(self._turn, forfeit, [])
        return faults, forfeit

    def as_kept(self, output: Any) -> Any:
        """An output, or a forfeit, as a record has it."""
        return asdict(output) if isinstance(output, Forfeit) else self.spec.output_to_json(output)

    def record(self) -> Any:
        """The finished game, as its game keeps it."""
        wanted = self.wanted
        return self._recorder.record(self.game, wanted.names, wanted.seed, wanted.deal, self.number)


@contextmanager
def seated(wanted: TableOrder, stopped: Callable[[], bool] = lambda: False) -> Iterator[BotsGame]:
    """The game that is wanted, before its deal. Raises UsageError.

    What models are asked in it is kept in `games`, which this process holds alone meanwhile.
    """
    check_save(wanted.save)
    registry = find_bots(Path.cwd(), wanted.game)
    if not _asks_models(wanted, registry):
        yield BotsGame(wanted, registry, None, 0)
        return

    number = int(time.time() * 1000)
    with opponents(wanted.config, wanted.names, wanted.games, number, stopped, wanted.server, wanted.game) as company:
        yield BotsGame(wanted, registry, company, number)


def _asks_models(wanted: TableOrder, registry: Registry) -> bool:
    """Whether somebody may ask a model; raises UsageError for a name that no bot has."""
    if wanted.config is not None or any(":" in name for name in wanted.names):
        return True
    bots = [registry.find(name) for name in wanted.names]
    return any(bot.cls.is_model for bot in bots)
