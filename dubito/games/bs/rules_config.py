"""BS's `rules` as a config says them, checked."""

from pydantic import Field

from dubito.files import Checked


class BSRules(Checked):
    """What of the rules may be varied."""

    max_rounds: int = Field(default=1000, ge=1)  # after so many nobody wins (B2)
