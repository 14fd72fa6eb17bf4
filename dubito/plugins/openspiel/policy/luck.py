"""Correct a player's returns for luck from chance and from opponents whose policy is known.

This is AIVAT (Burch, Schmid, Moravcik, Morrill and Bowling, 2018) with every correction summed exactly. For a seat,
chance and all opponents together are a source of luck with known probabilities, so the game is a chain of the seat's
own information states. Take any table of probabilities for the seat. Q is the value of an action if the seat then plays
according to the table, averaged over the opponents' hidden cards, and V is the mean of Q under the table. Subtracting
from the return how far each lucky step was from its mean leaves

    the table's value at the start + the sum of Q - V over the seat's own decisions.

This does not change the mean of the return, for any table and any play by the seat, as long as the table does not
depend on the game that it corrects. The closer the table is to the seat's play, the smaller the variance.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from dubito.plugins.openspiel.policy.tree import PolicyTable, Row, Tree, seat_tables
from dubito.plugins.openspiel.policy.values import best_response, reach_of_others

OwnDecision = tuple[str, int]  # the information state's string, and the action
_PRIOR: Final = 1.0  # weight of the prior, in decisions per state


class SeatLuck:
    """Corrects a seat's games against the opponents' tables, using a table for the seat."""

    def __init__(self, tree: Tree, seat: int, table: PolicyTable, others: PolicyTable) -> None:
        tables = seat_tables(tree, seat, table, others)
        response = best_response(tree, seat, tables, free=frozenset())  # the table's value if the seat never decides
        reach = reach_of_others(tree, seat, tables)
        self._start = response.value
        self._better: dict[str, dict[int, float]] = {}  # Q - V, by state and action
        for state in tree.states:
            might = sum(reach[number] for number in tree.nodes_of[state.string])
            if state.seat == seat and might:  # otherwise the other seats prevent it from reaching the state
                worth = [value / might for value in response.worth[state.string]]
                row = table[state.string]
                mean = sum(row[action] * value for action, value in zip(state.actions, worth, strict=True))
                self._better[state.string] = {a: value - mean for a, value in zip(state.actions, worth, strict=True)}

    def corrected_value(self, decisions: Iterable[OwnDecision]) -> float:
        return self._start + sum(self._better[state][action] for state, action in decisions)


def fitted(tree: Tree, decisions: Iterable[OwnDecision], prior: PolicyTable) -> dict[str, Row]:
    """Fit a table to these decisions, with a prior for states with few decisions."""
    counts = Counter(decisions)
    table = dict[str, Row]()
    for state in tree.states:
        seen = sum(counts[state.string, action] for action in state.actions) + _PRIOR
        row = prior[state.string]
        table[state.string] = {
            action: (counts[state.string, action] + _PRIOR * row[action]) / seen for action in state.actions
        }
    return table


class LuckyGame(NamedTuple):
    """A game by the player whose results are corrected."""

    deal: int
    seat: int
    players: tuple[int, ...]  # players' numbers, by seat
    came_to: float  # the seat's return
    decisions: Sequence[OwnDecision]  # the seat's decisions, in order


_FOLDS: Final = 5


def corrected_returns(
    tree: Tree, games: Sequence[LuckyGame], others: Callable[[LuckyGame], PolicyTable], prior: PolicyTable
) -> list[float]:
    """Return each game's return, corrected with a table that is fitted to the games in the other folds.

    `others` are the other seats' tables. All games of a deal are in the same fold, so that no game affects the table
    that corrects it.
    """
    returns, corrections = list[float](), dict[tuple[int, ...], SeatLuck]()
    tables = [
        fitted(tree, (each for game in games if game.deal % _FOLDS != fold for each in game.decisions), prior)
        for fold in range(_FOLDS)
    ]
    for game in games:
        fold = game.deal % _FOLDS
        key = fold, game.seat, *game.players
        if key not in corrections:
            corrections[key] = SeatLuck(tree, game.seat, tables[fold], others(game))
        returns.append(corrections[key].corrected_value(game.decisions))
    return returns
