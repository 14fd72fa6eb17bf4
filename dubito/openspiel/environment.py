"""Our games as environments of PettingZoo, by way of shimmy (`pip install 'dubito[pettingzoo]'`)."""

from typing import Any

from shimmy.openspiel_compatibility import OpenSpielCompatibilityV0

import dubito.openspiel  # noqa: F401, registers the games


class HarnessEnv(OpenSpielCompatibilityV0):  # type: ignore[misc]  # shimmy has no types
    """shimmy's environment of a game, with spaces that stay the same.

    shimmy 2.0.1 makes new ones at every step, so that they forget their seed, and no game of OpenSpiel passes
    PettingZoo's `seed_test`. And it loads the game by its short name at each reset: parameters have to be in `config`.
    """

    def __init__(self, game: str, render_mode: str | None = None, **parameters: Any) -> None:
        """`HarnessEnv("dubito", players=4)`; raises UsageError where the game has no such rules."""
        super().__init__(game_name=game, config=parameters, render_mode=render_mode)
        self._ezpickle_args, self._ezpickle_kwargs = (game, render_mode), parameters

    def _update_observation_spaces(self) -> None:
        if not self.observation_spaces:
            super()._update_observation_spaces()

    def _update_action_spaces(self) -> None:
        if not self.action_spaces:
            super()._update_action_spaces()
