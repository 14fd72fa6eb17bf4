"""The `rules` of draw and defuse as a config says them: none."""

from pydantic import BaseModel, ConfigDict


class DefuseRules(BaseModel):
    """There is nothing to vary."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
