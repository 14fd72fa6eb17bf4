"""What an isolated bot cannot reach, and its limits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dubito.plugins.tournament.log import MatchLine
from dubito.plugins.tournament.pair import folder_size
from dubito.sandbox import warden
from tests.plugins.tournament import kit
from tests.plugins.tournament.kit import FIRST, GOOD, acting

PRIVATE = "ls /proc | grep -c '^[0-9]'; ls {run}; cat {run}/secret; ls {run}/data; umount {run}; kill -9 -1"
LIMITS = (
    "echo 4321 > /proc/sys/kernel/pid_max; cat /proc/sys/kernel/pid_max /proc/self/limits /proc/net/dev; "
    "grep -i -E 'capbnd|nonewprivs' /proc/self/status"
)


def met(folder: Path, one: str, other: str = GOOD, **config: object) -> list[MatchLine]:
    (folder / "run").mkdir()
    (folder / "run" / "secret").write_text("abracadabra")
    pair = kit.pair(folder, one, other, apart=True, **config)
    if not pair.enforced_limits()["no access to other files"]:
        pytest.skip("this system does not support isolating bots")
    lines = list(pair.play(range(2)))
    assert warden.sweep(str(folder / "run")) == 0
    return lines


def test_bot_sees_only_its_own_processes_and_data(tmp_path: Path) -> None:
    script = f"{{ {PRIVATE.format(run=tmp_path / 'run')}; }} >&2; exit 0"
    for line in met(tmp_path, acting(FIRST, first='echo x > "$DUBITO_DATA/x"', last=script)):
        assert line.strikes == []
        seat = line.seats.index("one")
        count, listed, *rest = line.stderr[seat].splitlines()
        assert int(count) <= 5
        assert listed == "data"
        assert "abracadabra" not in line.stderr[seat]
        assert "one" in rest
        assert "other" not in rest
        assert line.exit[1 - seat] == 0
        assert line.data[seat] == 2
    assert (tmp_path / "run/data/one/kuhn_poker/x").read_text() == "x\n"


def test_bot_has_limits_and_no_privileges(tmp_path: Path) -> None:
    line = met(tmp_path, acting(FIRST, last=f"{{ {LIMITS}; }} >&2; exit 0"), memory_gb=0.5)[0]
    text = " ".join(line.stderr[0].split())
    assert "Max core file size 0 0" in text
    assert " 4321 " not in f" {text} "
    assert "Max processes 1000 1000" in text
    assert f"Max data size {1 << 29} {1 << 29}" in text
    assert [word for word in text.split() if word.endswith(":") and word[:2] in ("lo", "et", "en")] == ["lo:"]
    assert "NoNewPrivs: 1" in text
    assert "CapBnd: 0000000000000000" in text


KEEPER = [
    "import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))",
    "import resource; resource.prlimit(1, resource.RLIMIT_AS, (1 << 20, 1 << 20))",
    "import os; os.setpriority(os.PRIO_PROCESS, 1, 19)",
    "import os; os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
]


def test_a_bot_cannot_harm_its_keeper(tmp_path: Path) -> None:
    harm = "; ".join(f"{sys.executable} -I -S -c '{one}'" for one in KEEPER)
    for line in met(tmp_path, acting(FIRST, first=harm), move_seconds=60.0):
        assert line.strikes == []
        assert line.stderr[line.seats.index("one")].count("PermissionError") == len(KEEPER)


@pytest.mark.at_length
def test_fork_bomb_is_contained(tmp_path: Path) -> None:
    bomb = acting(FIRST, first="while :; do sleep 60 & done")
    for line in met(tmp_path, bomb, move_seconds=60.0):
        seat = line.seats.index("one")
        assert [(strike.seat, strike.kind) for strike in line.strikes] == [(seat, "crash")]
        assert "annot fork" in line.stderr[seat]


def test_out_of_memory_bot_is_reported_and_the_match_continues(tmp_path: Path) -> None:
    greedy = acting(f"exec {sys.executable} -I -S -c 'bytearray(1 << 30)'")
    for line in met(tmp_path, greedy, memory_gb=0.25, move_seconds=60.0):
        seat = line.seats.index("one")
        assert [(strike.seat, strike.kind) for strike in line.strikes] == [(seat, "crash")]
        assert line.stderr[seat].splitlines()[-1] == "MemoryError"
        assert line.exit[1 - seat] == 0


DEEP = "import os\nfor _ in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
NAMELESS = "import os\nk = [open('x', 'wb') for n in range(3) if not (os.path.exists('x') and os.unlink('x'))]\n"


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (f"{DEEP}open('x', 'wb').write(bytes(1 << 22))", "its data has more than 100,000 files"),
        (f"{NAMELESS}os.unlink('x')\nfor f in k: f.write(bytes(400_000)); f.flush()", "its data has more than 1,073,7"),
    ],
)
def test_hidden_data_is_counted(tmp_path: Path, work: str, why: str) -> None:
    """The data are in paths that are too long to be named, and in deleted files that are still open."""
    hide = f'cd "$DUBITO_DATA"; {sys.executable} -S -E -c "{work}\nimport time; time.sleep(9)"'
    for line in met(tmp_path, acting(hide), data_gb=0.001, move_seconds=5.0):
        seat = line.seats.index("one")
        assert [(strike.seat, strike.kind) for strike in line.strikes] == [(seat, "crash")]
        assert f"stopped by the referee: {why}" in line.stderr[seat]
    subprocess.run(["/bin/rm", "-rf", tmp_path / "run"], check=True)


def test_very_deep_folder_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose path is too long for the system are skipped without an error."""
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    Path("x").write_text("abc")
    for _ in range(1200):
        os.mkdir("a")
        os.chdir("a")
    Path("x").write_text("abc")
    assert folder_size(tmp_path / "deep") == 6
    subprocess.run(["/bin/rm", "-rf", tmp_path / "deep"], check=True)
