"""The players of a game to play or watch, as chosen by flags: a person, bots and models."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from dubito.cli.file_limit import limit_in_flight
from dubito.cli.narrator import check_save
from dubito.cli.options import given_permits, open_run_folder
from dubito.cli.output import note, note_if_slow
from dubito.errors import UsageError, one_line
from dubito.experiment.call_options import call_options, check_cache
from dubito.experiment.config import Config, parse_config, read_config
from dubito.experiment.model_players import check_models, unused_address_warnings
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import rules_of_config
from dubito.experiment.stored import Run, open_recorded_run
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots, find_families
from dubito.game.seeds import Seed
from dubito.show.moment import RunMoment, find_moment
from dubito.show.opponents import FamilyGames, Opponents, bots_of_game, build_company
from dubito.show.session import BotsGame
from dubito.store.folder import CONFIG, DATABASE, MANIFEST
from dubito.store.run_db import RunDb

_NO_FLAGS: Final[Mapping[str, Any]] = {}
# Failing calls are not retried longer than this, because a person is waiting.
_MAX_PATIENCE_SECONDS: Final = 60.0


@contextmanager
def open_opponents(
    config: Path | None,
    names: Sequence[str] | None,
    games: Path,
    first: int,
    stopped: Callable[[], bool],
    server: Mapping[str, str | None] = _NO_FLAGS,
    game: str | None = None,
    rules: Mapping[str, Any] = _NO_FLAGS,
) -> Iterator[Opponents]:
    """Open the named opponents, by default all of the config's players and bot files; raises UsageError.

    Args:
        games: Folder for the models' requests. Other processes can share it; the budget covers all calls in it.
        first: An unused game number in that folder.
        server: `base_url`, `api` and `api_key_env`, if given as flags.
        rules: Rules of the game that were given as flags.
    """
    here, checked = Path.cwd(), _config(config, server, game, rules)
    registry, calls = find_bots(here, checked.game), call_options(checked, here, given_permits())
    # An unusable answer must not end a person's game.
    calls = replace(calls, patience=min(calls.patience, _MAX_PATIENCE_SECONDS), on_unusable="fallback")
    together = check_models(build_company(checked, registry, names), calls)
    in_force = rules_of_config(checked, registry.game).model_dump()
    settled = {rule: in_force[rule] for rule in checked.rules}
    if not together.has_records:
        yield Opponents(together, settled=settled)
        return
    calls = replace(calls, in_flight=limit_in_flight(calls.in_flight))
    for sentence in unused_address_warnings(together):
        note(sentence)
    if warning := check_cache(together, calls):
        note(warning)
    # Imported late: hand-written bots do not need it.
    from dubito.experiment.models import model_players

    file = games / DATABASE
    if (games / MANIFEST).exists():
        raise UsageError(f"{games} is the folder of a run", hint="choose another folder with --games")
    try:
        games.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {games}: {error.strerror}", hint="choose another folder with --games") from None
    if file.exists():
        RunDb.open(file).__exit__()
    with ExitStack() as stack:
        db = stack.enter_context(RunDb.create(file, shared=True))
        with note_if_slow("sending a test question to each model player"):
            models = stack.enter_context(model_players(together, db, calls, ModelProgress(), stopped, first))
        yield Opponents(together, models, settled)


@contextmanager
def open_moment(text: str) -> Iterator[RunMoment]:
    """Open a moment given as RUN:GAME:TURN; raises UsageError and CannotShowGame."""
    name, *numbers = text.rsplit(":", 2)
    if len(numbers) < 2 or not name or not all(number.isdecimal() for number in numbers):
        raise UsageError(f"{one_line(text)} is not a moment; write RUN:GAME:TURN, such as runs/first:12:7")
    path = Path(name)
    with open_run_folder(path) as folder, open_recorded_run(folder, shown=str(path)) as run:
        yield replace(find_moment(run, int(numbers[0]), int(numbers[1])), address=text)


@contextmanager
def open_opponents_of_run(
    run: Run,
    names: Sequence[str],
    games: Path,
    first: int,
    stopped: Callable[[], bool],
    server: Mapping[str, str | None] = _NO_FLAGS,
    *,
    others: bool = False,
) -> Iterator[Opponents]:
    """Open players of a run, and others by name, for a game that begins at one of its moments; raises UsageError.

    With `others`, all players of the run and bot files are open. See `open_opponents` for the other arguments.
    """
    config = run.folder / CONFIG
    known = config if config.exists() and "command" not in read_config(config) else None
    rules = {} if known else run.planned.rules
    with open_opponents(
        known, None if others else names, games, first, stopped, server, run.planned.game, rules
    ) as opponents:
        opponents.require_movable(names)
        yield opponents


def rules_at_table(config: Path | None, game: Game, rules: Mapping[str, Any]) -> BaseModel:
    return rules_of_config(_config(config, {}, game.name, rules), game)


def _config(file: Path | None, server: Mapping[str, str | None], game: str | None, rules: Mapping[str, Any]) -> Config:
    """Build the config from a file and flags; raises UsageError if they are for different games."""
    flags: dict[str, Any] = {**server, **rules}
    content = {} if file is None else read_config(file)
    if game is not None and content.get("game", DUBITO) != game:
        if file is not None:
            raise UsageError(f"{file} is for another game", hint=f"use a config with `game: {game}`, or omit --game")
        flags["game"] = game
    return parse_config(content, str(file or "the command"), flags)


def load_family() -> FamilyGames | None:
    """Return the games of the first family whose library is installed, or None."""
    for family in find_families(Path.cwd()):
        with suppress(UsageError):
            members = {f"{family.name}:{one.name}": one for one in family.members() if one.why_not is None}
            names, is_open = [*members], [name for name, one in members.items() if one.is_open]
            featured = [name for name in names if name.partition(":")[2] in family.featured]
            return FamilyGames(names, featured, bots_of_game, is_open)
    return None


@dataclass(frozen=True, kw_only=True)
class TableOrder:
    """The game that the flags describe."""

    names: Sequence[str]
    game: str
    seed: Seed
    deal: int
    on_bot_error: str
    bot_deadline: float | None
    save: Path | None
    config: Path | None
    games: Path
    # Both have the format that `open_opponents` expects.
    server: Mapping[str, str | None]
    rules: Mapping[str, Any]


@contextmanager
def open_game(order: TableOrder, stopped: Callable[[], bool] = lambda: False) -> Iterator[BotsGame]:
    """Open the game before its deal; raises UsageError."""
    check_save(order.save)
    registry, names, number = find_bots(Path.cwd(), order.game), order.names, int(time.time() * 1000)
    with ExitStack() as stack:
        opponents = None
        asks = order.config is not None or any(":" in name for name in names)
        bots = [] if asks else [registry.find(name) for name in names]
        if asks or any(bot.cls.is_model or bot.cls.is_program for bot in bots):
            flags = (order.config, names, order.games, number, stopped, order.server, order.game, order.rules)
            opponents = stack.enter_context(open_opponents(*flags))
        yield BotsGame(
            registry,
            opponents,
            names,
            rules_at_table(order.config, registry.game, order.rules),
            order.seed,
            order.deal,
            order.on_bot_error,
            order.bot_deadline,
            None if opponents is None else number,
        )
