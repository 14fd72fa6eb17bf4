"""Tables of a tournament's result for the terminal and for pages, and the pages."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from dubito.plugins.tournament.log import Log, MatchLine
from dubito.plugins.tournament.plan import Pairing
from dubito.plugins.tournament.replay import describe_match, find_match_difference
from dubito.plugins.tournament.rules import load, short_names
from dubito.plugins.tournament.standings import GameResult, RankedPlace, Round, Standings
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
    points,
)

_MEGA = 1e6
_STRIKES = ("illegal", "ponder", "overrun", "crash")


def result_table(result: Standings) -> ResultTable:
    """Return the final order, by each bot's worst place over all games, then the second worst, and so on."""
    names = short_names([game.name for game in result.games])
    ranked = sorted(result.places, key=lambda bot: result.places[bot])
    bots = [*ranked, *result.disqualified]
    out, worst = [None] * len(result.disqualified), [sorted(result.ranks(bot), reverse=True) for bot in ranked]
    columns = [
        Column("place", "place", "text", [*(f"{result.places[bot]}" for bot in ranked), *("out" for _ in out)]),
        Column("bot", "bot", "text", [result.bots[bot] for bot in bots]),
        Column("ranks", "places, worst first", "text", [*(" ".join(map(str, ranks)) for ranks in worst), *out]),
    ]
    for number, (name, game) in enumerate(zip(names, result.games, strict=True)):
        places = [None if game.ranking is None else game.ranking.place_by_bot[bot] for bot in ranked]
        columns.append(Column(f"game_{number}", name, "count", [*places, *out]))
    same = [result.same.get((None, bot)) for bot in ranked]
    columns.append(Column("same", "same place in resamples %", "rate", [*same, *out]))
    notes = [
        "The last column is the share of resamples in which the bot has the same final place. Each pair's matches are "
        "resampled, both positions together.",
        *(f"{sentence}." for sentence in result.disqualified.values()),
    ]
    return ResultTable("result", "Final order", columns, notes)


def cross_table(result: Standings, number: int) -> ResultTable:
    game, bots = result.games[number], range(len(result.bots))
    places = {} if game.ranking is None else game.ranking.place_by_bot
    order = sorted(bots, key=lambda bot: (places.get(bot, len(result.bots) + 1), bot))
    ended = [f"{places[bot]}" if bot in places else "out" if bot in result.disqualified else None for bot in order]
    columns = [
        Column("place", "place", "text", ended),
        Column("bot", "bot", "text", [result.bots[bot] for bot in order]),
    ]
    for other in order:
        scores = [None if other == bot else mean_score(game, bot, other) for bot in order]
        columns.append(Column(f"against_{other}", f"against {result.bots[other]}", "difference", scores))
    same = [result.same.get((number, bot)) for bot in order]
    columns.append(Column("matches", "matches", "count", [game.conduct[bot].matches for bot in order]))
    columns.append(Column("same", "same place in resamples %", "rate", same))
    return ResultTable(f"scores-{number}", f"{game.name}: mean score per match of row against column", columns)


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
    columns = [Column("voter", "ballot of", "text", [result.bots[voter] for voter in ballots])]
    for place in range(longest):
        choices = [
            _choice(result, game, voter, ballot[place]) if place < len(ballot) else None
            for voter, ballot in ballots.items()
        ]
        columns.append(Column(f"choice_{place + 1}", f"choice {place + 1}", "text", choices))
    title = f"{game.name}: ballots, the hardest opponent first, with the voter's mean score"
    return ResultTable(f"ballots-{number}", title, columns)


def _choice(result: Standings, game: GameResult, voter: int, bot: int) -> str:
    return f"{result.bots[bot]} ({float(game.meetings[voter, bot].mean):+.3f})"


def rounds_table(result: Standings, number: int) -> ResultTable:
    """Return all rounds: the first choices, the dropped bots and the winners."""
    game = result.games[number]
    assert game.ranking is not None
    rounds = [(place, count) for place in game.ranking.places for count in range(len(place.rounds))]
    votes = [_list_votes(result, place.rounds[count]) for place, count in rounds]
    outcomes = [describe_outcome(result.bots, place, count) for place, count in rounds]
    columns = [
        Column("place", "for place", "text", [f"{place.place}" for place, _ in rounds]),
        Column("round", "round", "text", [f"{count + 1}" for _, count in rounds]),
        Column("votes", "first choices among those still in", "text", votes),
        Column("outcome", "outcome", "text", outcomes),
    ]
    notes = [f"Tie: {sentence}." for sentence in game.ranking.ties]
    return ResultTable(f"rounds-{number}", f"{game.name}: rounds of the instant run-off", columns, notes)


def _list_votes(result: Standings, votes: Round) -> str:
    ordered = sorted(votes.votes.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{result.bots[bot]} {n}" for bot, n in ordered)


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
    conducts = [(game, bot) for game in result.games for bot in range(len(game.conduct))]
    own = [game.conduct[bot] for game, bot in conducts]
    failed = [one.failed / one.matches if one.matches else None for one in own]
    means = [one.think / one.answers / _MEGA if one.answers else None for one in own]
    endings = [", ".join(f"{status}: {count:,}" for status, count in one.exit_codes.most_common()) for one in own]
    columns = [
        Column("bot", "bot", "text", [result.bots[bot] for _, bot in conducts]),
        Column("game", "game", "text", [game.name for game, _ in conducts]),
        Column("matches", "matches", "count", [one.matches for one in own]),
        *(Column(kind, kind, "count", [one.strikes[kind] for one in own]) for kind in _STRIKES),
        Column("failed", "overrun or crashed, % of matches", "rate", failed),
        Column("replaced", "replaced actions", "count", [one.replaced for one in own]),
        Column("think", "mean answer s", "price", means),
        Column("slowest", "slowest answer s", "decimal", [one.slowest / _MEGA for one in own]),
        Column("data", "data bytes", "count", [one.data for one in own], detail=True),
        Column("endings", "exit codes", "text", endings, detail=True),
    ]
    return ResultTable("conduct", "Strikes, answer times and exit codes", columns)


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
    pairs = [(pairing.bots, result.games[pairing.game]) for pairing in log.pairings()]
    links = [f"matches/{place}.html" for place in range(len(pairs))]
    matches = [game.meetings[both].matches if both in game.meetings else 0 for both, game in pairs]
    columns = [
        Column("pair", "pair", "text", [f"{log.bots[one]} and {log.bots[other]}" for (one, other), _ in pairs], links),
        Column("game", "game", "text", [game.name for _, game in pairs]),
        Column("matches", "matches", "count", matches),
        Column("mean", "mean score of the first bot", "difference", [mean_score(game, *both) for both, game in pairs]),
    ]
    return ResultTable("pairs", "All pairs by game", columns)


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
