"""All figures of a run agree: terminal, pages, files, `--json` and `compare`."""

import contextlib
import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from html import unescape
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.cli.main import main
from dubito.experiment.lies import count_lies
from dubito.experiment.stored import open_recorded_run
from dubito.files import read_yaml
from dubito.games.dubito.cards import Hand, TurnOutput
from dubito.games.dubito.engine import Rules, State
from dubito.stats.tally import contender_scores
from tests.cli.kit import REPO
from tests.conftest import in_gate
from tests.llm.kit import contender
from tests.llm.kit import rows as rows_of
from tests.report.kit import Page, data, records

STAND_INS = [
    contender("gpt-9", "house-sharp", prompt="reasoned"),
    contender("opus", "house-honest", bot="AnthropicBot"),
]
COMPARED = {
    "bots": ["StefaBot", "UsualBot", "ClaudeBot"],
    "contenders": ["ClaudeBot", "RandomBoi", "StefaBot", "MrDoubt"],
    "games": 40,
    "table_sizes": [4],
}
RUNS: dict[str, dict[str, Any]] = {
    **{f"contenders, some of them of the field, seed {seed}": COMPARED | {"seed": seed} for seed in (0, 3)},
    "a field alone": {"bots": ["StefaBot", "ClaudeBot", "RandomBoi", "MrDoubt"], "games": 80},
    "one contender": {"bots": ["StefaBot", "RandomBoi"], "contenders": ["ClaudeBot"], "games": 60},
    "who never bluffs by choice": {
        "bots": ["AlwaysTruthful", "MrNoDoubt", "JustPutCards", "SusBoi"],
        "games": 40,
        "rules": {"win_rule": "contested"},
    },
    "lies at BS": {"game": "bs", "bots": ["ConMan", "CalculatingLiar", "Player1", "Hoarder"], "games": 40},
    "stops when decided": {
        "bots": ["StefaBot", "RandomBoi"],
        "contenders": ["ClaudeBot", "MrDoubt"],
        "table_sizes": [3],
        "stop": {"within": 12, "most": 100},
    },
    "two seats": {"game": "defuse", "bots": ["Simple", "Scared"], "contenders": ["Medium", "Simple"], "games": 60},
    "a model that falls back": {
        "bots": ["StefaBot", "UsualBot", "ClaudeBot"],
        "contenders": [
            contender("gpt-9", "house-random", base_url="house?faults=no_answer:0.3", reasks=0),
            "ClaudeBot",
        ],
        "games": 12,
        "table_sizes": [3],
        "rules": {"max_turns": 36},
        # The fault also affects the preflight's question.
        "on_unusable": "fallback",
    },
    "a model that falls back in the field": {
        "bots": [contender("gpt-9", "house-random", base_url="house?faults=no_answer:0.3", reasks=0), "ClaudeBot"],
        "games": 30,
        "table_sizes": [3],
        "rules": {"max_turns": 36},
        # The fault also affects the preflight's question.
        "on_unusable": "fallback",
    },
    "a model that falls back, until decided": {
        "bots": ["StefaBot", "UsualBot"],
        "contenders": [
            contender("gpt-9", "house-random", base_url="house?faults=no_answer:0.6", reasks=0),
            "ClaudeBot",
        ],
        "stop": {"within": 12, "most": 100},
        "table_sizes": [3],
        "on_unusable": "fallback",
    },
    "fake models": {
        "bots": ["StefaBot", "RandomBoi"],
        "contenders": [*STAND_INS, "RandomBoi"],
        "games": 6,
        "rules": {"max_turns": 36},
    },
}
AT_LENGTH = {
    "contenders, some of them of the field, seed 3",
    "a field alone",
    "one contender",
    "fake models",
    "a model that falls back, until decided",
    "a model that falls back in the field",
    "lies at BS",
    "who never bluffs by choice",
}


