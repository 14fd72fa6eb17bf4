"""Seeds: a public number, or a secret of 128 bits as text.

A secret seed is text of 32 hexadecimal digits, since JSON numbers of this size lose digits in many languages. Before it
is revealed, a run states only its SHA-256, which anyone can check later: `printf %s SEED | sha256sum`.
"""

import re
import secrets
from hashlib import sha256
from typing import Annotated, Final, Literal

# Pydantic depends on this package, which can be imported without Pydantic.
from annotated_types import Predicate

_SECRET_BYTES: Final = 16
_match_text: Final = re.compile(r"[0-9a-f]{32}").fullmatch
TEXT_PATTERN: Final = "^[0-9a-f]{32}$"
SEED_FORMAT: Final = "a whole number, or a revealed seed of 32 hex digits"


def is_seed(value: int | str) -> bool:
    return isinstance(value, int) or _match_text(value) is not None


Seed = Annotated[int | str, Predicate(is_seed)]
SeedSecrecy = Literal["known", "secret"]  # what the seed of a run was before its first game and during play


def parse_seed(text: str) -> int | str:
    """Return the seed that a text states. Raises ValueError."""
    return text if _match_text(text) else int(text)


def draw_secret_seed() -> str:
    return secrets.token_hex(_SECRET_BYTES)


def hash_seed(seed: str) -> str:
    """Return the commitment to a secret seed: the SHA-256 of its digits."""
    return sha256(seed.encode("utf-8", "backslashreplace")).hexdigest()
