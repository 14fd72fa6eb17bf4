"""Calls of unknown cost are shown close to the server's bill, and counted at the worst case in the cap.

The server's bill includes every answered request, whether or not the answer arrived.
"""

import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.run import RunResult
from dubito.llm.prices import Price
from dubito.store.spend import PICO, Caps, PlayerLog, dollars
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import Incoming, Response, Server, config_file, player_at, reply_body, rows, run_games, small
from tests.resume.killing import start

LISTED = {"input": 2, "cached_input": 0.2, "cache_write": 2.5, "output": 10}
PRICE = Price(2_000_000, 200_000, 2_500_000, 10_000_000)
Ends = Callable[[int], Response | None]  # response to the call of this number; None: its answer


class Biller:
    """Answers with a usage of about one token per four bytes, and keeps its own bill."""

    def __init__(self, ends: Ends = lambda number: None) -> None:
        self.bill = self.calls = self.lost = 0
        self._ends, self._lock = ends, threading.Lock()

    def __call__(self, request: Incoming) -> Response:
        chance = sha256(request.raw).digest()
        into, out = len(request.raw) // 4 + chance[1] % 20, 20 + chance[2] % 60
        usage = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out}
        with self._lock:
            self.calls += 1
            self.bill += into * PRICE.input + out * PRICE.output
            end = self._ends(self.calls)
            self.lost += end is not None
        return end or Response(
            body=json.dumps(reply_body("chat", f'{{"answer": {str(chance[0] % 3 == 0).lower()}}}', usage=usage))
        )


def every(nth: int, end: Response) -> Ends:
    return lambda number: None if number % nth else end


def log_of(run: RunResult) -> PlayerLog:
    assert run.failure is None
    return run.models["asker"]


DROPPED, CUT = Response(lost=None), Response(body='{"id": "x", "choices": [{"mess', lost=400)
SILENT = Response(body=json.dumps(reply_body("chat", usage=None)))


ENDS = {"dropped": DROPPED, "cut": CUT, "no usage": SILENT}
# Every n-th call; with or without a preflight.
HOW_OFTEN = [(25, 0.05, True), (4, 0.2, False), (25, 0.05, False), (4, 0.2, True)]


@pytest.mark.parametrize(
    ("end", "often"),
    in_gate(itertools.product(ENDS, HOW_OFTEN), [("dropped", HOW_OFTEN[1]), ("no usage", HOW_OFTEN[3])]),
)
def test_lost_reply_is_assumed_to_cost_the_average(tmp_path: Path, end: str, often: tuple[int, float, bool]) -> None:
    nth, within, preflight = often
    biller = Biller(every(nth, ENDS[end]))
    with Server(biller) as server:
        players = small(player_at(server, "chat"), games=5 if nth > 10 else 3, turns=20)
        how: dict[str, Any] = {"prices": {"some-model": PRICE}, "caps": Caps(usd=100 * PICO), "preflight": preflight}
        log = log_of(run_games(players, tmp_path / "r", **how))
    assert log.assumed == biller.lost > 2
    assert log.picodollars is not None
    assert log.picodollars == pytest.approx(biller.bill, rel=within)
    ((counted,),) = rows(tmp_path / "r", "SELECT sum(picodollars) FROM tries")
    assert counted == log.picodollars - log.likely + log.at_worst
    assert counted > biller.bill + log.assumed * 8192 * PRICE.output // 2, "the cap counts only the worst case"