class Shown:
    """All outputs of one run."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.folder, self.config = folder, config
        (folder / "c.yaml").write_text(yaml.safe_dump(dict(config)))
        words = "run", "c.yaml", "--output", "r", "--quiet", "--workers", "1"
        self.terminal = self.output(*words, "--tables")
        self.run = json.loads(self.output(*words, "--json", "--no-report"))
        self.report = folder / "r/report"
        self.page = Page(self.report / "index.html")
        (answer,) = re.findall('<p class="answer">(.*)</p>', (self.report / "index.html").read_text())
        self.answer = unescape(answer)

    def output(self, *words: str) -> str:
        out = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        return out.getvalue()

    @cached_property
    def compared(self) -> tuple[str, Any]:
        return self.output("compare", "r"), json.loads(self.output("compare", "r", "--json"))

    def lines(self, title: str, command: str = "") -> list[dict[str, str]]:
        """Return a table's rows in the terminal, by column title."""
        _, after = (command or self.terminal).split(title, 1)
        after = "\n" + after.split("\n", 1)[1]
        head, *rest = after.splitlines()[1:]
        titles = re.split("  +", head)
        rows = [re.split("  +", line) for line in rest]
        there = next((place for place, row in enumerate(rows) if len(row) != len(titles)), len(rows))
        return [dict(zip(titles, row, strict=True)) for row in rows[:there]]

    def on_page(self, key: str) -> list[dict[str, str]]:
        titles, *rows = self.page.tables.get(key, [[]])
        rows = [row for row in rows if len(row) > 1]  # the others are headings
        return [{title: cell.strip() for title, cell in zip(titles, row, strict=True)} for row in rows]


@pytest.fixture(scope="module", params=in_gate(RUNS, RUNS.keys() - AT_LENGTH))
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("run"), RUNS[request.param])


def ranked(rows: list[dict[str, Any]], key: str) -> dict[str, str]:
    return {row[key]: "-" if row["rank"] in ("", None) else str(row["rank"]) for row in rows}


def test_a_player_has_one_rank(shown: Shown) -> None:
    every = ranked(shown.run["ranking"], "name")
    for rows in (shown.on_page("players"), data(shown.report, "players"), records(shown.report, "players")):
        assert ranked(rows, "player") == every
    in_terminal = shown.lines("clustered by deal") if "clustered by deal" in shown.terminal else []
    if shown.run["pairs"]:
        assert not any("rank" in row for row in in_terminal), "opponents are not ranked"
        compared_names = {one["name"] for one in shown.run["contenders"]}
        assert {row["bot"] for row in in_terminal} == every.keys() - compared_names
    else:
        assert ranked(in_terminal, "bot") == every
    if not shown.run["pairs"]:
        assert set(every.values()) >= {"1"}
        alone = shown.lines("of the same deals") if shown.run["contenders"] else []
        assert not any("rank" in row for row in alone), "a single contender has its rank among all players"
        return
    by_pair = {(pair["one"], pair["other"]): pair["differences"] for pair in shown.run["pairs"]}
    ranks = {one["name"]: "1" for one in shown.run["contenders"]}
    for (_, other), differences in by_pair.items():
        first, *_ = differences.values()
        assert (first["winner"] is not None) == (first["more_games"] == 0)
        ranks[other] = str(int(ranks[other]) + (first["winner"] is not None))
    assert every == {name: ranks.get(name, "-") for name in every}
    compared, again = shown.compared
    for rows, key in (
        (shown.run["contenders"], "name"),
        (again["contenders"], "name"),
        (shown.lines("of the same deals", compared), "contender"),
        (shown.lines("of the same deals"), "contender"),
    ):
        assert ranked(rows, key) == ranks


