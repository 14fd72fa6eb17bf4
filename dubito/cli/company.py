"""Who sits at a table before somebody, as flags say it: with a person, or bots and models among themselves."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from dubito.cli.descriptors import bound_in_flight
from dubito.cli.narrator import check_save
from dubito.cli.output import note, note_if_slow
from dubito.errors import UsageError
from dubito.experiment.config import Config, parse_config, read_config
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import (
    call_options,
    check_cache,
    check_models,
    model_specs,
    parse_rules,
    unused_address_warnings,
)
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots, find_games
from dubito.show.company import Opponents, build_company
from dubito.show.session import BotsGame
from dubito.store.folder import DATABASE, MANIFEST
from dubito.store.run_db import RunDb

_USUAL: Final[Mapping[str, Any]] = {}
_AT_A_TABLE: Final = 60.0  # seconds of patience: a person waits


@contextmanager
def opponents(
    config: Path | None,
    names: Sequence[str] | None,
    games: Path,
    first: int,
    stopped: Callable[[], bool],
    server: Mapping[str, str | None] = _USUAL,
    game: str | None = None,
    rules: Mapping[str, Any] = _USUAL,
) -> Iterator[Opponents]:
    """The opponents of these names, or all that the config and the bot files define.

    What models are asked is kept in `games`, which other processes may use at the same time; the budget covers all
    that is kept there. `first` is a number that no game there has; `server` holds the config's keys `base_url`, `api`
    and `api_key_env` if they were given as flags, and `rules` those of the game. Raises UsageError.
    """
    here, said = Path.cwd(), _config(config, server, game, rules)
    registry, calls = find_bots(here, said.game), call_options(said, here)
    calls = replace(calls, patience=min(calls.patience, _AT_A_TABLE), on_unusable="fallback")  # who sits there plays on
    together = check_models(build_company(said, registry, names), registry, calls)
    in_force = parse_rules(said, registry.game)
    settled = {rule: getattr(in_force, rule) for rule in said.rules}
    if not model_specs(together, registry):
        yield Opponents(together, registry, settled=settled)
        return
    calls = replace(calls, in_flight=bound_in_flight(calls.in_flight))
    for sentence in unused_address_warnings(together, registry):
        note(sentence)
    if warning := check_cache(together, registry, calls):
        note(warning)
    from dubito.experiment.models import model_players  # late: hand-written bots need no way to ask

    with ExitStack() as stack:
        db = stack.enter_context(_store(games))
        with note_if_slow("the model players are asked a question each, to see that they answer"):
            models = stack.enter_context(model_players(together, registry, db, calls, ModelProgress(), stopped, first))
        yield Opponents(together, registry, models, settled)


def rules_at_table(config: Path | None, game: Game, rules: Mapping[str, Any]) -> BaseModel:
    return parse_rules(_config(config, {}, game.name, rules), game)


def _config(file: Path | None, server: Mapping[str, str | None], game: str | None, rules: Mapping[str, Any]) -> Config:
    """What a file and flags say; raises UsageError where they are of two games."""
    flags: dict[str, Any] = {**server, **rules}
    content = {} if file is None else read_config(file)
    if game is not None and content.get("game", DUBITO) != game:
        if file is not None:
            raise UsageError(f"{file} is for another game: use a config with `game: {game}`, or drop --game")
        flags["game"] = game
    return parse_config(content, str(file or "the command"), flags)


def others(but: Game) -> dict[str, Opponents]:
    """The hand-written bots of all games but one, by the game's name; of games that have some."""
    here, found = Path.cwd(), {}
    for spec in find_games(here):
        if spec.name != but.name:
            registry = find_bots(here, spec.name)
            found[spec.name] = Opponents(
                build_company(parse_config({"game": spec.name}, "the command"), registry), registry
            )
    return {name: opponents for name, opponents in found.items() if opponents.choices()}


def _store(games: Path) -> RunDb:
    file = games / DATABASE
    if (games / MANIFEST).exists():
        raise UsageError(f"{games} is the folder of a run: choose another --games")
    try:
        games.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {games}: {error.strerror}; choose another --games") from None
    if file.exists():
        RunDb.open(file).__exit__()
    return RunDb.create(file, shared=True)


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
    server: Mapping[str, str | None]  # as `opponents` takes it
    rules: Mapping[str, Any]  # as flags say them


@contextmanager
def seated(wanted: TableOrder, stopped: Callable[[], bool] = lambda: False) -> Iterator[BotsGame]:
    """The game that is wanted, before its deal. Raises UsageError."""
    check_save(wanted.save)
    registry, names, number = find_bots(Path.cwd(), wanted.game), wanted.names, int(time.time() * 1000)
    with ExitStack() as stack:
        company = None
        asks = wanted.config is not None or any(":" in name for name in names)
        bots = [] if asks else [registry.find(name) for name in names]
        if asks or any(bot.cls.is_model for bot in bots):
            flags = (wanted.config, names, wanted.games, number, stopped, wanted.server, wanted.game, wanted.rules)
            company = stack.enter_context(opponents(*flags))
        yield BotsGame(
            registry,
            company,
            names,
            rules_at_table(wanted.config, registry.game, wanted.rules),
            wanted.seed,
            wanted.deal,
            wanted.on_bot_error,
            wanted.bot_deadline,
            None if company is None else number,
        )
