"""All questions of a turn in one request: sent, parsed, re-asked, stored, shown and replayed."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dubito.experiment.run import RunResult
from dubito.game.events import AnswerEvent
from dubito.game.log import Position, SeatLog
from dubito.games.dubito.facts import example_position
from dubito.games.dubito.game import GAME
from dubito.llm.answers import ModelAnswer, build_turn_form, read_answer
from dubito.llm.prompts import Prompt, load_prompt
from dubito.llm.request import AttemptFailed, RawReply, Reply
from dubito.store.model_log import ModelLog, attempt_keys
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Shell
from tests.llm.kit import (
    Incoming,
    Response,
    Server,
    config_file,
    contender,
    outcomes_of,
    player_at,
    respond,
    rows,
    run_games,
    small,
)
from tests.llm.kit import reply as a_reply

NODES: Final = {node.name: node for node in GAME.nodes}
TURN: Final = build_turn_form(("p_bluff", "answer"), tuple(NODES[name] for name in "CDE"))
PLAN: Final = load_prompt("plan", REPO)
LAST: Final = {"A": False, "B": True, "C": False, "D": False, "E": True}  # never doubts, is honest, plays many cards


def read(text: str) -> tuple[dict[str, Any], str]:
    found = TURN.read(Reply(text, "stop", None, RawReply(200, "")))
    return {node: one.answer for node, one in found.given.items()}, next((e.detail for e in found.unread.values()), "")


@pytest.mark.parametrize(
    ("text", "given", "detail"),
    [
        ('{"p_bluff": 0.5, "C": false, "D": true, "E": true}', {"C": False, "D": True, "E": True}, None),
        ('{"p_bluff": 0.5, "C": false, "D": true}', {"C": False, "D": True}, "the field `E` is missing"),
        ('{"p_bluff": null, "C": "no", "D": true, "E": 1}', {"D": True}, "`C` is neither true nor false"),
    ],
)
def test_unreadable_answer_does_not_affect_other_answers(
    text: str, given: Mapping[str, bool], detail: str | None
) -> None:
    found, unread = read(text)
    assert found == given
    assert unread.startswith(detail or "")
    assert bool(unread) is bool(detail)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"p_bluff": 0.5, "C": 0, "D": "yes"}', "`C` is neither true nor false"),
        ('{"p_bluff": 0.5, "C": false, "D": true, "E": true, "F": true}', "it has fields other than"),
        ('{"C": false, "D": true, "E": true}', "the field `p_bluff` is missing"),
        ('{"p_bluff": 0.5, "C": false, "C": true, "D": true, "E": true}', "a key appears twice"),
        ('{"answer": true}', "missing"),
        ("[]", "it is not a JSON object"),
    ],
)
def test_reply_without_answers_fails_as_a_whole(text: str, detail: str) -> None:
    with pytest.raises(AttemptFailed, match=detail) as caught:
        read(text)
    assert caught.value.cause == "malformed"


def test_stated_probability_is_next_to_its_question() -> None:
    found = TURN.read(a_reply('{"p_bluff": 0.25, "C": true, "D": true, "E": false}'))
    assert found.given == {"C": ModelAnswer(True, 0.25), "D": ModelAnswer(True), "E": ModelAnswer(False)}
    assert read_answer(a_reply('{"p_bluff": 7, "C": true, "D": true, "E": false}'), TURN).impossible


def asked_by(request: Incoming) -> list[str]:
    return list(request.body["text"]["format"]["schema"]["properties"])


def answering(change: Callable[[Incoming, dict[str, Any]], dict[str, Any]]) -> Callable[[Incoming], Response]:
    """Answer each question as in `LAST`, after this change."""

    def answer(request: Incoming) -> Response:
        whole = {field: LAST.get(field) for field in asked_by(request)}
        return respond("responses", json.dumps(change(request, whole)))

    return answer


def run_of(server: Server, folder: Path, prompt: str = "plan", **more: Any) -> RunResult:
    return run_games(
        small(player_at(server, prompt=prompt, **more), games=3, turns=12), folder, in_flight=1, preflight=False
    )


def decided(folder: Path) -> dict[tuple[str, str], int]:
    counted = rows(folder, "SELECT node, outcome, count(*) FROM decisions GROUP BY 1, 2")
    return {(node, outcome): times for node, outcome, times in counted}


def test_request_asks_all_questions_of_a_turn(tmp_path: Path) -> None:
    with Server(answering(lambda request, whole: whole)) as server:
        run = run_of(server, tmp_path / "run")
    asked = Counter("".join(asked_by(request)) for request in server.requests)
    assert asked.keys() <= {"AB", "CDE", "CE", "DE", "E"}
    assert len(asked) >= 3
    log = run.models["asker"]
    assert (log.calls, log.attempts, log.reasks) == (len(server.requests), len(server.requests), 0)
    assert outcomes_of(run.folder) == {"model": log.decisions}
    assert log.decisions == sum(len(nodes) * times for nodes, times in asked.items()), "it never doubts"
    nodes = rows(run.folder, "SELECT node, count(*) FROM decisions GROUP BY 1 ORDER BY 1")
    assert dict(nodes)["E"] == asked["CDE"] + asked["CE"] + asked["DE"] + asked["E"]


def test_only_failed_and_needed_answers_are_asked_again(tmp_path: Path) -> None:
    """E is missing. When the turn reaches E, only E is asked again."""

    def change(request: Incoming, whole: dict[str, Any]) -> dict[str, Any]:
        return whole if request.re_asked or set(whole) == {"E"} else {f: v for f, v in whole.items() if f != "E"}

    with Server(answering(change)) as server:
        run = run_of(server, tmp_path / "run")
        again = [request for request in server.requests if request.re_asked]
        first = [request for request in server.requests if not request.re_asked and {"C", "E"} <= {*asked_by(request)}]
    assert again
    assert len(again) == sum("E" in asked_by(request) and len(asked_by(request)) > 1 for request in server.requests)
    assert {tuple(asked_by(request)) for request in again} == {("E",)}
    assert all("the field `E` is missing" in request.last and '{"E": true}' in request.last for request in again)
    assert decided(run.folder)["E", "model_after_reask"] == len(again) == run.models["asker"].reasks
    assert decided(run.folder)["C", "model"] == len(first)

    with Server(
        answering(lambda request, whole: change(request, whole | ({"C": True} if "C" in whole else {})))
    ) as doubter:
        run_of(doubter, tmp_path / "doubts")
    assert first
    assert not any(request.re_asked and "C" in str(request.conversation[-2]) for request in doubter.requests), (
        "an answer to C was enough"
    )


def test_unusable_reply_is_asked_again_before_fallback(tmp_path: Path) -> None:
    with Server(lambda request: respond("responses", "I doubt it.")) as server:
        run = run_of(server, tmp_path / "run", tries=1)
    again = [request for request in server.requests if request.re_asked]
    assert len(again) * 2 == len(server.requests)
    assert [asked_by(request) for request in again] == [
        asked_by(request) for request in server.requests if not request.re_asked
    ]
    assert {outcome for _, outcome in decided(run.folder)} == {"fallback:malformed"}
    assert len(run.models["asker"].outcomes) == 1


@pytest.mark.at_length
def test_fake_models_decide_the_same_for_turns_and_nodes(shell: Shell) -> None:
    """Decisions and results are the same with fewer calls, with many games in flight, from the cache, and replayed."""
    taken, games = {}, []
    for prompt in ("reasoned", "plan-reasoned"):
        config = config_file(contender("sharp", "house-sharp", prompt=prompt), games=4, rules={"max_turns": 20})
        result = shell("run", config, "--output", prompt, "--quiet", "--no-report")
        assert result.code == 0, result.err
        columns = "game, seat, decision, turn, node, answer, outcome, p_bluff"
        taken[prompt] = rows(Path(prompt), f"SELECT {columns} FROM decisions ORDER BY 1, 2, 3")  # noqa: S608
        games.append(rows(Path(prompt), "SELECT game, outcome FROM games"))
    assert taken["reasoned"] == taken["plan-reasoned"]
    assert games[0] == games[1]
    calls = [rows(Path(prompt), "SELECT count(*) FROM attempts WHERE game >= 0")[0][0] for prompt in taken]
    assert calls[1] < 0.7 * calls[0]
    digest = result.out.rpartition("results digest: ")[2].split()[0]
    for flags in (("--in-flight", "1", "--cache", "other"), ("--offline",)):
        assert digest in shell("run", "c.yaml", "--output", flags[0][2:], "--quiet", "--no-report", *flags).out
    assert digest in shell("replay", "plan-reasoned").out


def test_decision_refers_to_the_request_that_asked_it(shell: Shell) -> None:
    config = config_file(contender("sharp", "house-sharp", prompt="plan"), games=1, rules={"max_turns": 30})
    assert shell("run", config, "--output", "r", "--quiet").code == 0
    with RunDb.open(Path("r/run.db")) as db:
        decisions = ModelLog(db).decisions(0)
        under = attempt_keys(decisions, ModelLog(db).attempts(0))
        asked = {place for place, attempts in ModelLog(db).attempts(0).items() if attempts}
    led = {place for place, first in under.items() if place[1] != first}
    assert led == under.keys() - asked
    assert {decisions[place].node for place in led} >= {"B", "E"}
    assert {decisions[seat, under[seat, number]].node for seat, number in led} <= {"A", "C", "D"}
    seat, number = min(led)
    explained = [shell("cache", "explain", f"0.{seat}.{n}", "--run", "r").out for n in (number, under[seat, number])]
    assert explained[0] == explained[1]
    assert "the cache has a reply" in explained[0]
    assert "no request" in shell("cache", "explain", f"0.{seat}.900", "--run", "r").err
    assert shell("report", "r").code == 0
    (page,) = Path("r/report/games").glob("0*")
    assert page.read_text().count('"asked_with"') == len(led)


ASKS_C_ITSELF: Final = '''
from bots.llms.openai_bot import OpenAIBot
class CalmBot(OpenAIBot):
    """Never doubts, whatever the model would."""
    def should_doubt(self, p):
        return False
'''


def test_subclass_that_answers_one_node_asks_the_model_at_the_rest(tmp_path: Path, shell: Shell) -> None:
    Path("bots/llms").mkdir(parents=True)
    Path("bots/llms/calm_bot.py").write_text(ASKS_C_ITSELF)
    with Server(answering(lambda request, whole: whole)) as server:
        calm = player_at(server, prompt="plan") | {"bot": "CalmBot"}
        config = config_file(calm, games=2, rules={"max_turns": 12}, on_unusable="fallback")
        assert shell("run", config, "--output", "r", "--quiet", "--no-preflight", "--no-report").code == 0
    asked = {"".join(asked_by(request)) for request in server.requests}
    assert "DE" in asked
    assert not any("C" in fields for fields in asked)


@pytest.mark.parametrize(
    ("game", "ask", "fault"),
    [
        ("dubito", "round", "prompt.yaml: ask"),
        ("bs", "turn", "ask: turn: the facts of bs have no `turn`, so each move is a single question"),
    ],
)
def test_prompt_that_cannot_ask_a_whole_turn_is_refused(shell: Shell, game: str, ask: str, fault: str) -> None:
    folder = Path("prompts", *(() if game == "dubito" else (game,)), ask)
    folder.mkdir(parents=True)
    (folder / "prompt.yaml").write_text(yaml.safe_dump({"title": "t", "ask": ask, "answer": ["answer"]}))
    for name in ("system", "user"):
        (folder / f"{name}.jinja").write_text("Play.\n")
    result = shell("prompts", "show", ask, "--game", game)
    assert result.code == 2
    assert fault in result.err


def test_prompt_of_a_turn_gets_the_facts_of_each_question(tmp_path: Path) -> None:
    sources = {
        "prompt.yaml": "title: t\nask: turn\nanswer: [answer]\n",
        "system.jinja": "{{ answer_format }}\n",
        "user.jinja": "{% for x in turn %}\n{{ x['node'] }} {{ x['answers'] }}: {{ x['question'] }}\n{% endfor %}",
    }
    rendered = Prompt(tmp_path / "mine", sources).render(example_position("A"))
    assert rendered.user.splitlines() == [
        "A none: The board is empty and you open a round. Do you bluff?",
        "B Truex A: You open with a bluff. Do you play many cards?",
        "B Falsex A: You open with honest cards. Do you play many?",
    ]
    assert rendered.system.startswith("Reply with a JSON object and nothing else. It has a field for each question")
    alone = Prompt(tmp_path / "mine", sources | {"prompt.yaml": "title: t\nask: turn\nanswer: [reasoning, answer]\n"})
    assert "then one for each question, named after it, true or false" in alone.render(example_position("C")).system


@pytest.mark.parametrize(
    ("node", "held", "question"),
    [
        ("C", True, "D, if you do not doubt: You play as 4s and hold 1 of them. Do you bluff anyway?"),
        ("D", True, "D: You play as 4s and hold 1 of them. Do you bluff anyway?"),
        ("C", False, "E: Do you play many cards?"),
        ("E", False, "E: You hold no 4s and must bluff. Do you play many cards?"),
    ],
)
def test_turn_without_doubt_states_what_is_played(node: str, held: bool, question: str) -> None:
    example = example_position("D" if held else "E")
    asked = [event for event in example.log if not isinstance(event, AnswerEvent)]
    position = Position(example.rules, node, SeatLog(example.seat, asked))
    assert question in PLAN.render(position).user.splitlines()


def test_prompt_states_that_the_deck_has_no_jokers() -> None:
    position = example_position("C")
    for jokers, text in enumerate(("king) and no joker.", "king) and one joker.", "king) and two jokers.")):
        assert text in PLAN.render(replace(position, rules=GAME.rules(jokers=jokers))).system
