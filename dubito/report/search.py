"""The fields of each game that the search and the filters of the games page read (`tables.js`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dubito.experiment.stored import Run
from dubito.report.tables import Value
from dubito.show.story import winners
from dubito.stats.tally import Outcome


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for games: a field, a way to match it (tables.js), and choices."""

    title: str
    field: str
    passes: Literal["is", "names", "result", "least", "some"]
    choices: Sequence[str] = ()


@dataclass
class GameFields:
    """The fields of the listed games. Players and results are stored once, and games refer to them by index."""

    source: Run
    results: dict[str, int] = field(default_factory=dict)  # index of each result
    games: list[dict[str, Any]] = field(default_factory=list)

    def add(self, game: int, outcome: Outcome, counts: Mapping[str, Value]) -> None:
        results = self.source.game.results
        ended = (results.describe_ending(mark, outcome.capped) for mark in outcome.marks)
        places = [self.results.setdefault(text, len(self.results)) for text in ended]
        won = winners(results, outcome.buckets(results), outcome.counts)
        self.games.append(
            {
                "game": game,
                "winner": sorted({outcome.seats[seat] for seat in won}),
                "seats": [[*pair] for pair in zip(outcome.seats, places, strict=True)],
                "size": len(outcome.seats),
                **counts,
            }
        )

    def data(self) -> dict[str, Any]:
        names = self.source.names
        labels = [*map(self.source.label, names)]
        return {"players": names, "labels": labels, "results": [*self.results], "games": self.games}

    def filters(self) -> list[Filter]:
        """Return the filters that every game has, then one for each count of these games."""
        sizes = sorted({game["size"] for game in self.games})
        first, known = self.source.game.results.game_counts[0], self.games[0] if self.games else {}
        filters = [
            Filter("Winner", "winner", "is", self.source.names),
            Filter("Player", "seats", "names", self.source.names),
            Filter("Result", "seats", "result", [*self.results]),
            *([Filter("Size", "size", "is", [*map(str, sizes)])] if len(sizes) > 1 else []),
            Filter(f"Minimum {first.replace('_', ' ')}", first, "least"),
        ]
        counts = {"fallbacks": "With a fallback", "caught": "With a caught model"}
        return filters + [Filter(title, key, "some") for key, title in counts.items() if key in known]

    def hint(self) -> str:
        """Describe the search, with an example that finds a game."""
        example = ""
        if self.games:
            player, result = self.games[0]["seats"][0]
            example = f", such as “{self.source.names[player]} {[*self.results][result]}”"
        return f"Search by players, results, and the result of a player{example}."
