"""A reply as a stream of events, as each provider sends one that was asked for with `stream: true`.

Written from their references (`responses/streaming`, `chat/streaming`, `messages-streaming`): of the Responses API the
last event has the whole response; of the others the pieces make it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dubito.house.request import JsonBody, canonical_bytes

EVENTS: Final = "text/event-stream"
_PIECE: Final = 12  # characters of a text in one event
_DELTAS: Final[Mapping[str, JsonBody]] = {  # of a part of a reply by its type, besides the piece
    "summary_text": {"type": "response.reasoning_summary_text.delta", "summary_index": 0},
    "output_text": {"type": "response.output_text.delta", "content_index": 0, "logprobs": []},
}
_Event = tuple[str | None, JsonBody]  # its name, if it has one, and what it says


def as_events(protocol: str, reply: bytes) -> bytes | None:
    """The events that make this body; None if it is no reply, or the protocol has none."""
    make = _MAKE.get(protocol)
    try:
        body = json.loads(reply)
    except ValueError:
        return None
    if make is None or not isinstance(body, dict) or not _OF_REPLIES & body.keys():
        return None
    parts = [_written(name, canonical_bytes(said)) for name, said in make(body)]
    return b"".join([*parts, b"data: [DONE]\n\n"] if protocol == "chat" else parts)


def _written(name: str | None, data: bytes) -> bytes:
    return (b"" if name is None else b"event: " + name.encode() + b"\n") + b"data: " + data + b"\n\n"


def _pieces_of(text: str) -> Iterator[str]:
    yield from (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _of_responses(body: JsonBody) -> Iterator[_Event]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    said: list[JsonBody] = [{"type": "response.created", "response": begun}]
    for number, item in enumerate(body["output"]):
        where = {"output_index": number, "item_id": item.get("id")}
        said.append({"type": "response.output_item.added", "output_index": number, "item": {**item, "content": []}})
        for part in [*item.get("summary", []), *item.get("content", [])]:
            if event := _DELTAS.get(part["type"]):
                said += ({**event, **where, "delta": piece} for piece in _pieces_of(part["text"]))
        said.append({"type": "response.output_item.done", "output_index": number, "item": item})
    said.append({"type": f"response.{body['status']}", "response": body})
    for number, one in enumerate(said):
        yield one["type"], {**one, "sequence_number": number}


def _of_chat(body: JsonBody) -> Iterator[_Event]:
    (choice,) = body["choices"]
    message, ended = choice["message"], {key: value for key, value in choice.items() if key != "message"}
    chunk = {**body, "object": "chat.completion.chunk", "usage": None}
    texts = {key: value for key, value in message.items() if isinstance(value, str) and key != "role"}
    first = message | dict.fromkeys(texts, "")
    yield None, {**chunk, "choices": [{**ended, "delta": first, "finish_reason": None}]}
    for key in sorted(texts, key=("reasoning_content", "content", "refusal").index):
        for piece in _pieces_of(texts[key]):
            yield None, {**chunk, "choices": [{**ended, "delta": {key: piece}, "finish_reason": None}]}
    yield None, {**chunk, "choices": [{**ended, "delta": {}}]}
    yield None, {**chunk, "choices": [], "usage": body["usage"]}


def _of_messages(body: JsonBody) -> Iterator[_Event]:
    ended = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details", "container") if key in body}
    unknown: JsonBody = dict.fromkeys(ended)
    begun = {**body, **unknown, "content": [], "usage": {**body["usage"], "output_tokens": 1}}
    said: list[JsonBody] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for number, block in enumerate(body["content"]):
        part = next((key for key in ("thinking", "text") if key in block), None)
        started = block if part is None else {**block, part: ""}
        said.append({"type": "content_block_start", "index": number, "content_block": started})
        for piece in _pieces_of(block[part]) if part else ():
            delta = {"type": f"{part}_delta", part: piece}
            said.append({"type": "content_block_delta", "index": number, "delta": delta})
        said.append({"type": "content_block_stop", "index": number})
    said.append({"type": "message_delta", "delta": ended, "usage": body["usage"]})
    for one in [*said, {"type": "message_stop"}]:
        yield one["type"], one


_OF_REPLIES: Final = {"output", "choices", "content"}
_MAKE: Final[Mapping[str, Callable[[JsonBody], Iterator[_Event]]]] = {
    "responses": _of_responses,
    "chat": _of_chat,
    "messages": _of_messages,
}
