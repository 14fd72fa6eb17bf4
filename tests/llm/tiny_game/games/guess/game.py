"""The definition of the game."""

from random import Random
from typing import Any, Final

from dubito.game import Facts, Game, GameEvent, Results

from .facts import GuessFacts
from .state import NODES, Begun, HandDealt, Moved, Rules, State

RESULTS: Final = Results(seat_counts=("staked",))


class GuessGame(Game[Rules, State, GameEvent]):
    name = "guess"
    summary = "a guessing game"
    seats = (2, 2)
    lineup = "distinct"
    base_path = "dubito.game.Player"
    fallback = "Dull"
    nodes = NODES
    events = (Begun, HandDealt, Moved)
    results = RESULTS

    def rules(self, **settings: Any) -> Rules:
        return Rules(**settings)

    def deal(self, rules: Rules, seats: int, chance: Random) -> State:
        return State(rules, seats, chance)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"hands": [list(hand) for hand in state.hands]}

    def output_of(self, node: str, answer: Any, cards: Any) -> Any:
        return tuple(answer) if node == "stake" else answer

    def answer_of(self, node: str, output: Any) -> Any:
        return list(output) if node == "stake" else output

    @property
    def facts(self) -> Facts:
        return GuessFacts()


GAME: Final = GuessGame()
