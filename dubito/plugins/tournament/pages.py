"""Tables of a tournament's result for the terminal and for pages, and the pages."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from dubito.plugins.tournament.log import Log, MatchLine
from dubito.plugins.tournament.plan import Pairing
from dubito.plugins.tournament.replay import describe_match, find_match_difference
from dubito.plugins.tournament.rules import load, short_names
from dubito.plugins.tournament.standings import GameResult, RankedPlace, Standings
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

_MEGA = 1e6
_STRIKES = ("illegal", "ponder", "overrun", "crash")


def result_table(result: Standings) -> ResultTable:
    """Return the final order, by each bot's worst place over all games, then the second worst, and so on."""
    names = short_names([game.name for game in result.games])
    columns = [
        *texts("place", "bot"),
        Column("ranks", "places, worst first", "text"),
        *(Column(f"game_{number}", name) for number, name in enumerate(names)),
        Column("same", "same place in resamples %", "rate"),
    ]
    rows: list[list[Value]] = []
    for bot, place in sorted(result.places.items(), key=lambda item: item[1]):
        ranks = result.ranks(bot)
        worst = " ".join(map(str, sorted(ranks, reverse=True)))
        places = [None if game.ranking is None else game.ranking.place_by_bot[bot] for game in result.games]
        rows.append([f"{place}", result.bots[bot], worst, *places, result.same.get((None, bot))])
    rows += [["out", result.bots[bot], None, *(None for _ in result.games), None] for bot in result.disqualified]
    notes = [
        "The last column is the share of resamples in which the bot has the same final place. Each pair's matches are "
        "resampled, both positions together.",
        *(f"{sentence}." for sentence in result.disqualified.values()),
    ]
    return ResultTable("result", "Final order", columns, rows, notes)


def cross_table(result: Standings, number: int) -> ResultTable:
    game, bots = result.games[number], range(len(result.bots))
    places = {} if game.ranking is None else game.ranking.place_by_bot
    order = sorted(bots, key=lambda bot: (places.get(bot, len(result.bots) + 1), bot))
    columns = [
        *texts("place", "bot"),
        *(Column(f"against_{bot}", f"against {result.bots[bot]}", "difference") for bot in order),
        *counts("matches"),
        Column("same", "same place in resamples %", "rate"),
    ]
    rows: list[list[Value]] = []
    for bot in order:
        against: list[Value] = [None if other == bot else mean_score(game, bot, other) for other in order]
        place = f"{places[bot]}" if bot in places else "out" if bot in result.disqualified else None
        same = result.same.get((number, bot))
        rows.append([place, result.bots[bot], *against, game.conduct[bot].matches, same])
    return ResultTable(f"scores-{number}", f"{game.name}: mean score per match of row against column", columns, rows)


def mean_score(game: GameResult, bot: int, other: int) -> Value:
    """Return the mean with its interval, if there is one, or None if the bots have not met."""
    if (bot, other) not in game.meetings:
        return None
    interval = game.meetings[bot, other].interval
    return interval if float("-inf") < interval.low < interval.high else interval.value


def ballot_table(result: Standings, number: int) -> ResultTable:
    """Return every bot's ballot: its opponents, starting with the one against which it scored least."""
    game = result.games[number]
    assert game.ranking is not None
    ballots = game.ranking.ballots
    longest = max((len(ballot) for ballot in ballots.values()), default=0)
    columns = [Column("voter", "ballot of", "text")]
    columns += [Column(f"choice_{place}", f"choice {place}", "text") for place in range(1, longest + 1)]
    rows: list[list[Value]] = [
        [result.bots[voter], *(_choice(result, game, voter, bot) for bot in ballot), *[None] * (longest - len(ballot))]
        for voter, ballot in ballots.items()
    ]
    title = f"{game.name}: ballots, the hardest opponent first, with the voter's mean score"
    return ResultTable(f"ballots-{number}", title, columns, rows)


def _choice(result: Standings, game: GameResult, voter: int, bot: int) -> str:
    return f"{result.bots[bot]} ({float(game.meetings[voter, bot].mean):+.3f})"


