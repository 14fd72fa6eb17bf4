"""Decision models: questions answered with probabilities, and sampled answers.

The server answers as in OpenAI's documents (types in `openai.types.decision`), and in invalid ways.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from openai.types.decision import Decision
from openai.types.decision_create_params import DecisionCreateParams
from pydantic import TypeAdapter

from dubito.errors import UsageError
from dubito.game import STATED
from dubito.game.find import find_game
from dubito.llm.answers import ModelAnswer, build_form, read_answer, with_odds
from dubito.llm.decide import sample_answer
from dubito.llm.pipeline import build_probe
from dubito.llm.prompts import load_prompt
from dubito.llm.protocols import build_request, read_reply
from dubito.llm.protocols.wire import Exchange
from dubito.llm.questions import QuestionForm, build_question_form, check_askable, parse_odds
from dubito.llm.request import AttemptFailed, RawReply
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    Incoming,
    Response,
    Server,
    config_file,
    contender,
    outcomes_of,
    rows,
    run_games,
    settings,
    small,
)
from tests.llm.kit import reply as a_reply

GAMES: Final = ("dubito", "defuse", "openspiel:kuhn_poker", "openspiel:liars_dice")
PARAMS: Final = TypeAdapter(DecisionCreateParams)
PLAN: Final = load_prompt("plan-reasoned", REPO).for_api("decisions")


def form_at(node: str) -> QuestionForm:
    form = PLAN.form_at(PLAN.game.facts.example_position(node))
    assert isinstance(form, QuestionForm)
    return form


@pytest.mark.parametrize("name", GAMES)
def test_requests_match_the_sdks_types(name: str) -> None:
    pytest.importorskip("pyspiel") if ":" in name else None
    game = find_game(name, REPO)
    for title in ("plan-reasoned", "plain") if name == "dubito" else ("plain",):
        prompt = load_prompt(title, REPO, game).for_api("decisions")
        for node in game.nodes:
            position = game.facts.example_position(node.name)
            rendered, form = prompt.render(position), prompt.form_at(position)
            exchange = Exchange(rendered.system, rendered.user, form.schema, history=rendered.history)
            request = build_request(settings("decisions"), exchange, "key")
            assert request.path == "/decisions"
            sent = PARAMS.validate_python(dict(request.body), strict=True, extra="forbid")
            assert {"model", "input", "questions", "prompt_cache_key"} == sent.keys()
            questions = request.body["questions"]
            assert len({question["name"] for question in questions}) == len(questions)
            for question in questions:
                assert question["instructions"].endswith(("?", ".")), question
                assert 2 <= len(question.get("choices", "12")) <= 255
            assert "Reply with" not in json.dumps(request.body), "this model writes no JSON"
            assert name != "dubito" or "one a request" not in json.dumps(request.body)


def test_all_questions_of_a_turn_are_asked_once() -> None:
    names = [question.name for question in form_at("C").questions]
    assert names == [STATED, "C", "E"]
    assert [question.name for question in form_at("D").questions] == ["D", "E-1", "E-2"]
    first, second = (question.content for question in form_at("D").questions[1:])
    assert (first["instructions"], second["instructions"]) == (
        "You bluff, as 4s. Do you play many cards?",
        "You are honest, with 4s. Do you play many cards?",
    )
    assert [choice["value"] for choice in first["choices"]] == [True, False]
    assert form_at("C").questions[0].content["instructions"] == "The last play is a bluff."


def answer_to(question: Mapping[str, Any], best: Any = None, share: float = 0.75) -> dict[str, Any]:
    """Return a valid answer with this value, or the first legal one, and this probability."""
    if question["type"] == "predicate":
        return {"type": "predicate", "name": question["name"], "probability": share}
    values = [choice["value"] for choice in question["choices"]]
    best = values[0] if best is None else best
    rest = (1 - share) / (len(values) - 1)
    rows = [{"value": value, "probability": share if value == best else rest} for value in values]
    return {"type": "choice", "name": question["name"], "choice": best, "confidence": share, "probabilities": rows}


def build_body(answers: list[Any]) -> str:
    usage = {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    usage |= {"output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 90}
    return json.dumps({"answers": answers, "model": "gpt-6-luna-2026-10-22", "usage": usage})


def read(answers: list[Any], node: str = "D") -> Any:
    return form_at(node).read(read_reply("decisions", RawReply(200, build_body(answers))))


def good(node: str = "D") -> list[dict[str, Any]]:
    return [answer_to(question.content, False) for question in form_at(node).questions]


def test_answer_has_odds_and_costs_no_output() -> None:
    found = read(good("C"), "C")
    odds = ((True, 0.25), (False, 0.75))
    assert found.given == {"C": ModelAnswer(False, 0.75, shares=odds), "E": ModelAnswer(False, shares=odds)}
    assert not found.unread
    reply = read_reply("decisions", RawReply(200, build_body(good())))
    assert reply.usage
    assert (reply.usage.input, reply.usage.output, reply.finish) == (90, 0, "stop")


def changed(place: int, **fields: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda answers: [{**one, **fields} if n == place else one for n, one in enumerate(answers)]


def odds(*pairs: tuple[Any, Any]) -> list[dict[str, Any]]:
    return [{"value": value, "probability": share} for value, share in pairs]


WHOLE: Final[dict[str, Callable[[list[Any]], list[Any]]]] = {  # makes the whole reply unusable
    "one missing": lambda answers: answers[:-1],
    "one doubled": lambda answers: [answers[0], *answers],
    "reordered": lambda answers: [answers[0], answers[2], answers[1]],
    "no name": changed(1, name=None),
    "another kind": changed(1, type="predicate", probability=0.5),
}
ONE: Final[dict[str, Callable[[list[Any]], list[Any]]]] = {  # changes the first answer
    "not offered": changed(0, choice="maybe"),
    "a text for a boolean": changed(0, choice="true"),
    "null": changed(0, choice=None),
    "a probability above 1": changed(0, probabilities=odds((True, 1.5), (False, -0.5))),
    "a probability that is a boolean": changed(0, probabilities=odds((True, True), (False, False))),
    "a sum of 0.98": changed(0, probabilities=odds((True, 0.49), (False, 0.49))),
    "half of them": changed(0, probabilities=odds((True, 1.0))),
    "one of them twice": changed(0, probabilities=odds((True, 0.5), (True, 0.5), (False, 0.5))),
    "one that was not offered": changed(0, probabilities=odds((True, 0.5), ("false", 0.5))),
    "no list": changed(0, probabilities={"true": 0.5, "false": 0.5}),
}


@pytest.mark.parametrize("name", WHOLE)
def test_answers_to_other_questions_are_malformed(name: str) -> None:
    with pytest.raises(AttemptFailed) as caught:
        read(WHOLE[name](good()))
    assert caught.value.cause == "malformed"


@pytest.mark.parametrize("name", ONE)
def test_impossible_answer_is_malformed_without_affecting_others(name: str) -> None:
    found = read(ONE[name](good()))
    assert found.given.keys() == {"E-1", "E-2"}
    assert found.unread["D"].cause == "malformed"


def test_chosen_answer_is_played_even_if_less_likely() -> None:
    found = read(changed(0, probabilities=odds((True, 0.9), (False, 0.1)))(good()))
    assert (found.given["D"].answer, found.given["D"].shares[0]) == (False, (True, 0.9))


def test_rounded_sums_and_declined_statements_are_accepted() -> None:
    found = read(changed(0, probabilities=odds((True, 0.333), (False, 0.66)))(good()))
    assert sum(share for _, share in found.given["D"].shares) == pytest.approx(1)
    reading = read([{"type": "refusal", "name": STATED}, *good("C")[1:]], "C")
    assert (reading.given["C"].stated, reading.given["C"].impossible) == (None, False)
    assert not reading.unread


@pytest.mark.parametrize("stated", [1.5, -0.1, True, "0.5", None])
def test_invalid_statement_is_counted_without_affecting_the_answer(stated: Any) -> None:
    reading = read(changed(0, probability=stated)(good("C")), "C")
    assert (reading.given["C"].stated, reading.given["C"].impossible) == (None, True)
    assert reading.given.keys() == {"C", "E"}


def read_of(legal: list[str], node: str, value: str) -> ModelAnswer:
    """Parse an answer that chooses this value, with these legal values at a node of defuse."""
    game = find_game("defuse", REPO)
    form = build_question_form(game, [(game.facts.example_position(node), {"legal": legal})], ())
    asked = form.questions[0].content
    text = build_body([answer_to(asked, next(one["value"] for one in asked["choices"] if value in one["value"]))])
    return form.read(read_reply("decisions", RawReply(200, text))).given[node]


@pytest.mark.parametrize(
    ("legal", "node", "value", "answers"),
    [
        (["skip"], "turn", "but skip", ["skip", "skip"]),
        (["3"], "place", "but 3", [3, 3]),
        (["nothing"], "turn", "but nothing", ["nothing", "nothing"]),
        (["skip", "nothing but skip"], "turn", "but skip", ["skip", "nothing but skip"]),
    ],
)
def test_only_legal_value_is_played_whatever_is_chosen(
    legal: list[str], node: str, value: str, answers: list[Any]
) -> None:
    found = read_of(legal, node, value)
    assert (found.answer, [answer for answer, _ in found.shares]) == (answers[1], answers)


def test_probe_uses_the_accounts_api(tmp_path: Path) -> None:
    """A single game waits for a failing server, which is then probed."""
    sent = PARAMS.validate_python(
        dict(build_probe("x", settings("decisions")).request.body), strict=True, extra="forbid"
    )
    assert sent["questions"]
    player = contender("one", "house-sharp", prompt="plan", api="decisions", base_url="house?faults=server_error:0.7")
    run = run_games(small(player, games=1, turns=12, seed=3), tmp_path / "r", in_flight=1)
    assert run.failure is None
    ((probes,),) = rows(tmp_path / "r", "SELECT count(*) FROM tries WHERE game = -2")
    assert probes > 0


def serving(change: Callable[[Incoming, list[Any]], list[Any]]) -> Callable[[Incoming], Response]:
    return lambda request: Response(
        body=build_body(change(request, [answer_to(question, False) for question in request.body["questions"]]))
    )


def decider(server: Server, **more: Any) -> dict[str, Any]:
    base_url = f"{server.address}/v1"
    return contender("asker", "gpt-6-luna", base_url=base_url, api="decisions", prompt="plan", **more)


def test_only_declined_questions_are_asked_again(shell: Shell) -> None:
    def declines(request: Incoming, answers: list[Any]) -> list[Any]:
        again = "bluffing is part of its rules and harms nobody" in str(request.body["input"])
        return answers if again else [{"type": "refusal", "name": answers[0]["name"]}, *answers[1:]]

    dear = {"gpt-6-luna": {"input": 1, "cached_input": 1, "cache_write": 1, "output": 1000}}
    with Server(serving(declines)) as server:  # no output tokens are reserved
        config = config_file(decider(server), games=2, prices=dear, budget={"usd": 1})
        assert (
            shell("run", config, "--output", "r", "--quiet", "--no-preflight", "--no-report", "--in-flight", "1").code
            == 0
        )
    asked = [[question["name"] for question in request.body["questions"]] for request in server.requests]
    assert {len(names) for names in asked[1::2]} == {1}, "only the declined question is asked again"
    assert [names[:1] for names in asked[::2]] == asked[1::2]
    assert set(outcomes_of(Path("r"))) == {"model", "model_after_reask"}

    with Server(serving(lambda request, answers: answers[:-1])) as server:
        config = config_file(decider(server), games=2, on_unusable="fallback")
        assert shell("run", config, "--output", "s", "--quiet", "--no-preflight", "--no-report").code == 0
    assert set(outcomes_of(Path("s"))) == {"fallback:malformed"}
    ((attempts, reasks),) = rows(Path("s"), "SELECT count(*), sum(attempt > 0) FROM attempts")
    assert (len(server.requests), reasks) == (attempts, 0)


@pytest.mark.at_length
def test_fake_models_decide_the_same_in_both_apis(shell: Shell) -> None:
    """The digest is the same live with many games in flight, from the cache, offline and replayed."""
    taken = []
    for name, more in (("written", {}), ("decided", {"api": "decisions"})):
        player = contender("sharp", "house-sharp", prompt="plan-reasoned", **more)
        config = config_file(player, games=4, rules={"max_turns": 20})
        result = shell("run", config, "--output", name, "--quiet", "--no-report")
        assert result.code == 0, result.err
        taken.append(rows(Path(name), "SELECT game, seat, decision, node, answer, p_bluff FROM decisions"))
    assert taken[0] == taken[1]
    digest = result.out.rpartition("results digest: ")[2].split()[0]
    for output, flags in (("one", ("--in-flight", "1", "--cache", "other")), ("off", ("--offline",))):
        assert digest in shell("run", config, "--output", output, "--quiet", "--no-report", *flags).out
    assert digest in shell("replay", "decided").out
    ((written, output),) = rows(Path("decided"), "SELECT count(*), sum(output) FROM attempts")
    assert (written > 5, output) == (True, 0)


def test_house_odds_make_best_and_drawn_play_differ(shell: Shell) -> None:
    """Where `best` always takes the likelier answer, `drawn` takes it as often as its odds say."""
    player = {"model": "house-sharp", "prompt": "plan", "api": "decisions"}
    config = config_file(contender("best", **player), contender("drawn", play="drawn", **player), games=16)
    assert shell("run", config, "--output", "r", "--quiet", "--no-report").code == 0
    asked = (
        "SELECT DISTINCT d.game, a.player, d.answer, a.server, t.request, t.draw FROM decisions d JOIN attempts a "
        "USING (game, seat, decision) JOIN tries t USING (request, draw) WHERE d.node = 'C' AND d.game >= 0"
    )
    took, count, likely = Counter[str](), Counter[str](), dict.fromkeys(("best", "drawn"), 0.0)
    with RunDb.open(Path("r/run.db")) as db:
        replies = [(*row[:3], ModelLog(db).find_paid_reply(*row[3:])) for row in rows(Path("r"), asked)]
    for _, name, answer, reply in replies:
        shares = dict[Any, float](parse_odds(json.dumps(json.loads(reply.raw)["answers"]))["C"])
        best = max(shares, key=shares.__getitem__)
        if shares[best] < 0.99:
            took[name] += bool(answer) == best
            likely[name] += shares[best]
            count[name] += 1
    assert took["best"] == count["best"] > 12
    assert took["drawn"] < count["drawn"]
    assert took["drawn"] == pytest.approx(likely["drawn"], abs=0.2 * count["drawn"])


def test_sampled_answers_repeat(shell: Shell) -> None:
    """Sampling uses the seat's own stream, so another seed draws other answers.

    `best` always takes the likelier one.
    """
    players = [
        contender("best", prompt="mixed"),
        contender("drawn", prompt="mixed", play="drawn"),
        contender("decides", prompt="plan", api="decisions", play="drawn"),
    ]
    config = config_file(*players, games=3, rules={"max_turns": 20})
    result = shell("run", config, "--output", "r", "--quiet", "--no-report")
    assert result.code == 0, result.err
    names = "SELECT DISTINCT a.player, d.answer FROM decisions d JOIN attempts a USING (game, seat) WHERE d.game >= 0"
    found = set(rows(Path("r"), names))
    assert found == {("best", 0), *((name, answer) for name in ("drawn", "decides") for answer in (0, 1))}
    digest = result.out.rpartition("results digest: ")[2].split()[0]
    assert digest in shell("run", config, "--output", "s", "--quiet", "--no-report", "--in-flight", "1").out
    assert digest in shell("replay", "r").out
    manifest = Path("r/manifest.yaml").read_text()
    assert (manifest.count("play: drawn"), manifest.count("play: best")) == (2, 1)


@pytest.mark.parametrize(
    ("reply", "odds"),
    [
        ('{"C": 0.25, "p_bluff": 0.5, "E": true}', {"C": [[True, 0.25], [False, 0.75]]}),
        ('{"answer": 2}', {}),
        ('{"answer": 1.5}', {}),
        ("[7]", {}),
        ('[{"name": "C", "probabilities": [7]}]', {}),
        ("prose", {}),
        (json.dumps(good("C")), {"C": [[True, 0.25], [False, 0.75]], "E": [[True, 0.25], [False, 0.75]]}),
    ],
)
def test_viewer_shows_the_odds_of_any_reply(reply: str, odds: dict[str, Any]) -> None:
    assert parse_odds(reply) == odds


@pytest.mark.parametrize(
    ("point", "drawn"),
    [(0.0, "a"), (0.19, "a"), (0.2, "c"), (0.99, "c"), (1.0, "c")],
)
def test_answers_are_sampled_by_their_share(point: float, drawn: str) -> None:
    assert sample_answer((("a", 0.2), ("b", 0.0), ("c", 0.8), ("d", 0.0)), point) == drawn


ODDS: Final = build_form(("answer",), with_odds(PLAN.game.node("C")))


@pytest.mark.parametrize(("text", "answer"), [("0.5", False), ("0.51", True), ("1", True), ("0", False)])
def test_odds_are_read_as_a_number(text: str, answer: bool) -> None:
    found = read_answer(a_reply(f'{{"answer": {text}}}'), ODDS)
    assert found == ModelAnswer(answer, shares=((True, float(text)), (False, 1 - float(text))))


@pytest.mark.parametrize("text", ["1.01", "-0.1", "true", '"0.5"', "null"])
def test_invalid_odds_are_malformed(text: str) -> None:
    with pytest.raises(AttemptFailed, match="`answer` is not a number from 0 to 1"):
        read_answer(a_reply(f'{{"answer": {text}}}'), ODDS)


@pytest.mark.parametrize(
    ("game", "more", "fault"),
    [
        ("bs", {"api": "decisions"}, "node cards of bs expects a list of cards"),
        ("dubito", {"play": "drawn"}, "play: drawn: its answers contain no probabilities to draw from"),
        ("dubito", {"play": "often"}, "play: must be 'best' or 'drawn'"),
        ("dubito", {"api": "decisions", "parameters": {"questions": []}}, "Dubito sets this itself"),
        ("dubito", {"api": "decision"}, "api: must be"),
    ],
)
def test_unsupported_questions_are_reported_first(shell: Shell, game: str, more: dict[str, Any], fault: str) -> None:
    bots = {"bs": ["Player1", "Player3", "Player4", "RiskTaker"]}.get(game, ["StefaBot", "UsualBot"])
    base: dict[str, Any] = {
        "game": game,
        "bots": bots,
        "games": 4,
        "table_sizes": [4] if game == "bs" else [3],
        "rules": {},
    }
    result = shell("run", config_file(contender("one", **more), **base), "--output", "r", "--quiet")
    assert result.code == 2
    assert fault in result.err
    assert not Path("r").exists()


def test_short_form_can_be_a_mapping(shell: Shell) -> None:
    config = config_file({"bot": "house:house-sharp@plan", "api": "decisions"}, games=1)
    assert shell("run", config, "--output", "r", "--quiet", "--no-report").code == 0
    ((protocol,),) = set(rows(Path("r"), "SELECT DISTINCT player FROM attempts"))
    assert protocol == "house:house-sharp@plan"
    assert "api: decisions" in Path("r/manifest.yaml").read_text()


FAULTS: Final = {
    "declined": {"model", "model_after_reask", "fallback:refused"},
    "missing": {"fallback:malformed"},
    "html": {"model"},
    "refusal": {"fallback:refused"},
    "prose": {"fallback:malformed"},
    "uneven": {"model", "fallback:malformed"},
}


@pytest.mark.parametrize("fault", in_gate(FAULTS, 3))
def test_house_faults_have_their_causes(shell: Shell, fault: str) -> None:
    outcomes = FAULTS[fault]
    player = contender("one", "house-sharp", prompt="plan", api="decisions", base_url=f"house?faults={fault}:1")
    if fault == "html":  # not a reply, so it is retried
        player["base_url"] = "house?faults=html:0.5"
    config = config_file(player, games=1, on_unusable="fallback")
    result = shell("run", config, "--output", "r", "--quiet", "--no-preflight", "--no-report", "--patience", "30s")
    assert result.code == 0, result.err
    assert set(outcomes_of(Path("r"))) <= outcomes
    assert set(outcomes_of(Path("r"))) & {
        outcome for outcome in outcomes if outcome.startswith("fallback") or fault == "html"
    }


def test_the_house_answers_in_the_sdks_types() -> None:
    from openai import OpenAI

    from dubito.house.core import house_policy
    from dubito.house.server import House

    with House(policy=house_policy([PLAN.game])) as house:
        client = OpenAI(api_key="k", base_url=house.base_url("decisions"), max_retries=0)
        asked: list[Any] = [question.content for question in form_at("C").questions]
        usage = client.decisions.create(model="house-random", input="seat: 1\nnode: C E\n", questions=asked)
        client.close()
    assert isinstance(usage, Decision)
    assert [answer.name for answer in usage.answers] == [STATED, "C", "E"]
    assert usage.usage.output_tokens == 0


def test_game_without_listed_answers_is_refused() -> None:
    with pytest.raises(UsageError, match="api: decisions"):
        check_askable("x", find_game("bs", REPO))
    check_askable("x", find_game("defuse", REPO))
