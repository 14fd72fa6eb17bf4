"""Books: fixed conditions for ratings, meant to stay the same for years.

A book specifies the deals, the tables, and the bots with the digests of their files. `dubito rate` plays two runs per
book, one for each `Part`. The runs' manifests name the book.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import Field, ValidationError

from dubito.errors import UsageError, one_line, suggestion
from dubito.experiment.experiment import Experiment, PartName, PlayerSpec
from dubito.experiment.stored import Run
from dubito.files import CheckedModel, describe_fault, read_yaml
from dubito.game import Game
from dubito.game.find import Registry, package_of, source_of

BOOKS: Final = Path(__file__).with_name("books")
_Bots = dict[str, str]  # sha256 of each bot's file, by bot name
NEW: Final = "that is a new book"


class Book(CheckedModel):
    """The content of a file in `books/`."""

    game: str
    rules_version: int = Field(ge=1)
    # The digest of the game's sources, for third-party games.
    game_source: str = ""
    rules: dict[str, Any]
    seed: int
    table_sizes: list[int] = Field(min_length=1)
    deals: int = Field(ge=1)
    # The opponents.
    bots: _Bots = Field(min_length=1)
    exploiter_deals: int = Field(ge=1)
    # Each plays at tables where the rated player takes all other seats.
    exploiters: _Bots = Field(min_length=1)

    @cached_property
    def digest(self) -> str:
        text = json.dumps(self.model_dump(), ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:16]


class NamedBook(NamedTuple):
    name: str
    book: Book


def book_names() -> list[str]:
    return sorted(file.stem for file in BOOKS.glob("*.yaml"))


def read_book(named: str) -> NamedBook:
    """Read a book by its name or file; raises UsageError."""
    is_file = named.endswith(".yaml") or "/" in named
    if not is_file and named not in book_names():
        raise UsageError(f"unknown book {one_line(named)!r}", hint=suggestion(named, book_names()))
    file = Path(named) if is_file else BOOKS / f"{named}.yaml"
    try:
        return NamedBook(file.stem, Book.model_validate(read_yaml(file)))
    except ValidationError as error:
        raise UsageError(f"{one_line(str(file))}: {describe_fault(error, 'a book')}") from None


def check_book(named: NamedBook, registry: Registry) -> None:
    if faults := _list_changes(named, registry):
        raise UsageError(f"{named.name} cannot be played: {faults[0]}", hint=NEW)


def _list_changes(named: NamedBook, registry: Registry) -> list[str]:
    """Describe everything that has changed since the book was written, one sentence each."""
    book, changes = named.book, list[str]()
    if (registry.game.rules_version, _source(registry)) != (book.rules_version, book.game_source):
        changes.append(f"the game {book.game} has changed since the book was written")
    for name, digest in (book.bots | book.exploiters).items():
        if name not in registry.bots:
            changes.append(f"its bot {one_line(name)} is missing")
        elif registry.find(name).digest != digest:
            changes.append(f"{one_line(name)}'s file has changed")
    unknown = book.rules.keys() - type(registry.game.rules()).model_fields
    changes += [f"{book.game} no longer has a rule {one_line(rule)}" for rule in sorted(unknown)]
    return changes


def _source(registry: Registry) -> str:
    """Return the digest of a third-party game's sources.

    For our own games it is empty, so that books remain valid after OpenSpiel releases.
    """
    game, here = registry.game, registry.working_directory
    return "" if package_of(game, here).is_own else source_of(game, here)


def build_part_config(
    book: Book, part: PartName, player: PlayerSpec, exploiters: Sequence[dict[str, Any]], game: Game
) -> Any:
    """Return the config for a part. `exploiters` are config entries."""
    table, entry = book.table_sizes, {"bot": player.bot, "name": player.name, **player.settings}
    seats = 2 if table == [2] else 1
    common = {"game": book.game, "rules": book.rules, "seed": part_seed(book, part), "table_sizes": table}
    if part == "field":
        return {**common, "games": book.deals * seats, "bots": [*book.bots], "contenders": [entry]}
    copies = max(table) if game.lineup == "distinct" else 1
    field = [entry | ({"name": f"{player.name} {n}"} if n > 1 else {}) for n in range(1, copies + 1)]
    games = book.exploiter_deals * seats * len(exploiters)
    others = [
        one | ({"name": f"{player.name} 2"} if len(one) > 1 and one["bot"] == player.name else {}) for one in exploiters
    ]
    return {**common, "games": games, "bots": field, "contenders": others}


def part_seed(book: Book, part: PartName) -> int:
    return book.seed + (part == "exploiters")


class RunBook(NamedTuple):
    """The book that a run names in its manifest."""

    name: str
    part: PartName
    # How the run differs from that book, if it does.
    faults: list[str]


def find_book_of(run: Run, named: str | None = None) -> RunBook | None:
    """Return the book that a run was played with and any differences, or None.

    `named` is the book's name or file, by default the name in the run.
    """
    part = run.planned.book
    if part is None:
        return None
    try:
        here = read_book(named or part.name)
    except UsageError as error:
        return RunBook(part.name, part.part, [str(error)])
    faults = [] if here.book.digest == part.digest else [f"it was played with another version of {here.name}"]
    defaults = run.game.rules().model_dump()
    return RunBook(part.name, part.part, faults + _differences(here.book, part.part, run.planned, defaults))


def _differences(book: Book, part: PartName, run: Experiment, defaults: Mapping[str, Any]) -> list[str]:
    """Describe how a run differs from a book. `defaults` are the game's default rules."""
    field, compared = {bot.name: bot.source for bot in run.bots}, {one.bot: one.source for one in run.contenders}
    contender_count = len(run.contenders) * run.contender_seats
    deals, bots, others = (
        (book.deals, book.bots, field) if part == "field" else (book.exploiter_deals, book.exploiters, compared)
    )
    players = [replace(player, name="") for player in (run.contenders if part == "field" else run.bots)]
    conditions = {
        "game": run.game == book.game,
        "rules": all(run.rules.get(rule) == value for rule, value in book.rules.items())
        and run.rules.keys() <= defaults.keys(),
        "seed": run.seed == part_seed(book, part),
        "table sizes": [*run.table_sizes] == sorted(book.table_sizes),
        "deals": contender_count > 0 and run.games == deals * contender_count and not run.stop and not run.shard,
        "bots": [*others.items()] == [*bots.items()] and (part != "field" or not any(bot.settings for bot in run.bots)),
        "player": all(each == players[0] for each in players) and (part != "field" or len(players) == 1),
        "error handling": run.on_bot_error == "stop" and run.provider_errors == "fallback",
    }
    return [f"different from the book: {what}" for what, same in conditions.items() if not same]
