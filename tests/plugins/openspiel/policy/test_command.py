"""`dubito policy` with fake models and with servers that answer oddly."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dubito.cli.main import main
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import Incoming, Response, Server, respond

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

KUHN = ("--game", "openspiel:kuhn_poker", "--iterations", "100", "--quiet")
Row = dict[str, float]


def nash_conv_of(out: str, player: str) -> float:
    found = re.search(rf"^nash_conv of {re.escape(player)}: ([0-9.]+)$", out, re.MULTILINE)
    assert found is not None, out
    return float(found[1])


def of_openspiel(row: Callable[[str], Row]) -> float:
    """Return OpenSpiel's own value for a policy of Kuhn poker. `row` returns the probabilities for a state."""
    from open_spiel.python import policy  # slow, so imported only here
    from open_spiel.python.algorithms import exploitability

    game = pyspiel.load_game("kuhn_poker")
    table = policy.TabularPolicy(game)
    for string, place in table.state_lookup.items():
        text = row(string)
        table.action_probability_array[place] = [text["pass"], text["bet"]]
    return float(exploitability.nash_conv(game, table))


def bold(request: Incoming) -> Row:
    king = "the king" in request.last or "the queen" in request.last
    return {"pass": 0.25, "bet": 0.75} if king else {"pass": 0.9, "bet": 0.1}


def bold_row(string: str) -> Row:
    return {"pass": 0.25, "bet": 0.75} if string[0] in "12" else {"pass": 0.9, "bet": 0.1}


def server(response: Callable[[Incoming], Any]) -> Server:
    """Start a server whose model gives this answer."""

    def answer(request: Incoming) -> Response:
        return respond(request.protocol, json.dumps({"answer": response(request)}))

    return Server(answer)


def ask_policy(shell: Shell, of: Server, *flags: str, player: str = "openai:m") -> Any:
    at = ("--base-url", of.base_url("responses"), "--no-preflight")
    return shell("policy", player, *KUHN, *at, *flags)


def test_stated_policy_is_measured_like_openspiel(shell: Shell) -> None:
    with server(bold) as of:
        result = ask_policy(shell, of, "--output", "p")
        assert result.code == 0, result.err
        assert len(of.requests) == 12
        again = ask_policy(shell, of, "--output", "p")
        assert len(of.requests) == 12
    assert nash_conv_of(result.out, "openai:m") == pytest.approx(of_openspiel(bold_row), abs=1e-9)
    assert nash_conv_of(again.out, "openai:m") == nash_conv_of(result.out, "openai:m")
    assert again.out.splitlines()[-2] == "calls: 0"
    worth = json.loads((shell.folder / "p" / "report" / "data" / "worth.json").read_text())["rows"]
    assert worth[0]["nash_conv"] == pytest.approx(of_openspiel(bold_row), abs=1e-9)
    assert [row["player"] for row in worth] == ["openai:m", "(solved)", "(uniform)"]
    assert [row["kind"] for row in worth] == ["model", None, None]


def test_policies_distinguish_players(shell: Shell) -> None:
    """A fake model and a bot, compared in the terminal, the files and the pages, as in a run's tables."""
    result = shell("policy", "Solved", "house:house-random", *KUHN, "--output", "p")
    assert result.code == 0, result.err
    house = "These are fake models: a built-in server on this machine answers for house:house-random."
    assert result.out.splitlines()[0] == house
    kinds = {"Solved": "hand-written", "house:house-random": "fake model"}
    for table, key in (("worth", "player"), ("against", "first")):
        rows = json.loads((shell.folder / "p/report/data" / f"{table}.json").read_text())["rows"]
        assert {row[key]: row["kind"] for row in rows if row["kind"]} == kinds
        head, *lines = (shell.folder / "p/report/data" / f"{table}.csv").read_text().splitlines()
        assert head.split(",")[:2] == [key, "kind"]
        assert all(f"{name},{kind}" in "\n".join(lines) for name, kind in kinds.items())
    assert all(re.search(rf"^{name} +{kind} ", result.out, re.MULTILINE) for name, kind in kinds.items())
    first = (shell.folder / "p/report/index.html").read_text()
    assert house in first
    assert '<span class="kind fake model">fake model</span>' in first
    for name, kind in kinds.items():
        assert f"Where {name} ({kind}) loses the most" in result.out
        assert f"{name} ({kind})" in first


