"""Compute a tournament's result from its log: scores, disqualifications, places, and how stable the places are.

The result depends only on the finished matches. Sums are exact fractions, so that equal scores compare equal.

Places are determined by instant run-off voting. In each game, every bot ranks its opponents on a ballot, starting with
the one against which it scored least. A bot with more than half of the first choices takes the place. Otherwise the bot
with the fewest is dropped, and its ballots go to their next choice. For the next place, voting starts again without the
bots that have a place, but all bots vote.

The announcement does not specify ties. They are decided as follows, and listed in the result:

- Equal scores on a ballot: the bot with the higher total comes first, then the bot that entered first.
- Several bots have the fewest votes: the bot with the lowest sum of scores against the others is dropped, then the bot
  with the lowest total, then all of them. Bots without any first choice are dropped together.
- "Half" means half of the ballots that still have a candidate.
- The last two bots have equal votes: their direct result decides. If it is a draw, they share the place.
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

from dubito.errors import UsageError, join_names, one_line
from dubito.experiment.config import read_config
from dubito.plugins.tournament.log import Log, MatchLine
from dubito.stats.rates import Rate, student_quantile

Number = Fraction | float | int
Matrix = Mapping[tuple[int, int], Number]  # mean score of the first against the second, if they have met


@dataclass(frozen=True, slots=True)
class Round:
    """A count of votes: the votes by candidate, and the dropped bots or the winners."""

    votes: Mapping[int, int]
    dropped: tuple[int, ...] = ()
    winners: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedPlace:
    place: int  # 1 is best; after a shared place, the next is skipped
    rounds: Sequence[Round]

    @property
    def bots(self) -> tuple[int, ...]:
        return self.rounds[-1].winners


@dataclass(frozen=True, slots=True)
class GameRanking:
    ballots: Mapping[int, Sequence[int]]
    places: Sequence[RankedPlace]
    ties: Sequence[str] = field(default_factory=list)

    @property
    def place_by_bot(self) -> dict[int, int]:
        return {bot: place.place for place in self.places for bot in place.bots}


class _Election:
    def __init__(self, scores: Matrix, bots: Sequence[int], names: Sequence[str]) -> None:
        self._scores, self._bots, self._names = scores, bots, names
        self._totals = {bot: self._sum_scores(bot, bots) for bot in bots}
        self.ties: list[str] = []
        self.ballots = {bot: self._ballot(bot) for bot in bots}

    def rank(self) -> GameRanking:
        candidates, places = list(self._bots), []
        while candidates:
            rounds = self._run_off(candidates)
            places.append(RankedPlace(1 + len(self._bots) - len(candidates), rounds))
            candidates = [bot for bot in candidates if bot not in rounds[-1].winners]
        return GameRanking(self.ballots, places, self.ties)

    def _ballot(self, voter: int) -> list[int]:
        others = [bot for bot in self._bots if (voter, bot) in self._scores]
        order = sorted(others, key=lambda bot: (self._scores[voter, bot], -self._totals[bot]))
        for one, other in pairwise(order):
            if self._scores[voter, one] == self._scores[voter, other]:
                rule = "the higher total" if self._totals[one] != self._totals[other] else "the order of entry"
                tie = f"{self._names[voter]} scored the same against"
                self._record_tie(tie, (one, other), f"{rule} decides its ballot")
        return order

    def _run_off(self, candidates: Sequence[int]) -> list[Round]:
        """Return the rounds of voting for the next place."""
        remaining, rounds = list(candidates), []
        while True:
            votes = dict.fromkeys(remaining, 0)
            for ballot in self.ballots.values():
                if (choice := next((bot for bot in ballot if bot in votes), None)) is not None:
                    votes[choice] += 1
            winners = self._find_winners(votes)
            dropped = () if winners else self._choose_dropped(votes)
            rounds.append(Round(votes, dropped, winners))
            if winners:
                return rounds
            remaining = [bot for bot in remaining if bot not in dropped]

    def _find_winners(self, votes: Mapping[int, int]) -> tuple[int, ...]:
        """Return the bot with a majority of the live ballots. If the last two tie, the direct result decides."""
        live = sum(votes.values())
        if len(votes) == 1:
            return tuple(votes)
        if majority := [bot for bot, count in votes.items() if 2 * count > live]:
            return tuple(majority)
        if len(votes) == 2:
            one, other = votes
            direct, back = (self._scores.get(pair, 0) for pair in ((one, other), (other, one)))
            winners = (one, other) if direct == back else ((one,) if direct > back else (other,))
            decision = "they share the place" if direct == back else "the direct result decides"
            self._record_tie("equal votes for", (one, other), decision)
            return winners
        return self._find_inseparable(list(votes)) if len(set(votes.values())) == 1 else ()

    def _find_inseparable(self, bots: Sequence[int]) -> tuple[int, ...]:
        """Return all of these bots if their scores are also equal, so that none can be dropped, otherwise nothing."""
        sums = {self._sum_scores(bot, bots) for bot in bots}
        if len(sums) > 1 or len({self._totals[bot] for bot in bots}) > 1:
            return ()
        self._record_tie("equal votes and scores of", bots, "they share the place")
        return tuple(bots)

    def _choose_dropped(self, votes: Mapping[int, int]) -> tuple[int, ...]:
        """Return the bots to drop: by fewest votes, then lowest sum against the tied bots, then lowest total."""
        fewest = min(votes.values())
        last = [bot for bot, count in votes.items() if count == fewest]
        if fewest == 0 or len(last) == 1:
            return tuple(last)
        tied = last
        for why, value in (
            ("the lowest sum against each other is dropped", {bot: self._sum_scores(bot, tied) for bot in tied}),
            ("the lowest total is dropped", self._totals),
        ):
            least = min(value[bot] for bot in last)
            last = [bot for bot in last if value[bot] == least]
            if len(last) == 1:
                self._record_tie(f"fewest votes ({fewest}) for", tied, why)
                return tuple(last)
        self._record_tie(f"fewest votes ({fewest}) for", tied, f"{self._list_names(last)} are dropped together")
        return tuple(last)

    def _sum_scores(self, bot: int, others: Sequence[int]) -> Number:
        return sum(self._scores.get((bot, other), 0) for other in others)

    def _record_tie(self, tie: str, bots: Sequence[int], decision: str) -> None:
        sentence = f"{tie} {self._list_names(bots)}: {decision}"
        if sentence not in self.ties:
            self.ties.append(sentence)

    def _list_names(self, bots: Sequence[int]) -> str:
        return join_names([self._names[bot] for bot in bots])


def rank_game(scores: Matrix, bots: Sequence[int], names: Sequence[str]) -> GameRanking:
    """Rank these bots in a game. `names` are used to describe ties.

    `scores` contains every ordered pair of bots that have met. Bots do not vote for bots that they have not met.
    """
    return _Election(scores, bots, names).rank()


def final_places(ranks: Mapping[int, Sequence[int]]) -> dict[int, int]:
    worst_first = {bot: sorted(places, reverse=True) for bot, places in ranks.items()}
    return {bot: 1 + sum(other < mine for other in worst_first.values()) for bot, mine in worst_first.items()}


# A bot is disqualified if more of its matches in a game were overrun or crashed.
MAX_FAILURE_SHARE: Final = Fraction(1, 100)


def is_disqualified(failed: int, matches: int) -> bool:
    return failed > MAX_FAILURE_SHARE * matches


RESAMPLES: Final = 1000
_FORMATS: Final = "game: bot: opponent: score in YAML, or the columns bot, against, score or a cross table in CSV"
_SEED: Final = 18  # fixed, so that the same log leads to the same shares


@dataclass(slots=True)
class Meeting:
    """The results of one bot against another in a game.

    `units` counts the sums of its scores over a match and the match with swapped seats. Resampling draws from these.
    """

    matches: int = 0
    total: Fraction = Fraction()
    units: Counter[float] = field(default_factory=Counter)

    @property
    def mean(self) -> Fraction:
        return self.total / self.matches

    @property
    def interval(self) -> Rate:
        """Return the mean with its 95 % confidence interval (Student's t over the units, infinite for one unit)."""
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
    replaced: int = 0  # actions that the referee chose for the bot
    answers: int = 0
    think: int = 0  # microseconds, over all answers
    slowest: int = 0
    data: int = 0  # maximum number of bytes after a match
    exit_codes: Counter[str] = field(default_factory=Counter)
    last_error: str = ""  # the last line on standard error in a failed match

    def add(self, line: MatchLine, seat: int) -> None:
        self.matches += 1
        self.failed += line.has_failed(seat)
        if line.has_failed(seat) and (text := line.stderr[seat].strip()):
            self.last_error = text.splitlines()[-1]
        self.strikes.update(strike.kind for strike in line.strikes if strike.seat == seat)
        self.replaced += sum(replaced_seat == seat for _, replaced_seat in line.replaced)
        self.answers += len(line.times.think[seat])
        self.think += sum(line.times.think[seat])
        self.slowest = max([self.slowest, *line.times.think[seat]])
        self.data = max(self.data, line.data[seat])
        self.exit_codes[str(line.exit[seat])] += 1


@dataclass(slots=True)
class GameResult:
    name: str
    meetings: dict[tuple[int, int], Meeting]
    conduct: list[Conduct]  # by bot
    ranking: GameRanking | None = None  # without disqualified bots


@dataclass(slots=True)
class Standings:
    bots: Sequence[str]
    games: list[GameResult]
    disqualified: dict[int, str]  # the reasons
    places: dict[int, int]  # final places, without disqualified bots
    damaged: Sequence[str]
    played: int  # number of matches
    missing: int  # number of unfinished matches
    # The share of resamples in which a bot has the same place in a game (None for the final place).
    same: dict[tuple[int | None, int], float]

    def ranks(self, bot: int) -> list[int]:
        return [game.ranking.place_by_bot[bot] for game in self.games if game.ranking is not None]

    def warnings(self, manifest: Mapping[str, Any]) -> list[str]:
        """Return warnings about the result."""
        progress = f"{self.played:,} of {self.played + self.missing:,} matches are finished"
        warnings = [f"the order may change: {progress}"] if self.missing else []
        max_bytes = manifest["identity"].get("data_gb", math.inf) * (1 << 30)
        for game in self.games:
            warnings += [
                f"{self.bots[bot]} stored more than allowed for {game.name}: {conduct.data:,} bytes"
                for bot, conduct in enumerate(game.conduct)
                if conduct.data > max_bytes
            ]
            if not all(
                game.meetings[one, other].total == -game.meetings[other, one].total for one, other in game.meetings
            ):
                warnings.append(f"{game.name} is not zero-sum, but ballots assume that it is")
        return warnings


def compute_standings(log: Log, resamples: int = RESAMPLES) -> Standings:
    """Compute the result of the matches in the log. Raises UsageError if no match is finished."""
    games = [GameResult(name, {}, [Conduct() for _ in log.bots]) for name in log.games]
    finished = 0
    for pairing, lines in log.read_lines():
        game, (one, other) = games[pairing.game], pairing.bots
        if lines:
            finished += len(lines)
            _add_matches(game, one, other, lines, log.bots)
    if not finished:
        damaged = f" ({log.damaged[0]})" if log.damaged else ""
        raise UsageError(f"no match is finished yet{damaged}; play them with `dubito tournament play`")
    disqualified = _list_disqualified(games, log.bots)
    ranked_bots = [bot for bot in range(len(log.bots)) if bot not in disqualified]
    for game in games:
        game.ranking = rank_game(_matrix(game), ranked_bots, log.bots) if game.meetings else None
    missing = 2 * log.matches * len(log.pairings()) - finished
    result = Standings(log.bots, games, disqualified, {}, log.damaged, finished, missing, {})
    result.places = final_places({bot: result.ranks(bot) for bot in ranked_bots})
    result.same = _place_stability(result, ranked_bots, resamples)
    return result


def _add_matches(game: GameResult, one: int, other: int, lines: Sequence[MatchLine], names: Sequence[str]) -> None:
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


def _list_disqualified(games: Sequence[GameResult], names: Sequence[str]) -> dict[int, str]:
    """Return the bots that failed in too many matches of a game, with the reason.

    They are excluded from all games.
    """
    reasons: dict[int, str] = {}
    for game in games:
        for bot, conduct in enumerate(game.conduct):
            if is_disqualified(conduct.failed, conduct.matches):
                failures = f"{conduct.failed:,} of {conduct.matches:,} matches of {game.name} were overrun or crashed"
                error = f"; it printed: {one_line(conduct.last_error, 120)}" if conduct.last_error else ""
                reasons.setdefault(bot, f"{names[bot]} is disqualified: {failures}, more than 1 %{error}")
    return reasons


def _place_stability(
    standing: Standings, ranked_bots: Sequence[int], resamples: int
) -> dict[tuple[int | None, int], float]:
    """Return the share of resamples in which each bot has the same place. Each pair's matches are resampled."""
    if not ranked_bots or not resamples:
        return {}
    times: Counter[tuple[int | None, int]] = Counter()
    resampled = [_resample(game, ranked_bots, resamples, number) for number, game in enumerate(standing.games)]
    for sample in range(resamples):
        ranks: dict[int, list[int]] = {bot: [] for bot in ranked_bots}
        for number, game in enumerate(standing.games):
            if game.ranking is None:
                continue
            scores = {pair: means[sample] for pair, means in resampled[number].items()}
            places = rank_game(scores, ranked_bots, standing.bots).place_by_bot
            for bot in ranked_bots:
                ranks[bot].append(places[bot])
                times[number, bot] += places[bot] == game.ranking.place_by_bot[bot]
        for bot, place in final_places(ranks).items():
            times[None, bot] += place == standing.places[bot]
    return {key: count / resamples for key, count in times.items()}


def _resample(
    game: GameResult, ranked_bots: Sequence[int], resamples: int, number: int
) -> Mapping[tuple[int, int], Sequence[float]]:
    """Return a mean per resample for every ordered pair. In zero-sum games, both orders use the same draws."""
    import numpy

    stream = numpy.random.default_rng([_SEED, number])
    means_by_pair: dict[tuple[int, int], Sequence[float]] = {}
    for one in ranked_bots:
        for other in (bot for bot in ranked_bots if bot > one and (one, bot) in game.meetings):
            mine, theirs = game.meetings[one, other], game.meetings[other, one]
            means = _means(mine, stream, resamples)
            means_by_pair[one, other] = means.tolist()
            zero_sum = mine.total == -theirs.total
            means_by_pair[other, one] = (-means if zero_sum else _means(theirs, stream, resamples)).tolist()
    return means_by_pair


def _means(meeting: Meeting, stream: Any, resamples: int) -> Any:
    values = sorted(meeting.units)
    n = sum(meeting.units.values())
    counts = stream.multinomial(n, [meeting.units[value] / n for value in values], size=resamples)
    return counts @ values / meeting.matches


Scores = dict[tuple[str, str], Fraction]  # the mean score of the first against the second


def standings_of_table(path: Path) -> Standings:
    """Compute the result of a table of scores, without matches; raises UsageError.

    A YAML file contains `game: bot: opponent: score`, where the game is optional. A CSV file has the columns bot,
    against, score and optionally game, or is a cross table with opponents in the first row and bots in the first
    column. A missing score is the negative of the opponent's score.
    """
    tables = _csv_tables(path) if path.suffix.lower() == ".csv" else _yaml_tables(path)
    bots = list(dict.fromkeys(name for scores in tables.values() for pair in scores for name in pair))
    if len(bots) < 2:
        raise UsageError(f"{path} has no scores between bots; supported formats are {_FORMATS}")
    games = []
    for name, scores in tables.items():
        both = {(other, one): -score for (one, other), score in scores.items()} | scores
        meetings = {(bots.index(one), bots.index(other)): Meeting(1, score) for (one, other), score in both.items()}
        game = GameResult(name, meetings, [Conduct() for _ in bots])
        game.ranking = rank_game(_matrix(game), range(len(bots)), bots)
        games.append(game)
    result = Standings(bots, games, {}, {}, [], 0, 0, {})
    result.places = final_places({bot: result.ranks(bot) for bot in range(len(bots))})
    return result


def _yaml_tables(path: Path) -> dict[str, Scores]:
    content = read_config(path)
    if not any(isinstance(inner, dict) for row in content.values() if isinstance(row, dict) for inner in row.values()):
        content = {path.stem: content}
    tables: dict[str, Scores] = {}
    for game, rows in content.items():
        for bot, row in _entries(path, rows):
            for other, score in _entries(path, row):
                _add_score(tables.setdefault(str(game), {}), (bot, other), score, f"{path}: {one_line(str(game), 80)}")
    return tables


def _entries(path: Path, content: object) -> list[tuple[str, Any]]:
    if not isinstance(content, dict):
        shown = one_line(repr(content), 60)
        raise UsageError(f"{path}: {shown} does not map opponents to scores; supported formats are {_FORMATS}")
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
        raise UsageError(f"{path} is not a table of scores between bots; supported formats are {_FORMATS}")
    tables: dict[str, Scores] = {}
    for number, row in enumerate(rows, 2):
        where = f"{path}, row {number}"
        if len(row) != len(header):
            raise UsageError(f"{where} has {len(row)} cells, but the first row has {len(header)}")
        if is_list:
            cells = dict(zip(names, row, strict=True))
            game = tables.setdefault(cells.get("game") or path.stem, {})
            _add_score(game, (cells["bot"], cells["against"]), cells["score"], where)
        else:
            for other, score in zip(header[1:], row[1:], strict=True):
                _add_score(tables.setdefault(path.stem, {}), (row[0], other), score, where)
    return tables


def _add_score(scores: Scores, pair: tuple[str, str], value: object, where: str) -> None:
    """Add a score as an exact fraction. An empty cell adds nothing."""
    text = "" if value is None else str(value).strip()
    if pair[0] == pair[1] or text in ("", "-"):
        return
    shown = " against ".join(one_line(name, 60) for name in pair)
    try:
        score = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{where}: {one_line(repr(text), 60)} is not a number; set the score of {shown}") from None
    if pair in scores:
        raise UsageError(f"{where}: the score of {shown} is set twice")
    scores[pair] = score
