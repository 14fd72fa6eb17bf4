"""Instant run-off voting as the competition announced it, with what it left open decided; plain numbers in, places out.

In each game every bot casts a ballot: all others, those against which it scored least first. Who has more than half
of the ballots' first choices takes the place; else the one with the fewest is dropped, and its votes go to the next
choice on those ballots. For the next place all but those already placed stand again, and everybody votes again.

Decided here: scores that are equal put the bot of the higher total first, then the one that was entered first. Who
has no first choice at all is dropped with the others that have none. Of several with the fewest, the one with the
lowest sum against the others goes, then the one with the lowest total; those that are alike in that too go together.
Half means half of the ballots that still name a candidate. Of the last two with as many votes, the direct result
decides; if it is even they share the place. Every tie that had to be decided is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Final

from dubito.errors import listed

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
    """How a place was found."""

    place: int  # 1 is best; two that share it leave out the next
    rounds: Sequence[Round]

    @property
    def bots(self) -> tuple[int, ...]:
        """Who takes it."""
        return self.rounds[-1].winners


@dataclass(frozen=True, slots=True)
class GameRanking:
    """The ranking of one game."""

    ballots: Mapping[int, Sequence[int]]
    places: Sequence[FoundPlace]
    ties: Sequence[str] = field(default_factory=list)

    @property
    def of(self) -> dict[int, int]:
        """The place of each bot."""
        return {bot: place.place for place in self.places for bot in place.bots}


class _Election:
    """One game's votes."""

    def __init__(self, scores: Matrix, bots: Sequence[int], names: Sequence[str]) -> None:
        self._scores, self._bots, self._names = scores, bots, names
        self._totals = {bot: self._against(bot, bots) for bot in bots}
        self.ties: list[str] = []
        self.ballots = {bot: self._ballot(bot) for bot in bots}

    def ranking(self) -> GameRanking:
        """All places."""
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
        self._tie(f"fewest votes ({fewest}) for", tied, f"{self._said(last)} are dropped together")
        return tuple(last)

    def _against(self, bot: int, others: Sequence[int]) -> Number:
        return sum(self._scores.get((bot, other), 0) for other in others)

    def _tie(self, what: str, bots: Sequence[int], how: str) -> None:
        sentence = f"{what} {self._said(bots)}: {how}"
        if sentence not in self.ties:
            self.ties.append(sentence)

    def _said(self, bots: Sequence[int]) -> str:
        return listed([self._names[bot] for bot in bots])


def rank_game(scores: Matrix, bots: Sequence[int], names: Sequence[str]) -> GameRanking:
    """The places of these bots in one game; `names` is for the ties.

    `scores` has every ordered pair of them that has met: who has not met a bot does not vote for it.
    """
    return _Election(scores, bots, names).ranking()


def final(ranks: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The final place of each bot: the worst of its ranks over all games counts first; who is alike shares."""
    worst_first = {bot: sorted(places, reverse=True) for bot, places in ranks.items()}
    return {bot: 1 + sum(other < mine for other in worst_first.values()) for bot, mine in worst_first.items()}


DISQUALIFYING: Final = Fraction(1, 100)  # of a bot's matches in a game, overrun or crashed: more disqualify


def is_disqualified(failed: int, matches: int) -> bool:
    """Whether so many overruns and crashes in a game are too many."""
    return failed > DISQUALIFYING * matches