def test_a_cache_answers_in_another_folder_offline(shell: Shell) -> None:
    with server(bold) as of:
        first = ask_policy(shell, of, "--output", "one")
    offline = ask_policy(shell, of, "--output", "two", "--offline")
    assert offline.code == 0, offline.err
    assert nash_conv_of(offline.out, "openai:m") == nash_conv_of(first.out, "openai:m")
    fresh = ask_policy(shell, of, "--output", "three", "--offline", "--cache", "empty")
    assert fresh.code == 3
    assert "the answers so far are saved in three" in fresh.err


FAULTS: dict[str, tuple[Any, str]] = {
    "1.7 on one action": ({"pass": -0.7, "bet": 1.7}, "malformed"),
    "one left out": ({"bet": 1.0}, "malformed"),
    "a name that is not legal": ({"pass": 0.2, "bet": 0.3, "fold": 0.5}, "illegal"),
    "a sum of 1.02": ({"pass": 0.51, "bet": 0.51}, "malformed"),
    "truth values": ({"pass": False, "bet": True}, "malformed"),
    "words": ({"pass": "0.5", "bet": "0.5"}, "malformed"),
    "a name": ("bet", "malformed"),
    "nothing": (None, "malformed"),
    "a list": ([0.5, 0.5], "malformed"),
}


@pytest.mark.parametrize("fault", in_gate(FAULTS, 3))
def test_unusable_answer_is_listed_with_its_cause(shell: Shell, fault: str) -> None:
    wrong, cause = FAULTS[fault]

    def answer(request: Incoming) -> Any:
        return wrong if "the king" in str(request.conversation) else bold(request)

    with server(answer) as of:
        result = ask_policy(shell, of, "--reasks", "0", "--output", "p")
    assert result.code == 0, result.err
    rows = json.loads((shell.folder / "p" / "report" / "data" / "fallbacks.json").read_text())["rows"]
    assert (rows[0]["states"], rows[0][cause]) == (4, 4)
    level = {"pass": 0.5, "bet": 0.5}
    found = nash_conv_of(result.out, "openai:m")
    assert found == pytest.approx(of_openspiel(lambda s: level if s[0] == "2" else bold_row(s)), abs=1e-9)
    for best in (0.0, 0.3, 1.0):  # any values of these four rows are within the bounds
        other = {"pass": 1 - best, "bet": best}
        conv = of_openspiel(lambda s, row=other: row if s[0] == "2" else bold_row(s))  # type: ignore[misc]
        assert rows[0]["nash_conv_least"] - 1e-9 <= conv <= rows[0]["nash_conv_most"] + 1e-9


def test_sum_within_one_percent_is_accepted(shell: Shell) -> None:
    with server(lambda request: {"pass": 0.335, "bet": 0.67}) as of:
        result = ask_policy(shell, of)
    share = 0.335 / 1.005
    assert nash_conv_of(result.out, "openai:m") == pytest.approx(
        of_openspiel(lambda _: {"pass": share, "bet": 1 - share}), abs=1e-9
    )
    assert "states by the fallback" not in result.out


def test_an_illegal_share_is_asked_again_with_the_engines_words(shell: Shell) -> None:
    def answer(request: Incoming) -> Any:
        return bold(request) if request.re_asked else {"pass": 0.2, "bet": 0.3, "fold": 0.5}

    with server(answer) as of:
        result = ask_policy(shell, of)
        again = [request.last for request in of.requests if request.re_asked]
    assert len(again) == 12
    assert "an action here is one of pass, bet, not fold" in again[0]
    assert "states by the fallback" not in result.out


def test_draws_are_counted(shell: Shell) -> None:
    """The model's first three answers in each state are to pass, and the fourth is to bet."""
    times: dict[str, int] = {}

    def answer(request: Incoming) -> str:
        key = str(request.conversation)
        times[key] = times.get(key, 0) + 1
        return "bet" if times[key] == 4 else "pass"

    with server(answer) as of:
        result = ask_policy(shell, of, "--draws", "4", "--in-flight", "1")
    assert result.code == 0, result.err
    assert len(of.requests) == 48
    assert "4 times to act" in result.out
    assert nash_conv_of(result.out, "openai:m") == pytest.approx(
        of_openspiel(lambda _: {"pass": 0.75, "bet": 0.25}), abs=1e-9
    )


