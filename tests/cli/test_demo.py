"""`dubito demo` shows the result, the fallbacks, the report and an identical replay."""

from pathlib import Path

import pytest

from dubito.games.dubito.game import GAME
from tests.cli.kit import Shell


def test_default_output_is_short_and_tables_need_a_flag(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GAME.demo, "games", 4)
    monkeypatch.setitem(GAME.demo, "rules", {"max_turns": 20})
    result = shell("demo")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert len(lines) < 30
    assert max(map(len, lines)) <= 80
    assert "Too few games for a comparison: 2 deals, but at least 10 are needed." in lines
    assert "Identical: both runs have the same results digest." in lines
    (asked,) = [line for line in lines if line.startswith("fake models: ")]
    assert asked.endswith("; fallbacks: 0")
    assert lines.count("report: runs/demo-1/live/report/index.html") == 1
    assert Path("runs/demo-1/live/report/index.html").exists()
    (cache,) = [line.removeprefix("the cache: dubito ") for line in lines if line.startswith("the cache: ")]
    assert shell(*cache.split()).code == 0
    (again,) = [line.removeprefix("all tables: dubito ") for line in lines if line.startswith("all tables: ")]
    whole = shell(*again.split())
    assert whole.out.count("Pairs: differences in points") == 2
    digest = [line for line in lines if line.startswith("results digest: ")]
    assert [line for line in whole.out.splitlines() if line.startswith("results digest: ")] == 2 * digest