def test_headline_agrees_with_the_ranks(shown: Shown) -> None:
    """The headline names all first players, and its winners differ significantly from the players that they beat."""
    ranks = {name: rank for name, rank in ranked(shown.run["ranking"], "name").items() if rank != "-"}
    first = {name for name, rank in ranks.items() if rank == "1"}
    if set(ranks.values()) == {"1"}:
        assert "better" not in shown.answer
        assert shown.answer.startswith("Too few") or all(name in shown.answer for name in ranks)
        return
    found = re.split(r"[;.](?: |$)", shown.answer)
    beaten = re.match(r"(.*?) (?:is|are) significantly better than (.*?) by ", found[0])
    assert beaten is not None, shown.answer
    winners = {name for name in ranks if name in beaten[1]}
    assert winners <= first
    assert len(first) == 1 or any(all(name in part for name in first) for part in found)
    pairs = {(pair["one"], pair["other"]): pair["differences"] for pair in shown.run["pairs"]}
    for (one, other), differences in pairs.items():
        if other in beaten[2]:
            measure, *_ = differences.values()
            assert (one in winners) == (measure["winner"] == one)


def test_the_verdict_is_the_same_everywhere(shown: Shown) -> None:
    plain = " ".join(shown.output("run", "c.yaml", "--output", "r", "--quiet", "--workers", "1").split())
    assert shown.run["verdict"] == shown.answer
    for text in (plain, " ".join(shown.terminal.split())):
        assert shown.answer in text
    if shown.run["pairs"]:
        compared, again = shown.compared
        kinds = {one["kind"] for one in shown.run["contenders"]}
        assert again["verdict"] in " ".join(compared.split())
        assert len(kinds) == 1 or again["verdict"] == shown.answer


def test_status_agrees_with_the_run_about_pairs(shown: Shown) -> None:
    """The run stops when its pairs are decided, or when only fallbacks leave a pair open."""
    first = next(iter(shown.run["ranking"][0]["rates"]))
    pairs = {frozenset((pair["one"], pair["other"])): pair["differences"][first] for pair in shown.run["pairs"]}
    found = json.loads(shown.output("status", "r", "--json"))["pairs"]
    assert bool(found) == ("stop" in shown.config)
    for status in found:
        pair = pairs[frozenset((status["one"], status["other"]))]
        assert status["verdict"] == pair["verdict"]
        assert pair["winner"] is None or status["verdict"] == "different"
        names = f"{status['one']} - {status['other']}: significantly different after {status['deals']} deals"
        output = shown.output("status", "r")
        assert (f"{names}, but fallbacks leave the winner open\n" in output) == (
            "so there is no winner" in shown.answer
        )
        assert (f"{names}\n" in output) == (status["verdict"] == "different")


def test_charts_agree_with_tables_and_json(shown: Shown) -> None:
    """Compared contenders are drawn as contenders, whether or not they are also opponents."""
    key = next(iter(shown.run["ranking"][0]["rates"]))
    rows = shown.run["contenders"] if shown.run["pairs"] else shown.run["ranking"]
    drawn = re.findall(
        r'<li class="row">.*?data-name="(.*?)".*?--low:(.*?);--high:(.*?);--at:(.*?)"',
        (shown.report / "index.html").read_text(),
        re.DOTALL,
    )
    assert [unescape(name) for name, *_ in drawn] == [row["name"] for row in rows]
    table, texts = data(shown.report, "players"), shown.on_page("players")
    for (_, low, high, at), row, listed, text in zip(drawn, rows, table, texts, strict=False):
        point = [float(end) for end in (at, low, high)]
        assert point == pytest.approx([100 * row["rates"][key][end] for end in ("value", "low", "high")], abs=5e-3)
        assert point == pytest.approx([100 * listed[f"{key}{end}"] for end in ("", "_low", "_high")], abs=5e-3)
        shown_ends = (100 * listed[f"{key}{end}"] for end in ("", "_low", "_high"))
        value, low, high = (f"{end + math.copysign(1e-9, end):.1f}" for end in shown_ends)
        assert f"{value} [{low}, {high}]" in text.values()
    if not shown.run["pairs"]:
        return
    first, second = (row["rates"][key]["value"] for row in rows[:2])
    ahead = re.search(r"(?:better than|leads|between) .*?([\d.]+) points of", shown.answer)
    if ahead and len(rows) == 2:
        assert float(ahead[1]) == pytest.approx(100 * (first - second), abs=0.051)


