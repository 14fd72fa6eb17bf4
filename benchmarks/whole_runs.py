"""Compare whole runs with the bare SDK: their speed, and the CPU time that they add to a call.

    python benchmarks/whole_runs.py          # several minutes

Alternates between a run of 300 games with 32 calls in flight and the same requests from a bare pool of SDK calls. A
fake server in a separate process always answers no after a fixed delay. CPU time is that of this process, without the
server.

A game asks one question after another, so fewer than 32 calls are in flight at a run's end. Each pair is shown with the
share of the pool's speed that this limit alone would allow if all calls took the same time.
"""

import asyncio
import json
import os
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from heapq import heapreplace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import parse_config
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import resolve
from dubito.experiment.run import RunOptions, play
from dubito.game.find import find_bots
from dubito.llm.client import Provider
from dubito.model_settings import Account
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

GAMES = 300  # enough games that the longest ones leave few calls idle at the end
IN_FLIGHT = 32
PAIRS = 2
LATENCIES = (0.2, 0.0)  # seconds
USAGE = {"input_tokens": 2500, "output_tokens": 5, "total_tokens": 2505}


def reply() -> bytes:
    config = {"type": "message", "role": "assistant", "status": "completed"}
    config["content"] = [{"type": "output_text", "text": '{"answer":false}', "annotations": []}]  # type: ignore[assignment]
    body = json.dumps(
        {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [config], "usage": USAGE}
    )
    return f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


class Answers(asyncio.Protocol):
    """A minimal server that counts complete requests without parsing them."""

    def __init__(self, latency: float, reply: bytes) -> None:
        self._latency, self._said, self._came = latency, reply, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, mark, rest = self._came.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if mark and len(rest) >= size:
            self._came = rest[size:]
            asyncio.get_running_loop().call_later(self._latency, self._transport.write, self._said)


def serve(listener: socket.socket, latency: float) -> None:
    async def serve() -> None:
        response = reply()
        server = await asyncio.get_running_loop().create_server(lambda: Answers(latency, response), sock=listener)
        await server.serve_forever()

    asyncio.run(serve())


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Start the fake server and yield its address for OpenAI's SDK."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        process = get_context("fork").Process(target=serve, args=(listener, latency), daemon=True)
        process.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            process.terminate()
            process.join()


def measure_calls(call: Callable[[], int]) -> tuple[float, float]:
    start, cpu = time.perf_counter(), time.process_time()
    calls = call()
    return calls / (time.perf_counter() - start), 1e3 * (time.process_time() - cpu) / calls


def run(address: str, folder: Path, games: int) -> int:
    """Play the run from scratch; return its number of calls."""
    player = {"bot": "OpenAIBot", "name": "one", "model": "m", "base_url": address, "prompt": "plain"}
    config = {"bots": ["StefaBot", "UsualBot", "ClaudeBot"], "contenders": [player], "games": games, "table_sizes": [4]}
    registry = find_bots(Path())
    calls = CallOptions(in_flight=IN_FLIGHT, cache=folder / "cache", offline=False, preflight=False)
    of = check_models(resolve(parse_config(config, "benchmark"), registry), calls)
    how = RunOptions(1, calls, threading.Event())
    played = play(of, folder / "run", how)
    assert played.failure is None, played.failure
    with closing(sqlite3.connect(folder / "run" / "run.db")) as db:
        return int(db.execute("SELECT count(*) FROM tries").fetchone()[0])


def max_share(folder: Path) -> float:
    """Return the share of the pool's speed that sequential games allow, with 32 games at once, started in order."""
    with closing(sqlite3.connect(folder / "run" / "run.db")) as db:
        calls = [int(n) for (n,) in db.execute("SELECT count(*) FROM tries GROUP BY game ORDER BY game")]
    ends = [0] * IN_FLIGHT
    for of_game in calls:
        heapreplace(ends, ends[0] + of_game)
    return sum(calls) / IN_FLIGHT / max(ends)


def bodies(folder: Path) -> list[dict[str, Any]]:
    with RunDb.open(folder / "run" / "run.db") as db:
        asked = db.read("SELECT request FROM tries")
        return [json.loads(ModelLog(db).text(digest))["body"] for (digest,) in asked]


def bare(address: str, of: Sequence[dict[str, Any]]) -> int:
    provider = Provider(Account("responses", address, None), address, "no-key-needed", IN_FLIGHT)
    create = provider._client[0].responses.with_raw_response.create

    def ask(body: dict[str, Any]) -> None:
        body = dict(body)
        create(model=body.pop("model"), input=body.pop("input"), extra_body=body, timeout=60).http_response.json()

    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        list(pool.map(ask, of))
    provider.close()
    return len(of)


def main() -> None:
    """Print every pair and its ratios."""
    for latency in LATENCIES:
        with tempfile.TemporaryDirectory() as scratch, server(latency) as address:
            folder = Path(scratch)
            run(address, folder / "warm", 2)
            for number in range(PAIRS):
                here = folder / str(number)
                whole, ours = measure_calls(partial(run, address, here, GAMES))
                alone, theirs = measure_calls(partial(bare, address, bodies(here)))
                target, most, load = 90 if latency else 80, max_share(here), os.getloadavg()[0]
                print(
                    f"{latency * 1e3:.0f} ms: run {whole:.0f}/s, {ours:.2f} ms CPU per call; bare SDK {alone:.0f}/s, "
                    f"{theirs:.2f} ms: {whole / alone:.0%} (target {target} %, allowed {most:.0%}), "
                    f"{ours - theirs:.2f} ms added (target 1.2); load {load:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
