"""`dubito web` in a separate process."""

import signal
import socket
from pathlib import Path

import pytest
import yaml

from dubito.serve import listen
from tests.cli.kit import Shell, start
from tests.web.kit import BOTS, Browser


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the browser, and return the file with the addresses that it opens."""
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    script.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    return tmp_path / "opened"


def test_server_resumes_games_after_ctrl_c(tmp_path: Path, opened: Path) -> None:
    """The server listens on loopback under any name, without a warning, and opens its page only if told to.

    New tables use the rules of the config and of flags, which override it. A page cannot choose them.
    """
    rules = {"duel": True, "ranks": 2, "copies": 2, "jokers": 0, "max_turns": 2}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"rules": {**rules, "ranks": 3}}))
    browser, addresses = Browser(0), list[str]()
    for host, words in (
        ("127.0.0.1", ("--browser",)),
        ("LOCALHOST", ("c.yaml", "--ranks", "2", "--host", "LOCALHOST", "--no-browser")),
    ):
        with start(tmp_path, "web", "--port", "0", *words) as process:
            assert process.stdout is not None
            address, folder = process.stdout.readline().split()[-1], process.stdout.readline()
            assert folder.startswith("Games are saved in games. Press Ctrl-C to stop")
            first = not browser.port
            browser.port = int(address.removesuffix("/").rpartition(":")[2])
            assert address == f"http://{host}:{browser.port}/"
            addresses.append(address)
            lobby = browser("GET", "/").text
            assert 'data-value="&#34;contested&#34;"' in lobby, "settings that are not fixed are offered"
            view = browser.sit(BOTS, seat=0) if first else browser.view()
            assert view["asked"]
            assert ('<option value="Solved"' in lobby) != first
            if not first:
                assert Browser(browser.port).sit(["Solved"], seat=0, jokers=1)["rules"].items() >= rules.items()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        assert (process.returncode, out, err) == (0, "stopped\n", "")
        assert opened.read_text().split() == addresses[:1]
    assert len(list((tmp_path / "games" / "running").iterdir())) == 2


def test_other_host_has_a_warning_and_the_named_game_comes_first(tmp_path: Path) -> None:
    host = "0.0.0.0"  # noqa: S104, what is warned of
    names = ("--allow-host", "mine.example", "--allow-host", "Two.github.dev")
    with start(tmp_path, "web", "--port", "0", "--game", "bs", "--host", host, *names) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().strip().removesuffix("/").rpartition(":")[2])
        assert Browser(port)("GET", "/", headers={"Host": f"192.0.2.1:{port}"}).status == 200
        assert Browser(port)("GET", "/", headers={"Host": f"evil.example:{port}"}).status == 421
        for called in ("mine.example", f"MINE.example:{port}", "two.github.dev"):
            assert Browser(port)("GET", "/", headers={"Host": called}).status == 200
        for called, origin, status in (
            ("mine.example", "https://mine.example", 200),
            (f"localhost:{port}", "https://two.github.dev", 200),  # behind a proxy that changes the Host
            ("mine.example", "https://evil.example", 403),
            ("mine.example", "https://evil.mine.example", 403),
        ):
            headers = {"Host": called, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
            assert (Browser(port)("GET", "/api/table", headers=headers).status == 403) == (status == 403), called
        browser = Browser(port)
        first, other = browser("GET", "/").text, browser("GET", "/?game=dubito").text
        view = browser.sit(["Player1", "Player1", "Hoarder"], game="bs", seat=1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert err == "Warning: anyone who can reach 0.0.0.0 can play and see the saved games without a password.\n"
    assert first.index('data-game="bs"') < first.index('data-game="dubito"')
    assert '<option value="Hoarder"' in first
    assert '<option value="ClaudeBot"' in other
    assert (view["game"], view["names"]) == ("bs", ["Player1 0", "You", "Player1 2", "Hoarder"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--game", "chess"], "unknown game 'chess': "),
        (["StefaBot"], "StefaBot is a bot, but `dubito web` takes a config file; choose bots on the page"),
        (["--port", "66000"], "port must be a number from 0 to 65535, not 66000"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid: "),
        (
            ["--games", "file/games"],
            "cannot save games in file/games: Not a directory; choose another folder with --games",
        ),
    ],
)
def test_wrong_flags_are_reported_in_one_sentence(shell: Shell, words: list[str], sentence: str) -> None:
    Path("file").touch()
    result = shell("web", "--port", "0", *words)
    assert (result.code, result.out, result.err.startswith(f"dubito: {sentence}")) == (2, "", True), result


def test_port_in_use_is_reported_in_one_sentence(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = shell("web", "--port", str(taken.getsockname()[1]))
    assert "(address already in use): choose another port, or 0 for a free one" in result.err


def test_listeners_without_a_port_take_different_ports() -> None:
    with listen("127.0.0.1", None) as one, listen("127.0.0.1", None) as other:
        assert one.getsockname() != other.getsockname()


@pytest.mark.at_length
def test_web_beside_running_watch_asks_models_too(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"bots": ["house:house-sharp@plain"]}))
    models = ("house:house-sharp@plain", "StefaBot")
    with start(tmp_path, "watch", *models, "UsualBot", "--web") as watch, start(tmp_path, "web", "c.yaml") as web:
        ports = []
        for process in (watch, web):
            assert process.stdout is not None
            ports.append(int(process.stdout.readline().split("/ (")[0].strip().removesuffix("/").rpartition(":")[2]))
        assert Browser(ports[0])("GET", "/games/0").status == 200
        assert Browser(ports[1]).sit([*models], seat=0)["asked"]
    assert len({*ports}) == 2


COMMANDS = (("web",), ("watch", "StefaBot", "ClaudeBot", "MrDoubt", "--web"))


@pytest.mark.parametrize("name", ["https://mine.example", "mine.example:443", "mine.example/", "*", "", "a b"])
@pytest.mark.parametrize("command", COMMANDS, ids=["web", "watch"])
def test_allowed_name_must_be_a_host(shell: Shell, command: tuple[str, ...], name: str) -> None:
    ended = shell(*command, "--allow-host", name, "--port", "0")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith("is not a host name. Leave out https:// and the port.\n")
