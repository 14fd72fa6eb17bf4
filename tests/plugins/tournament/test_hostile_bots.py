"""Hostile bots in `bots` cannot affect honest ones."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dubito.experiment.workers import available_cores
from dubito.plugins.tournament.log import Log, MatchLine
from dubito.plugins.tournament.pair import Pair
from dubito.plugins.tournament.plan import Pairing, Tournament
from dubito.plugins.tournament.plan import read_tournament as read
from dubito.plugins.tournament.standings import compute_standings
from dubito.plugins.tournament.tournament import play_tournament
from dubito.sandbox.programs import METHODS, Confinement
from tests.conftest import in_gate
from tests.plugins.tournament.test_tournament import silent, texts

PYTHON = f"{sys.executable} -S -E"
HONEST = {"thinker": f"{PYTHON} thinker.py 200", "drawn": f"{PYTHON} drawn.py"}
HOSTILE = {
    "hog": f"{PYTHON} hog.py 120",
    "reader": f"{PYTHON} reader.py",
    "saboteur": f"{PYTHON} saboteur.py",
    "filler": f"{PYTHON} filler.py {100 << 20}",
}
SECRET = "of the tests alone"  # noqa: S105


def config(home: Path, bots: dict[str, str], **more: object) -> Path:
    """Write a config next to the bots' files, as an organiser would."""
    shutil.copytree(Path(__file__).parent / "bots", home, dirs_exist_ok=True)
    content = {"games": ["kuhn_poker"], "matches": 1, "secret": SECRET, "bots": bots, "data_gb": 0.02, "memory_gb": 0.5}
    content |= {"move_seconds": 5.0, "chance_seconds": 0.0, **more}
    path = home / "t.yaml"
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in content.items()))
    return path


def met(tournament: Tournament, run: Path, apart: bool = True) -> list[MatchLine]:
    """Return the matches between a tournament's first two bots. `run` is its folder."""
    run.mkdir(parents=True)
    (run / "secret").write_text(SECRET)
    cores = available_cores()
    memory, methods = int(tournament.config.memory_gb * (1 << 30)), METHODS[:1] if apart else ()
    confinement = Confinement(memory, (cores[0], cores[-1]), methods, allow_unsandboxed=True)
    pair = Pair(tournament, Pairing(0, (0, 1)), run, confinement)
    facts = pair.enforced_limits()
    assert facts["own core"] or len(cores) < 2
    if apart and not facts["no access to other files"]:
        pytest.skip("this system does not support isolating bots")
    return list(pair.play(range(2)))


def stderr_of(line: MatchLine, name: str) -> str:
    return line.stderr[line.seats.index(name)]


@pytest.fixture
def sockets(tmp_path: Path) -> Iterator[list[str]]:
    """Return sockets that accept connections: in the bots' folder, above it, and without a file."""
    names = [str(tmp_path / "home/beside.sock"), str(tmp_path / "above.sock"), f"\0{tmp_path}/abstract"]
    (tmp_path / "home").mkdir()
    servers = [socket.socket(socket.AF_UNIX) for _ in names]
    for server, name in zip(servers, names, strict=True):
        server.bind(name)
        server.listen()
    yield [name for name in names if name[0] != "\0"]
    for server in servers:
        server.close()


def test_bot_cannot_read_secrets(tmp_path: Path, sockets: list[str]) -> None:
    home = tmp_path / "home"
    path = config(home, {"reader": f"{PYTHON} reader.py {' '.join(sockets)}", "drawn": HONEST["drawn"]})
    (home / "t.yaml~").write_text(path.read_text())
    (home / "tournaments/old/matches/0-kuhn_poker").mkdir(parents=True)
    (home / "tournaments/old/tournament.json").write_text("{}")
    (home / "tournaments/old/matches/0-kuhn_poker/a--b.jsonl").write_text("{}\n")
    for line in met(read(path, {}), home / "tournaments/new"):
        assert line.strikes == []
        assert "found" not in stderr_of(line, "reader")


def test_files_with_the_secret_are_hidden(tmp_path: Path) -> None:
    path = config(tmp_path, HONEST)
    (tmp_path / "old/kept").mkdir(parents=True)
    (tmp_path / "old/kept/t.yaml").write_text(path.read_text())
    assert set(read(path, {}).hidden) == {path, tmp_path / "old/kept/t.yaml"}