def test_budget_error_states_the_worst_case_of_lost_calls(tmp_path: Path) -> None:
    """A figure without the worst case would contradict the much smaller displayed cost."""
    with Server(Biller(every(4, DROPPED))) as server:
        players = small(player_at(server, "chat"), games=40)
        for usd in (PICO // 2, PICO):
            how: dict[str, Any] = {"prices": {"some-model": PRICE}, "caps": Caps(usd=usd), "in_flight": 4}
            run = run_games(players, tmp_path / "r", **how)
            ((worst,),) = rows(tmp_path / "r", "SELECT sum(picodollars) FROM tries WHERE assumed")
            message = f" spent (including {dollars(worst)}, the maximum for calls whose cost is unknown), and "
            assert message in str(run.failure)


def test_lost_call_costs_the_worst_case_without_earlier_replies(tmp_path: Path) -> None:
    with Server(Biller(every(1, SILENT))) as server:
        players = small(player_at(server, "chat"), games=1)
        log = log_of(run_games(players, tmp_path / "r", prices={"some-model": PRICE}, preflight=False))
    assert log.picodollars == log.likely == log.at_worst > 0


def test_tables_show_billed_and_assumed_costs_separately(shell: Shell) -> None:
    biller = Biller(every(9, DROPPED))
    with Server(biller) as server:
        file = config_file(player_at(server, "chat"), games=4, prices={"some-model": LISTED})
        result = shell("run", file, "--output", "r", "--patience", "60s", "--quiet", "--report", "--json")
    (used,) = json.loads(result.out)["models"]
    assert used["assumed"] == biller.lost > 0
    assert used["usd"] == pytest.approx(used["usd_billed"] + used["usd_assumed"])
    assert used["usd"] * PICO == pytest.approx(biller.bill, rel=0.1)
    shown = [f"${used[key]:,.4f}" for key in ("usd", "usd_billed", "usd_assumed")]
    (cost,) = [line for line in shell("status", "r").out.splitlines() if line.startswith("  cost: ")]
    assert cost.startswith(f"  cost: {shown[0]} ({shown[1]} billed, {shown[2]} assumed for {used['assumed']} calls ")
    summary = shell("run", file, "--output", "r").out.splitlines()
    (head,) = [line for line in summary if line.startswith("model player")]
    (row,) = [line for line in summary if line.startswith("asker ") and "$" in line]
    assert "  ".join(shown) in " ".join(row.split()).replace(" $", "  $")
    assert head.split("cost ")[1].split()[:2] == ["billed", "assumed"]
    assert any(
        line.startswith(f"Assumed: {biller.lost} calls by asker reported no cost; ") for line in _page(Path("r"))
    )


def _page(run: Path) -> list[str]:
    texts = "\n".join(page.read_text() for page in (run / "report").rglob("*.html"))
    return [line.strip() for line in re.sub(r"<[^>]+>", "\n", texts).splitlines()]


@pytest.mark.at_length
@pytest.mark.parametrize("kills", in_gate([1, 6], 1))
def test_cost_of_calls_cut_off_by_a_kill_is_assumed(tmp_path: Path, shell: Shell, kills: int) -> None:
    at = [40 * number for number in range(1, kills + 1)]
    reached = [threading.Event() for _ in at]

    def ends(number: int) -> Response | None:
        if number in at:
            reached[at.index(number)].set()
        return None

    biller = Biller(ends)
    never = threading.Event()

    def answer(request: Incoming) -> Response:
        result = biller(request)
        never.wait(0.03)  # the duration of a model's answer
        return result

    with Server(answer) as server:
        file = config_file(
            player_at(server, "chat"),
            games=8 if kills == 1 else 40,
            rules={"max_turns": 20},
            prices={"some-model": LISTED},
        )
        words = (file, "--output", "r", "--quiet", "--no-report")
        for event in reached:
            with start(tmp_path, *words) as process:
                assert event.wait(60)
                os.kill(process.pid, signal.SIGKILL)
        status = json.loads(shell("status", "r", "--json").out)["models"][0]
        assert status["assumed"] > 0
        result = shell("run", *words, "--json")
    (used,) = json.loads(result.out)["models"]
    assert used["assumed"] >= status["assumed"]
    assert used["usd"] * PICO == pytest.approx(biller.bill, rel=0.05 if kills == 1 else 0.15)
