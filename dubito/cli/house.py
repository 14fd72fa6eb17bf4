"""`dubito house`: the stand-in for a model provider, on loopback, until Ctrl-C."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from dubito.cli.output import say


@click.command()
@click.option("--port", default=8000, show_default=True, help="Port on 127.0.0.1; 0 takes a free one.")
@click.option("--latency", default=0.0, show_default=True, help="Seconds that every model call takes.")
@click.option(
    "--faults", help="Faults on purpose, NAME:SHARE with commas between: storm:0.3. docs/house.md has the names."
)
@click.option("--log", type=click.Path(path_type=Path), help="Append each call to this file, as JSON lines.")
def house(port: int, latency: float, faults: str | None, log: Path | None) -> None:
    """Serve the OpenAI and Anthropic protocols on loopback. A stand-in for trying and testing, not a language model."""
    from dubito.house.faults import Faults
    from dubito.house.server import House  # late: no other command needs a web server

    struck = Faults.parse(faults) if faults is not None else None
    with _ctrl_c_ends(), House(port, latency=latency, faults=struck, log=log) as served:
        say(f"OpenAI protocol:    {served.openai_base_url}  OpenAI(base_url=..., api_key='any')")
        say(f"Anthropic protocol: {served.anthropic_base_url}  Anthropic(base_url=..., api_key='any')")
        say(f"models: {', '.join(served.models)}; a stand-in for trying and testing, not a language model")
        if faults is not None:
            say(f"faults on purpose: {faults}")
        with suppress(KeyboardInterrupt):
            say("Ctrl-C ends it")
            while True:
                time.sleep(3600)
    say(f"{len(served.calls):,} calls answered")


@contextmanager
def _ctrl_c_ends() -> Iterator[None]:
    """Ctrl-C interrupts even where the shell had it ignored, as for a command in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
