"""From the log of a tournament to its result: scores, who is disqualified, places, and how firm they are.

Everything is a pure function of the finished matches. Sums are exact; two bots share a score only if they do.

Instant run-off voting as the competition announced it, with what it left open decided; plain numbers in, places out.

In each game every bot casts a ballot: all others, those against which it scored least first. Who has more than half
of the ballots' first choices takes the place; else the one with the fewest is dropped, and its votes go to the next
choice on those ballots. For the next place all but those already placed stand again, and everybody votes again.

Decided here: scores that are equal put the bot of the higher total first, then the one that was entered first. Who
has no first choice at all is dropped with the others that have none. Of several with the fewest, the one with the
lowest sum against the others goes, then the one with the lowest total; those that are alike in that too go together.
Half means half of the ballots that still name a candidate. Of the last two with as many votes, the direct result
decides; if it is even they share the place. Every tie that had to be decided is named.
"""

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from dubito.errors import UsageError, listed, one_line
from dubito.experiment.config import read_config
from dubito.plugins.tournament.log import Log, MatchLine
from dubito.stats.rates import Rate, student_quantile

Number = Fraction | float | int
Matrix = Mapping[tuple[int, int], Number]  # the mean score of the first against the second, if they have met


@dataclass(frozen=True, slots=True)
class Round:
    """One count: the votes for each candidate, and who was dropped or has won."""

    votes: Mapping[int, int]
    dropped: tuple[int, ...] = ()
    winners: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundPlace:
    place: int  # 1 is best; two that share it leave out the next
    rounds: Sequence[Round]

    @property
    def bots(self) -> tuple[int, ...]:
        return self.rounds[-1].winners


@dataclass(frozen=True, slots=True)
class GameRanking:
    ballots: Mapping[int, Sequence[int]]
    places: Sequence[FoundPlace]
    ties: Sequence[str] = field(default_factory=list)

    @property
    def of(self) -> dict[int, int]:
        return {bot: place.place for place in self.places for bot in place.bots}


