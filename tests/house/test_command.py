"""`dubito house` in a separate process."""

import json
import re
import shlex
import signal
from pathlib import Path

import anthropic
import openai
import pytest

from dubito.cli.lists import house as command
from dubito.errors import UsageError
from dubito.game.find import find_games
from dubito.house.core import house_policy
from dubito.house.server import House
from tests.cli.kit import REPO, run_in, start
from tests.house.kit import POLICY


def test_it_serves_until_ctrl_c(tmp_path: Path) -> None:
    with start(tmp_path, "house", "--port", "0", "--log", "calls.jsonl", "--latency", "0.001") as process:
        assert process.stdout is not None
        first, second, third, fourth = (process.stdout.readline().split() for _ in range(4))
        assert third[:5] == ["fake", "models:", "house-random,", "house-honest,", "house-sharp,"], (
            "models of other games come last"
        )
        assert fourth == ["Press", "Ctrl-C", "to", "stop"]
        with openai.OpenAI(base_url=first[2], api_key="any", max_retries=0) as client:
            assert [model.id for model in client.models.list()][:3] == ["house-random", "house-honest", "house-sharp"]
            assert client.responses.create(model="house-sharp", input="?").status == "completed"
        with anthropic.Anthropic(base_url=second[2], api_key="any", max_retries=0) as other:
            other.messages.create(model="house-honest", max_tokens=9, messages=[{"role": "user", "content": "?"}])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "3 calls answered\n", "")
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [call["model"] for call in calls] == [None, "house-sharp", "house-honest"]


def test_house_command_applies_faults(tmp_path: Path) -> None:
    with start(tmp_path, "house", "--port", "0", "--log", "calls.jsonl", "--faults", "dropped:1") as process:
        assert process.stdout is not None
        first, *_, fourth = (process.stdout.readline().split() for _ in range(4))
        assert fourth == ["simulated", "faults:", "dropped:1"]
        client = openai.OpenAI(base_url=first[2], api_key="any", max_retries=0)
        with client, pytest.raises(openai.APIConnectionError):
            client.responses.create(model="house-sharp", input="?")
        process.send_signal(signal.SIGINT)
        process.communicate()
    (call,) = map(json.loads, (tmp_path / "calls.jsonl").read_text().splitlines())
    assert (call["fault"], call["status"]) == ("dropped", 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--faults", "storm:2"], "storm must be a probability from 0 to 1, not 2.0"),
        (["--faults", "strom:0.3"], "unknown fault 'strom': did you mean 'storm'?"),
        (["--latency", "inf"], "latency must be a non-negative number of seconds, not inf"),
        (["--latency", "nan"], "latency must be a non-negative number of seconds, not nan"),
        (["--latency", "-1"], "latency must be a non-negative number of seconds, not -1.0"),
        (["--port", "66000"], "port must be a number from 0 to 65535, not 66000"),
        (["--port", "-1"], "port must be a number from 0 to 65535, not -1"),
        (["--log", "."], "cannot write the call log .: Is a directory"),
        (["--log", "no/such/folder"], "cannot write the call log no/such/folder: No such file or directory"),
    ],
)
def test_wrong_flags_are_reported_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        command.main(["--port", "0", *words], standalone_mode=False)
    assert str(caught.value) == sentence
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_reported_in_one_sentence() -> None:
    with House(policy=POLICY) as house, pytest.raises(UsageError) as caught:
        command.main(["--port", str(house.port)], standalone_mode=False)
    where = f"127.0.0.1 port {house.port}"
    text = f"cannot listen on {where} (address already in use): choose another port, or 0 for a free one"
    assert str(caught.value) == text


@pytest.mark.at_length
def test_command_of_the_readme_prints_what_the_readme_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = (REPO / "README.md").read_text().partition("\n## Rank my model\n")[2].partition("\n## ")[0]
    typed, printed = re.findall(r"^```(?:sh|text)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    with House(policy=house_policy(find_games(tmp_path))) as house:
        here = typed.replace("MODEL", "house-sharp").replace("http://127.0.0.1:8000/v1", house.base_url("chat"))
        run_in(tmp_path, *shlex.split(here.removeprefix("uvx dubito ")), "--no-report")
    assert capsys.readouterr().out.startswith(printed)