def rounds_table(result: Standings, number: int) -> ResultTable:
    """Return all rounds: the first choices, the dropped bots and the winners."""
    game = result.games[number]
    assert game.ranking is not None
    columns = [
        Column("place", "for place", "text"),
        *texts("round"),
        Column("votes", "first choices among those still in", "text"),
        *texts("outcome"),
    ]
    rows: list[list[Value]] = []
    for place in game.ranking.places:
        for count, votes in enumerate(place.rounds, 1):
            votes_text = ", ".join(
                f"{result.bots[bot]} {n}"
                for bot, n in sorted(votes.votes.items(), key=lambda item: (-item[1], item[0]))
            )
            rows.append([f"{place.place}", f"{count}", votes_text, describe_outcome(result.bots, place, count - 1)])
    notes = [f"Tie: {sentence}." for sentence in game.ranking.ties]
    return ResultTable(f"rounds-{number}", f"{game.name}: rounds of the instant run-off", columns, rows, notes)


def describe_outcome(names: Sequence[str], place: RankedPlace, number: int) -> str:
    """Describe the result of a round."""
    votes = place.rounds[number]
    live = sum(votes.votes.values())
    if votes.dropped:
        fewest = votes.votes[votes.dropped[0]]
        return f"no majority of {live}: {_join_names(names, votes.dropped)} dropped, with {fewest}"
    if len(votes.winners) > 1:
        return f"{_join_names(names, votes.winners)} share place {place.place}"
    (winner,) = votes.winners
    if len(votes.votes) == 1:
        return f"{names[winner]} is the only bot left: place {place.place}"
    winner_votes = votes.votes[winner]
    if 2 * winner_votes == live:
        return f"{names[winner]} takes place {place.place} by the direct result ({winner_votes} of {live} each)"
    return f"{names[winner]} takes place {place.place} with {winner_votes} of {live}"


def _join_names(names: Sequence[str], bots: Sequence[int]) -> str:
    return " and ".join(names[bot] for bot in bots)


def conduct_table(result: Standings) -> ResultTable:
    columns = [
        *texts("bot", "game"),
        *counts("matches", *_STRIKES),
        Column("failed", "overrun or crashed, % of matches", "rate"),
        Column("replaced", "replaced actions"),
        Column("think", "mean answer s", "price"),
        Column("slowest", "slowest answer s", "decimal"),
        Column("data", "data bytes", detail=True),
        Column("endings", "exit codes", "text", detail=True),
    ]
    rows: list[list[Value]] = []
    for game in result.games:
        for bot, conduct in enumerate(game.conduct):
            mean = conduct.think / conduct.answers / _MEGA if conduct.answers else None
            endings = ", ".join(f"{status}: {count:,}" for status, count in conduct.exit_codes.most_common())
            strikes = [conduct.strikes[kind] for kind in _STRIKES]
            failed = conduct.failed / conduct.matches if conduct.matches else None
            rest: list[Value] = [conduct.replaced, mean, conduct.slowest / _MEGA, conduct.data, endings]
            rows.append([result.bots[bot], game.name, conduct.matches, *strikes, failed, *rest])
    return ResultTable("conduct", "Strikes, answer times and exit codes", columns, rows)


_MAX_SHOWN: Final = 20


def write_result_pages(folder: Path, log: Log, result: Standings, manifest: dict[str, Any]) -> Path:
    names = [("index.html", "Result"), *((f"game-{n}.html", name) for n, name in enumerate(short_names(log.games)))]
    site = Site(folder.absolute().name, [*names, ("conduct.html", "Conduct"), ("matches.html", "Matches")])
    return site_pages(folder / FOLDER, site, _pages(log, result, manifest), ours=True)


def _pages(log: Log, result: Standings, manifest: dict[str, Any]) -> Iterator[Page]:
    yield Page("index.html", "The tournament", _result_sections(result, manifest))
    for number, game in enumerate(result.games):
        yield Page(f"game-{number}.html", game.name, list(_game_sections(result, number, game)))
    yield Page("conduct.html", "Conduct", [Section("Conduct of the bots", [conduct_table(result)])])
    yield Page("matches.html", "Matches", [Section("Pairs", [_pairs_table(log, result)])])
    for place, pairing in enumerate(log.pairings()):
        yield _pairing_page(log, place, pairing)


