"""What a policy gives back for a prompt."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Opinion:
    """A yes or no, and what else a prompt may ask for."""

    answer: bool
    understood: bool  # whether the facts were found in the prompt
    p_bluff: float | None = None  # the stated probability that the last play is dishonest; None: it states none
