"""The same experiment over the three protocols: the same decisions and the same games."""

from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.run import Played
from dubito.house.server import House
from tests.conftest import few
from tests.llm.kit import BOT_OF, PROTOCOLS, contender, ran, rows, small

DECISIONS = "SELECT game, seat, decision, turn, node, answer, outcome, p_bluff FROM decisions ORDER BY 1, 2, 3"
ATTEMPTS = "SELECT game, seat, decision, attempt, draw, reply, cause, input, output FROM attempts ORDER BY 1, 2, 3, 4"
GAMES = "SELECT game, outcome, record FROM games ORDER BY game"


def runs(folder: Path, **settings: Any) -> tuple[House, list[Played]]:
    """The experiment in each protocol, at one house."""
    with House() as house:
        played = [
            ran(
                small(
                    contender("sharp", "house-sharp", BOT_OF[api], api=api, base_url=house.base_url(api), **settings),
                    games=2,
                    turns=24,
                ),
                folder / api,
            )
            for api in PROTOCOLS
        ]
    return house, played


@pytest.mark.parametrize("prompt", few(["plain", "reasoned"], ["reasoned"]))
def test_the_same_decisions_and_results(tmp_path: Path, prompt: str) -> None:
    """All but the requests themselves is the same: answers, stated probabilities, replies, draws, games."""
    house, played = runs(tmp_path, prompt=prompt)
    first, *others = played
    taken = rows(first.folder, DECISIONS)
    assert len(taken) > 30
    assert {node for _, _, _, _, node, *_ in taken} == set("ABCDE")
    assert {outcome for *_, outcome, _ in taken} == {"model"}
    assert any(p_bluff is not None for *_, p_bluff in taken) is (prompt == "reasoned")
    for other in others:
        assert rows(other.folder, DECISIONS) == taken
        assert rows(other.folder, GAMES) == rows(first.folder, GAMES)
        assert [row[:7] for row in rows(other.folder, ATTEMPTS)] == [row[:7] for row in rows(first.folder, ATTEMPTS)]
        assert (other.folder / "all_games.yaml").read_bytes() == (first.folder / "all_games.yaml").read_bytes()
    requests = [set(rows(run.folder, "SELECT request FROM attempts")) for run in played]
    assert [one & other for one in requests for other in requests if one is not other] == [set()] * 6
    assert {call.path for call in house.calls} == {"/v1/responses", "/v1/chat/completions", "/v1/messages"}
    assert all(call.understood and call.status == 200 for call in house.calls)
    check_tokens(house, played)


def check_tokens(house: House, played: list[Played]) -> None:
    """What each protocol says of its tokens is what the house counted."""
    for api, run in zip(PROTOCOLS, played, strict=True):
        calls = [call for call in house.calls if call.protocol == api]
        tokens = run.models["sharp"].tokens
        assert tokens["input"] == sum(call.input_tokens for call in calls)
        assert tokens["cached"] == sum(call.cached_tokens for call in calls) > 0
        assert tokens["output"] == sum(call.output_tokens for call in calls)
