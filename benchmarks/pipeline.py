"""Measure what a model's decision costs on our side, and how the pipeline's speed compares with the bare SDK's.

    python benchmarks/pipeline.py            # about a minute

All figures are from the same run; the built-in model server answers in a separate process.
"""

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from speed import time_call

from dubito.experiment.call_options import PATIENCE
from dubito.game.log import Position
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.facts import DubitoFacts, sample_table
from dubito.games.dubito.game import GAME
from dubito.llm.answers import read_answer
from dubito.llm.cache import ReplyCache
from dubito.llm.client import Provider
from dubito.llm.limiter import Timing
from dubito.llm.pipeline import Pipeline, PipelineOptions
from dubito.llm.prompts import OWN_PROMPTS, Prompt, RenderedPrompt, SeatTexts, load_prompt
from dubito.llm.protocols import build_request, read_reply
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import Attempt, Place, RawReply
from dubito.llm.settings import build_account
from dubito.model_settings import Account, ModelSettings
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from dubito.store.spend import Caps
from dubito.workshop.recordings import Origin, record_positions

IN_FLIGHT = 32
LATENCY = 0.2  # seconds
# Iterations of the function's loop per microsecond, on a machine at the speed for which the targets are meant.
USUAL = 22
CROWD, FAR = 512, 0.2  # games in flight, and seconds of latency
SETTINGS = ModelSettings(api="responses", model="house-sharp", base_url="house")


def positions(n: int) -> list[Position]:
    """Return the questions from whole games with four players, in order."""
    found: list[Position] = []
    for deal in count():
        game = record_positions(sample_table(Rules(), 4, deal), Origin(None, 0, deal, deal), GAME, GAME.rules())
        found += [one.position for one in game]
        if len(found) >= n:
            break
    return found[:n]


class Seats:
    """The seats that are asked, one game after another, with the texts that each stores between questions."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._kept: dict[int, tuple[int, SeatTexts]] = {}

    def render_position(self, position: Position) -> RenderedPrompt:
        """Return a question's texts, as in a run."""
        seat = position.seat
        length, texts = self._kept.get(seat, (0, SeatTexts()))
        if len(position.log) < length:  # another game
            texts = SeatTexts()
        self._kept[seat] = len(position.log), texts
        return self._prompt.fill(DubitoFacts().facts(position), texts)


def asks(prompt: Prompt, of: Sequence[Position], game: int) -> list[Attempt]:
    seats = Seats(prompt)
    return [
        ask_of(prompt, seats.render_position(position), position.node, game, number)
        for number, position in enumerate(of)
    ]


def ask_of(prompt: Prompt, rendered: RenderedPrompt, node: str, game: int, number: int) -> Attempt:
    """Build the request and its digest, the last steps before a reply is looked up."""
    form = prompt.form(node)
    request = build_request(
        SETTINGS, Exchange(rendered.system, rendered.user, form.schema, history=rendered.history), "benchmark"
    )
    assert request.digest
    return Attempt(request, f"{game}.{number}", Place("bench", game, game, 0, number, 0, node))


@contextmanager
def house(latency: float) -> Iterator[str]:
    """Start the built-in model server in a separate process; yield its address for OpenAI's SDK."""
    words = (sys.executable, "-m", "dubito", "house", "--port", "0", "--latency", str(latency))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        try:
            yield next(word for word in line.split() if word.startswith("http"))
        finally:
            process.terminate()


class OneServer:
    """The built-in model server in a separate process, as if the run had started it."""

    def __init__(self, address: str, in_flight: int) -> None:
        self._address, self._in_flight = address, in_flight

    def address(self, api: str, server: str, model: str) -> str:
        return self._address

    def slots(self, server: str) -> int:
        return self._in_flight

    def call_fields(self, server: str, game: int) -> dict[str, int]:
        return {}


@contextmanager
def pipeline(folder: Path, address: str, in_flight: int = IN_FLIGHT) -> Iterator[Pipeline]:
    """Build the whole pipeline, with its log, recording, cache and budget on disk."""
    folder.mkdir()
    options = PipelineOptions(
        in_flight,
        offline=False,
        suspend=False,
        servers=OneServer(address, in_flight),
        timing=Timing(
            PATIENCE, lambda seconds, why: time.sleep(seconds), lambda why: nullcontext(), time.monotonic, lambda: False
        ),
    )
    with RunDb.create(folder / "run.db") as db:
        opened = Pipeline(ModelLog(db), ReplyCache(folder / "cache"), Caps(calls=10**9), options)
        yield opened
        opened.close()


def per_second(call: Callable[[Attempt], object], of: Sequence[Attempt], threads: int) -> float:
    """Return how many of these requests are answered per second, with this many threads."""
    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        list(pool.map(call, of))
        return len(of) / (time.perf_counter() - start)


