"""Prompts with `beliefs: every_turn`."""

import json
from pathlib import Path

import pytest

import dubito
from dubito.game.find import find_game
from dubito.games.dubito.facts import example_position
from dubito.llm.prompts import Prompt, load_prompt
from dubito.llm.questions import read_chance_to_win
from dubito.plugins.deception.read import read_sheet
from tests.cli.kit import REPO, Shell
from tests.llm.kit import Server, player_at, respond, run_games, small

RUN = """
contenders:
- {bot: "house:house-sharp", name: plain, prompt: plain}
- {bot: "house:house-sharp", name: asked, prompt: beliefs}
- {bot: "house:house-sharp", name: decides, prompt: beliefs, api: decisions}
bots: [ClaudeBot]
games: 18
table_sizes: [3]
rules: {ranks: 5, max_turns: 60}
"""


@pytest.mark.parametrize("node", "ABCDE")
def test_beliefs_add_two_fields_to_the_same_request(node: str) -> None:
    """The prompt's text differs from that of `plain` only in the description of the reply."""
    plain, asked = load_prompt("plain", REPO), load_prompt("beliefs", REPO)
    position = example_position(node)
    texts, others = asked.render(position), plain.render(position)
    assert (texts.history, texts.user) == (others.history, others.user)
    changed = [line for line in texts.system.split("\n") if line not in others.system.split("\n")]
    assert [line[:21] for line in changed] == ["Reply with a JSON obj"]
    stated = ("p_bluff",) if node == "C" else ()
    assert asked.form(node).fields == (*stated, "p_win", "answer")


def test_games_without_lies_ask_only_who_wins() -> None:
    sources = {
        "prompt.yaml": "title: x\nbeliefs: every_turn\nanswer: [answer]\n",
        "system.jinja": "x",
        "user.jinja": "x",
    }
    prompt = Prompt(Path("mine"), sources, find_game("defuse", REPO))
    assert prompt.fields == ("p_win", "answer")


def test_asking_is_an_arm_and_the_sheet_has_one_belief_per_turn(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "c.yaml").write_text(RUN)
    assert shell("run", "c.yaml", "--output", "r", "--quiet").code == 0
    assert shell("replay", "r", "--quiet").code == 0
    with dubito.load("r") as run:
        by_name = {one.name: one for one in read_sheet(run).players}
        turns = {
            name: {
                (game.number, one.seat, one.turn)
                for game in run.games()
                for one in game.decisions
                if one.player == name
            }
            for name in by_name
        }
        for name in ("asked", "decides"):
            assert len(by_name[name].wins) == len(turns[name]) > 0
            assert len(by_name[name].beliefs) == by_name[name].whole.count("met") + by_name[name].whole.count("honest")
        assert (by_name["plain"].wins, by_name["plain"].beliefs) == ([], [])
        results = {game.number: game.results for game in run.games()}
        won = [results[number][seat] == "hard_wins" for number, seat, _ in turns["asked"]]
        assert 0 < sum(won) == sum(one.is_true for one in by_name["asked"].wins) < len(won)
        (pair,) = [pair for pair in run.comparisons() if {pair.one, pair.other} == {"plain", "asked"}]
        assert pair.differences["score"].difference.value == 0
    document = json.loads(shell("deception", "r", "--json", "--quiet").out)
    stated = {one["name"]: one["wins"] and one["wins"]["statements"] for one in document["players"]}
    assert stated == {"ClaudeBot": None, "plain": None} | {name: len(turns[name]) for name in ("asked", "decides")}


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        ('{"p_win": 0.25, "answer": true}', 0.25),
        ('Well: {"p_win": 1, "answer": true}', 1.0),
        ('[{"type": "predicate", "name": "p_win", "probability": 0.5}]', 0.5),
        *((reply, None) for reply in ("", "[1]", "{}", '{"p_win": null}', '{"p_win": 1.5}', '{"p_win": true}', "[{}]")),
    ],
)
def test_impossible_and_missing_beliefs_are_left_out(reply: str, stated: float | None) -> None:
    assert read_chance_to_win(reply) == stated


@pytest.mark.parametrize(
    ("beliefs", "counts"),
    [
        ({"p_bluff": 1.7, "p_win": -1}, {"statements": 0, "nulls": 0, "impossible": "all"}),
        pytest.param(
            {"p_bluff": None, "p_win": None},
            {"statements": 0, "nulls": "all", "impossible": 0},
            marks=pytest.mark.at_length,
        ),
    ],
)
def test_a_model_whose_beliefs_cannot_be_used_has_counts_but_no_figures(
    tmp_path: Path, shell: Shell, beliefs: dict[str, object], counts: dict[str, object]
) -> None:
    """Its answers are played, and the sheet shows why there is no figure."""
    with Server(lambda request: respond(request.protocol, json.dumps({**beliefs, "answer": False}))) as server:
        run_games(small(player_at(server, prompt="beliefs"), games=2, turns=24), tmp_path / "r")
    result = shell("deception", "r", "--json", "--quiet", "--output", "sheet")
    assert result.code == 0, result.err
    (player,) = [one for one in json.loads(result.out)["players"] if one["name"] == "asker"]
    asked = sum(player["parts"][0]["counts"][key] for key in ("met", "honest"))
    assert asked > 2
    for key, count in counts.items():
        assert player["beliefs"][key] == (asked if count == "all" else count)
    figures = [*(player["beliefs"][key] for key in ("auroc", "brier", "ece")), player["gap"]["loss"]]
    assert [one["value"] for one in figures] == [None] * 4
    assert player["wins"] is None
    assert "stated probabilities match the truth" in (tmp_path / "sheet" / "index.html").read_text()