class _Election:
    def __init__(self, scores: Matrix, bots: Sequence[int], names: Sequence[str]) -> None:
        self._scores, self._bots, self._names = scores, bots, names
        self._totals = {bot: self._against(bot, bots) for bot in bots}
        self.ties: list[str] = []
        self.ballots = {bot: self._ballot(bot) for bot in bots}

    def ranking(self) -> GameRanking:
        left, places = list(self._bots), []
        while left:
            rounds = self._place(left)
            places.append(FoundPlace(1 + len(self._bots) - len(left), rounds))
            left = [bot for bot in left if bot not in rounds[-1].winners]
        return GameRanking(self.ballots, places, self.ties)

    def _ballot(self, voter: int) -> list[int]:
        others = [bot for bot in self._bots if (voter, bot) in self._scores]
        order = sorted(others, key=lambda bot: (self._scores[voter, bot], -self._totals[bot]))
        for one, other in pairwise(order):
            if self._scores[voter, one] == self._scores[voter, other]:
                why = "the higher total" if self._totals[one] != self._totals[other] else "the order of entry"
                self._tie(f"{self._names[voter]} scored alike against", (one, other), f"{why} decides its ballot")
        return order

    def _place(self, candidates: Sequence[int]) -> list[Round]:
        """The rounds that find who is the next one."""
        standing, rounds = list(candidates), []
        while True:
            votes = dict.fromkeys(standing, 0)
            for ballot in self.ballots.values():
                if (choice := next((bot for bot in ballot if bot in votes), None)) is not None:
                    votes[choice] += 1
            winners = self._winners(votes)
            dropped = () if winners else self._dropped(votes)
            rounds.append(Round(votes, dropped, winners))
            if winners:
                return rounds
            standing = [bot for bot in standing if bot not in dropped]

    def _winners(self, votes: Mapping[int, int]) -> tuple[int, ...]:
        """Who has more than half of the live ballots; of the last two with as many, who won against the other."""
        live = sum(votes.values())
        if len(votes) == 1:
            return tuple(votes)
        if most := [bot for bot, count in votes.items() if 2 * count > live]:
            return tuple(most)
        if len(votes) == 2:
            one, other = votes
            direct, back = (self._scores.get(pair, 0) for pair in ((one, other), (other, one)))
            winners = (one, other) if direct == back else ((one,) if direct > back else (other,))
            self._tie("as many votes for", (one, other), "they share the place" if direct == back else "direct result")
            return winners
        return self._alike(list(votes)) if len(set(votes.values())) == 1 else ()

    def _alike(self, bots: Sequence[int]) -> tuple[int, ...]:
        """All of these if nothing tells them apart: then none of them can be dropped."""
        against = {self._against(bot, bots) for bot in bots}
        if len(against) > 1 or len({self._totals[bot] for bot in bots}) > 1:
            return ()
        self._tie("nothing tells apart", bots, "they share the place")
        return tuple(bots)

    def _dropped(self, votes: Mapping[int, int]) -> tuple[int, ...]:
        """Who goes: the fewest votes, then the lowest sum against the others with as few, then the lowest total."""
        fewest = min(votes.values())
        last = [bot for bot, count in votes.items() if count == fewest]
        if fewest == 0 or len(last) == 1:
            return tuple(last)
        tied = last
        for why, value in (
            ("the lowest sum against the others is dropped", {bot: self._against(bot, tied) for bot in tied}),
            ("the lowest total is dropped", self._totals),
        ):
            least = min(value[bot] for bot in last)
            last = [bot for bot in last if value[bot] == least]
            if len(last) == 1:
                self._tie(f"fewest votes ({fewest}) for", tied, why)
                return tuple(last)
        self._tie(f"fewest votes ({fewest}) for", tied, f"{self._list_names(last)} are dropped together")
        return tuple(last)

    def _against(self, bot: int, others: Sequence[int]) -> Number:
        return sum(self._scores.get((bot, other), 0) for other in others)

    def _tie(self, what: str, bots: Sequence[int], how: str) -> None:
        sentence = f"{what} {self._list_names(bots)}: {how}"
        if sentence not in self.ties:
            self.ties.append(sentence)

    def _list_names(self, bots: Sequence[int]) -> str:
        return listed([self._names[bot] for bot in bots])


def rank_game(scores: Matrix, bots: Sequence[int], names: Sequence[str]) -> GameRanking:
    """The places of these bots in one game; `names` is for the ties.

    `scores` has every ordered pair of them that has met: who has not met a bot does not vote for it.
    """
    return _Election(scores, bots, names).ranking()


def final(ranks: Mapping[int, Sequence[int]]) -> dict[int, int]:
    worst_first = {bot: sorted(places, reverse=True) for bot, places in ranks.items()}
    return {bot: 1 + sum(other < mine for other in worst_first.values()) for bot, mine in worst_first.items()}


DISQUALIFYING: Final = Fraction(1, 100)  # of a bot's matches in a game, overrun or crashed: more disqualify


def is_disqualified(failed: int, matches: int) -> bool:
    return failed > DISQUALIFYING * matches


RESAMPLES: Final = 1000
_FORMS: Final = "game: bot: opponent: score in YAML, or the columns bot, against, score or a cross table in CSV"
_SEED: Final = 18  # of the resamples: the same log gives the same shares


