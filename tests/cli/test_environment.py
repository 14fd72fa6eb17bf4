"""Problems with the environment lead to a single message: proxies, certificates, encodings, open files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.llm.kit import config_file, contender

PROXY = "ftp://somebody:the-password@127.0.0.1:1"
NETWORK = [
    ({"ALL_PROXY": "socks5://127.0.0.1:1"}, "a SOCKS proxy needs the extra `socks`: pip install 'dubito[socks]'"),
    ({"HTTPS_PROXY": PROXY}, "cannot use the proxy settings (ValueError): correct or unset HTTPS_PROXY"),
    ({"HTTP_PROXY": "http://[::1"}, "cannot use the proxy settings (InvalidURL): correct or unset HTTP_PROXY"),
    ({"SSL_CERT_FILE": "/no/such/file"}, "cannot read the certificates (No such file or directory)"),
]


@pytest.mark.parametrize(("environment", "words"), NETWORK)
@pytest.mark.parametrize("bot", in_gate(["OpenAIBot", "AnthropicBot"], 1))
def test_unusable_network_settings_end_with_one_message(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], words: str, bot: str
) -> None:
    """Even a server on this machine needs certificates if its address is https."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("A_KEY", "any")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    host = "127.0.0.1:9" if "SSL_CERT_FILE" in environment else "192.0.2.1"
    of = contender("one", "m", bot, base_url=f"https://{host}/v1", api_key_env="A_KEY")
    result = shell("run", config_file(of), "--output", "r", "--quiet", "--patience", "1s")
    assert result.code == 3
    assert words in result.err
    assert "the-password" not in result.err
    assert result.err.count("dubito: ") == 1


@pytest.mark.parametrize("flag", in_gate(["--tables", "--json"], 1))
def test_output_in_narrow_encoding_escapes_other_characters(tmp_path: Path, flag: str) -> None:
    config = {"games": 2, "table_sizes": [3], "bots": [{"bot": "StefaBot", "name": "Stefa\N{GRINNING FACE}"}]}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    words = ("run", "c.yaml", "--output", "r", "--workers", "1", "--no-report", flag)
    ended = subprocess.run(
        (sys.executable, "-m", "dubito", *words),
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPO), "PYTHONIOENCODING": "cp1252", "PATH": ""},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False)
    out = ended.stdout.decode("cp1252")
    if flag == "--json":
        assert json.loads(out)["ranking"][0]["name"] == "Stefa\N{GRINNING FACE}"
    else:
        assert "Stefa\\U0001f600" in out


@pytest.mark.parametrize(
    ("limits", "most", "message"),
    [("ulimit -n 256", 32, "only 32 games are in flight instead of 300"), ("ulimit -S -n 256", 300, "")],
)
def test_in_flight_is_limited_by_open_files(tmp_path: Path, limits: str, most: int, message: str) -> None:
    """The soft limit is raised, so the hard limit determines how many games can be in flight."""
    code = "from dubito.cli.file_limit import limit_in_flight; print(limit_in_flight(300))"
    ended = subprocess.run(
        ("/bin/sh", "-c", f'{limits}; exec "$@"', "sh", sys.executable, "-c", code),
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ended.stdout, message in ended.stderr) == (f"{most}\n", True)
    assert message or not ended.stderr
