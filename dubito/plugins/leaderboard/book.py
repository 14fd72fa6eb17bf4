"""Books: what everybody is rated by, the same for years. A book says the deals, the tables, and bots with the digests
of their files; `dubito rate` plays two runs by it, one in each `Part`, and each says so in its manifest.
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
from dubito.files import Checked, fault, read_yaml
from dubito.game import Game
from dubito.game.find import Registry, package_of, source_of

BOOKS: Final = Path(__file__).with_name("books")
_Bots = dict[str, str]  # by name: the sha256 of the bot's file
NEW: Final = "that is a new book"


class Book(Checked):
    """What a file in `books/` says."""

    game: str
    rules_version: int = Field(ge=1)  # of the game
    game_source: str = ""  # of a game that does not come with Dubito: the digest of its sources
    rules: dict[str, Any]
    seed: int
    table_sizes: list[int] = Field(min_length=1)
    deals: int = Field(ge=1)
    bots: _Bots = Field(min_length=1)  # the field
    exploiter_deals: int = Field(ge=1)
    exploiters: _Bots = Field(min_length=1)  # each sits down among players who are all the one that is rated

    @cached_property
    def digest(self) -> str:
        text = json.dumps(self.model_dump(), ensure_ascii=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()[:16]


class NamedBook(NamedTuple):
    """A book, and what it is called."""

    name: str
    book: Book


def book_names() -> list[str]:
    return sorted(file.stem for file in BOOKS.glob("*.yaml"))


def read_book(named: str) -> NamedBook:
    """The book of that name, or in that file; raises UsageError."""
    is_file = named.endswith(".yaml") or "/" in named
    if not is_file and named not in book_names():
        raise UsageError(f"no book is named {one_line(named)!r}: {suggestion(named, book_names())}")
    file = Path(named) if is_file else BOOKS / f"{named}.yaml"
    try:
        return NamedBook(file.stem, Book.model_validate(read_yaml(file)))
    except ValidationError as error:
        raise UsageError(f"{one_line(str(file))}: {fault(error, 'a book')}") from None


def check_book(named: NamedBook, registry: Registry) -> None:
    if faults := _changed(named, registry):
        raise UsageError(f"{named.name} cannot be played: {faults[0]}: {NEW}")


def _changed(named: NamedBook, registry: Registry) -> list[str]:
    """What is not as the book says, a sentence each."""
    book, found = named.book, list[str]()
    if (registry.game.rules_version, _source(registry)) != (book.rules_version, book.game_source):
        found.append(f"{book.game} is played otherwise now than when the book was written")
    for name, digest in (book.bots | book.exploiters).items():
        if name not in registry.bots:
            found.append(f"its bot {one_line(name)} is not here")
        elif registry.find(name).digest != digest:
            found.append(f"the file of {one_line(name)} was changed since")
    unknown = book.rules.keys() - type(registry.game.rules()).model_fields
    found += [f"{book.game} has no rule {one_line(rule)} now" for rule in sorted(unknown)]
    return found


def _source(registry: Registry) -> str:
    """Return the digest of a foreign game's sources, nothing for our own: no release of OpenSpiel ends a book."""
    game, here = registry.game, registry.working_directory
    return "" if package_of(game, here).is_own else source_of(game, here)


def config_of(book: Book, part: PartName, player: PlayerSpec, exploiters: Sequence[dict[str, Any]], game: Game) -> Any:
    """A part as a config has it; `exploiters` are entries of a config."""
    table, entry = book.table_sizes, {"bot": player.bot, "name": player.name, **player.settings}
    seats = 2 if table == [2] else 1
    common = {"game": book.game, "rules": book.rules, "seed": seed_of(book, part), "table_sizes": table}
    if part == "field":
        return {**common, "games": book.deals * seats, "bots": [*book.bots], "contenders": [entry]}
    copies = max(table) if game.lineup == "distinct" else 1
    field = [entry | ({"name": f"{player.name} {n}"} if n > 1 else {}) for n in range(1, copies + 1)]
    games = book.exploiter_deals * seats * len(exploiters)
    others = [
        one | ({"name": f"{player.name} 2"} if len(one) > 1 and one["bot"] == player.name else {}) for one in exploiters
    ]
    return {**common, "games": games, "bots": field, "contenders": others}


def seed_of(book: Book, part: PartName) -> int:
    return book.seed + (part == "exploiters")


class FoundBook(NamedTuple):
    """The book that a run says it was played by."""

    name: str
    part: PartName
    faults: list[str]  # why it is not that book as it is here, a sentence each; empty: it is, unchanged


def book_of(run: Run, named: str | None = None) -> FoundBook | None:
    """The book that a run was played by, and whether it is that book unchanged; None where it says none.

    `named` is where the book is looked for, by its name or file, else by what the run calls it.
    """
    by = run.planned.book
    if by is None:
        return None
    try:
        here = read_book(named or by.name)
    except UsageError as error:
        return FoundBook(by.name, by.part, [str(error)])
    faults = [] if here.book.digest == by.digest else [f"it was played by another {here.name}"]
    usual = run.game.rules().model_dump()
    return FoundBook(by.name, by.part, faults + _departures(here.book, by.part, run.planned, usual))


def _departures(book: Book, part: PartName, run: Experiment, usual: Mapping[str, Any]) -> list[str]:
    """Where a run is not what the book says, whatever it calls itself; `usual` are the rules where nothing is said."""
    field, compared = {bot.name: bot.source for bot in run.bots}, {one.bot: one.source for one in run.contenders}
    many = len(run.contenders) * run.contender_seats
    deals, bots, others = (
        (book.deals, book.bots, field) if part == "field" else (book.exploiter_deals, book.exploiters, compared)
    )
    one = [replace(player, name="") for player in (run.contenders if part == "field" else run.bots)]
    held = {
        "game": run.game == book.game,
        "rules": all(run.rules.get(rule) == value for rule, value in book.rules.items())
        and run.rules.keys() <= usual.keys(),
        "seed": run.seed == seed_of(book, part),
        "table sizes": [*run.table_sizes] == sorted(book.table_sizes),
        "deals": many > 0 and run.games == deals * many and not run.stop and not run.shard,
        "bots": [*others.items()] == [*bots.items()] and (part != "field" or not any(bot.settings for bot in run.bots)),
        "player": all(each == one[0] for each in one) and (part != "field" or len(one) == 1),
        "what follows a bot's error": run.on_bot_error == "stop" and run.provider_errors == "fallback",
    }
    return [f"not the book's: {what}" for what, same in held.items() if not same]
