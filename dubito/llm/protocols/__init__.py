"""The protocols: a request out of a rendered prompt, a reply out of a received body. No I/O.

A body may be anything at all; what cannot be read becomes a reply without text, never an exception.
"""

import json
from dataclasses import replace
from types import ModuleType
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.llm.protocols import chat, messages, responses
from dubito.llm.protocols.bodies import Exchange, came_instead, mapping
from dubito.llm.request import Api, RawReply, Reply, ReplyOrigin, Request, TwinKey, read_json, without_twins
from dubito.llm.settings import ModelSettings

__all__ = ["Exchange", "build_request", "kept_reply", "kept_request", "read_reply"]

_DECODER: Final = json.JSONDecoder(object_pairs_hook=without_twins)
_PROTOCOLS: Final[dict[Api, ModuleType]] = {"responses": responses, "chat": chat, "messages": messages}


def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt; `cache_key` names the prompt's beginning for the provider's own cache."""
    request: Request = _PROTOCOLS[settings.api].build(settings, exchange, cache_key)
    return request


def read_reply(protocol: Api, received: RawReply, origin: ReplyOrigin = "live") -> Reply:
    """What the model said in a received body, or what stands in its place: an error, or something else altogether."""
    speaks, twins = _PROTOCOLS[protocol], False
    try:
        body: Any = _DECODER.decode(received.raw)
    except TwinKey:
        body, twins = read_json(received.raw), True
    except (ValueError, RecursionError):
        body = None
    whole = isinstance(body, dict) and speaks.is_reply(body)
    if twins and whole:  # a reply in which nobody knows what is meant
        return Reply(None, "other", None, received, origin)
    said = mapping(body)
    usage, charges = speaks.usage(mapping(said.get("usage"))), speaks.charges(said)
    failure = speaks.failure(said) or (None if whole else came_instead(received, body))
    if failure is not None:
        return Reply(None, "other", usage, received, origin, charges, failure)
    text, finish = speaks.read(body)
    if usage and not (usage.input and (usage.output or not text)):
        usage = None  # a prompt is some tokens, and so is a text: nobody knows how many
    return Reply(text, finish, usage, received, origin, charges)


def kept_request(text: str) -> tuple[Api, dict[str, Any]]:
    """Protocol and body of a request that a run has kept; raises UsageError where the text is none."""
    sent = read_json(text)
    named, body = (sent.get("protocol"), sent.get("body")) if isinstance(sent, dict) else (None, None)
    protocol = next((known for known in _PROTOCOLS if known == named), None)
    if protocol is None or not isinstance(body, dict):
        raise UsageError(f"a request that the run has kept is none: {one_line(text, 60)}")
    return protocol, body


def kept_reply(protocol: Api, body: str | None, digest: str | None = None) -> Reply:
    """The reply in a body that the tape has kept; without a body, a reply without text.

    What was no answer when it was taken, by its digest, stays none: versions before knew fewer ways for one to end.
    """
    reply = read_reply(protocol, RawReply(200, body or ""), "tape")
    unread = replace(reply, text=None, finish="other")
    return unread if unread.digest == digest else reply
