"""A batch server written from the providers' documents, and runs that wait for it."""

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from multiprocessing import get_context
from pathlib import Path
from time import time
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from dubito.experiment.experiment import Experiment
from dubito.experiment.run import RunResult
from dubito.model_settings import Api
from dubito.model_settings import nested_items as nested_entries
from tests.llm.kit import BOT_OF, PATH_OF, Loopback, contender, reply_body, small
from tests.resume.kit import go

SERVER: Final = get_context("forkserver")
SERVER.set_forkserver_preload(["tests.plugins.batch.kit", "openai"])  # slow to import
_DAY: Final = 86_400
THOUGHTS: Final = "one\u2028two\u2029three\x85four"  # line breaks for `str.splitlines` but not for JSON Lines

Entry = dict[str, Any]  # an entry as submitted


@dataclass
class Batch:
    id: str
    given: dict[str, Any]
    entries: list[Entry]
    made: float = field(default_factory=time)
    looks: int = 0


class Provider(Loopback):
    """The batch APIs of OpenAI and Anthropic. Live requests are answered as in a batch.

    `befalls` receives each event (`file`, `batch`, `batched`, `look`, `content`) before it is answered, so the test can
    kill the client at that moment. `lines` can change the lines of a file of replies. `tier` is the tier reported in
    replies.
    """

    def __init__(self, tier: str = "batch") -> None:
        self.tier = tier
        self.bought: Counter[tuple[str, str]] = Counter()  # by request and draw
        self.batches: list[Batch] = []
        self.live: list[bytes] = []  # bodies of live requests
        self.handed_in: list[bytes] = []  # the bytes of each batch or file
        self.client = 0  # the process that can be killed
        # Event, and the number of its occurrences after which the client is killed.
        self.kills: list[tuple[str, int]] = []
        self.befalls: Callable[[str], None] = lambda event: None
        self.lines: Callable[[list[str]], list[str]] = lambda lines: lines
        self._events: Counter[str] = Counter()
        self._files: dict[str, list[Entry]] = {}
        self._lock = threading.Lock()
        super().__init__(self._handler())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["content-length"])))

            def do_GET(self) -> None:
                self._answer(b"")

            def _answer(self, raw: bytes) -> None:
                try:
                    status, content = provider.answer(self.path, self.headers.get("content-type", ""), raw)
                except Killed:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler

    def answer(self, target: str, kind: str, raw: bytes) -> tuple[int, bytes]:
        """Return the status and the content."""
        parts = urlsplit(target)
        path, query = parts.path, parse_qs(parts.query)
        with self._lock:
            for protocol, own in PATH_OF.items():
                if path.removeprefix("/v1") == own.removeprefix("/v1"):
                    self.live.append(raw)
                    return 200, json.dumps(self.reply(protocol, json.loads(raw))).encode()
            if path == "/v1/files":
                self._happens("file")
                return 200, json.dumps({"id": self._upload(kind, raw), "object": "file"}).encode()
            if path in ("/v1/batches", "/v1/messages/batches"):
                return 200, json.dumps(self._hand_in(raw) if raw else self._listed(path, query)).encode()
            if path.startswith("/v1/files/"):
                self._happens("content")
                return 200, self._content(self._find(path.split("/")[3].partition(".")[0]))
            name = path.removeprefix("/v1/messages/batches/").removeprefix("/v1/batches/").partition("/")[0]
            batch = self._find(name)
            if path.endswith("/results"):
                self._happens("content")
                return 200, self._content(batch)
            self._happens("look")
            batch.looks += 1
            return 200, json.dumps(self._shape(batch)).encode()

    def _happens(self, event: str) -> None:
        self.befalls(event)
        self._events[event] += 1
        if self.kills and self.kills[0] == (event, self._events[event]):
            del self.kills[0]
            self._events.clear()
            os.kill(self.client, signal.SIGKILL)
            raise Killed

    def _upload(self, kind: str, raw: bytes) -> str:
        self.handed_in.append(raw)
        mark = kind.partition("boundary=")[2].encode()
        (content,) = [part for part in raw.split(b"--" + mark) if b'filename="' in part]
        lines = content.partition(b"\r\n\r\n")[2].strip().split(b"\n")
        name = f"file-{len(self._files)}"
        self._files[name] = [json.loads(line) for line in lines]
        return name

    def _hand_in(self, raw: bytes) -> dict[str, Any]:
        self.handed_in.append(raw)
        given = json.loads(raw)
        self._happens("batch")
        entries = given.get("requests") or self._files[given["input_file_id"]]
        kind = "msgbatch" if "requests" in given else "batch"
        batch = Batch(f"{kind}_{len(self.batches)}", given, deepcopy(entries))
        assert len({entry["custom_id"] for entry in entries}) == len(entries)
        assert all(0 < len(entry["custom_id"]) <= 64 for entry in entries)
        self.batches.append(batch)
        for entry in entries:
            self.bought[_identity(entry)] += 1
        self._happens("batched")
        return self._shape(batch)

    def _listed(self, path: str, query: dict[str, list[str]]) -> dict[str, Any]:
        kind = "msgbatch_" if "messages" in path else "batch_"
        known = [batch for batch in reversed(self.batches) if batch.id.startswith(kind)]
        (after,) = query.get("after", query.get("after_id", [""]))
        names = [batch.id for batch in known]
        known = known[names.index(after) + 1 :] if after else known
        return {"data": [self._shape(batch) for batch in known[:2]], "has_more": len(known) > 2}

    def _find(self, name: str) -> Batch:
        (batch,) = [batch for batch in self.batches if batch.id == name]
        return batch

    def _shape(self, batch: Batch) -> dict[str, Any]:
        n, ended = len(batch.entries), batch.looks >= 2
        if batch.id.startswith("msgbatch"):
            none = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
            moments = [datetime.fromtimestamp(batch.made + more, UTC).isoformat() for more in (0, _DAY)]
            return {
                "id": batch.id,
                "type": "message_batch",
                "processing_status": "ended" if ended else "in_progress",
                "request_counts": none | {"succeeded" if ended else "processing": n},
                "created_at": moments[0],
                "expires_at": moments[1],
            }
        return {
            "id": batch.id,
            "object": "batch",
            "metadata": batch.given["metadata"],
            "status": "completed" if ended else "in_progress",
            "created_at": int(batch.made),
            "expires_at": int(batch.made) + _DAY,
            "output_file_id": f"{batch.id}.out" if ended else None,
            "request_counts": {"total": n, "completed": n if ended else 0, "failed": 0},
        }

    def _content(self, batch: Batch) -> bytes:
        lines = []
        for entry in reversed(batch.entries):  # the order of results is arbitrary
            if "params" in entry:
                result = {"type": "succeeded", "message": self.reply("messages", entry["params"], self.tier)}
                lines.append(json.dumps({"custom_id": entry["custom_id"], "result": result}, ensure_ascii=False))
            else:
                protocol: Api = "chat" if entry["url"].endswith("/chat/completions") else "responses"
                body = self.reply(protocol, entry["body"], self.tier)
                answer = {"status_code": 200, "request_id": "r", "body": body}
                line = {"custom_id": entry["custom_id"], "response": answer, "error": None}
                lines.append(json.dumps(line, ensure_ascii=False))
        return "".join(f"{line}\n" for line in self.lines(lines)).encode()

    def reply(self, protocol: Api, body: dict[str, Any], tier: str | None = None) -> dict[str, Any]:
        """Answer yes or no, depending on the request and on whether the model could reason before its answer."""
        response = reply_body(protocol, json.dumps(_fill_fields(body), ensure_ascii=False))
        if tier is not None:
            (response["usage"] if protocol == "messages" else response)["service_tier"] = tier
        return response


