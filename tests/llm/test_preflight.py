"""The preflight sends a game's questions first, and stops the run with one message."""

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.model_players import check_models
from dubito.experiment.run import play
from dubito.house.server import House
from dubito.model_settings import Api
from tests.cli.kit import Result as Ended
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.experiment.kit import means, resolved
from tests.llm.kit import (
    PROTOCOLS,
    YES,
    Incoming,
    Response,
    Server,
    contender,
    error_body,
    outcomes_of,
    player_at,
    respond,
    rows,
    run_cli,
    small,
)
from tests.prompts.kit import PROMPTS


def answering(request: Incoming) -> Response:
    return respond(request.protocol)


def checks(requests: Sequence[Incoming]) -> list[Incoming]:
    of = [str(texts.user) for prompt in (PROMPTS["plain"], PROMPTS["reasoned"]) for texts, _ in prompt.samples]
    return [each for each in requests if any(each.last.endswith(text) for text in of)]


def stopped(ended: Ended, folder: str = "r") -> str:
    """Return the message of a run that its preflight stopped, after checking that no game was played."""
    assert ended.code == 3
    first, last = ended.err.splitlines()
    assert first == "No results yet: no games are finished."
    message, kept, _ = last.removeprefix("dubito: ").partition(f"; 0 of 2 games are saved in {folder}")
    assert kept
    assert rows(Path(folder), "SELECT count(*) FROM attempts WHERE game >= 0") == [(0,)]
    assert rows(Path(folder), "SELECT count(*) FROM decisions") == [(0,)]
    return message


@pytest.mark.parametrize(
    ("protocol", "prompt"),
    in_gate(product(PROTOCOLS, ["reasoned", "plain"]), [("messages", "reasoned"), ("chat", "plain")]),
)
def test_preflight_comes_first_and_asks_a_games_questions(shell: Shell, protocol: Api, prompt: str) -> None:
    """For each form of answer, it sends a whole question from a late turn with the player's own settings."""
    settings: dict[str, Any] = {"max_output": 99, "parameters": {"metadata": {"mine": "x"}}, "prompt": prompt}
    with Server(answering_by_form) as server:
        who = player_at(server, protocol, **settings)
        assert run_cli(shell, who, games=1).code == 0
    forms = 1 if prompt == "plain" else 2
    checked, rest = server.requests[:forms], server.requests[forms:]
    assert checks(server.requests) == checked, "one call per form, before all others"
    assert rest
    message = ("input", "messages", "system", "prompt_cache_key")  # the cache key is derived from the seat's texts
    for check in checked:
        alike = [each for each in rest if schema_of(each) == schema_of(check)]
        assert {key: value for key, value in check.body.items() if key not in message} in [
            {key: value for key, value in each.body.items() if key not in message} for each in alike
        ]
        assert len(check.raw) > 4000
        assert "=== facts ===" in check.last
        assert "so far:" in check.last or "discards the four" in check.last, "the question is from a game in progress"
    assert len({schema_of(check) for check in checked}) == forms


@pytest.mark.parametrize("seated", in_gate([True, False], 1))
def test_preflight_question_is_as_long_as_in_late_turns(shell: Shell, seated: bool) -> None:
    """A context window or a limit that is too small for late turns is detected before the first game."""
    with Server(answering) as server:
        who, rest = player_at(server), list[object](["StefaBot", "UsualBot"])
        contenders: list[object] = [who] if seated else []
        field: list[object] = rest if seated else [who, *rest]
        more: dict[str, Any] = {"bots": field, "table_sizes": [6], "games": 2, "rules": {"max_turns": 60}}
        assert run_cli(shell, *contenders, **more).code == 0
    first, *rest_of_run = [len(each.raw) for each in server.requests]
    assert first > 0.8 * max(rest_of_run)
    assert checks(server.requests) == [], "the preflight question is longer than the example positions"


