"""Log probabilities of tokens in the format of Chat Completions (OpenAI's reference, `chat/completions/object`)."""

import re
from collections.abc import Mapping
from math import log
from typing import Any, Final

MAX_LISTED: Final = 20  # alternatives of a token
_IMPOSSIBLE: Final = -9999.0  # the value for a very unlikely token, according to the reference
_TOKEN: Final = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")
_NAME: Final = re.compile(r'"(\w+)":$')


def token_logprobs(text: str, odds: Mapping[Any, float], most: int) -> list[dict[str, Any]]:
    """Return the tokens of a text, each with at most this many alternatives.

    `odds` maps each question to the probability of yes, with True as the key for all other questions. The model is
    certain of all other tokens.
    """
    rows, before = [], ""
    for word in _TOKEN.findall(text):
        shares = {word: 1.0}
        field = _NAME.search(before)
        if field and word in ("true", "false"):
            yes = odds.get(field[1], odds.get(True, float(word == "true")))
            shares = {"true": yes, "false": 1 - yes}
        listed = sorted(shares, key=lambda each: -shares[each])[:most]
        rows.append({**_row(word, shares), "top_logprobs": [_row(each, shares) for each in listed]})
        before += word
    return rows


def _row(token: str, shares: Mapping[str, float]) -> dict[str, Any]:
    share = shares[token]
    return {"token": token, "logprob": log(share) if share else _IMPOSSIBLE, "bytes": list(token.encode())}
