"""Whole runs with fake models: reproducible results and consistent totals."""

from pathlib import Path
from typing import Any

from dubito.experiment.run import RunResult
from dubito.house.server import House
from tests.llm.kit import Incoming, Response, Server, contender, respond, rows, run_games, small


def two_at(house: House) -> list[dict[str, Any]]:
    """Return two model players, one per protocol, that use that server."""
    return [
        contender("sharp", "house-sharp", base_url=house.openai_base_url),
        contender("honest", "house-honest", "AnthropicBot", base_url=house.anthropic_base_url),
    ]


def read_results(run: RunResult) -> bytes:
    return (run.folder / "all_games.yaml").read_bytes()


def test_a_second_run_makes_no_call_and_neither_does_one_offline(tmp_path: Path) -> None:
    with House() as served:
        of = small(*two_at(served), games=2)
        first = run_games(of, tmp_path / "first")
        calls = len(served.calls)
        second = run_games(of, tmp_path / "second", in_flight=1)
        assert len(served.calls) == calls > 0
    offline = run_games(of, tmp_path / "offline", offline=True)
    assert first.results_digest == second.results_digest == offline.results_digest
    for run in (second, offline):
        assert read_results(run) == read_results(first)
        for log in run.models.values():
            assert (log.calls, log.cached, log.tokens["input"]) == (0, log.attempts, 0)
        assert rows(run.folder, "SELECT count(*) FROM tries") == [(0,)]
        assert rows(run.folder, "SELECT DISTINCT origin FROM attempts") == [("cache",)]


def draws(run: RunResult, player: str) -> set[tuple[Any, ...]]:
    return set(rows(run.folder, "SELECT draw FROM attempts WHERE player = ?", (player,)))


def test_player_with_another_sample_gets_other_answers(tmp_path: Path) -> None:
    twins = [contender("one"), contender("same"), contender("other", sample=1)]
    run = run_games(small(*twins, games=6), tmp_path / "run", in_flight=4)
    per_game = {
        number % 3: rows(
            run.folder, "SELECT turn, node, answer FROM decisions WHERE game IN (?, ?) ORDER BY game, decision", games
        )
        for number, games in enumerate([(0, 3), (1, 4), (2, 5)])
    }
    assert per_game[0] == per_game[1], "same settings, same deals, same answers"
    assert per_game[0] != per_game[2]
    assert draws(run, "one") == draws(run, "same")
    assert draws(run, "one").isdisjoint(draws(run, "other"))
    both = run.models["one"], run.models["same"]
    assert sum(log.calls for log in both) == both[0].attempts == both[1].attempts, (
        "each request is sent and paid for once"
    )
    assert run.models["other"].calls == run.models["other"].attempts


def check_counted_games(cut: RunResult, whole: RunResult) -> None:
    """Check that exactly the games before the first incomplete deal are counted."""
    kept = rows(cut.folder, "SELECT game, outcome, record FROM games ORDER BY game")
    assert len(kept) == cut.tally.games < whole.tally.games
    assert kept == rows(whole.folder, "SELECT game, outcome, record FROM games ORDER BY game")[: len(kept)]
    assert cut.tally.games % cut.experiment.games_per_deal == 0


def test_an_offline_miss_names_player_game_node_and_what_to_do(tmp_path: Path) -> None:
    run = run_games(small(contender("Somebody"), games=2), tmp_path / "run", offline=True)
    message = str(run.failure)
    assert message.startswith("--offline: the cache has no reply for Somebody, game ")
    assert "node " in message
    assert "run once without --offline, or use the --cache that has it" in message
    assert rows(run.folder, "SELECT count(*) FROM tries") == [(0,)]


def test_try_and_reply_are_stored_before_the_next_step(tmp_path: Path) -> None:
    def answer(request: Incoming) -> Response:
        books.append(dict(rows(tmp_path / "run", "SELECT state, count(*) FROM tries GROUP BY state")))
        return Response(429, headers={"retry-after": "0"}) if len(books) % 3 == 0 else respond("responses")

    books: list[dict[str, int]] = []
    with Server(answer) as server:
        run = run_games(small(contender("one", base_url=server.base_url("responses")), games=1), tmp_path / "run")
    assert run.failure is None
    assert len(books) > 5
    for before, book in enumerate(books):
        states = {"open": 1, "received": before - before // 3, "failed": before // 3}
        assert book == {state: count for state, count in states.items() if count}
