"""`dubito prompts test`: its output, its cost, and errors for bad input."""

import re
import shutil
import signal
import threading
from pathlib import Path

import pytest
import yaml

from dubito.games.dubito.game import GAME
from dubito.workshop.recordings import shipped_positions
from tests.cli.kit import Shell, run_in
from tests.llm.kit import KEY, Incoming, Response, Server, config_file, contender, error_body, respond
from tests.workshop.kit import prompt

HOUSE = ("--model", "house:house-sharp", "--quiet")


@pytest.mark.at_length
def test_trial_prints_every_node_of_both_prompts(shell: Shell) -> None:
    result = shell("prompts", "test", "reasoned", "--against", "plain", *HOUSE)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith(
        "house-sharp at 40 positions in 40 deals; 95 % confidence intervals, clustered by deal; right: doubted "
    )
    assert lines[1].split()[:5] == ["prompt", "node", "positions", "yes", "%"]
    assert [line.split()[:3] for line in lines[2:14]] == [
        *(["reasoned", node, "8"] for node in "ABCDE"),
        ["reasoned", "all", "40"],
        *(["plain", node, "8"] for node in "ABCDE"),
        ["plain", "all", "40"],
    ]
    assert lines[4].split()[3:5] == ["37.5", "[10.3,"]
    assert lines[14] == "reasoned and plain at positions that both answered"
    assert lines[21].split()[:5] == ["all", "40", "100.0", "[91.2,", "100.0]"]
    assert "Stated probability that the last play is dishonest (node C) vs. the truth" in lines
    assert lines[-3] == "calls: 83, cost $0.0000", "includes three preflight calls"
    assert lines[-2].startswith("run folder: runs/prompts-reasoned-")
    assert lines[-1].startswith("reasoned and plain give the same answer at 40 of 40 positions")
    again = shell("prompts", "test", "reasoned", "--against", "plain", *HOUSE, "--offline")
    assert again.out.splitlines()[:-3] == lines[:-3]
    assert again.out.splitlines()[-3] == "calls: 0 (all replies were in the run folder or the cache)"
    assert again.out.splitlines()[-1] == lines[-1]


def test_flips_are_named_and_a_prompt_against_itself_shows_chance(shell: Shell) -> None:
    Path("own").mkdir()
    for file in sorted(shipped_positions(GAME).glob("*.json"))[::2]:
        shutil.copy(file, "own")
    words = ("--model", "house:house-random", "--quiet", "--positions", "own")
    result = shell("prompts", "test", "plain", "--against", "plain", *words)
    lines = result.out.splitlines()
    (everything,) = (line.split() for line in lines if line.split()[:2] == ["all", "20"])
    flips = [line for line in lines if line.startswith("different: ")]
    assert len(flips) == int(everything[-1]) + int(everything[-2]) > 4
    assert float(everything[2]) == 100 - 5 * len(flips)
    to_yes = sum(": plain yes, plain again no" in line for line in flips)
    assert (to_yes, len(flips) - to_yes) == (int(everything[-2]), int(everything[-1]))
    name, said_first = flips[0].removeprefix("different: ").split(": ")
    assert (shipped_positions(GAME) / name).exists()
    assert said_first in ("plain yes, plain again no", "plain no, plain again yes")
    assert lines[8].split()[:3] == ["plain", "again", "A"]


