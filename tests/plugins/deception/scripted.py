"""Players with known values, which read the state of the game.

On each play that could be honest, a liar lies with a probability that it draws first, 0.3 on average. A doubter knows
the truth and doubts lies and honest plays with fixed probabilities. A believer knows the liar's probability, as does
the reference.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from dubito.experiment.lies import TrackedGame, track_game, track_moves
from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.engine import State
from dubito.games.dubito.game import GAME
from dubito.games.dubito.rules import DubitoRules
from dubito.plugins.deception.sheet import PlayerSheet, SheetCounter
from dubito.stats.players import Statement, add_statements, calibrations
from dubito.stats.tally import Tally

RULES = DubitoRules(jokers=0, ranks=6, max_turns=30)
SEATS = 3


@dataclass
class Script:
    """How all seats of a table play."""

    lie_rates: Sequence[float] = (0.1, 0.1, 0.7)
    hits: float = 0.5  # probability of doubting a lie
    alarms: float = 0.3  # probability of doubting an honest play
    dodges: bool = True  # whether it doubts instead of playing where it cannot lie
    belief: Callable[[float], float] | None = None  # from the liar's probability to the stated one


@dataclass
class _Table:
    script: Script
    draw: Random
    last_rate: float | None = None  # the probability with which the last play was a lie; None if it had no choice
    rates: dict[tuple[int, int], float] = field(default_factory=dict)  # of the plays met, by seat and move

    def play(self, state: State) -> Iterator[tuple[State, TurnOutput]]:
        moves = [0] * SEATS
        while not state.over:
            seat = state.seat
            moves[seat] += 1
            if state.can_doubt and self.last_rate is not None:
                self.rates[seat, moves[seat]] = self.last_rate
            output = self._output(state)
            yield state, output
            state.apply(output)

    def _output(self, state: State) -> TurnOutput:
        held, number = state.hands[state.seat].counts, state.number
        others = [card for card in range(1, 14) if held[card] and card != number]
        if state.can_doubt:
            truth = GAME.truth(state)
            doubts = self.draw.random() < (self.script.hits if truth else self.script.alarms)
            if doubts or (self.script.dodges and not others):
                return TurnOutput(True)
        rate = self.draw.choice(self.script.lie_rates)
        lies = self.draw.random() < rate
        if not number:
            card = self.draw.choice([card for card in range(1, 14) if held[card]])
            declared = self.draw.choice([one for one in range(1, RULES.ranks + 1) if one != card]) if lies else card
            self.last_rate = rate
            return TurnOutput(False, declared, [card])
        self.last_rate = rate if held[number] and others else None
        card = self.draw.choice(others) if others and (lies or not held[number]) else number
        return TurnOutput(False, None, [card])


def play_game(script: Script, game: int, draw: Random) -> tuple[TrackedGame, Mapping[tuple[int, int, int], float]]:
    """Play a game in which the player 0 has all seats. Return it with the probabilities of the lies."""
    table = _Table(script, draw)
    moves = [*track_moves(GAME, table.play(GAME.deal_game(RULES, SEATS, draw)))]
    return track_game(game, [0] * SEATS, moves), {(game, *move): rate for move, rate in table.rates.items()}


def play_run(script: Script, seed: int, games: int = 40) -> PlayerSheet:
    """Return the sheet of a player that has all seats, one game per deal."""
    draw, counter, tally = Random(seed), SheetCounter(["scripted"]), Tally()
    for game in range(games):
        tracked, rates = play_game(script, game, draw)
        stated = {move: script.belief(rate) for move, rate in rates.items()} if script.belief else {}
        counter.add_deal(game, [tracked], stated, rates)
        truths = {(one.game, one.seat, one.move): one.is_lie for one in tracked.responses}
        add_statements(tally, ((0, Statement(key[1], p, False, truths[key])) for key, p in stated.items()))
    (sheet,) = counter.sheet(calibrations(tally, ["scripted"])).players
    return sheet
