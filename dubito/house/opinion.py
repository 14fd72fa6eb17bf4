"""What a policy gives back for a prompt."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Opinion:
    """An answer, of JSON, and what else a prompt may ask for."""

    answer: Any
    understood: bool  # whether what it needs was found in the prompt
    p_bluff: float | None = None  # the stated probability of a bluff; None: it states none
