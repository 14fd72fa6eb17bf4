"""Detect when a server silently cuts a prompt to fit its context window.

Ollama does this (ollama#17889): it answers with status 200 and the token count after the cut. So the number of
characters sent is compared with the token count. During a run, only the prompts of one player in one game are compared,
so a replay has the same result. The preflight compares its longest question with a shorter one. A count that stays the
same while the prompt grows also indicates a cut, unless the number is too small to be a token count.
"""

from collections.abc import Mapping
from typing import Any, Final

from dubito.llm.request import AttemptFailed, Reply

CONTEXT_HINT: Final = "raise its context window: Ollama `num_ctx`, llama.cpp `-c`, vLLM `--max-model-len`"
_MAX_PER_TOKEN: Final = 7.0  # characters; English text has 4 to 5, and our prompts have 3 to 4
_USUAL_PER_TOKEN: Final = 4.0
_MIN_PER_TOKEN: Final = 2.5
_MIN_COUNT: Final = 256  # tokens; servers that do not count report less, such as 0 or 1, and no window is smaller
_MIN_GROWTH: Final = 1000  # characters by which a prompt must have grown before its count is meaningful
_MIN_FALL: Final = 500  # characters of growth after which a smaller count means a cut
_MIN_RATIO: Final = 0.97  # to the earlier count
_MAX_INCREASE: Final = 1.3  # of the characters per token; a history has fewer than the rules


class PromptCounts:
    """The sizes of the prompts of one player in one game, with the tokens that the server counted for them."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, int]] = []  # characters, tokens

    def check(self, body: Mapping[str, Any], reply: Reply) -> None:
        """Raise AttemptFailed if the server counted fewer tokens than this prompt has."""
        if reply.usage is None or reply.usage.input < _MIN_COUNT:
            return
        size, tokens = prompt_size(body), _most_tokens(reply)
        is_cut = tokens * _MAX_PER_TOKEN < size or any(_is_cut(size, tokens, *earlier) for earlier in self._seen)
        self._seen.append((size, reply.usage.input))
        if is_cut:
            raise cut_failure(reply)


def _is_cut(size: int, tokens: int, earlier_size: int, earlier_tokens: int) -> bool:
    growth = size - earlier_size
    if growth >= _MIN_GROWTH and (tokens - earlier_tokens) * _MAX_PER_TOKEN < growth:
        return True
    return growth >= _MIN_FALL and tokens < earlier_tokens * _MIN_RATIO


def is_count_unusual(body: Mapping[str, Any], reply: Reply) -> bool:
    """Return whether a prompt's token count is unusually low, or so high that it may be a constant."""
    tokens, size = _most_tokens(reply), prompt_size(body)
    # Some servers include cached tokens here.
    counted = reply.usage.input if reply.usage else 0
    return tokens >= _MIN_COUNT and not counted * _MIN_PER_TOKEN <= size <= tokens * _USUAL_PER_TOKEN


def is_cut_compared_with(
    body: Mapping[str, Any], reply: Reply, short_body: Mapping[str, Any], short_reply: Reply
) -> bool:
    """Return whether a prompt was cut, judging by the token count of a short piece of the same text."""
    size, tokens = prompt_size(body), _most_tokens(reply)
    short, few = prompt_size(short_body), _most_tokens(short_reply)
    # The server does not count tokens.
    if few < _MIN_COUNT and tokens == few:
        return False
    return tokens <= few or (size - short) / (tokens - few) > _MAX_INCREASE * short / few


def cut_failure(reply: Reply) -> AttemptFailed:
    tokens = reply.usage.input if reply.usage else 0
    return AttemptFailed("cut", f"the server truncates prompts at about {tokens:,} tokens", reply.text)


def prompt_size(body: Mapping[str, Any]) -> int:
    return sum(_text_size(body.get(key)) for key in ("system", "messages", "input", "questions"))


def _text_size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_text_size(value.get(key)) for key in ("content", "text", "instructions"))
    return sum(map(_text_size, value)) if isinstance(value, list) else 0


def _most_tokens(reply: Reply) -> int:
    usage = reply.usage
    return usage.input + usage.cached + usage.cache_write if usage else 0
