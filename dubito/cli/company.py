"""Flags that say who sits down with a person; the players themselves are experiment/opponents.py's.

Bots and models at a table of their own, as flags say it: who sits there, and their game move by move.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dubito.cli.calls import call_options, note_unused_addresses
from dubito.cli.narrator import check_save, save_record
from dubito.cli.options import rules_from
from dubito.cli.output import note
from dubito.errors import UsageError
from dubito.experiment.config import Config, check, read_config
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import check_cache, checked_models, model_specs
from dubito.game import PlayerKind, Spec
from dubito.game.bot_deadline import in_time
from dubito.game.find import DUBITO, Registry, find_bots, find_games
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.game.words import labels
from dubito.show.person import Opponents, Thought, company
from dubito.show.session import Session, moves_at
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
    """A game of bots among themselves that has not begun."""

    def __init__(self, wanted: TableOrder, registry: Registry, company: Opponents | None, number: int) -> None:
        """`company` is of those that ask models, None where nobody does; `number` the game's where it is kept.

        Raises UsageError where it cannot be played so.
        """
        self.wanted, self.spec = wanted, registry.game
        self.rules = rules_from(wanted.rules, self.spec)
        self.number = None if company is None else number
        self._registry, self._company = registry, company
        self.label = labels(list(wanted.names), None)
        if wanted.on_bot_error == "forfeit" and not self.spec.forfeits:
            raise UsageError(
                f"--on-bot-error forfeit: a game of {self.spec.name} cannot be forfeited: choose stop or fallback"
            )
        self.dealt()  # raises UsageError where so many cannot play it

    @property
    def kinds(self) -> list[PlayerKind]:
        """What decides for each seat."""
        names = self.wanted.names
        return ["hand-written" for _ in names] if self._company is None else self._company.kinds(names)

    def dealt(self) -> Any:
        """The game just dealt, the same each time."""
        return self.spec.deal(self.rules, len(self.wanted.names), self.wanted.streams.deck())

    def begin(self, hear: Callable[[Thought], None] = lambda thought: None) -> Session:
        """Seat everybody; `hear` is told what models think, and what it raises ends the game. Raises BotError.

        A move raises BotError where a bot fails and nothing else was asked for.
        """
        wanted, spec = self.wanted, self.spec
        unsaid: list[Exception] = []  # raised within a bot's turn it would be blamed on the bot

        def told(thought: Thought) -> None:
            try:
                hear(thought)
            except Exception as error:  # nobody reads on, the disk is full
                unsaid.append(error)

        entrants, services = self._seated(told)
        table = Table(
            self.dealt(),
            entrants,
            wanted.streams,
            deal=wanted.deal,
            number=self.number or 0,
            fallback=self._registry.fallback if wanted.on_bot_error == "fallback" else None,
            forfeits=wanted.on_bot_error == "forfeit",
            services=services,
        )
        moves = moves_at(table)

        def move() -> Any:
            made = moves()
            if unsaid:
                raise unsaid[-1]
            return made

        rules = self.rules.model_dump()
        session = Session(spec, table.game, self.label, move, errors=table.errors, forfeits=table.forfeits, rules=rules)
        session.thinks = lambda seat: entrants[seat].bot.is_model
        return session

    def _seated(self, hear: Callable[[Thought], None]) -> tuple[list[Entrant], list[object]]:
        wanted, services = self.wanted, list[object]()
        if self._company is None:
            entrants = [Entrant(name, self._registry.find(name).cls) for name in wanted.names]
        else:
            entrants, services = self._company.among_themselves(wanted.names, wanted.seed, self.rules, hear)
        if (deadline := wanted.bot_deadline) is not None:
            entrants = [
                each if each.bot.is_model else replace(each, bot=in_time(each.bot, deadline, self.spec.nodes))
                for each in entrants
            ]
        return entrants, services

    def save(self, played: Session) -> None:
        """Write the record of the finished game where one is wanted, and say so; raises RunStopped."""
        wanted = self.wanted
        if wanted.save is not None:
            record = played.record(wanted.names, wanted.seed, wanted.deal, self.number)
            save_record(wanted.save, self.spec, record)


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
