"""The `rules` of OpenSpiel's games as a config says them: none."""

from pydantic import BaseModel, ConfigDict


class OpenSpielRules(BaseModel):
    """There is nothing to vary: parameters are part of a game's name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