def test_bots_report_their_own_probabilities(shell: Shell) -> None:
    result = shell("policy", "Solved", "UniformRandom", "FirstLegal", *KUHN)
    assert result.code == 0, result.err
    assert nash_conv_of(result.out, "Solved") < 0.001
    assert nash_conv_of(result.out, "UniformRandom") == pytest.approx(11 / 12, abs=1e-9)
    assert "The first player's exact mean return" in result.out
    pages = sorted(path.name for path in (shell.folder / "runs").glob("policy-*/report/*.html"))
    assert pages == ["index.html", "player-0.html", "player-1.html", "player-2.html"]


def test_solved_games_and_replies_share_a_folder(shell: Shell) -> None:
    result = shell("policy", "Solved", "house:house-random", *KUHN)
    assert result.code == 0, result.err
    assert sorted(path.name for path in (shell.folder / "cache").iterdir() if path.is_dir())[-1] == "solved"
    game = ("--game", "openspiel:kuhn_poker", "--games", "4", "--bots", "Solved", "--contenders", "house:house-random")
    assert shell("run", *game, "--quiet").code == 0


OWN = """
from dubito.plugins.openspiel.bot import OpenSpielBot

class Mixed(OpenSpielBot):
    \"\"\"Bets one time in four.\"\"\"
    def act(self, view):
        return {act}
"""


def own_bot(shell: Shell, act: str) -> None:
    folder: Path = shell.folder / "bots" / "manual" / "openspiel"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mixed.py").write_text(OWN.replace("{act}", act))


@pytest.mark.at_length
def test_a_bot_that_only_acts_is_counted(shell: Shell) -> None:
    own_bot(shell, "'bet' if self.rng.random() < 0.25 else 'pass'")
    result = shell("policy", "Mixed", *KUHN, "--draws", "500")
    assert result.code == 0, result.err
    assert "500 times to act" in result.out
    exact = of_openspiel(lambda _: {"pass": 0.75, "bet": 0.25})
    assert nash_conv_of(result.out, "Mixed") == pytest.approx(exact, abs=0.1)
    assert result.out == shell("policy", "Mixed", *KUHN, "--draws", "500").out


@pytest.mark.parametrize(
    ("act", "message"), [("1 / 0", "ZeroDivisionError"), ("'fold'", "an action here is one of pass, bet, not 'fold'")]
)
def test_a_bot_that_fails_is_named(shell: Shell, act: str, message: str) -> None:
    own_bot(shell, act)
    ended = shell("policy", "Mixed", *KUHN)
    assert ended.code == 3
    assert ended.err.startswith("dubito: Mixed (seat 0) failed")
    assert message in ended.err


STATES = OWN.replace("def act(self, view):\n        return {act}", "def chances(self, view):\n        return {act}")


@pytest.mark.parametrize(
    ("chances", "message"),
    [
        ("{view.legal[0]: 0.3}", "and sum to 1"),
        ("{'pass': 0.5, 'fold': 0.5}", "a probability for each legal action"),
        ("{0: -0.5, 1: 1.5}", "a probability for each legal action"),
        ("1 / 0", "chances raised ZeroDivisionError"),
        ("None", "chances raised TypeError"),
    ],
)
def test_invalid_probabilities_are_refused(shell: Shell, chances: str, message: str) -> None:
    folder: Path = shell.folder / "bots" / "manual" / "openspiel"
    folder.mkdir(parents=True)
    (folder / "mixed.py").write_text(STATES.replace("{act}", chances))
    ended = shell("policy", "Mixed", *KUHN)
    assert ended.code == 3
    assert message in ended.err