def test_path_too_long_for_the_system_does_not_stop_tournament(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot can leave such a path in its data, next to programs."""
    (tmp_path / "bots").mkdir()
    (tmp_path / "bots/one.sh").write_text("exit 0")
    path = config(tmp_path, {"one": "sh bots/one.sh", "drawn": HONEST["drawn"]})
    monkeypatch.chdir(tmp_path / "bots")
    for _ in range(25):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    Path("x").write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    tournament = read(path, {})
    assert set(tournament.hidden) == {path}
    assert list(tournament.bots[0].digests()) == ["bots/one.sh"]
    subprocess.run(["/bin/rm", "-rf", tmp_path / "bots"], check=True)


def test_saboteur_cannot_break_the_tournament(tmp_path: Path) -> None:
    path = config(tmp_path, {"saboteur": HOSTILE["saboteur"], "drawn": HONEST["drawn"]})
    before = {file: file.read_bytes() for file in tmp_path.glob("*.*")}
    for line in met(read(path, {}), tmp_path / "run"):
        assert {line.seats[strike.seat] for strike in line.strikes} <= {"saboteur"}
        assert "wrote" not in stderr_of(line, "saboteur")
        assert line.exit[line.seats.index("drawn")] == 0
    assert {file: file.read_bytes() for file in tmp_path.glob("*.*")} == before
    assert (tmp_path / "run/secret").read_text() == SECRET
    assert (tmp_path / "run/data/drawn/kuhn_poker/played").read_text() == "x"


def test_bot_that_fills_the_disk_is_stopped_and_reported(tmp_path: Path) -> None:
    path = config(tmp_path, {"filler": HOSTILE["filler"], "drawn": HONEST["drawn"]})
    for line in met(read(path, {}), tmp_path / "run"):
        assert [(line.seats[strike.seat], strike.kind) for strike in line.strikes] == [("filler", "crash")]
        assert "stopped by the referee: its data has more than 21,474,836 bytes" in stderr_of(line, "filler")
    for place in (str(tmp_path), "/tmp", "/run", "/dev/shm", "/var/tmp"):  # noqa: S108
        assert list(Path(place).glob("filled-*")) == []


def test_memory_limit_covers_all_processes(tmp_path: Path) -> None:
    """No single process exceeds the limit. Files without a name count too."""
    bots = {"filler": f"{PYTHON} filler.py {200 << 20} memory", "drawn": HONEST["drawn"]}
    path = config(tmp_path, bots, memory_gb=0.125)
    for line in met(read(path, {}), tmp_path / "run"):
        assert [(line.seats[strike.seat], strike.kind) for strike in line.strikes] == [("filler", "crash")]
        assert "stopped by the referee: its processes use more than 134,217,728 bytes of memory" in stderr_of(
            line, "filler"
        )


@pytest.mark.skipif(len(available_cores()) < 2, reason="needs two cores")
@pytest.mark.parametrize("apart", in_gate([True, False], [False]))
def test_busy_bot_stays_on_its_core(tmp_path: Path, apart: bool) -> None:
    """Pinning a bot to its core works even if the system does not support isolation."""
    path = config(tmp_path, {"hog": f"{PYTHON} hog.py 8", "thinker": HONEST["thinker"]})
    for line in met(read(path, {}), tmp_path / "run", apart):
        assert line.strikes == []
        assert "has every core" not in stderr_of(line, "hog")


@pytest.mark.at_length
@pytest.mark.skipif(len(available_cores()) < 2, reason="needs two cores")
def test_hostile_bots_do_not_change_other_results(tmp_path: Path) -> None:
    logs: list[Log] = []
    for name, bots in (("without", HONEST), ("with", HONEST | HOSTILE)):
        tournament = read(config(tmp_path / "home", bots), {})
        logs.append(play_tournament(tournament, tmp_path / name, silent))
    without, with_them = (texts(log.folder) for log in logs)
    assert without.items() <= with_them.items()
    one, other = (compute_standings(log, resamples=0).games[0] for log in logs)
    assert one.meetings[0, 1] == other.meetings[0, 1]
    for bot in range(len(HONEST)):
        assert (other.conduct[bot].failed, other.conduct[bot].strikes) == (0, {})
    assert not any("found" in line.stderr[line.seats.index("reader")] for line in lines_of(logs[1], "reader"))


def lines_of(log: Log, name: str) -> Iterator[MatchLine]:
    for _, lines in log.read_lines():
        yield from (line for line in lines if name in line.seats)


LOOPBACK = """
import multiprocessing, os, socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
with multiprocessing.Pool(2) as pool, multiprocessing.Manager() as manager:
    assert pool.map(abs, [-1, -2]) == [1, 2] and list(manager.list([1])) == [1]
for folder in ("/tmp", "/run", "/dev/shm", "/var/tmp"):
    open(os.path.join(folder, "mine"), "x").close()
"""


def test_bot_has_loopback_and_empty_temporary_folders(tmp_path: Path) -> None:
    """The temporary folders are empty again in every match."""
    bot = LOOPBACK + (Path(__file__).parent / "bots/drawn.py").read_text()
    path = config(tmp_path, {"talks": f"{sys.executable} talks.py", "drawn": HONEST["drawn"]})
    (tmp_path / "talks.py").write_text(bot)
    for line in met(read(path, {}), tmp_path / "run"):
        assert line.strikes == [], line.stderr
        assert line.exit == (0, 0)
    assert not os.path.exists("/run/mine")
