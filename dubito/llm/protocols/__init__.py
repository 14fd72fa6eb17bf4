"""The providers' protocols, one module for each. They build requests and parse replies, without I/O.

Servers can send anything, so a body that cannot be parsed becomes a reply without text, never an exception.
"""

import json
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Final, get_args

from dubito.errors import UsageError, one_line
from dubito.llm.protocols.wire import Exchange, WireFormat, as_mapping, classify_non_reply
from dubito.llm.request import (
    DuplicateKey,
    ProtocolName,
    RawReply,
    Reply,
    ReplyOrigin,
    Request,
    parse_json,
    refuse_duplicate_keys,
    replace_surrogates,
)
from dubito.llm.verdicts import parse_rejected_output
from dubito.model_settings import Api, ModelSettings

_DECODER: Final = json.JSONDecoder(object_pairs_hook=refuse_duplicate_keys)
_MAX_MODEL_NAME: Final = 200  # characters


@cache
def find_protocol(name: ProtocolName) -> type[WireFormat]:
    """Return an API's protocol, which is defined in the module of that name."""
    assert name != "program", "programs do not use a model's protocol"
    wire: type[WireFormat] = import_module(f"{__name__}.{name}").WIRE
    return wire


def protocols() -> dict[Api, type[WireFormat]]:
    return {api: find_protocol(api) for api in get_args(Api)}


def build_request(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    if settings.system == "user":
        exchange = replace(exchange, system="", history=(f"{exchange.system}\n\n", *exchange.history))
    return find_protocol(settings.api).build_request(settings, exchange, cache_key)


def read_reply(protocol: ProtocolName, received: RawReply, origin: ReplyOrigin = "live") -> Reply:
    """Parse a received body. If it is not a model's reply, the result's `non_reply` describes it."""
    if protocol == "program":
        # The recording of a program's answer has its line or an error.
        recorded = as_mapping(parse_json(received.raw))
        if isinstance(line := recorded.get("line"), str):
            return Reply(line, "stop", None, received, origin)
        return Reply(str(recorded.get("error")), "other", None, received, origin)
    wire, has_duplicate_keys = find_protocol(protocol), False
    try:
        body: Any = _DECODER.decode(received.raw)
    except DuplicateKey:
        body, has_duplicate_keys = parse_json(received.raw), True
    except (ValueError, RecursionError):
        body = None
    is_reply = isinstance(body, dict) and wire.is_reply(body)
    if has_duplicate_keys and is_reply:
        # It is unclear which of the values is meant.
        return Reply(None, "other", None, received, origin, problem="a key appears twice in its body")
    fields = as_mapping(body)
    usage, charges = wire.parse_usage(fields), wire.parse_charges(fields)
    non_reply = wire.parse_error(fields) or (None if is_reply else classify_non_reply(received, body))
    if non_reply and non_reply.error and (rejected := parse_rejected_output(non_reply.error)):
        return Reply(rejected.text, "invalid", usage, received, origin, charges, problem=rejected.problem)
    if non_reply is not None:
        return Reply(None, "other", usage, received, origin, charges, non_reply)
    text, finish, problem = wire.parse_text(body)
    if usage and not (usage.input and (usage.output or not text or not wire.writes_text)):
        # Every prompt and text has tokens, so a count of 0 is wrong.
        usage = None
    name = fields.get(wire.model_field)
    model = replace_surrogates(name)[:_MAX_MODEL_NAME] if isinstance(name, str) and name else None
    thoughts = wire.parse_thoughts(body)
    return Reply(text, finish, usage, received, origin, charges, model=model, problem=problem, thoughts=thoughts)


def detect_protocol(raw: str) -> Api | None:
    """Return the protocol whose reply format a body matches, or None if it matches none or several."""
    try:
        body = parse_json(raw)
    except (ValueError, RecursionError):
        return None
    matches = [api for api, wire in protocols().items() if isinstance(body, dict) and wire.is_reply(body)]
    return matches[0] if len(matches) == 1 else None


def conversation(request: Request) -> list[tuple[str, str]]:
    """Return the messages in a request with their roles, starting with the system message."""
    return [] if request.protocol == "program" else find_protocol(request.protocol).conversation(request.body)


def parse_stored_request(text: str) -> Request:
    """Parse a request from a run's log. Raises UsageError if the text is not a request."""
    fields = parse_json(text)
    name, body = (fields.get("protocol"), fields.get("body")) if isinstance(fields, dict) else (None, None)
    protocol = next((known for known in get_args(ProtocolName) if known == name), None)
    if protocol is None or not isinstance(body, dict):
        raise UsageError(f"a request in the run's log is damaged: {one_line(text, 60)}")
    return Request(protocol, str(fields.get("path")), body)


def read_recorded_reply(protocol: ProtocolName, body: str | None) -> Reply:
    """Parse a body from the run's recording. If there is no body, return a reply without text."""
    return read_reply(protocol, RawReply(200, body or ""), "tape")
