"""Every sentence about who is better holds for each pair of players that it names or includes."""

import json
from typing import Any

import pytest

from dubito.api import Rows
from dubito.game import Measure
from dubito.report.documents import Interval
from dubito.report.tables import Column, ResultTable
from dubito.report.verdicts import describe_verdict, describe_winner
from dubito.stats.players import Calibration
from dubito.stats.rates import Rate
from dubito.stats.relation import ComparedPair, Relation, Rung, find_rung
from tests.cli.kit import Shell
from tests.report.relation_reader import Drawn, Misread, Reader, draw

OUTCOMES = {"tie": "no significant difference", "fallbacks": "withheld", "few": "withheld", "missing": "withheld"}


def build(drawn: Drawn) -> Relation:
    pairs = {}
    for (one, other), pair in drawn.pairs.items():
        if pair.kind != "missing":
            pairs[one, other] = ComparedPair(
                Rate(pair.value, pair.low, pair.high),
                pair.kind in ("better", "worse", "fallbacks"),
                pair.worst,
                pair.best,
                (drawn.shares[one], drawn.shares[other]),
                9 if pair.kind == "few" else drawn.deals,
                is_same=pair.kind == "identical",
                more_games=pair.more_games,
                stop_test="within" if pair.close else None,
            )
    measure = Measure("score", "Score", "Score", (2, 1, 0), scale=2, span=drawn.span)
    return Relation(drawn.names, pairs, measure, drawn.deals, drawn.paired, drawn.within, limits="losses or hard wins")


