"""A test of whether a bot acts according to its stated probabilities, valid for any number of observed actions."""

import math
from collections import Counter, defaultdict
from typing import Final

from dubito.plugins.openspiel.policy.tree import Row

_MAX_LOG_RATIO: Final = math.log(1000)  # a truthful bot reaches this in at most 1 of 1,000 runs


class ChancesTest:
    """Two bets against the stated probabilities, pooled over all information states.

    Each observed action multiplies a stake by guessed / stated probability, where the guess is based on earlier
    actions. If the bot acts as stated, the stake stays the same on average, so the probability that it ever grows a
    thousandfold is at most 1/1000 (Ville's inequality), whichever states the games reach. One bet guesses from the
    actions in the same state, the other from the index of actions among the legal ones ("always the last") in all
    states. The evidence is the mean of both stakes.
    """

    def __init__(self) -> None:
        self.refuted = False
        self._seen: defaultdict[str, Counter[int]] = defaultdict(Counter)  # actions, by state
        # By number of legal actions and index among them: how often it was taken, and the sum of its stated
        # probabilities.
        self._taken = Counter[tuple[int, int]]()
        self._stated: defaultdict[tuple[int, int], float] = defaultdict(float)
        self._by_state = self._by_place = 0.0  # logarithms of the stakes

    def add(self, state: str, action: int, row: Row) -> None:
        """Add an action in a state where the bot states the probabilities `row` of all legal actions."""
        if not row[action]:
            self.refuted = True
            return
        self._by_state += math.log(self._guess_by_state(state, action, row) / row[action])
        self._by_place += math.log(self._guess_by_place(action, row) / row[action])
        larger, smaller = max(self._by_state, self._by_place), min(self._by_state, self._by_place)
        self.refuted |= larger + math.log1p(math.exp(smaller - larger)) - math.log(2) >= _MAX_LOG_RATIO

    def _guess_by_state(self, state: str, action: int, row: Row) -> float:
        """Guess the frequencies observed in this state, with a prior of half an observation per legal action."""
        seen, prior = self._seen[state], len(row) / 2
        guess = (seen[action] + prior * row[action]) / (seen.total() + prior)
        seen[action] += 1
        return guess

    def _guess_by_place(self, action: int, row: Row) -> float:
        """Guess the stated probabilities, tilted towards indexes that were chosen more often than stated."""
        places = {one: (len(row), place) for place, one in enumerate(row)}
        tilt_weights = {
            one: share * (self._taken[places[one]] + 1) / (self._stated[places[one]] + 1) for one, share in row.items()
        }
        self._taken[places[action]] += 1
        for one, share in row.items():
            self._stated[places[one]] += share
        return tilt_weights[action] / sum(tilt_weights.values())
