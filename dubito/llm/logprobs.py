"""Compute the probability that a model assigned to the answer "true", from its tokens' log-probabilities.

Chat Completions servers return log-probabilities on request. For each token of the reply, they list the most probable
tokens at that position (`chat/completions/object` in OpenAI's API reference; llama.cpp, vLLM and Ollama follow it).
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from math import exp
from typing import Final

from dubito.llm.request import parse_json

# Fields of a request. All such servers accept up to five alternatives.
LOGPROB_FIELDS: Final = {"logprobs": True, "top_logprobs": 5}
_VALUES: Final = ("true", "false")


def read_yes_probability(raw: str, field: str) -> float | None:
    """Return the probability of `true` as a field's value, relative to `true` and `false` together.

    A value whose token is not among the most probable ones counts as impossible. Returns None if the reply has no
    log-probabilities or lacks the field.
    """
    # Each token of the reply, with the log-probabilities of its alternatives. Those that do not follow the reference
    # count as missing.
    tokens: list[tuple[str, Mapping[str, float]]] = []
    with suppress(LookupError, TypeError, ValueError, AttributeError):
        for each in parse_json(raw)["choices"][0]["logprobs"]["content"]:
            rows = [each, *(each.get("top_logprobs") or ())]
            probabilities = {str(row["token"]): min(0.0, float(row["logprob"])) for row in rows}
            tokens.append((str(each["token"]), probabilities))
    text = "".join(token for token, _ in tokens)
    # Use the last one, since an answer may follow thoughts that mention one.
    values = list(re.finditer(rf'"{re.escape(field)}"\s*:\s*(?:true|false)\b', text))
    if not values:
        return None
    start = values[-1].end() - len(re.split(r"[\s:]", values[-1][0])[-1])
    position = 0
    for token, alternatives in tokens:
        if position + len(token) > start:
            return _share_of_true(token[: start - position], alternatives)
        position += len(token)
    return None


def _share_of_true(before: str, alternatives: Mapping[str, float]) -> float | None:
    """Return the share of `true`. `before` is the part of the token that precedes the value."""
    shares = dict.fromkeys(_VALUES, 0.0)
    for token, logprob in alternatives.items():
        begin = token.removeprefix(before).lstrip()
        for value in _VALUES:
            if begin and (value.startswith(begin) or begin.startswith(value)):
                shares[value] += exp(logprob)
    total = sum(shares.values())
    return shares["true"] / total if total else None