@pytest.mark.parametrize("hundred", range(10))
def test_every_sentence_about_a_random_relation_is_true(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        drawn = draw(seed, plausible=seed % 2 == 0)
        relation = build(drawn)
        for place, one in enumerate(drawn.names):
            for again, other in enumerate(drawn.names):
                if one != other:
                    kind = drawn.pair(one, other).kind
                    assert relation.pair(place, again).outcome == OUTCOMES.get(kind, kind), (seed, one, other)
        try:
            Reader(drawn).read_verdict(describe_verdict(relation))
            Reader(drawn).read_headline(*describe_winner(relation))
        except Misread as error:
            raise AssertionError(f"seed {seed}: {error}") from None


def test_rung_is_between_the_strongest_beaten_and_the_weakest_better_bot() -> None:
    for seed in range(300):
        drawn = draw(seed, plausible=seed % 2 == 0)
        relation, ladder = build(drawn), set(drawn.names[::2])
        for name in drawn.names:
            kinds = [(bot, drawn.pair(name, bot).kind) for bot in drawn.names if bot in ladder and bot != name]
            beaten = [bot for bot, kind in kinds if kind == "better"]
            better = [bot for bot, kind in kinds if kind == "worse"]
            assert find_rung(relation, name, ladder) == Rung(
                beaten[0] if beaten else None, better[-1] if better else None
            )


FLAKY = """
from bots.manual.stefa_bot import StefaBot


class Flaky(StefaBot):
    'Fails in a few of its decisions.'

    def should_doubt(self, p):
        if self.rng.random() < 0.005:
            raise ValueError("no")
        return super().should_doubt(p)
"""
SHAKY = """
from bots.manual.defuse.medium import Medium


class Shaky(Medium):
    'Fails in a few of its turns.'

    def turn(self, view):
        if self.rng.random() < 0.02:
            raise ValueError("no")
        return (yield from super().turn(view))
"""


def play(shell: Shell, **config: Any) -> dict[str, Any]:
    (shell.folder / "c.yaml").write_text(json.dumps(config))
    result = shell("run", "c.yaml", "--output", "r", "--workers", "1", "--json")
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def test_contenders_that_never_decided_differently_played_identically(shell: Shell) -> None:
    """A third contender with the same name of a bot is another player: it draws other bluffs."""
    twins = ["StefaBot", {"bot": "StefaBot", "name": "Twin"}, {"bot": "RandomBoi", "name": "Other"}]
    found = play(shell, games=60, table_sizes=[4], bots=["UsualBot", "MrDoubt", "SusBoi"], contenders=twins)
    relations = {(pair["one"], pair["other"]): pair["differences"]["score"] for pair in found["pairs"]}
    assert relations["StefaBot", "Twin"]["relation"] == "identical"
    assert relations["StefaBot", "Other"]["relation"] != "identical"
    assert "StefaBot and Twin played identically in all 20 deals" in found["verdict"]
    compared = shell("compare", "r").out
    assert "StefaBot and Twin played identically in all 20 deals" in " ".join(compared.split())
    assert "no: identical" in compared
    assert shell("report", "r", "--games", "0").code == 0
    pages = [(shell.folder / "r" / "report" / name).read_text() for name in ("index.html", "compare.html")]
    assert all("StefaBot played identically to Twin." in page for page in pages)
    assert shell("replay", "r").code == 0, "a replay finds the same sums"


def test_equal_scores_are_not_identical_games(shell: Shell) -> None:
    """Both contenders lose every game, but with other moves."""
    losers = ["AlwaysTruthful", {"bot": "RandomBoi", "name": "Other"}]
    found = play(
        shell,
        games=24,
        table_sizes=[3],
        rules={"max_turns": 9},
        bots=["ClaudeBot", "AdaptyBoi"],
        contenders=losers,
    )
    (pair,) = (pair["differences"] for pair in found["pairs"])
    assert [(one["difference"]["value"], one["relation"]) for one in pair.values()] == [
        (0.0, "no significant difference")
    ] * len(pair)
    assert "identically" not in found["verdict"]


@pytest.mark.parametrize("folder", ["run", "compare"])
def test_fallbacks_of_bots_count_by_games(shell: Shell, folder: str) -> None:
    """Fewer than 1 % of the decisions fail, but more than 2 % of the games have one."""
    shell.bot("flaky.py", FLAKY)
    config = {"table_sizes": [4], "bots": ["UsualBot", "MrDoubt", "SusBoi"], "contenders": ["ClaudeBot", "Flaky"]}
    found = play(shell, games=100, on_bot_error="fallback", **config)
    found = json.loads(shell("compare", "r", "--json").out) if folder == "compare" else found
    shares = {one["name"]: one["fallback_share"] for one in found["contenders"]}
    assert shares["ClaudeBot"] == 0
    assert 0.02 < shares["Flaky"] < 0.4
    assert f"{100 * shares['Flaky']:.1f} % of the games of Flaky had fallbacks" in found["verdict"]
    (pair,) = found["pairs"]
    assert pair["differences"]["score"]["worst"] < pair["differences"]["score"]["best"]


def test_forfeits_count_like_fallbacks(shell: Shell) -> None:
    shell.bot("shaky.py", SHAKY, "manual/defuse")
    found = play(
        shell, game="defuse", games=160, on_bot_error="forfeit", bots=["Simple"], contenders=["Medium", "Shaky"]
    )
    shares = {one["name"]: one["fallback_share"] for one in found["contenders"]}
    forfeits = next(one["forfeits"] for one in found["ranking"] if one["name"] == "Shaky")
    assert shares == {"Medium": 0, "Shaky": forfeits / 80}
    assert forfeits > 4
    assert f"{100 * forfeits / 80:.1f} % of the games of Shaky had fallbacks or forfeits" in found["verdict"]


def test_withheld_value_has_no_numbers() -> None:
    withheld = Rate(None, -2.0, 2.0)
    assert Interval.model_validate(withheld).model_dump() == {"value": None, "low": None, "high": None}
    table = ResultTable("t", "T", [Column("x", "x", "decimal", [withheld, Rate(0.5, 0.25, 0.75)])])
    assert table.to_csv() == "x,x_low,x_high\n,,\n0.5,0.25,0.75\n"
    rows = Rows([Calibration("a", 0, 3, 0, withheld, None, None, [])]).to_dicts()
    assert rows[0]["brier"] == {"value": None, "low": None, "high": None, "cases": None}
