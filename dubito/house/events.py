"""Send a reply as a stream of events, in each provider's format for `stream: true`.

The formats follow the providers' references (`responses/streaming`, `chat/streaming`, `messages-streaming`). In the
Responses API, the last event contains the whole response. In other protocols, it is spread over all events.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dubito.house.request import JsonBody, canonical_bytes

EVENTS: Final = "text/event-stream"
_PIECE: Final = 12  # characters of a text in one event
# Additional fields of an event besides the piece, by the type of the reply's part.
_DELTAS: Final[Mapping[str, JsonBody]] = {
    "summary_text": {"type": "response.reasoning_summary_text.delta", "summary_index": 0},
    "output_text": {"type": "response.output_text.delta", "content_index": 0, "logprobs": []},
}
_Event = tuple[str | None, JsonBody]  # optional name, and data


def stream_reply(protocol: str, reply: bytes) -> bytes | None:
    """Split a body into events. Return None if it is not a reply or the protocol has no events."""
    make = _MAKERS.get(protocol)
    try:
        body = json.loads(reply)
    except ValueError:
        return None
    if make is None or not isinstance(body, dict) or not _REPLY_FIELDS & body.keys():
        return None
    parts = []
    for name, data in make(body):
        first_line = b"" if name is None else b"event: " + name.encode() + b"\n"
        parts.append(first_line + b"data: " + canonical_bytes(data) + b"\n\n")
    return b"".join([*parts, b"data: [DONE]\n\n"] if protocol == "chat" else parts)


def _split(text: str) -> Iterator[str]:
    yield from (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _responses_events(body: JsonBody) -> Iterator[_Event]:
    started = {**body, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    events: list[JsonBody] = [{"type": "response.created", "response": started}]
    for number, item in enumerate(body["output"]):
        where = {"output_index": number, "item_id": item.get("id")}
        events.append({"type": "response.output_item.added", "output_index": number, "item": {**item, "content": []}})
        for part in [*item.get("summary", []), *item.get("content", [])]:
            if event := _DELTAS.get(part["type"]):
                events += ({**event, **where, "delta": piece} for piece in _split(part["text"]))
        events.append({"type": "response.output_item.done", "output_index": number, "item": item})
    events.append({"type": f"response.{body['status']}", "response": body})
    for number, one in enumerate(events):
        yield one["type"], {**one, "sequence_number": number}


def _chat_events(body: JsonBody) -> Iterator[_Event]:
    (choice,) = body["choices"]
    message, ended = choice["message"], {key: value for key, value in choice.items() if key != "message"}
    logprobs, ended["logprobs"] = ended["logprobs"], None
    chunk = {**body, "object": "chat.completion.chunk", "usage": None}
    texts = {key: value for key, value in message.items() if isinstance(value, str) and key != "role"}
    first = message | dict.fromkeys(texts, "")
    yield None, {**chunk, "choices": [{**ended, "delta": first, "finish_reason": None}]}
    for key in sorted(texts, key=("reasoning_content", "content", "refusal").index):
        if key == "content" and logprobs:
            for row in logprobs["content"]:
                delta = {"delta": {key: row["token"]}, "logprobs": {"content": [row], "refusal": None}}
                yield None, {**chunk, "choices": [{**ended, **delta, "finish_reason": None}]}
            continue
        for piece in _split(texts[key]):
            yield None, {**chunk, "choices": [{**ended, "delta": {key: piece}, "finish_reason": None}]}
    yield None, {**chunk, "choices": [{**ended, "delta": {}}]}
    yield None, {**chunk, "choices": [], "usage": body["usage"]}


def _messages_events(body: JsonBody) -> Iterator[_Event]:
    ended = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details", "container") if key in body}
    unknown: JsonBody = dict.fromkeys(ended)
    started = {**body, **unknown, "content": [], "usage": {**body["usage"], "output_tokens": 1}}
    events: list[JsonBody] = [{"type": "message_start", "message": started}, {"type": "ping"}]
    for number, block in enumerate(body["content"]):
        part = next((key for key in ("thinking", "text") if key in block), None)
        empty = block if part is None else {**block, part: ""}
        events.append({"type": "content_block_start", "index": number, "content_block": empty})
        for piece in _split(block[part]) if part else ():
            delta = {"type": f"{part}_delta", part: piece}
            events.append({"type": "content_block_delta", "index": number, "delta": delta})
        events.append({"type": "content_block_stop", "index": number})
    events.append({"type": "message_delta", "delta": ended, "usage": body["usage"]})
    for one in [*events, {"type": "message_stop"}]:
        yield one["type"], one


_REPLY_FIELDS: Final = {"output", "choices", "content"}
_MAKERS: Final[Mapping[str, Callable[[JsonBody], Iterator[_Event]]]] = {
    "responses": _responses_events,
    "chat": _chat_events,
    "messages": _messages_events,
}