@dataclass(slots=True)
class Meeting:
    """What the first of two bots scored against the second in one game.

    `units` are its scores summed over a match and the one with seats swapped: what is drawn from when resampling.
    """

    matches: int = 0
    total: Fraction = Fraction()
    units: Counter[float] = field(default_factory=Counter)

    @property
    def mean(self) -> Fraction:
        return self.total / self.matches

    @property
    def interval(self) -> Rate:
        """The mean with its 95 % confidence interval, Student's over the units; no ends are known of less than two."""
        n = sum(self.units.values())
        if n < 2:
            return Rate(float(self.mean), -math.inf, math.inf)
        mean = sum(value * count for value, count in self.units.items()) / n
        variance = sum(count * (value - mean) ** 2 for value, count in self.units.items()) / (n - 1)
        half = student_quantile(n - 1) * math.sqrt(variance / n) / 2
        value = float(self.mean)
        return Rate(value, value - half, value + half)


@dataclass(slots=True)
class Conduct:
    matches: int = 0
    failed: int = 0  # matches with an overrun or a crash
    strikes: Counter[str] = field(default_factory=Counter)
    replaced: int = 0  # actions that the referee drew for it
    answers: int = 0
    think: int = 0  # microseconds, all answers together
    slowest: int = 0
    data: int = 0  # bytes, the most after any match
    endings: Counter[str] = field(default_factory=Counter)
    last_words: str = ""  # the last line on standard error of a match that failed

    def add(self, line: MatchLine, seat: int) -> None:
        self.matches += 1
        self.failed += line.failed(seat)
        if line.failed(seat) and (text := line.stderr[seat].strip()):
            self.last_words = text.splitlines()[-1]
        self.strikes.update(strike.kind for strike in line.strikes if strike.seat == seat)
        self.replaced += sum(drawn == seat for _, drawn in line.replaced)
        self.answers += len(line.times.think[seat])
        self.think += sum(line.times.think[seat])
        self.slowest = max([self.slowest, *line.times.think[seat]])
        self.data = max(self.data, line.data[seat])
        self.endings[str(line.exit[seat])] += 1


@dataclass(slots=True)
class GameResult:
    name: str
    meetings: dict[tuple[int, int], Meeting]
    conduct: list[Conduct]  # of each bot
    ranking: GameRanking | None = None  # of those that are not disqualified


@dataclass(slots=True)
class Standings:
    bots: Sequence[str]
    games: list[GameResult]
    disqualified: dict[int, str]  # why, in words
    places: dict[int, int]  # final; of those that are not disqualified
    damaged: Sequence[str]
    played: int  # matches
    missing: int  # matches that are not played yet
    same: dict[tuple[int | None, int], float]  # how often a bot keeps its place in a game (None: the final one)

    def ranks(self, bot: int) -> list[int]:
        return [game.ranking.of[bot] for game in self.games if game.ranking is not None]

    def warnings(self, manifest: Mapping[str, Any]) -> list[str]:
        """What a reader must know of this tournament."""
        played = f"{self.played:,} of {self.played + self.missing:,} matches are played"
        found = [f"not finished, so the order may change: {played}"] if self.missing else []
        most = manifest["identity"].get("data_gb", math.inf) * (1 << 30)
        for game in self.games:
            found += [
                f"{self.bots[bot]} keeps {conduct.data:,} bytes for {game.name}, more than it may"
                for bot, conduct in enumerate(game.conduct)
                if conduct.data > most
            ]
            if not all(
                game.meetings[one, other].total == -game.meetings[other, one].total for one, other in game.meetings
            ):
                found.append(f"{game.name} is not zero-sum, as ballots take for granted")
        return found


def standings(log: Log, resamples: int = RESAMPLES) -> Standings:
    """The result of what the log has so far; raises UsageError if nothing was played."""
    games = [GameResult(name, {}, [Conduct() for _ in log.bots]) for name in log.games]
    there = 0
    for pairing, lines in log.all_lines():
        game, (one, other) = games[pairing.game], pairing.bots
        if lines:
            there += len(lines)
            _count(game, one, other, lines, log.bots)
    if not there:
        damaged = f" ({log.damaged[0]})" if log.damaged else ""
        raise UsageError(f"no match is played yet{damaged}: `dubito tournament play` plays them")
    disqualified = _disqualified(games, log.bots)
    in_it = [bot for bot in range(len(log.bots)) if bot not in disqualified]
    for game in games:
        game.ranking = rank_game(_matrix(game), in_it, log.bots) if game.meetings else None
    missing = 2 * log.matches * len(log.pairings()) - there
    found = Standings(log.bots, games, disqualified, {}, log.damaged, there, missing, {})
    found.places = final({bot: found.ranks(bot) for bot in in_it})
    found.same = _how_often_in_place(found, in_it, resamples)
    return found


