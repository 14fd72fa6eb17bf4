"""A tournament's result as tables, for a terminal and for pages: cross tables, ballots, rounds, conduct."""

from collections.abc import Sequence

from dubito.referee.games import short_names
from dubito.referee.runoff import FoundPlace
from dubito.referee.standings import GameResult, Standings
from dubito.report.tables import Column, ResultTable, Value, counts, texts

_MEGA = 1e6
_STRIKES = ("illegal", "ponder", "overrun", "crash")


def result_table(result: Standings) -> ResultTable:
    """The final order: the worst place over all games counts first."""
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
        places = [None if game.ranking is None else game.ranking.of[bot] for game in result.games]
        rows.append([f"{place}", result.bots[bot], worst, *places, result.same.get((None, bot))])
    rows += [["out", result.bots[bot], None, *(None for _ in result.games), None] for bot in result.disqualified]
    notes = [
        "The last column: how often a bot has the same final place when every pair's matches are drawn anew from "
        "those that it played, both positions together.",
        *(f"{sentence}." for sentence in result.disqualified.values()),
    ]
    return ResultTable("result", "Final order", columns, rows, notes)


def cross_table(result: Standings, number: int) -> ResultTable:
    """What each bot scored a match against each other one, with 95 % intervals."""
    game, bots = result.games[number], range(len(result.bots))
    places = {} if game.ranking is None else game.ranking.of
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
    return ResultTable(f"scores-{number}", f"{game.name}: mean score a match of row against column", columns, rows)


def mean_score(game: GameResult, bot: int, other: int) -> Value:
    """The mean, with its interval if the matches say anything of its width; None if they have not met."""
    if (bot, other) not in game.meetings:
        return None
    interval = game.meetings[bot, other].interval
    return interval if float("-inf") < interval.low < interval.high else interval.value


def ballot_table(result: Standings, number: int) -> ResultTable:
    """How every bot votes: the others, those against which it scored least first."""
    game = result.games[number]
    assert game.ranking is not None
    ballots = game.ranking.ballots
    most = max((len(ballot) for ballot in ballots.values()), default=0)
    columns = [Column("voter", "ballot of", "text")]
    columns += [Column(f"choice_{place}", f"choice {place}", "text") for place in range(1, most + 1)]
    rows: list[list[Value]] = [
        [result.bots[voter], *(_choice(result, game, voter, bot) for bot in ballot), *[None] * (most - len(ballot))]
        for voter, ballot in ballots.items()
    ]
    title = f"{game.name}: ballots, the hardest opponent first, with the voter's mean score"
    return ResultTable(f"ballots-{number}", title, columns, rows)


def _choice(result: Standings, game: GameResult, voter: int, bot: int) -> str:
    return f"{result.bots[bot]} ({float(game.meetings[voter, bot].mean):+.3f})"


def rounds_table(result: Standings, number: int) -> ResultTable:
    """Every count of first choices: who is dropped and why the winner has won."""
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
            said = ", ".join(
                f"{result.bots[bot]} {n}"
                for bot, n in sorted(votes.votes.items(), key=lambda item: (-item[1], item[0]))
            )
            rows.append([f"{place.place}", f"{count}", said, outcome(result.bots, place, count - 1)])
    notes = [f"Tie: {sentence}." for sentence in game.ranking.ties]
    return ResultTable(f"rounds-{number}", f"{game.name}: rounds of the instant run-off", columns, rows, notes)


def outcome(names: Sequence[str], place: FoundPlace, number: int) -> str:
    """What a round decided, in words."""
    votes = place.rounds[number]
    live = sum(votes.votes.values())
    if votes.dropped:
        fewest = votes.votes[votes.dropped[0]]
        return f"nobody has more than half of {live}: {_said(names, votes.dropped)} dropped, with {fewest}"
    if len(votes.winners) > 1:
        return f"{_said(names, votes.winners)} share place {place.place}"
    (winner,) = votes.winners
    if len(votes.votes) == 1:
        return f"{names[winner]} is the only one left: place {place.place}"
    ours = votes.votes[winner]
    if 2 * ours == live:
        return f"{names[winner]} takes place {place.place} by the direct result ({ours} of {live} each)"
    return f"{names[winner]} takes place {place.place} with {ours} of {live}"


def _said(names: Sequence[str], bots: Sequence[int]) -> str:
    return " and ".join(names[bot] for bot in bots)


def conduct_table(result: Standings) -> ResultTable:
    """Strikes, times and ends of every bot in every game."""
    columns = [
        *texts("bot", "game"),
        *counts("matches", *_STRIKES),
        Column("failed", "overrun or crashed, % of matches", "rate"),
        Column("replaced", "actions drawn for it"),
        Column("think", "mean answer s", "price"),
        Column("slowest", "slowest answer s", "decimal"),
        Column("data", "data bytes", detail=True),
        Column("endings", "how its processes ended", "text", detail=True),
    ]
    rows: list[list[Value]] = []
    for game in result.games:
        for bot, conduct in enumerate(game.conduct):
            mean = conduct.think / conduct.answers / _MEGA if conduct.answers else None
            endings = ", ".join(f"{status}: {count:,}" for status, count in conduct.endings.most_common())
            strikes = [conduct.strikes[kind] for kind in _STRIKES]
            failed = conduct.failed / conduct.matches if conduct.matches else None
            rest: list[Value] = [conduct.replaced, mean, conduct.slowest / _MEGA, conduct.data, endings]
            rows.append([result.bots[bot], game.name, conduct.matches, *strikes, failed, *rest])
    return ResultTable("conduct", "Strikes, answers and ends", columns, rows)
