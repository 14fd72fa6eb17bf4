"""No two figures of a run disagree, wherever they stand: terminal, pages, their files, `--json`, `compare`."""

import contextlib
import io
import json
import re
from collections.abc import Mapping
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.cli.main import main
from tests.llm.kit import contender
from tests.report.kit import Seen, data, records

STAND_INS = [contender("likes hearts", "house-sharp"), contender("likes spades", "house-honest", bot="AnthropicBot")]
COMPARED = {
    "bots": ["StefaBot", "UsualBot", "ClaudeBot"],
    "contenders": ["ClaudeBot", "RandomBoi", "StefaBot", "MrDoubt"],
    "games": 160,
    "table_sizes": [4],
}
RUNS: dict[str, dict[str, Any]] = {
    **{f"contenders, some of them of the field, seed {seed}": COMPARED | {"seed": seed} for seed in (0, 3, 11, 29)},
    "near twins, another seed": {
        "bots": ["StefaBot", "RandomBoi"],
        "contenders": ["UsualBot", {"bot": "UsualBot", "name": "twin"}, "RandomBoi"],
        "games": 120,
        "seed": 7,
    },
    "a field alone": {"bots": ["StefaBot", "ClaudeBot", "RandomBoi", "MrDoubt"], "games": 80},
    "one contender": {"bots": ["StefaBot", "RandomBoi"], "contenders": ["ClaudeBot"], "games": 60},
    "few deals": {"bots": ["RandomBoi"], "contenders": ["ClaudeBot", "MrDoubt"], "games": 18, "table_sizes": [3]},
    "two seats": {"game": "defuse", "bots": ["Simple", "Scared"], "contenders": ["Medium", "Simple"], "games": 160},
    "stand-ins": {
        "bots": ["StefaBot", "RandomBoi"],
        "contenders": [*STAND_INS, "RandomBoi"],
        "games": 33,
        "rules": {"max_turns": 24},
    },
}


class Shown:
    """Everything that is shown of one run."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder = folder
        (folder / "c.yaml").write_text(yaml.safe_dump(dict(config)))
        words = "run", "c.yaml", "--output", "r", "--quiet", "--workers", "1"
        self.terminal = self.said(*words)
        self.run = json.loads(self.said(*words, "--json"))
        self.report = folder / "r/report"
        self.page = Seen(self.report / "index.html")
        (answer,) = re.findall('<p class="answer">(.*)</p>', (self.report / "index.html").read_text())
        self.answer = unescape(answer)

    def said(self, *words: str) -> str:
        """What a command prints."""
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        return out.getvalue()

    @cached_property
    def compared(self) -> tuple[str, Any]:
        """What `compare` says of it, as a table and as an object."""
        return self.said("compare", "r"), json.loads(self.said("compare", "r", "--json"))

    def lines(self, title: str, said: str = "") -> list[dict[str, str]]:
        """The rows of a table in the terminal, by the titles of its columns."""
        _, after = (said or self.terminal).split(title, 1)
        after = "\n" + after.split("\n", 1)[1]
        head, *rest = after.splitlines()[1:]
        titles = re.split("  +", head)
        rows = [re.split("  +", line) for line in rest]
        there = next((place for place, row in enumerate(rows) if len(row) != len(titles)), len(rows))
        return [dict(zip(titles, row, strict=True)) for row in rows[:there]]

    def on_page(self, key: str) -> list[dict[str, str]]:
        """The rows of a table of the overview, the same way."""
        titles, *rows = self.page.tables.get(key, [[]])
        return [{title: cell.strip() for title, cell in zip(titles, row, strict=True)} for row in rows]


@pytest.fixture(scope="module", params=[*RUNS.values()], ids=[*RUNS])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("run"), request.param)


def ranked(rows: list[dict[str, Any]], key: str) -> dict[str, str]:
    """The rank of each player in a table, as a text; a dash for none."""
    return {row[key]: "-" if row["rank"] in ("", None) else str(row["rank"]) for row in rows}


def test_a_player_has_one_rank(shown: Shown) -> None:
    every = ranked(shown.run["ranking"], "name")
    for rows in (
        shown.lines("clustered by deal"),
        shown.on_page("ranking"),
        data(shown.report, "ranking"),
        records(shown.report, "ranking"),
    ):
        assert ranked(rows, "bot") == every
    if not shown.run["pairs"]:
        assert set(every.values()) >= {"1"}
        return
    told = {(pair["one"], pair["other"]): pair["differences"] for pair in shown.run["pairs"]}
    ranks = {one["name"]: "1" for one in shown.run["contenders"]}
    for (_, other), differences in told.items():
        first, *_ = differences.values()
        ranks[other] = str(int(ranks[other]) + (first["more_games"] == 0))
    assert every == {name: ranks.get(name, "-") for name in every}
    compared, again = shown.compared
    for rows, key in (
        (shown.run["contenders"], "name"),
        (again["contenders"], "name"),
        (shown.lines("of the same deals", compared), "contender"),
        (shown.lines("of the same deals"), "contender"),
        (shown.on_page("contenders"), "contender"),
        (data(shown.report, "contenders"), "contender"),
        (records(shown.report, "contenders"), "contender"),
    ):
        assert ranked(rows, key) == ranks


def test_the_headline_says_what_the_ranks_say(shown: Shown) -> None:
    """Who is first is named, all of them; who beats is told apart from whom it beats."""
    ranks = {name: rank for name, rank in ranked(shown.run["ranking"], "name").items() if rank != "-"}
    first = {name for name, rank in ranks.items() if rank == "1"}
    if set(ranks.values()) == {"1"}:
        assert " beat" not in shown.answer
        assert shown.answer.startswith("Too few") or all(name in shown.answer for name in ranks)
        return
    said = re.split(r"[;.](?: |$)", shown.answer)
    beaten = re.match(r"(.*?) beats? (.*?) by ", said[0])
    assert beaten is not None, shown.answer
    winners = {name for name in ranks if name in beaten[1]}
    assert winners <= first
    assert len(first) == 1 or any(all(name in part for name in first) for part in said)
    pairs = {(pair["one"], pair["other"]): pair["differences"] for pair in shown.run["pairs"]}
    for (one, other), differences in pairs.items():
        if other in beaten[2]:
            measure, *_ = differences.values()
            assert (one in winners) == (measure["more_games"] == 0)
