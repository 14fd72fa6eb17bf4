"""The harness's games as PettingZoo environments, through shimmy (`pip install 'dubito[pettingzoo]'`)."""

import numpy as np

from dubito.plugins.openspiel.spiel import register  # imported first, to raise its error if OpenSpiel is missing

try:
    from shimmy.openspiel_compatibility import OpenSpielCompatibilityV0
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("shimmy is not installed: pip install 'dubito[pettingzoo]'", name="shimmy") from error


class HarnessEnv(OpenSpielCompatibilityV0):  # type: ignore[misc]  # shimmy has no types
    """shimmy's environment for a game, with four corrections.

    shimmy 2.0.1 creates new spaces at every step, so that they forget their seed and no OpenSpiel game passes
    PettingZoo's `seed_test`. It counts the last reward again for every seat that leaves. It loads the game by its short
    name at each reset, which loses parameters that are not in `config`. At the end it still shows the observation
    before the last move.
    """

    def __init__(self, game: str, render_mode: str | None = None, **parameters: int | float | bool | str) -> None:
        """Create an environment from a game's name and parameters, as in `HarnessEnv("dubito", players=4)`.

        Raises UsageError if the game does not have these rules.
        """
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
