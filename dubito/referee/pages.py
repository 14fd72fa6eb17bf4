"""A tournament's result as pages to be opened in a browser: the order, each game's votes, conduct, matches in words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dubito.referee import result_tables
from dubito.referee.games import load, short_names
from dubito.referee.log import Log, MatchLine
from dubito.referee.replay import difference, match_in_words
from dubito.referee.schedule import Pairing
from dubito.referee.standings import GameResult, Standings
from dubito.report.render import Site
from dubito.report.site import FOLDER
from dubito.report.site import write_pages as site_pages
from dubito.report.tables import (
    Block,
    Chart,
    Column,
    NamedValues,
    Page,
    Paragraph,
    ResultTable,
    Section,
    Value,
    counts,
    points,
    texts,
)

_TOLD: Final = 20  # matches of a pairing that stand on its page


def write_pages(folder: Path, log: Log, result: Standings, manifest: dict[str, Any]) -> Path:
    """Write them into the tournament's folder, over those that were there; the first page. Raises RunStopped."""
    names = [("index.html", "Result"), *((f"game-{n}.html", name) for n, name in enumerate(short_names(log.games)))]
    site = Site(folder.absolute().name, [], [*names, ("conduct.html", "Conduct"), ("matches.html", "Matches")])
    return site_pages(folder / FOLDER, site, _pages(log, result, manifest), ours=True)


def _pages(log: Log, result: Standings, manifest: dict[str, Any]) -> Iterator[Page]:
    yield Page("index.html", "The tournament", _result(result, manifest))
    for number, game in enumerate(result.games):
        yield Page(f"game-{number}.html", game.name, list(_game(result, number, game)))
    yield Page("conduct.html", "Conduct", [Section("What the bots did", [result_tables.conduct_table(result)])])
    yield Page("matches.html", "Matches", [Section("Pairs", [_pairs(log, result)])])
    for place, pairing in enumerate(log.pairings()):
        yield _matches(log, place, pairing)


def _result(result: Standings, manifest: dict[str, Any]) -> list[Section]:
    warnings = [Paragraph(sentence, warning=True) for sentence in (*result.damaged, *result.warnings(manifest))]
    rules = [
        Paragraph(
            "In each game every bot votes: it puts the others in order, those against which it scored least first. Who "
            "has more than half of the first choices takes the place, else the one with the fewest is dropped. Over "
            "all games the worst place of a bot counts first, then the next."
        )
    ]
    identity = manifest["identity"]
    facts = [(key, _said(value)) for key, value in identity.items() if key not in ("games", "bots", "homes")]
    facts += [(f"version of {key}", f"{value}") for key, value in manifest["versions"].items()]
    enforced = [(name, _said(holds)) for name, holds in manifest["enforced"].items()]
    bots = [(name, " ".join(command)) for name, command in identity["bots"].items()]
    notes = [Paragraph(f"Not as announced: {sentence}.") for sentence in manifest["notes"]]
    return [
        Section("Final order", [*warnings, *rules, result_tables.result_table(result)]),
        Section("What was played", [*notes, NamedValues(facts)]),
        Section("What was enforced", [NamedValues(enforced)]),
        Section("The bots", [NamedValues(bots)]),
    ]


def _said(value: Any) -> str:
    """A value of a config as a reader knows it."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def _game(result: Standings, number: int, game: GameResult) -> Iterator[Section]:
    yield Section("Scores", [result_tables.cross_table(result, number)])
    if game.ranking is None or not game.ranking.places:
        return
    drawn: list[Block] = [_drawn(result, game), result_tables.rounds_table(result, number)]
    yield Section("Ballots", [result_tables.ballot_table(result, number)])
    yield Section("Rounds", drawn)


def _drawn(result: Standings, game: GameResult) -> Chart:
    """A bar a round: whose first choices they are."""
    assert game.ranking is not None
    rounds = [
        (f"place {place.place}, round {count}", votes)
        for place in game.ranking.places
        for count, votes in enumerate(place.rounds, 1)
    ]
    shares = {
        bot: [votes.votes.get(bot, 0) / max(1, sum(votes.votes.values())) for _, votes in rounds]
        for bot in game.ranking.ballots
    }
    series = [points(result.bots[bot], list(values)) for bot, values in shares.items()]
    names = [name for name, _ in rounds]
    return Chart("stacked", "Who is in front in each round", "share of the first choices, %", names, series)


def _pairs(log: Log, result: Standings) -> ResultTable:
    mean_of_first = Column("mean", "mean score of the first", "difference")
    columns = [*texts("pair", "game"), *counts("matches"), mean_of_first]
    rows: list[list[Value]] = []
    links = []
    for place, pairing in enumerate(log.pairings()):
        one, other = pairing.bots
        game = result.games[pairing.game]
        matches = game.meetings[one, other].matches if (one, other) in game.meetings else 0
        mean = result_tables.mean_score(game, one, other)
        rows.append([f"{log.bots[one]} and {log.bots[other]}", game.name, matches, mean])
        links.append(f"matches/{place}.html")
    return ResultTable("pairs", "Every pair in every game", columns, rows, links=links)


def _matches(log: Log, place: int, pairing: Pairing) -> Page:
    """The first matches of a pairing in words, and those with strikes."""
    lines, root = log.lines(pairing), load(log.games[pairing.game]).new_initial_state()
    chosen = [*lines[:_TOLD], *[line for line in lines[_TOLD:] if line.strikes][:_TOLD]]
    names = " and ".join(log.bots[bot] for bot in pairing.bots)
    said = (
        f"{len(chosen)} of {len(lines):,} matches: the first {_TOLD}, and the first {_TOLD} of the rest with a strike."
    )
    command = "`dubito tournament replay RUN --match K` tells any other one by its number."
    sections = [Section("Which", [Paragraph(f"{said} {command}")])]
    sections += [_match(root, line, 2 * log.matches * place + line.match) for line in chosen]
    return Page(f"matches/{place}.html", f"{log.games[pairing.game]}: {names}", sections)


def _match(root: Any, line: MatchLine, number: int) -> Section:
    title = f"Match {number}: " + ", ".join(
        f"{name} {score:+g}" for name, score in zip(line.seats, line.returns, strict=True)
    )
    wrong = difference(root, line)
    if wrong is not None:
        return Section(title, [Paragraph(f"It cannot be played again: {wrong}", warning=True)])
    said = (sentence.strip().partition(": ") for sentence in match_in_words(root, line))
    return Section(title, [NamedValues([(who, what) for who, _, what in said])])
