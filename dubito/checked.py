"""What people write in files and flags, checked by pydantic."""

from pydantic import BaseModel, ConfigDict


class Checked(BaseModel):
    """No key more than these, and no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoRules(Checked):
    """The `rules` of a game that has nothing to vary."""
