"""The token file of `dubito seat`."""

import os
import stat
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.seats.tokens import load_tokens
from tests.cli.kit import Shell
from tests.seats.kit import Connection, play_agent, serve_agent

TOKEN = "t" * 32
GAMES = ("--opponents", "StefaBot,ClaudeBot", "--table-sizes", "3", "--seed", "7", "--quiet")


def test_token_survives_a_resume(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer_once(connection: Connection) -> None:
        seen = connection.request("observe")[1]
        connection.request("act", {"question": seen["question"], "answer": False})

    words = ("--games", "1", "--output", "run", "--token-file", "token", "--deadline", "1", *GAMES)
    stopped, first = serve_agent(shell, monkeypatch, answer_once, *words)
    assert stopped.code == 3, stopped.err
    assert stat.S_IMODE(Path("token").stat().st_mode) == 0o600
    assert Path("token").read_text() == f"{first.tokens['agent']}\n"
    resumed, second = serve_agent(shell, monkeypatch, play_agent, "run", "--token-file", "token", "--quiet")
    assert resumed.code == 0, resumed.err
    assert second.tokens == first.tokens
    assert not any(
        first.tokens["agent"].encode() in file.read_bytes() for file in Path("run").rglob("*") if file.is_file()
    )


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [
        ("", 0o600, "has 0 tokens, but the run has 1 agent; name a file that does not exist, and it is created"),
        ("\n \n", 0o600, "has 0 tokens"),
        ("short\n", 0o600, "has a token that is too short or has other characters"),
        (f"{TOKEN[:-1]}é\n", 0o600, "has a token that is too short or has other characters"),
        (f"{TOKEN}\n{TOKEN[::-1]}x\n", 0o600, "has 2 tokens, but the run has 1 agent;"),
        (f"{TOKEN}\n", 0o640, "other users can use --token-file token; run `chmod 600` on it"),
        (f"{TOKEN}\n", 0o604, "other users can use --token-file token"),
    ],
)
def test_unusable_token_file_is_refused_in_a_sentence(shell: Shell, content: str, mode: int, problem: str) -> None:
    Path("token").write_text(content)
    Path("token").chmod(mode)
    refused = shell("seat", "--token-file", "token", "--output", "run", *GAMES)
    assert (refused.code, refused.out) == (2, ""), refused
    assert problem in refused.err.splitlines()[-1]
    assert not Path("run").exists()
    assert TOKEN not in refused.err


def test_token_file_is_a_file_in_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Is a directory; name another file"):
        load_tokens(tmp_path, 1)
    with pytest.raises(UsageError, match=r"No such file or directory; name another file"):
        load_tokens(tmp_path / "nowhere" / "token", 1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="it is a pipe or a device"):
        load_tokens(tmp_path / "pipe", 1)


def test_agents_share_a_token_file(tmp_path: Path) -> None:
    tokens = load_tokens(tmp_path / "token", 3)
    assert len({*tokens}) == 3
    assert load_tokens(tmp_path / "token", 3) == tokens
    (tmp_path / "token").write_text(f"{TOKEN}\n{TOKEN}\n")
    with pytest.raises(UsageError, match="has the same token twice"):
        load_tokens(tmp_path / "token", 2)