def test_few_deals_have_the_same_warning_everywhere(shown: Shown) -> None:
    """The smallest number of deals is recomputed from the stored games by removing deals one by one."""
    value = shown.run["comparison"]
    if not shown.run["pairs"]:
        assert value is None
        return
    compared, again = shown.compared
    assert again["comparison"] == value
    deals = shown.run["contenders"][0]["deals"]
    assert value["preliminary"] == (deals < 100 and "stop" not in shown.config)
    few = f"Preliminary: only {deals} deals (fewer than 100)." if value["preliminary"] else ""
    gone = f"Without {value['fragility']} of the {deals} deals" if value["fragility"] else ""
    for text in (shown.terminal, compared, shown.page.words):
        assert few in text
        assert gone in text
        assert ("Preliminary: " in text) == value["preliminary"]
        assert bool(re.search(r"Without \d+ of the", text)) == bool(gone)
    assert shown.answer.startswith("Preliminary (fewer than 100 deals): ") == (
        value["preliminary"] and not shown.answer.startswith("Too few")
    )
    first, *others = (one["name"] for one in shown.run["contenders"])
    fewest = []
    with open_recorded_run(shown.folder / "r") as run:
        m, own = run.planned.games_per_deal, [player.name for player in run.planned.contenders]
        rows = [
            contender_scores([run.outcome(row) for row in deal], run.game.results)
            for deal in batched(run.db.outcomes(), m)
        ]
    for other in others:
        left = sorted(row[own.index(first)] - row[own.index(other)] for row in rows)
        while sum(left) > 0:
            left.pop()
        fewest.append(len(rows) - len(left))
    assert value["fragility"] == min(fewest)