def test_slow_server_on_this_machine_is_asked_one_question(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.llm.preflight._SLOW_SECONDS", 0.0)
    with Server(answering_by_form) as server:
        ended = run_cli(shell, player_at(server, prompt="reasoned"), games=1)
    assert ended.code == 0
    assert rows(Path("r"), "SELECT count(*) FROM attempts WHERE game < 0") == [(1,)]
    assert "the server is slow" in ended.err
    assert "set `in_flight` to the number of calls that it answers at once" in ended.err


def schema_of(request: Incoming) -> str:
    form = request.body.get("text") or request.body.get("response_format") or request.body["output_config"]
    return json.dumps(form, sort_keys=True)


def answering_by_form(request: Incoming) -> Response:
    values = {"reasoning": "Hm.", "p_bluff": None, "answer": True}
    asked = {key: value for key, value in values.items() if f'"{key}": {{' in schema_of(request)}
    return respond(request.protocol, json.dumps(asked))


def test_preflight_is_logged_and_budgeted(shell: Shell) -> None:
    with Server(answering) as server:
        assert run_cli(shell, player_at(server), games=1, budget={"calls": 500}).code == 0
    attempts = rows(Path("r"), "SELECT player, game, seat, decision, attempt, cause FROM attempts WHERE game < 0")
    assert attempts == [("asker", -1, 0, 0, 0, None)]
    assert rows(Path("r"), "SELECT state, status, tokens FROM tries WHERE game < 0") == [("received", 200, 120)]
    assert rows(Path("r"), "SELECT count(*) FROM tries") == [(len(server.requests),)]
    with Server(answering) as server:
        ended = run_cli(shell, player_at(server), budget={"tokens": 500}, flags=["--output", "s", "--cache", "d"])
        assert server.requests == []
    assert "the budget is used up: 0 of 500 tokens spent" in stopped(ended, "s")


def test_players_with_equal_requests_share_the_preflight(shell: Shell) -> None:
    """Names, fallbacks and samples do not matter. Another model, parameter or form of answer needs its own call."""
    with Server(answering_by_form) as server:
        alike = [player_at(server, name="a"), player_at(server, name="b", sample=1, reasks=0, fallback="StefaBot")]
        others: list[dict[str, Any]] = [{"parameters": {"user": "x"}}, {"prompt": "reasoned"}, {"max_output": 99}]
        different = [player_at(server, name=f"other {number}", **more) for number, more in enumerate(others)]
        assert run_cli(shell, *alike, *different, games=5).code == 0
    assert len(checks(server.requests)) == 5, "the reasoned answers have two forms"
    asked = rows(Path("r"), "SELECT player, seat, origin FROM attempts WHERE game < 0 ORDER BY seat, decision")
    names = [("a", 0), ("b", 1), ("other 0", 2), ("other 1", 3), ("other 1", 3), ("other 2", 4)]
    assert asked == [(name, seat, "cache" if name == "b" else "live") for name, seat in names]


def test_preflight_includes_opponent_models_but_no_bots(shell: Shell) -> None:
    with Server(answering) as server:
        field = [player_at(server, name="seated"), "StefaBot", "UsualBot"]
        assert run_cli(shell, "ClaudeBot", games=1, bots=field).code == 0
    assert len(checks(server.requests)) == 1
    assert rows(Path("r"), "SELECT player FROM attempts WHERE game < 0") == [("seated",)]


def test_preflight_does_not_change_results(shell: Shell) -> None:
    with Server(answering) as server:
        digests = set()
        for folder, flags in (("r", ["--preflight"]), ("s", ["--no-preflight"]), ("t", ["--offline"])):
            ended = run_cli(shell, player_at(server), flags=["--output", folder, *flags])
            digests.add(ended.out.splitlines()[-2])
            found = rows(Path(folder), "SELECT count(*) FROM attempts WHERE game < 0")
            assert found == [(1 if folder == "r" else 0,)]
    assert len(checks(server.requests)) == 1
    assert len(digests) == 1
    assert digests.pop().startswith("results digest: ")


def test_preflight_can_be_skipped_in_the_config(shell: Shell) -> None:
    with Server(answering) as server:
        assert run_cli(shell, player_at(server), games=1, preflight=False).code == 0
    assert checks(server.requests) == []


UNREAD: dict[str, tuple[Callable[[Api], Response], str]] = {  # the response, and the setting that the message mentions
    "prose": (lambda protocol: respond(protocol, "Sure, I am ready."), "set `api: chat`"),
    "an answer in a sentence": (lambda protocol: respond(protocol, f"Sure: {YES}"), "set `read: last_object`"),
    "a refusal": (lambda protocol: respond(protocol, "I cannot.", "refusal"), "change `prompt`"),
    "cut off": (lambda protocol: respond(protocol, None, "length"), "raise `max_output`"),
    "too long": (
        lambda protocol: Response(400, error_body(protocol, "context_length_exceeded", "prompt is too long")),
        "choose a shorter prompt, or enlarge the context window",
    ),
}


@pytest.mark.parametrize(("protocol", "odd"), [(PROTOCOLS[place % 3], odd) for place, odd in enumerate(UNREAD)])
def test_an_answer_that_cannot_be_read_stops_the_run(shell: Shell, protocol: Api, odd: str) -> None:
    """The question is asked twice, as in a game. Once the server is repaired, the same command continues."""
    (answer, setting), mended = UNREAD[odd], list[bool]()
    with Server(lambda request: respond(protocol) if mended else answer(protocol)) as server:
        message = stopped(run_cli(shell, player_at(server, protocol)))
        assert message.startswith("the preflight of asker got no readable answer (")
        assert f"; {setting}" in message
        assert "--on-unusable fallback" in message
        assert len(server.requests) == (1 if odd == "too long" else 2)
        if odd != "prose":
            return
        stopped(run_cli(shell, player_at(server, protocol)))
        mended.append(True)
        assert run_cli(shell, player_at(server, protocol)).code == 0
    assert set(outcomes_of(Path("r"))) == {"model"}


def test_a_re_ask_that_is_answered_passes(shell: Shell) -> None:
    with Server(lambda request: respond("chat", YES if request.re_asked else "Hm.")) as server:
        assert run_cli(shell, player_at(server, "chat"), games=1).code == 0
    assert set(outcomes_of(Path("r"))) == {"model_after_reask"}


def test_skipped_preflight_failure_is_a_warning(shell: Shell) -> None:
    """The run continues, for users who want to see how a weak model plays."""
    with Server(lambda request: respond("chat", "Sure.")) as server:
        ended = run_cli(shell, player_at(server, "chat", reasks=0), rules={"max_turns": 40}, on_unusable="fallback")
    assert ended.code == 0
    assert "the preflight of asker got no readable answer (malformed): it is not JSON: Sure.\n" in ended.err
    assert outcomes_of(Path("r")).keys() == {"fallback:malformed"}
    assert len(server.requests) > 21


UNUSABLE: dict[str, tuple[Callable[[Incoming], Response], str]] = {
    "prose": (lambda request: respond(request.protocol, "Hm."), "20 malformed"),
    "in turn": (
        lambda request: (
            respond(request.protocol, "Hm.") if request.re_asked else respond(request.protocol, "{", "length")
        ),
        "10 truncated, 10 malformed",
    ),
}
LONG: dict[str, Any] = {"games": 1, "rules": {"max_turns": 36}}


@pytest.mark.parametrize("odd", UNUSABLE)
def test_a_run_stops_when_the_first_answers_are_all_unusable(shell: Shell, odd: str) -> None:
    answer, words = UNUSABLE[odd]
    with Server(answer) as server:
        ended = run_cli(shell, player_at(server, "chat"), flags=["--no-preflight", "--in-flight", "1"], **LONG)
        assert ended.code == 3
        assert f"the first 20 attempts by asker were all unusable ({words})" in ended.err.replace(
            "10 malformed, 10 truncated", "10 truncated, 10 malformed"
        )
        assert "`on_unusable: fallback`" in ended.err
        assert len(server.requests) == 20


def test_run_stopped_for_unusable_answers_can_resume(shell: Shell) -> None:
    """Stored unusable answers do not count, since the model may have changed, and are not bought again."""
    waited = ["Hm."]
    with Server(lambda request: respond(request.protocol, *waited) if waited else respond(request.protocol)) as server:
        who, flags = player_at(server, "chat"), ["--no-preflight", "--in-flight", "1"]
        assert run_cli(shell, who, flags=flags, **LONG).code == 3
        assert run_cli(shell, who, flags=flags, **LONG).code == 3
        assert len(server.requests) == 40, "each run sends 20 new ones"
        waited.clear()
        assert run_cli(shell, who, flags=flags, **LONG).code == 0
    assert outcomes_of(Path("r")).keys() == {"fallback:malformed", "model"}
    assert outcomes_of(Path("r"))["fallback:malformed"] == 20


@pytest.mark.at_length
def test_run_resumed_after_the_stop_has_the_same_result(shell: Shell) -> None:
    with Server(lambda request: respond(request.protocol, "Hm.")) as server:
        who, flags = player_at(server, "chat"), ["--no-preflight", "--on-unusable"]
        assert run_cli(shell, who, flags=[*flags, "stop"], **LONG).code == 3
        went_on = run_cli(shell, who, flags=[*flags, "fallback"], **LONG)
        at_once = run_cli(shell, who, flags=[*flags, "fallback", "--output", "s", "--cache", "d"], **LONG)
    assert (went_on.code, at_once.code) == (0, 0)
    assert digest(went_on) == digest(at_once)
    assert outcomes_of(Path("r")).keys() == {"fallback:malformed"}


def digest(ended: Ended) -> str:
    (line,) = [line for line in ended.out.splitlines() if line.startswith("results digest: ")]
    return line


def test_one_usable_answer_is_enough(shell: Shell) -> None:
    with Server(lambda request: respond("chat", YES if len(server.requests) == 20 else "Hm.")) as server:
        flags = ["--no-preflight", "--in-flight", "1"]
        assert run_cli(shell, player_at(server, "chat"), flags=flags, **LONG).code == 0
    assert len(server.requests) > 25


def test_answers_are_counted_per_player(shell: Shell) -> None:
    with Server(lambda request: respond(request.protocol, YES if request.body.get("user") else "Hm.")) as server:
        players = [
            player_at(server, "chat", name="good", parameters={"user": "x"}),
            player_at(server, "chat", name="bad"),
        ]
        ended = run_cli(shell, *players, flags=["--no-preflight"], **LONG | {"games": 2})
    assert ended.code == 3
    assert "the first 20 attempts by bad were all unusable (20 malformed)" in ended.err


@pytest.mark.parametrize(
    ("protocol", "status", "message", "ending"),
    [
        (
            "chat",
            401,
            "wrong key",
            "refused the key (status 401): wrong key; change `api_key_env` in the entry of 'asker'",
        ),
        ("responses", 404, "The model does not exist: model_not_found", "; change `model` in the entry of 'asker'"),
        ("chat", 400, "'max_tokens' is too large", "; lower `max_output` in the entry of 'asker'"),
    ],
)
def test_account_error_stops_in_the_preflight(
    shell: Shell, protocol: Api, status: int, message: str, ending: str
) -> None:
    with Server(lambda request: Response(status, error_body(protocol, "some_error", message))) as server:
        error = stopped(run_cli(shell, player_at(server, protocol)))
    assert ending in error
    assert len(server.requests) == 1
    assert rows(Path("r"), "SELECT state, kind FROM tries") == [("failed", "account")]


@pytest.mark.usefixtures("unhurried")
def test_silent_server_stops_in_the_preflight(shell: Shell) -> None:
    words = "unreachable: 40 tries; last error: status 503"
    with Server(lambda _: Response(503)) as server:
        ended = run_cli(shell, player_at(server, tries=2), flags=["--patience", "30m"], provider_errors="suspend")
        message = stopped(ended)
    assert message.startswith(f"the preflight of asker got no reply ({words}")
    assert message.endswith(")"), "it answers, so its address is right"
    assert len(server.requests) == 40


def test_first_faulty_player_is_named(shell: Shell) -> None:
    with House() as house:
        good = contender("good", base_url=house.openai_base_url)
        bad = contender("bad", "house-sharpp", base_url=house.openai_base_url)
        ended = run_cli(shell, good, bad)
    assert stopped(ended).endswith("; change `model` in the entry of 'bad'")
    assert [call.status for call in house.calls] == [200, 404]


@pytest.mark.usefixtures("unhurried")
def test_run_stopped_by_the_preflight_can_resume(shell: Shell) -> None:
    """The same command sends questions without an answer again."""
    answers = [Response(503)]
    with Server(lambda request: answers[0] if answers else respond("responses")) as server:
        stopped(run_cli(shell, player_at(server, tries=2)))
        answers.clear()
        ended = run_cli(shell, player_at(server, tries=2))
    assert (ended.code, ended.err) == (0, "")
    assert set(outcomes_of(Path("r"))) == {"model"}


def test_ctrl_c_interrupts_the_preflight(tmp_path: Path) -> None:
    """Ctrl-C arrives while the first of two players is asked; the second is not asked."""

    def answer(request: Incoming) -> Response:
        how.stop.set()
        return respond("responses")

    with Server(answer) as server:
        how = means(tmp_path / "run", preflight=True)
        of = small(player_at(server, name="one"), player_at(server, name="other", max_output=99))
        run = play(check_models(resolved(of), how.calls), tmp_path / "run", how)
    assert len(server.requests) == 1
    assert (run.interrupted, run.failure) == (True, None)
