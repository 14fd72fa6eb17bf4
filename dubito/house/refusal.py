"""Why a request gets no answer, in words that all protocols can translate."""

from typing import Literal

RefusalKind = Literal[
    "no_key",
    "wrong_key",
    "no_money",
    "malformed",
    "missing",
    "unknown_parameter",
    "unsupported",
    "bad_value",
    "bad_schema",
    "too_long",
    "unknown_model",
    "unknown_path",
    "wrong_method",
    "rate_limit",
    "server_error",
    "bad_gateway",
    "unavailable",
    "overloaded",
]


class Refusal(Exception):
    """A request that gets no answer: the kind of error, and the facts its message names."""

    def __init__(self, kind: RefusalKind, **facts: object) -> None:
        super().__init__(kind, facts)
        self.kind: RefusalKind = kind
        self.facts = facts