def _result_sections(result: Standings, manifest: dict[str, Any]) -> list[Section]:
    warnings = [Paragraph(sentence, warning=True) for sentence in (*result.damaged, *result.warnings(manifest))]
    rules = [
        Paragraph(
            "In each game, every bot ranks its opponents, starting with the one against which it scored least. A bot "
            "with more than half of the first choices takes the place; otherwise the bot with the fewest is dropped. "
            "The final order compares the bots' worst places over all games, then the next."
        )
    ]
    identity = manifest["identity"]
    facts = [(key, _format_value(value)) for key, value in identity.items() if key not in ("games", "bots", "homes")]
    facts += [(f"version of {key}", f"{value}") for key, value in manifest["versions"].items()]
    enforced = [(name, _format_value(is_enforced)) for name, is_enforced in manifest["enforced"].items()]
    bots = [(name, " ".join(command)) for name, command in identity["bots"].items()]
    notes = [Paragraph(f"Differs from the announcement: {sentence}.") for sentence in manifest["notes"]]
    return [
        Section("Final order", [*warnings, *rules, result_table(result)]),
        Section("Settings", [*notes, NamedValues(facts)]),
        Section("Enforced limits", [NamedValues(enforced)]),
        Section("Bots", [NamedValues(bots)]),
    ]


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def _game_sections(result: Standings, number: int, game: GameResult) -> Iterator[Section]:
    yield Section("Scores", [cross_table(result, number)])
    if game.ranking is None or not game.ranking.places:
        return
    blocks: list[Block] = [_votes_chart(result, game), rounds_table(result, number)]
    yield Section("Ballots", [ballot_table(result, number)])
    yield Section("Rounds", blocks)


def _votes_chart(result: Standings, game: GameResult) -> Chart:
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
    return Chart("stacked", "First choices in each round", "share of the first choices, %", names, series)


def _pairs_table(log: Log, result: Standings) -> ResultTable:
    mean_of_first = Column("mean", "mean score of the first bot", "difference")
    columns = [*texts("pair", "game"), *counts("matches"), mean_of_first]
    rows: list[list[Value]] = []
    links = []
    for place, pairing in enumerate(log.pairings()):
        one, other = pairing.bots
        game = result.games[pairing.game]
        matches = game.meetings[one, other].matches if (one, other) in game.meetings else 0
        mean = mean_score(game, one, other)
        rows.append([f"{log.bots[one]} and {log.bots[other]}", game.name, matches, mean])
        links.append(f"matches/{place}.html")
    return ResultTable("pairs", "All pairs by game", columns, rows, links=links)


def _pairing_page(log: Log, place: int, pairing: Pairing) -> Page:
    """Return a pairing's page, with its first matches and the first matches with strikes."""
    lines, root = log.lines(pairing), load(log.games[pairing.game]).new_initial_state()
    chosen = [
        *lines[:_MAX_SHOWN],
        *[line for line in lines[_MAX_SHOWN:] if line.strikes][:_MAX_SHOWN],
    ]
    names = " and ".join(log.bots[bot] for bot in pairing.bots)
    selection = (
        f"{len(chosen)} of {len(lines):,} matches: the first {_MAX_SHOWN}, and the first {_MAX_SHOWN} "
        f"of the rest with a strike."
    )
    command = "To print another match: `dubito tournament replay RUN --match K`."
    sections = [Section("Selection", [Paragraph(f"{selection} {command}")])]
    sections += [_match_section(root, line, 2 * log.matches * place + line.match) for line in chosen]
    return Page(f"matches/{place}.html", f"{log.games[pairing.game]}: {names}", sections)


def _match_section(root: Any, line: MatchLine, number: int) -> Section:
    title = f"Match {number}: " + ", ".join(
        f"{name} {score:+g}" for name, score in zip(line.seats, line.returns, strict=True)
    )
    difference = find_match_difference(root, line)
    if difference is not None:
        return Section(title, [Paragraph(f"This match cannot be replayed: {difference}", warning=True)])
    return Section(title, [NamedValues([(who.strip(), what) for who, what in describe_match(root, line)])])
