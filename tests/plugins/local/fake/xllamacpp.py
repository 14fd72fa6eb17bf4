"""A fake of xllamacpp 2026.10 without a model: its server's chat completions, as observed.

It answers True at each node in the schema, counts a token per four characters, and streams the progress of reading the
prompt if requested. A file whose name ends with "broken" cannot be loaded. If a named pipe with the suffix `.alive`
exists next to the file, it is open from the first request until the server's process exits.

A slot answers one request at a time and remembers its last prompt. A request without `id_slot` goes to the idle slot
whose prompt has the longest beginning in common with its own. Each request is logged as a line of JSON in a file with
the suffix `.calls`. If there is a named pipe with the suffix `.hold`, the fifth request in games is answered when its
other end has been opened and closed.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HELD = 5


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    def __init__(self, params: CommonParams) -> None:
        if Path(params.model.path).read_bytes().endswith(b"broken"):
            os.write(2, b"llama_model_load: error loading model\n")
            raise RuntimeError("Failed to load model")
        (alias,) = params.model_alias
        fields = {"model": alias, "path_of_model": params.model.path, "slots": Slots(params.n_parallel)}
        handler = type("Handler", (_Handler,), fields)
        self._server = ThreadingHTTPServer((params.hostnames[0], params.port), handler)
        self.listening_address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


class Slots:
    def __init__(self, number: int) -> None:
        self._prompts = [""] * number
        self._busy = set[int]()
        self._changed = threading.Condition()

    def take(self, prompt: str, wanted: int) -> tuple[int, int]:
        """Wait for a slot. Return its number, and how many characters of the prompt it has already read."""

        def cached(slot: int) -> int:
            pairs = zip(prompt, self._prompts[slot], strict=False)
            return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

        def idle() -> list[int]:
            return [slot for slot in range(len(self._prompts)) if slot not in self._busy and wanted in (-1, slot)]

        with self._changed:
            self._changed.wait_for(idle)
            slot = max(idle(), key=cached)
            known, self._prompts[slot] = cached(slot), prompt
            self._busy.add(slot)
        return slot, known

    def release(self, slot: int) -> None:
        with self._changed:
            self._busy.remove(slot)
            self._changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = path_of_model = ""
    slots, requests = Slots(1), count(1)

    def file(self, suffix: str) -> Path:
        return Path(f"{self.path_of_model}.{suffix}")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if (alive := self.file("alive")).exists():
            os.open(alive, os.O_WRONLY)  # stays open until this process exits
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        prompt = "".join(message["content"] for message in asked["messages"])
        slot, known = self.slots.take(prompt, asked.get("id_slot", -1))
        draw = self.headers["x-dubito-draw"]
        with self.file("calls").open("a") as log:
            log.write(json.dumps({"draw": draw, "slot": slot, "size": len(prompt), "known": known}) + "\n")
        try:
            if self.file("hold").exists() and "preflight" not in draw and next(self.requests) == HELD:
                self.file("hold").read_text()
            self._answer(asked, len(prompt) // 4, known // 4)
        finally:
            self.slots.release(slot)

    def _answer(self, asked: dict[str, Any], tokens: int, cached: int) -> None:
        fields = asked["response_format"]["json_schema"]["schema"]["properties"]
        text = json.dumps({name: _value(field) for name, field in fields.items()}, indent=2)
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": 9,
            "total_tokens": tokens + 9,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        common = {"created": 1, "id": "chatcmpl-fake", "model": self.model, "system_fingerprint": "b0-unknown"}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"finish_reason": "stop", "index": 0, "message": message}
            self._send({**common, "object": "chat.completion", "choices": [choice], "usage": usage})
            return
        first = {"finish_reason": None, "index": 0, "delta": {"role": "assistant", "content": None}}
        chunks: list[dict[str, Any]] = []
        if asked.get("return_progress"):
            for done in (cached, (cached + tokens) // 2, tokens):
                progress = {"total": tokens, "cache": cached, "processed": done, "time_ms": done}
                chunks.append({"choices": [first], "prompt_progress": progress})
        chunks.append({"choices": [{"finish_reason": None, "index": 0, "delta": {"content": text}}]})
        chunks.append({"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}]})
        chunks.append({"choices": [], "usage": usage})
        lines = [json.dumps({**chunk, **common, "object": "chat.completion.chunk"}) for chunk in chunks]
        body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
        self._write("text/event-stream", body)

    def _send(self, reply: dict[str, Any]) -> None:
        self._write("application/json; charset=utf-8", json.dumps(reply).encode())

    def _write(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _value(field: dict[str, Any]) -> Any:
    if "enum" in field:
        return field["enum"][0]
    return {"boolean": True, "string": "because", "number": 0.5, "integer": 50}.get(str(field.get("type")), True)