def batched(rows: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    while some := [*islice(rows, size)]:
        yield some


def test_columns_of_a_file_have_unique_keys(shown: Shown) -> None:
    """Each CSV line has as many cells as keys. The number and the share of won games are two columns."""
    for file in sorted((shown.report / "data").glob("*.csv")):
        keys, *lines = csv.reader(file.read_text().splitlines())
        assert len({*keys}) == len(keys), file.name
        assert {len(line) for line in lines} <= {len(keys)}, file.name
    if "wins" in shown.run["ranking"][0]["rates"]:
        rows = {row["name"]: row for row in shown.run["ranking"]}
        for row in data(shown.report, "outcomes"):
            same = rows[row["bot"]]
            assert (row["wins"], row["wins_rate"]) == (same["buckets"]["wins"], same["rates"]["wins"]["value"])


NAMES = ("bot", "contender", "player", "against", "other", "first", "second", "next", "previous", "winner")


def test_a_player_has_one_kind(shown: Shown) -> None:
    manifest = read_yaml(shown.folder / "r/manifest.yaml")["identity"]
    entries = [*manifest["bots"], *manifest["contenders"]]
    kinds = {one["name"]: "fake model" if one["name"] in ("gpt-9", "opus") else "hand-written" for one in entries}
    assert {row["name"]: row["kind"] for row in shown.run["ranking"]} == kinds
    assert all(row["kind"] == kinds[row["name"]] for row in shown.run["contenders"] + shown.run["models"])
    seen = 0
    for file in sorted((shown.report / "data").glob("*.json")):
        rows = data(shown.report, file.stem)
        assert [row.get("kind", "") for row in records(shown.report, file.stem)] == [
            row.get("kind") or "" for row in rows
        ]
        for row in rows:
            keys = [key for key in NAMES if row.get(key) in kinds and (key == "player" or "player" not in row)]
            for place, key in enumerate(keys):
                text = row.get(f"{key}_kind", row.get("kind") if place == 0 else None)
                assert text == kinds[row[key]], (file.stem, key)
                seen += 1
    assert seen > 5 * len(kinds)
    kind = "kind" if {*kinds.values()} == {"hand-written"} else "kind (claimed)"
    for title in ("clustered by deal", "of the same deals"):
        rows_of_terminal = shown.lines(title) if title in shown.terminal else []
        assert all(row[kind] == kinds[row.get("bot") or row["contender"]] for row in rows_of_terminal)
    status = json.loads(shown.output("status", "r", "--json"))
    assert all(row["kind"] == kinds[row["name"]] for row in status["models"])


def test_charts_and_sentences_distinguish_kinds_of_players(shown: Shown) -> None:
    kinds = {row["name"]: row["kind"] for row in shown.run["ranking"]}
    several = len({*kinds.values()}) > 1
    labels = {f"{name} ({kind})" if several else name for name, kind in kinds.items()}
    drawn = set[str]()
    for path in [*shown.report.glob("*.html"), *shown.report.glob("bots/*.html")]:
        page = Page(path)
        for chart in (one for one in page.json if isinstance(one, dict) and "series" in one):
            drawn |= {*chart["names"]} | {series["name"] for series in chart["series"]}
        drawn |= {cell.strip() for key in page.tables for cell in page.tables[key][0]}
    assert drawn >= labels
    if several:
        assert not drawn & kinds.keys(), "charts must use labels instead of bare names"
        assert all(f"{name} (" in shown.answer for name in kinds if name in shown.answer)
    game = Page(shown.report / "games/0.html")
    (data,) = (one for one in game.json if isinstance(one, dict) and "kinds" in one)
    assert [kinds[re.sub(" [0-9]$", "", name)] for name in data["names"]] == data["kinds"]


def test_run_with_fake_models_starts_with_a_warning(shown: Shown) -> None:
    message = "These are fake models: a built-in server on this machine answers for gpt-9 and opus."
    there = "opus" in {row["name"] for row in shown.run["ranking"]}
    first = next(text for tag, text in re.findall("<p( class=[^>]*)?>([^<]*)</p>", _below_headline(shown.report)))
    assert (shown.terminal.splitlines()[0] == message, first == message) == (there, there)
    if there:
        assert shown.compared[0].splitlines()[0] == message
        assert shown.output("status", "r").splitlines()[0] == message


def _below_headline(report: Path) -> str:
    return (report / "index.html").read_text().split("</h1>")[1]


def test_catches_by_pair_match_the_engine(shown: Shown) -> None:
    """Hits and false alarms add up to all doubts. Caught lies equal those in the run's results."""
    called = {"dubito": ("doubts", "bluff_caught"), "bs": ("accusations", "lies_accused")}
    if shown.run["game"] in called:
        calls, found_out = called[shown.run["game"]]
        published = read_yaml(shown.folder / "r/all_games.yaml")
        with open_recorded_run(shown.folder / "r") as source:
            lies = count_lies(source)
            for player, name in enumerate(source.names):
                own = published[name]["total"]
                assert lies.count(player, "hits") + lies.count(player, "alarms") == own[calls]
                assert lies.count(player, "caught") == own[found_out]


def test_voluntary_and_forced_lies_add_up(shown: Shown) -> None:
    """The page, CSV, JSON, each bot's page and `--json` have the same numbers, which add up to the run's results."""
    if shown.run["game"] == "defuse":
        assert not (shown.report / "data/lies.json").exists()
        assert {row["lies"] for row in shown.run["ranking"]} == {None}
        return
    published = read_yaml(shown.folder / "r/all_games.yaml")
    counted, text = data(shown.report, "lies"), {row["name"]: row["lies"] for row in shown.run["ranking"]}
    names = [*published]
    whole = dict.fromkeys(names, "bluffs" if shown.run["game"] == "dubito" else "lies")
    for row, line in zip(counted, records(shown.report, "lies"), strict=True):
        own = published[row["bot"]]["total"]
        assert row["chosen"] + row["forced"] == row["lies"] == own[whole[row["bot"]]]
        assert row["chosen_share"] == pytest.approx(row["chosen"] / row["plays"])
        assert row["forced_share_low"] <= row["forced_share"] <= row["forced_share_high"]
        assert [line[key] for key in ("plays", "chosen", "forced")] == [
            str(row[key]) for key in ("plays", "chosen", "forced")
        ]
        assert text[row["bot"]] == {key: row[key] for key in ("plays", "chosen", "forced")} | {
            "games": shown.run["kept"]
        }
        (alone,) = data(shown.report, f"bot-{names.index(row['bot'])}-lies")
        assert alone == row
        if row["bot"] in ("AlwaysTruthful", "MrNoDoubt", "SusBoi", "opus"):
            assert row["chosen"] == 0, "it never lies if it could be honest"
    assert sum(row["forced"] for row in counted) > 0
    page = Page(shown.report / "strategy.html")
    assert f"Counted in all {shown.run['kept']} games" in page.words
    head, *lines = page.tables["lies"]
    assert [row[head.index("voluntary")] for row in lines] == [f"{row['chosen']:,}" for row in counted]


@pytest.mark.parametrize("shown", ["fake models"], indirect=True)
def test_models_choices_match_its_decisions(shown: Shown) -> None:
    """A voluntary lie follows a yes at A or D, and a forced one follows neither. A yes can still turn out honest."""
    players = {row["name"] for row in shown.run["models"]}
    counted, lied = {row["bot"]: row for row in data(shown.report, "lies")}, dishonest(shown.folder / "r")
    for name in players:
        seats = {*rows_of(shown.folder / "r", "SELECT DISTINCT game, seat FROM attempts WHERE player = ?", (name,))}
        query = "SELECT game, seat, turn, answer FROM decisions WHERE node IN ('A', 'D')"
        decided = rows_of(shown.folder / "r", query)
        asked = {(game, seat, turn): answer for game, seat, turn, answer in decided if (game, seat) in seats}
        own = {place for place in lied if place[:2] in seats}
        assert counted[name]["lies"] == len(own)
        assert counted[name]["chosen"] == len([place for place in own if asked.get(place)])
        assert counted[name]["forced"] == len([place for place in own if place not in asked])
        assert name == "opus" or own, "there must be something to compare"
        assert counted[name]["meant"] == sum(asked.values()) >= counted[name]["chosen"]


def dishonest(run: Path) -> set[tuple[int, int, int]]:
    """Derive from deals and outputs the game, seat and turn of every play that is a bluff by R5."""
    found = set[tuple[int, int, int]]()
    rules = read_yaml(run / "manifest.yaml")["identity"]["rules"]
    for number, record in rows_of(run, "SELECT game, record FROM games"):
        kept = json.loads(record)
        game = State(Rules(**rules), [Hand(cards) for cards in kept["hands"]])
        turns = Counter[int]()
        for doubt, declared, cards in kept["outputs"]:
            turns[game.seat] += 1
            if not doubt and {*cards} - {0, declared or game.number}:
                found.add((number, game.seat, turns[game.seat]))
            game.apply(TurnOutput(doubt, declared, cards))
    return found


def test_lies_of_changed_bots_are_not_counted(tmp_path: Path) -> None:
    """Changed bots would play differently, so the page says so and `--json` has no lies."""
    bot = tmp_path / "bots/manual/mine.py"
    bot.parent.mkdir(parents=True)
    text = (REPO / "bots/manual/usual_bot.py").read_text().replace("class UsualBot", "class Mine")
    bot.write_text(text)
    made = Shown(tmp_path, {"bots": ["Mine", "RandomBoi"], "games": 12})
    assert made.run["ranking"][0]["lies"]["games"] == 12
    bot.write_text(text + "\n# edited\n")
    made.output("report", "r", "--output", "again")
    words = Page(tmp_path / "again/strategy.html").words
    assert "forced bluffs cannot be counted separately: Mine's file has changed" in words
    assert not (tmp_path / "again/data/lies.json").exists()
