"""Detect servers that silently truncate a prompt to fit their context window.

Ollama does this (ollama#17889): it answers with status 200 and the token count after the cut. The number of characters
sent is therefore compared with the token count. During a run, only prompts of the same player in the same game are
compared, so that a replay has the same result. The preflight compares its longest question with a shorter one. A count
that stays the same while the prompt grows also indicates a cut, unless the number is too small to be a token count.
"""

from dataclasses import dataclass, field
from typing import Final

from dubito.llm.protocols import conversation
from dubito.llm.protocols.wire import as_objects
from dubito.llm.request import AttemptFailed, Reply, Request

CONTEXT_HINT: Final = "raise its context window: Ollama `num_ctx`, llama.cpp `-c`, vLLM `--max-model-len`"
MAX_PER_TOKEN: Final = 7.0  # characters; English text has 4 to 5, and our prompts have 3 to 4
_USUAL_PER_TOKEN: Final = 4.0
_MIN_PER_TOKEN: Final = 2.5
_MIN_COUNT: Final = 256  # tokens; no window is smaller, and servers that do not count report less, such as 0 or 1
_MIN_GROWTH: Final = 1000  # growth in characters after which the token count is meaningful
_MIN_FALL: Final = 500  # growth in characters after which a smaller count means a cut
_MIN_RATIO: Final = 0.97  # minimum ratio to the earlier count
_MAX_INCREASE: Final = 1.3  # maximum increase in characters per token; a history has fewer than the rules


@dataclass(eq=False, slots=True)
class PromptCounts:
    """The sizes and the server's token counts of one player's prompts in one game."""

    _seen: list[tuple[int, int]] = field(default_factory=list)  # characters, tokens

    def check(self, request: Request, reply: Reply) -> None:
        """Raise AttemptFailed if the server counted fewer tokens than this prompt must have."""
        if reply.usage is None or reply.usage.input < _MIN_COUNT:
            return
        size, tokens = prompt_size(request), _most_tokens(reply)
        is_cut = tokens * MAX_PER_TOKEN < size
        for earlier_size, earlier_tokens in self._seen:
            growth = size - earlier_size
            is_cut |= growth >= _MIN_GROWTH and (tokens - earlier_tokens) * MAX_PER_TOKEN < growth
            is_cut |= growth >= _MIN_FALL and tokens < earlier_tokens * _MIN_RATIO
        self._seen.append((size, reply.usage.input))
        if is_cut:
            raise cut_failure(reply)


def is_count_unusual(request: Request, reply: Reply) -> bool:
    """Return whether a prompt's token count is unusually low, or so high that it could be a constant."""
    tokens, size = _most_tokens(reply), prompt_size(request)
    # Some servers include cached tokens here.
    counted = reply.usage.input if reply.usage else 0
    return tokens >= _MIN_COUNT and not counted * _MIN_PER_TOKEN <= size <= tokens * _USUAL_PER_TOKEN


def is_cut_compared_with(request: Request, reply: Reply, short_request: Request, short_reply: Reply) -> bool:
    """Return whether a prompt was truncated, given the token count of a short piece of its text."""
    size, tokens = prompt_size(request), _most_tokens(reply)
    # Usually, the short prompt was just cached, and these tokens are part of the input.
    short, few = prompt_size(short_request), short_reply.usage.input if short_reply.usage else 0
    # The server does not count tokens.
    if few < _MIN_COUNT and tokens == few:
        return False
    return tokens <= few or (size - short) / (tokens - few) > _MAX_INCREASE * short / few


def cut_failure(reply: Reply) -> AttemptFailed:
    tokens = reply.usage.input if reply.usage else 0
    failure = AttemptFailed("cut", f"the server truncates prompts at about {tokens:,} tokens", reply.text)
    failure.advice = CONTEXT_HINT
    return failure


def prompt_size(request: Request) -> int:
    """Return the number of characters in a request's messages and questions."""
    questions = sum(len(str(each.get("instructions", ""))) for each in as_objects(request.body.get("questions")))
    return sum(len(text) for _, text in conversation(request)) + questions


def _most_tokens(reply: Reply) -> int:
    usage = reply.usage
    return usage.input + usage.cached + usage.cache_write if usage else 0
