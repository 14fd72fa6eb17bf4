"""The definition of the game."""

from typing import Final

from dubito.game import Game, Measure, Player, Results

from .state import NODES, Rules, State

RESULTS: Final = Results(
    buckets=("wins", "losses"),
    endings=("won", "lost"),
    bucket=lambda mark, capped: 1 - mark,
    measures=(Measure("wins", "won", "Wins", (1, 0)),),
    headline=("wins",),
    equal_share=lambda seats: {"wins": 1 / seats},
    game_counts=("turns",),
    seat_counts=("staked",),
)

GAME: Final = Game(
    name="guess",
    summary="a guessing game",
    rules=Rules,
    seats=(2, 2),
    lineup="distinct",
    base=Player,
    base_path="dubito.game.Player",
    fallback="Dull",
    nodes=NODES,
    results=RESULTS,
    deal=State,
    deal_to_json=lambda state: {"hands": [list(hand) for hand in state.hands]},
    output_to_json=lambda output: output,
    output_from_json=lambda plain: plain,
    output_of=lambda node, answer, cards: tuple(answer) if node == "stake" else answer,
    answer_of=lambda node, output: list(output) if node == "stake" else output,
    package=str(__package__),
)