def _count(game: GameResult, one: int, other: int, lines: Sequence[MatchLine], names: Sequence[str]) -> None:
    for bot, against in ((one, other), (other, one)):
        meeting, units = Meeting(), dict[int, float]()
        for line in lines:
            seat = line.seats.index(names[bot])
            meeting.matches += 1
            meeting.total += Fraction(line.returns[seat])
            units[line.match // 2] = units.get(line.match // 2, 0.0) + line.returns[seat]
            game.conduct[bot].add(line, seat)
        meeting.units = Counter(units.values())
        game.meetings[bot, against] = meeting


def _matrix(game: GameResult) -> Matrix:
    return {pair: meeting.mean for pair, meeting in game.meetings.items()}


def _disqualified(games: Sequence[GameResult], names: Sequence[str]) -> dict[int, str]:
    """Who overran or crashed in too many matches of any game, over all its opponents: out of every game."""
    found: dict[int, str] = {}
    for game in games:
        for bot, conduct in enumerate(game.conduct):
            if is_disqualified(conduct.failed, conduct.matches):
                said = f"{conduct.failed:,} of {conduct.matches:,} matches of {game.name} overrun or crashed"
                words = f"; it wrote: {one_line(conduct.last_words, 120)}" if conduct.last_words else ""
                found.setdefault(bot, f"{names[bot]} is disqualified: {said}, more than 1 %{words}")
    return found


def _how_often_in_place(
    standing: Standings, in_it: Sequence[int], resamples: int
) -> dict[tuple[int | None, int], float]:
    """How often each bot has the same place when every pair's matches are drawn anew from those that it played."""
    if not in_it or not resamples:
        return {}
    times: Counter[tuple[int | None, int]] = Counter()
    drawn = [_resampled(game, in_it, resamples, number) for number, game in enumerate(standing.games)]
    for sample in range(resamples):
        ranks: dict[int, list[int]] = {bot: [] for bot in in_it}
        for number, game in enumerate(standing.games):
            if game.ranking is None:
                continue
            places = rank_game({pair: means[sample] for pair, means in drawn[number].items()}, in_it, standing.bots).of
            for bot in in_it:
                ranks[bot].append(places[bot])
                times[number, bot] += places[bot] == game.ranking.of[bot]
        for bot, place in final(ranks).items():
            times[None, bot] += place == standing.places[bot]
    return {key: count / resamples for key, count in times.items()}


def _resampled(
    game: GameResult, in_it: Sequence[int], resamples: int, number: int
) -> Mapping[tuple[int, int], Sequence[float]]:
    """For every ordered pair a mean for each resample; where one wins what the other loses, both are drawn together."""
    import numpy

    stream = numpy.random.default_rng([_SEED, number])
    found: dict[tuple[int, int], Sequence[float]] = {}
    for one in in_it:
        for other in (bot for bot in in_it if bot > one and (one, bot) in game.meetings):
            mine, theirs = game.meetings[one, other], game.meetings[other, one]
            means = _means(mine, stream, resamples)
            found[one, other] = means.tolist()
            zero_sum = mine.total == -theirs.total
            found[other, one] = (-means if zero_sum else _means(theirs, stream, resamples)).tolist()
    return found


def _means(meeting: Meeting, stream: Any, resamples: int) -> Any:
    values = sorted(meeting.units)
    n = sum(meeting.units.values())
    counts = stream.multinomial(n, [meeting.units[value] / n for value in values], size=resamples)
    return counts @ values / meeting.matches


Scores = dict[tuple[str, str], Fraction]  # the mean score of the first against the second


def table_standings(path: Path) -> Standings:
    """The result of a bare table of scores, which knows nothing of single matches; raises UsageError.

    A YAML file has game: bot: opponent: score, or leaves out the game. A CSV file has the columns bot, against, score
    and perhaps game, or is a cross table: opponents in its first row, bots in its first column. Where one of two bots
    has no score against the other, it is what the other one won or lost.
    """
    tables = _csv_tables(path) if path.suffix.lower() == ".csv" else _yaml_tables(path)
    bots = list(dict.fromkeys(name for scores in tables.values() for pair in scores for name in pair))
    if len(bots) < 2:
        raise UsageError(f"{path} has no scores of bots against each other: rank takes {_FORMS}")
    games = []
    for name, scores in tables.items():
        both = {(other, one): -score for (one, other), score in scores.items()} | scores
        met = {(bots.index(one), bots.index(other)): Meeting(1, score) for (one, other), score in both.items()}
        game = GameResult(name, met, [Conduct() for _ in bots])
        game.ranking = rank_game(_matrix(game), range(len(bots)), bots)
        games.append(game)
    found = Standings(bots, games, {}, {}, [], 0, 0, {})
    found.places = final({bot: found.ranks(bot) for bot in range(len(bots))})
    return found


def _yaml_tables(path: Path) -> dict[str, Scores]:
    content = read_config(path)
    if not any(isinstance(inner, dict) for row in content.values() if isinstance(row, dict) for inner in row.values()):
        content = {path.stem: content}
    tables: dict[str, Scores] = {}
    for game, rows in content.items():
        for bot, row in _entries(path, rows):
            for other, score in _entries(path, row):
                _add(tables.setdefault(str(game), {}), (bot, other), score, f"{path}: {one_line(str(game), 80)}")
    return tables


def _entries(path: Path, content: object) -> list[tuple[str, Any]]:
    if not isinstance(content, dict):
        raise UsageError(f"{path}: {one_line(repr(content), 60)} is no scores against others: rank takes {_FORMS}")
    return [(str(key), value) for key, value in content.items()]


def _csv_tables(path: Path) -> dict[str, Scores]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)] or [[]]
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"cannot read {path}: {one_line(str(error), 120)}") from None
    names = [name.casefold() for name in header]
    is_list = {"bot", "against", "score"} <= set(names)
    if not is_list and set(header[1:]) != {row[0] for row in rows}:
        raise UsageError(f"{path} is no table of scores of bots against each other: rank takes {_FORMS}")
    tables: dict[str, Scores] = {}
    for number, row in enumerate(rows, 2):
        where = f"{path}, row {number}"
        if len(row) != len(header):
            raise UsageError(f"{where} has {len(row)} cells, and the first row has {len(header)}")
        if is_list:
            said = dict(zip(names, row, strict=True))
            game = tables.setdefault(said.get("game") or path.stem, {})
            _add(game, (said["bot"], said["against"]), said["score"], where)
        else:
            for other, score in zip(header[1:], row[1:], strict=True):
                _add(tables.setdefault(path.stem, {}), (row[0], other), score, where)
    return tables


def _add(scores: Scores, pair: tuple[str, str], said: object, where: str) -> None:
    """A score of a table, exactly as it was written; an empty one is none."""
    text = "" if said is None else str(said).strip()
    if pair[0] == pair[1] or text in ("", "-"):
        return
    shown = " against ".join(one_line(name, 60) for name in pair)
    try:
        score = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{where}: {one_line(repr(text), 60)} is no score of {shown}: write a number") from None
    if pair in scores:
        raise UsageError(f"{where}: the score of {shown} stands there twice")
    scores[pair] = score
