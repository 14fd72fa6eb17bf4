"""`dubito rate PLAYER --ladder`: which hand-written bots a player beats, on the deals of a book."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dubito.cli.output import say, table
from dubito.errors import one_line
from dubito.experiment.run import RunResult
from dubito.game.find import Registry
from dubito.plugins.leaderboard.book import Book, part_seed
from dubito.report.tables import cell_text, difference_kind
from dubito.stats.ranking import relate_contenders
from dubito.stats.relation import Relation, Rung, find_rung

_RUNG: Final = "rung: "  # begins the name of a bot that is compared; as an opponent it has its own name


@dataclass(frozen=True, slots=True)
class Climb:
    """A player among the hand-written bots of its game, which play the same deals in its seat."""

    player: str
    result: RunResult
    relation: Relation
    rung: Rung

    @property
    def bots(self) -> list[str]:
        """The bots that it met, weakest first: up to the first that beats it."""
        weakest_first = [name for name in reversed(self.relation.names) if name != self.player]
        end = weakest_first.index(self.rung.loses_to) if self.rung.loses_to else len(weakest_first) - 1
        return weakest_first[: end + 1]


def build_ladder_config(book: Book, entry: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """Return the config in which a player and all hand-written bots play a book's deals against its opponents."""
    rules = registry.game.rules(**book.rules)
    rungs = [
        {"bot": bot.name, "name": f"{_RUNG}{bot.name}"}
        for bot in registry.hand_written()
        if not bot.cls.rules_incompatibility(rules) and bot.name != entry["bot"]
    ]
    seats = 2 if book.table_sizes == [2] else 1
    return {
        "game": book.game,
        "rules": book.rules,
        "seed": part_seed(book, "field"),
        "table_sizes": book.table_sizes,
        "games": book.deals * seats * (1 + len(rungs)),
        "bots": [*book.bots],
        "contenders": [entry, *rungs],
    }


def climb(player: str, result: RunResult) -> Climb:
    relation = relate_contenders(result.tally, result.contenders, result.game.results)
    assert relation is not None
    return Climb(player, result, relation, find_rung(relation, player, [*relation.names]))


def print_climb(one: Climb, book: str, folder: Path) -> None:
    relation, measure = one.relation, one.relation.measure
    own = relation.names.index(one.player)
    cells = []
    for name in one.bots:
        place = relation.names.index(name)
        difference = cell_text(relation.pair(own, place).difference, difference_kind(measure))
        outcome = "beaten" if relation.wins(own, place) else "stronger" if relation.wins(place, own) else "undecided"
        cells.append([name.removeprefix(_RUNG), difference, outcome])
    player = one_line(one.player)
    title = f"{player} on the deals of {book}, against the hand-written bots in its seat, weakest first"
    table(title, ["bot", f"lead of {player} in {measure.name}", ""], cells)
    found = (one.rung.beats, one.rung.loses_to)
    beats, loses = (name and one_line(name.removeprefix(_RUNG)) for name in found)
    stands = f"stands on {beats}, the strongest bot that it significantly beats" if beats else "beats no bot"
    ends = f"{loses} is the weakest that beats it" if loses else "no bot beats it"
    say(f"rung: {player} {stands}; {ends}")
    say(f"run: {folder}")
