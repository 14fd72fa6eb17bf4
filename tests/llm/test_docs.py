"""The model bot guide is correct: code blocks play with fake models, and names exist."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml

from dubito.llm.request import CAUSES
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.llm.kit import config_file, contender, rows, run_cli

PAGE = (REPO / "docs" / "writing-a-model-bot.md").read_text()


def blocks(language: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def name_of(source: str) -> str:
    (name,) = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return name


PLAIN, _ADVISED, DESCRIPTION, BOLD, _CATALOG, DECIDES, MIXES = blocks("yaml")
ALL_THREE = """\
games: 9
table_sizes: [3]
bots: [StefaBot, UsualBot]
contenders:
  - {bot: SureBot, model: house-sharp, base_url: house}
  - {bot: RatelessBot, model: house-sharp, base_url: house}
  - {bot: OpenAIBot, name: brief, model: house-sharp, base_url: house, prompt: my/short}
"""
FILES = {
    **dict(zip(["bots/llms/sure_bot.py", "bots/llms/rateless_bot.py"], blocks("python"), strict=True)),
    "my/short/prompt.yaml": DESCRIPTION,
    "my/bold/prompt.yaml": BOLD,
    **dict(
        zip(["my/short/system.jinja", "my/short/user.jinja", "my/bold/paragraph.jinja"], blocks("jinja"), strict=True)
    ),
}


@pytest.fixture
def written(shell: Shell) -> Shell:
    """Set up a working directory by following the page."""
    for name, text in FILES.items():
        assert f"`{name}`" in PAGE, "the page names each file"
        (shell.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (shell.folder / name).write_text(text)
    return shell


def requests(player: str) -> list[str]:
    with RunDb.open(Path("r/run.db")) as db:
        kept = db.read("SELECT request FROM attempts WHERE player = ? AND game >= 0", (player,))
        return [ModelLog(db).text(digest) for (digest,) in kept]


def fact(name: str, request: str) -> str | None:
    found = re.search(rf"\\n{name}: (.*?)\\n", request)
    return found and found[1]


def doubt_rate(request: str) -> str:
    return str(fact("prev", request)).split()[2]


def test_first_config_of_the_guide_plays(shell: Shell) -> None:
    Path("c.yaml").write_text(PLAIN)
    result = shell("run", "c.yaml", "--output", "r", "--quiet", "--games", "3", "--max-turns", "9")
    assert result.code == 0
    assert requests("sharp")
    assert requests("honest")


def test_the_classes_and_the_prompt_play(written: Shell) -> None:
    Path("c.yaml").write_text(ALL_THREE)
    result = written("run", "c.yaml", "--output", "r", "--quiet", "--games", "3", "--max-turns", "60", "--seed", "3")
    assert (result.code, result.err) == (0, "")
    nodes = dict(
        rows(
            Path("r"), "SELECT player, group_concat(DISTINCT node) FROM attempts NATURAL JOIN decisions GROUP BY player"
        )
    )
    assert set(nodes) == {"SureBot", "RatelessBot", "brief"}
    for asked in nodes.values():
        assert set(asked.split(",")) == set("ABCDE")
    rateless = requests("RatelessBot")
    assert {doubt_rate(request) for request in rateless} == {"unknown"}
    assert {doubt_rate(request) for request in requests("SureBot")} > {"unknown"}
    assert all('"max_tokens":2048' in request for request in rateless)
    for request in requests("brief"):
        assert "You play Dubito. Rules:" in request
        assert "What happened so far" not in request


def claims(player: str) -> set[bool]:
    asked = [request for request in requests(player) if fact("node", request) == "C"]
    return {int(fact("last_play", each) or 0) + int(fact("held_of_number", each) or 0) > 4 for each in asked}


def test_the_model_is_not_asked_what_the_bot_knows(written: Shell) -> None:
    sure, plain = contender("sure", bot="SureBot"), contender("plain")
    assert run_cli(written, sure, plain, games=2, rules={"max_turns": 40}).code == 0
    assert claims("plain") == {True, False}
    assert claims("sure") == {False}


def test_commands_of_the_guide_run(written: Shell) -> None:
    commands = [shlex.split(block) for block in blocks("sh")]
    assert len(commands) == 1
    for program, *words in commands:
        assert program == "dubito"
        result = written(*words)
        assert result.code == 0
        assert "Do you doubt?" in result.out


@pytest.mark.parametrize("config", in_gate([DECIDES, MIXES], 1))
def test_the_configs_of_decision_models_play(shell: Shell, config: str) -> None:
    games = "games: 2\ntable_sizes: [3]\nbots: [StefaBot, UsualBot]\n"
    Path("c.yaml").write_text(games + config.replace("openai:gpt-6-luna", "house:house-sharp"))
    result = shell("run", "c.yaml", "--output", "r", "--quiet", "--no-report")
    assert result.code == 0, result.err
    assert not rows(Path("r"), "SELECT 1 FROM decisions WHERE outcome <> 'model'")


def test_the_table_of_the_summary_has_its_columns_and_causes(shell: Shell) -> None:
    assert shell("run", config_file(contender("one")), "--output", "r").out.count("Model players") == 1
    printed = shell("run", "c.yaml", "--output", "r").out.splitlines()
    headers = re.split(r"\s{2,}", printed[printed.index("Model players") + 1])
    section = PAGE.split("## What the summary shows")[1].split("## ")[0]
    named = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)))
    assert headers == ["model player", *named]
    for cause in CAUSES:
        assert f"`{cause}`" in section


OPENS = '''
from bots.llms.openai_bot import OpenAIBot
class Opens(OpenAIBot):
    """Answers {node} itself."""
    def {method}(self, p): return {answer}
'''


@pytest.mark.parametrize(
    ("node", "method", "answer"),
    in_gate([("C", "should_doubt", False), ("B", "maximize_first_hand", True), ("E", "maximize_regular", True)], 1),
)
def test_a_node_may_be_answered_by_the_bot_itself(shell: Shell, node: str, method: str, answer: bool) -> None:
    shell.bot("opens.py", OPENS.format(node=node, method=method, answer=answer), "llms")
    assert run_cli(shell, contender("own", bot="Opens"), games=1, rules={"max_turns": 20}).code == 0
    asked = {found for (found,) in rows(Path("r"), "SELECT DISTINCT node FROM decisions")}
    assert asked == set("ABCDE") - {node}


@pytest.mark.parametrize(
    ("method", "answer", "then", "question"),
    in_gate(
        [
            ("bluff_regular", False, "E", "You are honest, with "),
            ("bluff_first_hand", True, "B", "You open with a bluff."),
            ("bluff_first_hand", False, "B", "You open with honest cards."),
        ],
        1,
    ),
)
def test_bots_own_answer_is_in_the_next_question(
    shell: Shell, method: str, answer: bool, then: str, question: str
) -> None:
    shell.bot("opens.py", OPENS.format(node="one node", method=method, answer=answer), "llms")
    assert run_cli(shell, contender("own", bot="Opens"), games=1, rules={"max_turns": 20}).code == 0
    free = [each for each in requests("own") if fact("node", each) == then and fact("held_of_number", each) != "0"]
    assert free
    assert [each for each in free if question not in each] == []


@pytest.mark.parametrize("page", ["servers.md", "money.md"])
def test_the_configs_of_other_servers_and_of_money_are_accepted(shell: Shell, page: str) -> None:
    """Run the configs offline, so that everything is checked and only replies are missing."""
    found = blocks("yaml", (REPO / "docs" / page).read_text())
    assert found
    for number, text in enumerate(found):
        config = yaml.safe_load(text)
        players = config.pop("contenders", [contender("one")])
        ended = run_cli(shell, *players, games=len(players), flags=["--offline", "--output", f"r{number}"], **config)
        assert (ended.code, "--offline: the cache has no reply" in ended.err) == (3, True), ended.err
