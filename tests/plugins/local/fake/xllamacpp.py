"""A fake of xllamacpp 2026.10 without a model: its server's chat completions, as observed.

It answers True at each node in the schema, counts a token per four characters, and streams the progress of reading the
prompt if requested. A file whose name ends with "broken" cannot be loaded. If a named pipe with the suffix `.alive`
exists next to the file, it is open from the first request until the server's process exits.
"""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    def __init__(self, params: CommonParams) -> None:
        if Path(params.model.path).read_bytes().endswith(b"broken"):
            os.write(2, b"llama_model_load: error loading model\n")
            raise RuntimeError("Failed to load model")
        (alias,) = params.model_alias
        handler = type("Handler", (_Handler,), {"model": alias, "alive": Path(f"{params.model.path}.alive")})
        self._server = ThreadingHTTPServer((params.hostnames[0], params.port), handler)
        self.listening_address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""
    alive = Path()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.alive.exists():
            os.open(self.alive, os.O_WRONLY)  # stays open until this process exits
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        fields = asked["response_format"]["json_schema"]["schema"]["properties"]
        text = json.dumps({name: _value(field) for name, field in fields.items()}, indent=2)
        tokens = sum(len(message["content"]) for message in asked["messages"]) // 4
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": 9,
            "total_tokens": tokens + 9,
            "prompt_tokens_details": {"cached_tokens": 0},
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
            for done in (0, tokens // 2, tokens):
                progress = {"total": tokens, "cache": 0, "processed": done, "time_ms": done}
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
