"""Our games as environments of PettingZoo, by way of shimmy (`pip install 'dubito[pettingzoo]'`)."""

from typing import Any

import numpy as np

from dubito.plugins.openspiel.spiel import register  # first: without OpenSpiel it says so

try:
    from shimmy.openspiel_compatibility import OpenSpielCompatibilityV0
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("shimmy is not installed: pip install 'dubito[pettingzoo]'", name="shimmy") from error


class HarnessEnv(OpenSpielCompatibilityV0):  # type: ignore[misc]  # shimmy has no types
    """shimmy's environment of a game, with four corrections.

    shimmy 2.0.1 makes new spaces at every step, so that they forget their seed, and no game of OpenSpiel passes
    PettingZoo's `seed_test`; it counts the last reward again with every seat that leaves; it loads the game by its
    short name at each reset, so that parameters are lost that are not in `config`; and at the end it still shows what
    was seen before the last move.
    """

    def __init__(self, game: str, render_mode: str | None = None, **parameters: Any) -> None:
        """`HarnessEnv("dubito", players=4)`; raises UsageError where the game has no such rules."""
        super().__init__(game_name=register(game), config=parameters, render_mode=render_mode)
        self._ezpickle_args, self._ezpickle_kwargs = (game, render_mode), parameters

    def _update_observation_spaces(self) -> None:
        if not self.observation_spaces:
            super()._update_observation_spaces()

    def _update_action_spaces(self) -> None:
        if not self.action_spaces:
            super()._update_action_spaces()

    def _update_observations(self) -> None:
        self.observations = {
            agent: np.array(self.game_state.observation_tensor(seat))
            for agent, seat in self.agent_name_id_mapping.items()
        }

    def _end_routine(self) -> bool:
        left: bool = super()._end_routine()
        if left:
            self._clear_rewards()
        return left