class Killed(Exception):
    """The client was killed."""


def _as_at_once(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_at_once(each) for key, each in value.items() if key != "ttl"}
    return [_as_at_once(each) for each in value] if isinstance(value, list) else value


def _fill_fields(body: dict[str, Any]) -> dict[str, Any]:
    (fields,) = (value for key, value in nested_entries(body) if key == "properties" and "answer" in value)
    values = {"boolean": int(_digest(body), 16) % 2 == [*fields].index("answer") % 2, "string": THOUGHTS}
    return {name: values.get(str(kind.get("type")), 0.5) for name, kind in fields.items()}


def _digest(body: dict[str, Any]) -> str:
    return sha256(json.dumps(_as_at_once(body), sort_keys=True).encode()).hexdigest()


def _identity(entry: Entry) -> tuple[str, str]:
    return _digest(entry.get("params") or entry["body"]), entry["custom_id"].split("-")[1]


def waiting(
    server: Provider,
    *protocols: Api,
    wait: str | None = "batch",
    tries: int = 5,
    api_key_env: str | None = None,
    **config: Any,
) -> Experiment:
    """Return a config of short games with one player per protocol, all of whom use batches."""
    more: dict[str, Any] = {"tries": tries, "prompt": "reasoned", "api_key_env": api_key_env}
    more |= {} if wait is None else {"wait": wait}
    players = [
        contender(f"by {api}", "some-model", BOT_OF[api], base_url=server.base_url(api), api=api, **more)
        for api in protocols
    ]
    return small(*players, **{"games": 4 * len(players), "turns": 6} | config)


def _goes(of: Experiment, folder: Path) -> None:
    go(of, folder, in_flight=4)


def killed(server: Provider, of: Experiment, folder: Path) -> None:
    """Continue the run in a separate process, in which it is killed."""
    started = SERVER.Process(target=_goes, args=(of, folder))
    started.start()
    assert started.pid is not None
    server.client = started.pid
    started.join()
    assert started.exitcode == -signal.SIGKILL, started.exitcode


def play_to_end(of: Experiment, folder: Path, **calls: Any) -> RunResult:
    """Resume the run until it is finished."""
    run = go(of, folder, **calls)
    assert run.failure is None, run.failure
    assert not run.interrupted
    return run
