"""Compute the value of the guide's Kuhn poker for the first seat (dubito/plugins/openspiel/docs/training.md)."""

from open_spiel.python.algorithms import cfr, expected_game_score

import dubito.plugins.openspiel.spiel

game = dubito.plugins.openspiel.spiel.load_game("kuhn")
solver = cfr.CFRPlusSolver(game)
for _ in range(100):
    solver.evaluate_and_update_policy()
policy = solver.average_policy()
worth = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
print(f"{2 * worth[0]:.3f}")  # -0.056