def test_probabilities_may_be_by_name(shell: Shell) -> None:
    folder: Path = shell.folder / "bots" / "manual" / "openspiel"
    folder.mkdir(parents=True)
    (folder / "mixed.py").write_text(STATES.replace("{act}", "{'pass': 0.75, 'bet': 0.25}"))
    result = shell("policy", "Mixed", *KUHN)
    exact = of_openspiel(lambda _: {"pass": 0.75, "bet": 0.25})
    assert nash_conv_of(result.out, "Mixed") == pytest.approx(exact, abs=1e-9)


def test_observing_bot_gets_its_seats_events(shell: Shell) -> None:
    own_bot(shell, "'bet' if self.seen else 'pass'")
    file = shell.folder / "bots" / "manual" / "openspiel" / "mixed.py"
    file.write_text(
        file.read_text() + "    seen = ''\n    def observe(self, event):\n"
        "        self.seen += ''.join(entry.text for entry in getattr(event, 'entries', ()) if entry.by is not None)\n"
    )
    result = shell("policy", "Mixed", *KUHN)
    # Passes after the first move, and bets otherwise.
    exact = of_openspiel(lambda s: {"pass": float(len(s) == 1), "bet": float(len(s) > 1)})
    assert nash_conv_of(result.out, "Mixed") == pytest.approx(exact, abs=1e-9)


def test_a_game_without_a_list_of_names_is_asked_of(shell: Shell) -> None:
    result = shell("policy", "house:house-random", "--game", "openspiel:tiny_hanabi", "--quiet")
    assert result.code == 0, result.err
    assert "states by the fallback" not in result.out


def test_policies_are_listed_as_policies(shell: Shell) -> None:
    words = ("policy", "UniformRandom", "house:house-random", *KUHN, "--output", "runs/p")
    assert shell(*words).code == 0
    (listed,) = json.loads(shell("status", "runs", "--json").out)["runs"]
    assert (listed["folder"], listed["game"], listed["state"]) == ("runs/p", "openspiel:kuhn_poker", None)
    assert "policies" in shell("status", "runs").out
    output = shell("status", "runs/p").out.splitlines()
    assert output[0] == "policies for openspiel:kuhn_poker: no games are played"
    assert output[1] == "These are fake models: a built-in server on this machine answers for house:house-random."
    assert output[2].startswith("house:house-random (fake model): 12 decisions in 12 states")
    (used,) = json.loads(shell("status", "runs/p", "--json").out)["models"]
    assert (used["name"], used["decisions"]) == ("house:house-random", 12)
    assert shell("replay", "runs/p").err.startswith("dubito: runs/p contains policies, without games")
    assert shell(*words).out == shell(*words, "--offline").out
    other = shell("policy", "FirstLegal", *KUHN, "--output", "runs/p")
    assert (other.code, "choose another --output" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("UniformRandom", "--game", "openspiel:kuhn_poker", "--output", "/dev/null"), "choose another --output"),
        (("Nobody", "--game", "openspiel:kuhn_poker"), "no bot is named 'Nobody'"),
        (("RandomBoi", "--game", "dubito"), "more than 100 moves in a game"),
        (("UniformRandom", "--game", "openspiel:tic_tac_toe"), "perfect information"),
        (("UniformRandom", "--game", "openspiel:liars_dice"), "more than 2,000 information states"),
        (("UniformRandom", "--game", "openspiel:gin_rummy"), "has no information state strings in OpenSpiel"),
        (("UniformRandom", "--game", "openspiel:goofspiel"), "has simultaneous moves"),
        (("UniformRandom", "UniformRandom", "--game", "openspiel:kuhn_poker"), "is listed twice"),
        (("OpenAIBot", "--game", "openspiel:kuhn_poker"), "needs a model; name one"),
        (("house:nobody", "--game", "openspiel:kuhn_poker"), "the built-in server has no model 'nobody'"),
    ],
)
def test_unmeasurable_player_is_refused(shell: Shell, words: tuple[str, ...], message: str) -> None:
    ended = shell("policy", *words)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_output_ends_with_a_line_per_player_and_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["policy", "UniformRandom", "Solved", *KUHN, "--quiet"])
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "nash_conv of UniformRandom: 0.9166666667, 0.250 of it in state 2b"
    assert out[-2].startswith("report: runs/policy-")
    assert (out[-1], len(out)) == ("to print all tables: add --tables", 6)
