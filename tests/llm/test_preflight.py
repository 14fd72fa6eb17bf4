"""One real call for each distinct model player before any game; what it finds wrong stops the run with one sentence."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.model_checks import checked_models
from dubito.experiment.runner import play
from dubito.games.dubito.spec import SPEC
from dubito.house.server import House
from dubito.llm.answers import form_of
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.settings import check_settings
from dubito.llm.wire import Api
from tests.cli.kit import Said as Ended
from tests.cli.kit import Shell
from tests.experiment.kit import means, registry
from tests.llm.kit import (
    PROTOCOLS,
    Heard,
    Said,
    Server,
    asker,
    contender,
    error_body,
    outcomes_of,
    played,
    rows,
    says,
    small,
)


def answering(heard: Heard) -> Said:
    return says(heard.protocol)


def checks(heard: Sequence[Heard]) -> list[Heard]:
    """The preflights among the requests: they ask nothing about a game."""
    return [each for each in heard if b"=== facts ===" not in each.raw]


def stopped(ended: Ended, folder: str = "r") -> str:
    """The sentence of a run that its preflight stopped: no game was played, or asked about."""
    assert ended.code == 3
    first, last = ended.err.splitlines()
    assert first == "no game was finished"
    said, kept, _ = last.removeprefix("dubito: ").partition(f"; 0 of 2 games are kept in {folder}")
    assert kept
    assert rows(Path(folder), "SELECT count(*) FROM attempts WHERE game >= 0") == [(0,)]
    assert rows(Path(folder), "SELECT count(*) FROM decisions") == [(0,)]
    return said


@pytest.mark.parametrize(
    ("protocol", "prompt"), [*((protocol, "reasoned") for protocol in PROTOCOLS), ("chat", "plain")]
)
def test_it_comes_first_with_the_players_parameters_and_form(shell: Shell, protocol: Api, prompt: str) -> None:
    settings: dict[str, Any] = {"max_output": 99, "parameters": {"metadata": {"mine": "x"}}, "prompt": prompt}
    with Server(answering) as server:
        who = asker(server, protocol, **settings)
        assert played(shell, who, games=1).code == 0
    check, *rest = server.heard
    assert checks(server.heard) == [check], "once, and before all else"
    assert rest
    checked = check_settings("x", {key: value for key, value in who.items() if key not in ("bot", "name")})
    fields: tuple[Any, ...] = ("answer",) if prompt == "plain" else ("reasoning", "p_bluff", "answer")
    exchange = Exchange("system", "user", form_of(fields, SPEC.node("C")).schema)
    expected = dict(build_request(checked, exchange, "dubito-preflight").body)
    said = ("input",) if protocol == "responses" else ("messages", "system")
    assert {key: value for key, value in check.body.items() if key not in said} == {
        key: value for key, value in expected.items() if key not in said
    }
    assert len(check.raw) < 2000, "the prompt is short"
    assert "=== facts ===" in str(rest[0].body)


def test_it_is_logged_and_budgeted(shell: Shell) -> None:
    with Server(answering) as server:
        assert played(shell, asker(server), games=1, budget={"calls": 500}).code == 0
    attempts = rows(Path("r"), "SELECT player, game, seat, decision, attempt, cause FROM attempts WHERE game < 0")
    assert attempts == [("asker", -1, 0, 0, 0, None)]
    assert rows(Path("r"), "SELECT state, status, tokens FROM tries WHERE game < 0") == [("received", 200, 120)]
    assert rows(Path("r"), "SELECT count(*) FROM tries") == [(len(server.heard),)]
    with Server(answering) as server:
        ended = played(shell, asker(server), budget={"tokens": 500}, flags=["--output", "s", "--cache", "d"])
        assert server.heard == []
    assert "the budget is used up: 0 of 500 tokens spent" in stopped(ended, "s")


def test_players_who_are_asked_alike_share_the_call(shell: Shell) -> None:
    """Whatever their names, fallbacks and samples; another model, parameter or form of the answer is another call."""
    with Server(answering) as server:
        alike = [asker(server, name="a"), asker(server, name="b", sample=1, reasks=0, fallback="StefaBot")]
        others: list[dict[str, Any]] = [{"parameters": {"user": "x"}}, {"prompt": "reasoned"}, {"max_output": 99}]
        different = [asker(server, name=f"other {number}", **more) for number, more in enumerate(others)]
        assert played(shell, *alike, *different, games=5).code == 0
    assert len(checks(server.heard)) == 4
    asked = rows(Path("r"), "SELECT player, seat, origin FROM attempts WHERE game < 0 ORDER BY seat")
    names = ["a", "b", "other 0", "other 1", "other 2"]
    assert asked == [(name, seat, "cache" if name == "b" else "live") for seat, name in enumerate(names)]


def test_models_of_the_field_are_asked_too_and_no_hand_written_bot(shell: Shell) -> None:
    with Server(answering) as server:
        field = [asker(server, name="seated"), "StefaBot", "UsualBot"]
        assert played(shell, "ClaudeBot", games=1, bots=field).code == 0
    assert len(checks(server.heard)) == 1
    assert rows(Path("r"), "SELECT player FROM attempts WHERE game < 0") == [("seated",)]


def test_a_second_run_has_it_from_the_cache(shell: Shell) -> None:
    with Server(answering) as server:
        assert played(shell, asker(server)).code == 0
        calls = len(server.heard)
        assert played(shell, asker(server), flags=["--output", "s"]).code == 0
        assert len(server.heard) == calls
    assert rows(Path("s"), "SELECT origin FROM attempts WHERE game < 0") == [("cache",)]


def test_it_changes_no_result(shell: Shell) -> None:
    with Server(answering) as server:
        digests = set()
        for folder, flags in (("r", ["--preflight"]), ("s", ["--no-preflight"]), ("t", ["--offline"])):
            ended = played(shell, asker(server), flags=["--output", folder, *flags])
            digests.add(ended.out.splitlines()[-2])
            found = rows(Path(folder), "SELECT count(*) FROM attempts WHERE game < 0")
            assert found == [(1 if folder == "r" else 0,)]
    assert len(checks(server.heard)) == 1
    assert len(digests) == 1
    assert digests.pop().startswith("results digest: ")


def test_it_may_be_skipped_in_the_config(shell: Shell) -> None:
    with Server(answering) as server:
        assert played(shell, asker(server), games=1, preflight=False).code == 0
    assert checks(server.heard) == []


ODD: dict[str, Callable[[Api], Said]] = {
    "prose": lambda protocol: says(protocol, "Sure, I am ready."),
    "a refusal": lambda protocol: says(protocol, "I cannot.", "refusal"),
    "cut off": lambda protocol: says(protocol, None, "length"),
    "no usage": lambda protocol: says(protocol, usage=None),
}


@pytest.mark.parametrize(("protocol", "odd"), [(PROTOCOLS[place % 3], odd) for place, odd in enumerate(ODD)])
def test_any_complete_reply_passes(shell: Shell, protocol: Api, odd: str) -> None:
    """Whether the model answers well is what the games are for."""

    def answer(heard: Heard) -> Said:
        return ODD[odd](protocol) if checks([heard]) else says(protocol)

    with Server(answer) as server:
        assert played(shell, asker(server, protocol), games=1).code == 0
    assert len(checks(server.heard)) == 1, "and is not asked again"
    assert set(outcomes_of(Path("r"))) == {"model"}


def test_a_rejected_parameter(shell: Shell) -> None:
    ended = played(shell, contender("Asker", bot="AnthropicBot", parameters={"temperature": 1}))
    said = stopped(ended)
    assert said.startswith("house (no key) rejected the request (status 400): ")
    assert "`temperature` is not supported with this model." in said
    assert said.endswith("; change `parameters.temperature` in the entry of 'Asker'")


def test_an_unknown_parameter(shell: Shell) -> None:
    for folder, bot, more in (
        ("r", "OpenAIBot", {}),
        ("s", "LLMBot", {"api": "chat"}),
        ("t", "AnthropicBot", {"api": "messages"}),
    ):
        who = contender("Asker", bot=bot, parameters={"reasonning": {"effort": "low"}}, **more)
        said = stopped(played(shell, who, flags=["--output", folder]), folder)
        assert said.endswith("; change `parameters.reasonning` in the entry of 'Asker'")


@pytest.mark.parametrize(
    ("protocol", "status", "message", "ending"),
    [
        ("chat", 401, "wrong key", "refused the key (status 401); change `api_key_env` in the entry of 'asker'"),
        ("messages", 402, "pay", "has no money left (status 402); top it up"),
        ("responses", 404, "who?", "; change `model` in the entry of 'asker'"),
        ("chat", 400, "'max_tokens' is too large", "; change `max_output` in the entry of 'asker'"),
        ("messages", 400, "something", "; change `parameters` in the entry of 'asker'"),
    ],
)
def test_what_the_account_or_its_entry_is_wrong_in(
    shell: Shell, protocol: Api, status: int, message: str, ending: str
) -> None:
    with Server(lambda heard: Said(status, error_body(protocol, "some_error", message))) as server:
        said = stopped(played(shell, asker(server, protocol)))
    assert ending in said
    assert len(server.heard) == 1
    assert rows(Path("r"), "SELECT state, kind FROM tries") == [("failed", "account")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Said(503), "unreachable: 40 tries, the last: status 503"),
        (Said(lost=None), "unreachable: 40 tries, the last: APIConnectionError"),
    ],
)
@pytest.mark.usefixtures("unhurried")
def test_a_server_that_does_not_answer(shell: Shell, answer: Said, words: str) -> None:
    with Server(lambda _: answer) as server:
        said = stopped(played(shell, asker(server, tries=2), flags=["--patience", "30m"]))
    assert said.startswith(f"the preflight of asker got no reply ({words}")
    assert said.endswith("); check `base_url` in its entry")
    assert len(server.heard) == 40


def test_a_limit_on_output_that_does_not_fit_the_model(shell: Shell) -> None:
    message = "'max_tokens' is too large: 8192. This model's maximum context length is 4096 tokens"
    with Server(lambda heard: Said(400, error_body("chat", "BadRequestError", message))) as server:
        said = stopped(played(shell, asker(server, "chat")))
    assert message in said
    assert said.endswith("check `max_output` in its entry")


@pytest.mark.usefixtures("unhurried")
def test_a_server_that_is_well_after_a_while_passes(shell: Shell) -> None:
    with Server(lambda heard: says("responses") if len(server.heard) > 12 else Said(500)) as server:
        assert played(shell, asker(server), games=1, flags=["--patience", "30m"]).code == 0
    assert rows(Path("r"), "SELECT state, count(*) FROM tries WHERE game < 0 GROUP BY 1 ORDER BY 1") == [
        ("failed", 12),
        ("received", 1),
    ]


def test_the_first_player_with_a_fault_is_the_one_named(shell: Shell) -> None:
    with House() as house:
        good = contender("good", base_url=house.openai_base_url)
        bad = contender("bad", "house-sharpp", base_url=house.openai_base_url)
        ended = played(shell, good, bad)
    assert stopped(ended).endswith("; change `model` in the entry of 'bad'")
    assert [call.status for call in house.calls] == [200, 404]


def test_a_run_that_it_stopped_goes_on_when_the_server_is_up_again(shell: Shell) -> None:
    """The same command; what did not answer then is asked again."""
    answers = [Said(503)]
    with Server(lambda heard: answers[0] if answers else says("responses")) as server:
        stopped(played(shell, asker(server, tries=2)))
        answers.clear()
        ended = played(shell, asker(server, tries=2))
    assert (ended.code, ended.err) == (0, "")
    assert set(outcomes_of(Path("r"))) == {"model"}


@pytest.mark.usefixtures("unhurried")
def test_with_suspend_too_a_server_that_is_down_stops_the_run(shell: Shell) -> None:
    with Server(lambda _: Said(503)) as server:
        ended = played(shell, asker(server), flags=["--patience", "30m"], provider_errors="suspend")
    assert stopped(ended).startswith("the preflight of asker got no reply (")
    assert len(server.heard) == 40


def test_ctrl_c_in_the_midst_of_it_interrupts_and_is_no_failure(tmp_path: Path) -> None:
    """Two players: the wish comes while the first is asked, and the second is not asked any more."""

    def answer(heard: Heard) -> Said:
        how.stop.set()
        return says("responses")

    with Server(answer) as server:
        how = means(tmp_path / "run", preflight=True)
        of = small(asker(server, name="one"), asker(server, name="other", max_output=99))
        run = play(checked_models(of, registry(), how.calls), tmp_path / "run", how)
    assert len(server.heard) == 1
    assert (run.interrupted, run.failure) == (True, None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_filter_that_declines_it_stops_nothing(shell: Shell, protocol: Api) -> None:
    """Key, money, model and parameters are in order, and other prompts may pass."""
    filtered = Said(400, error_body(protocol, "content_filter", "Output blocked by content filtering policy"))
    with Server(lambda heard: answering(heard) if checks([heard]) == [] else filtered) as server:
        assert played(shell, asker(server, protocol), games=1).code == 0
    assert len(checks(server.heard)) == 1
    assert set(outcomes_of(Path("r"))) == {"model"}