def time_cached_decision(name: str, of: Sequence[Position], folder: Path, address: str) -> None:
    """Print the CPU time of a decision with a cache hit, from facts to answer, as the median of five rounds."""
    prompt = load_prompt(name, OWN_PROMPTS.parent)
    with pipeline(folder / f"own-{name}", address) as opened:
        account = build_account(SETTINGS)
        ask = opened.build_asks("bench", SETTINGS, None).ask
        whole = asks(prompt, of, 0)
        per_second(ask, whole, IN_FLIGHT)
        rounds = [time_call(partial(_round, prompt, of, opened, account)) for _ in range(5)]
        _, seconds, iterations = zip(*rounds, strict=True)

    def each(costs: Sequence[float]) -> float:
        return statistics.median(costs) / len(of)

    size = sum(len(one.request.text) for one in whole) / len(whole)
    stored_bytes = (folder / f"own-{name}" / "run.db").stat().st_size / len(of)
    print(f"{name:9} our CPU time with a cache hit: {each(seconds) * 1e6:6.0f} us per decision (target 250), "
          f"{each(iterations):,.0f} iterations of the function's loop (target {USUAL * 250:,}), "
          f"request {size:,.0f} B")  # fmt: skip
    print(f"{name:9} run.db: {stored_bytes:,.0f} bytes per decision")


def _round(prompt: Prompt, of: Sequence[Position], opened: Pipeline, account: Account) -> None:
    """Make all decisions once."""
    seats = Seats(prompt)
    for number, position in enumerate(of):
        one = ask_of(prompt, seats.render_position(position), position.node, 0, number)
        received, stored = opened._cache.get_or_ask(account.server, one.request, one.draw, _fail_on_call)
        assert stored
        read_answer(read_reply("responses", received), prompt.form(position.node))


def _fail_on_call() -> RawReply:
    raise AssertionError("the reply must be in the cache")


def main() -> None:
    """Print every figure."""
    of = positions(1600)
    prompt = load_prompt("plain", OWN_PROMPTS.parent)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with house(0) as address:
            for name in ("plain", "reasoned"):
                time_cached_decision(name, of[:800], folder, address)
            bare, whole = speeds(asks(prompt, of[:400], 1), folder / "alone", address, 1)
            print(f"one at a time, 0 ms: bare SDK {bare:,.0f}/s, pipeline {whole:,.0f}/s: "
                  f"{1e6 / whole - 1e6 / bare:,.0f} us added per call")  # fmt: skip
            bare, whole = speeds(asks(prompt, of, 2), folder / "crowd", address, IN_FLIGHT)
            print(f"{IN_FLIGHT} in flight, 0 ms: bare SDK {bare:,.0f}/s, pipeline {whole:,.0f}/s: {whole / bare:.0%}")
        with house(LATENCY) as address:
            bare, whole = speeds(asks(prompt, of, 3), folder / "slow", address, IN_FLIGHT)
            print(f"{IN_FLIGHT} in flight, {LATENCY * 1e3:.0f} ms: bare SDK {bare:,.0f}/s, pipeline {whole:,.0f}/s: "
                  f"{whole / bare:.0%} (target 85 %)")  # fmt: skip
        with house(FAR) as address:
            many = [replace(ask, draw=f"{ask.draw}.{n}", place=replace(ask.place, game=10 + n))
                    for n in range(CROWD * 10 // len(of) + 1) for ask in asks(prompt, of, 4)]  # fmt: skip
            bare, whole = speeds(many, folder / "far", address, CROWD)
            most = getrusage(RUSAGE_SELF).ru_maxrss / 1024
            print(f"{CROWD} in flight, {FAR * 1e3:.0f} ms: bare SDK {bare:,.0f}/s, pipeline {whole:,.0f}/s: "
                  f"{whole / bare:.0%} (target 85 %); at most {most:,.0f} MB (target 600)")  # fmt: skip


def speeds(of: Sequence[Attempt], folder: Path, address: str, threads: int) -> tuple[float, float]:
    """Return the calls per second of the bare SDK, and through the pipeline."""
    provider = Provider(build_account(SETTINGS), address, "no-key-needed", threads)
    create = provider._client[0].responses.with_raw_response.create

    def call_sdk(ask: Attempt) -> object:
        body = dict(ask.request.body)
        return create(model=body.pop("model"), input=body.pop("input"), extra_body=body, timeout=60).http_response

    per_second(call_sdk, of[:64], threads)
    alone = per_second(call_sdk, of, threads)
    provider.close()
    with pipeline(folder, address, threads) as opened:
        ask = opened.build_asks("bench", SETTINGS, None).ask
        return alone, per_second(ask, of, threads)


if __name__ == "__main__":
    main()
