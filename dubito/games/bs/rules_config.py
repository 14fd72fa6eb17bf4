"""BS's `rules` as a config says them, checked."""

from pydantic import BaseModel, ConfigDict, Field


class BSRules(BaseModel):
    """What of the rules may be varied."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    max_rounds: int = Field(default=1000, ge=1)  # after so many nobody wins (B2)