def test_own_positions_parameters_and_prices_of_another_server(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.cli.output._LOG_INTERVAL", 3600.0)
    Path("own").mkdir()
    for file in sorted(shipped_positions(GAME).glob("C-*.json"))[:3]:
        shutil.copy(file, "own")
    price = {"m": {"input": 10, "cached_input": 1, "cache_write": 10, "output": 100}}
    Path("prices.yaml").write_text(yaml.safe_dump(price))
    with Server(lambda request: respond(request.protocol)) as server:
        flags = ("--api", "chat", "--base-url", server.base_url("chat"), "--parameters", "{temperature: 0.5}")
        more = (
            *("--positions", "own", "--prices", "prices.yaml", "--budget", "usd=1,calls=10", "--max-output", "77"),
            *("--reasks", "0", "--no-preflight"),
        )
        result = shell("prompts", "test", "plain", "--model", "openai:m", *flags, *more, "--output", "r")
        bodies = [request.body for request in server.requests]
    assert result.code == 0
    assert [(body["temperature"], body["max_tokens"], body["model"]) for body in bodies] == [(0.5, 77, "m")] * 3
    of_c = result.out.splitlines()[2].split()
    assert of_c[-4:] == ["100", "0", "20", "$3.0000"], "$3 per thousand, with 100 input and 20 output tokens"
    assert result.out.splitlines()[-3:-1] == ["calls: 3, cost $0.0090", "run folder: r"]
    assert re.fullmatch(r"1 of 3 questions, \S+ questions/s(, \d+ s left)?\n", result.err), "one line at the start"


def test_a_wrong_model_is_a_wrong_flag(shell: Shell) -> None:
    """The message names the flag, because there is no config entry."""
    with Server(lambda request: Response(404, error_body("chat", "model_not_found", "there is no m"))) as server:
        where = ("--api", "chat", "--base-url", server.base_url("chat"))
        result = shell("prompts", "test", "plain", "--model", "openai:m", *where, "--quiet")
    assert "; change `--model`; the answers so far are saved in " in result.err


def test_a_stopped_trial_says_how_to_go_on(shell: Shell) -> None:
    Path("own").mkdir()
    for file in sorted(shipped_positions(GAME).glob("?-*.json"))[::8]:
        shutil.copy(file, "own")
    own = ("--positions", "own", "--output", "r")
    result = shell("prompts", "test", "plain", *HOUSE, "--budget", "calls=3", *own)
    assert result.code == 3
    assert result.err == (
        "dubito: the budget is used up: 3 of 3 calls spent, and the next call needs up to 1; raise `budget.calls`; "
        "the answers so far are saved in r; `dubito prompts test plain --model house:house-sharp --quiet --budget "
        "calls=3 --positions own --output r` resumes\n"
    )
    assert shell("prompts", "test", "plain", *HOUSE, *own).out.splitlines()[-3].startswith("calls: 3,")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("plane", *HOUSE), "no prompt is named 'plane': did you mean 'plan'?"),
        (
            ("plain", "--model", "opnai:gpt"),
            "--model 'opnai:gpt' does not start with a provider; write it like openai:MODEL; did you",
        ),
        (("plain", *HOUSE, "--api", "fax"), "--api: must be 'responses', 'chat', 'messages', 'decisions' or 'gemini'"),
        (("plain", *HOUSE, "--positions", "none"), "cannot read none: No such file or directory"),
        (("plain", *HOUSE, "--positions", "."), ". has no positions; `dubito prompts record` creates some"),
        (("plain", *HOUSE, "--output", "here"), "here exists and is not a run folder: choose another --output"),
        (("plain", *HOUSE, "--cache", "here"), "here exists and is not a reply cache: choose another --cache"),
        (
            ("plain", "--model", "openai:m", "--base-url", "http://127.0.0.1:1/v1", "--budget", "usd=1"),
            "openai:m: budget.usd needs the price of 'm' at http://127.0.0.1:1/v1, which is unknown; remove "
            "budget.usd, or add this line with the provider's prices",
        ),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_asked(
    shell: Shell, words: tuple[str, ...], sentence: str
) -> None:
    prompt(Path("here"))
    result = shell("prompts", "test", *words)
    assert result.code == 2
    assert result.err.startswith(f"dubito: {sentence}")
    assert result.err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) in (["here"], ["cache", "here"])
    assert [path.name for path in Path("here").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "r"),
        ("replay", "r", "--game", "0"),
        ("report", "r"),
        ("compare", "r"),
        ("compare", "r", "r"),
        ("export", "r", "r.zip"),
        ("prompts", "record", "r"),
        ("estimate", "models.yaml", "--from", "r"),
    ],
)
def test_trial_folder_is_not_a_run(trial: Shell, words: tuple[str, ...]) -> None:
    result = trial(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "dubito: r contains a test of prompts, without games; use `dubito status`, or repeat the "
        "command that wrote it\n"
    )


def test_the_status_of_a_trial(trial: Shell) -> None:
    result = trial("status", "r")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[:3] == [
        "test of prompts: no games are played",
        "plain: 40 decisions in 40 positions, 41 calls, cache 0.0 %",
        "  model: 40",
    ]
    assert "digest" not in result.out
    assert trial("run", "models.yaml", "--output", "r").err.startswith("dubito: r belongs to another run: ")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set up a folder with a trial in the folder `r`."""
    home = tmp_path_factory.mktemp("home")
    config_file(contender("a"), name=str(home / "models.yaml"))
    run_in(home, "prompts", "test", "plain", *HOUSE, "--output", "r")
    return home


@pytest.fixture
def trial(home: Path, shell: Shell) -> Shell:
    shutil.copytree(home, shell.folder, dirs_exist_ok=True)
    return shell


class Interrupts:
    """Holds calls until it is released. The first one also sends Ctrl-C to the main thread."""

    def __init__(self) -> None:
        self.released, self.was_released = threading.Event(), list[bool]()
        self._first = threading.Lock()

    def __call__(self, request: Incoming) -> Response:
        if self._first.acquire(blocking=False):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        self.was_released.append(self.released.wait(20))
        return respond(request.protocol)


def test_ctrl_c_does_not_wait_for_a_call_that_hangs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    interrupts = Interrupts()
    with Server(interrupts) as server:
        where = ("--model", "openai:m", "--base-url", server.base_url("responses"), "--no-preflight")
        result = shell("prompts", "test", "plain", *where, "--output", "r")
        interrupts.released.set()
    assert result.code == 130, result.err
    assert all(interrupts.was_released)
