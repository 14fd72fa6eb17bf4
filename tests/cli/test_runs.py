"""Which run a command uses, the list of runs, and opening or serving reports."""

import os
import re
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.kit import Shell, start

RUN = ("run", "--games", "10", "--bots", "StefaBot,RandomBoi", "--table-sizes", "3", "--quiet")


def play(shell: Shell, folder: str, date: int, *more: str) -> None:
    assert shell(*RUN, "--output", folder, *more).code == 0
    for file in Path(folder).iterdir():
        os.utime(file, (date, date))


def test_latest_run_is_listed_first(shell: Shell) -> None:
    play(shell, "runs/older", 1_700_000_000)
    play(
        shell,
        "runs/set/newer",
        1_700_000_060,
        "--game",
        "bs",
        "--bots",
        "Player1,Player2,Player3,Player4",
        "--table-sizes",
        "4",
    )
    (broken := Path("runs/broken")).mkdir()
    (broken / "manifest.yaml").write_text("games: 1")
    os.utime(broken / "manifest.yaml", (1, 1))
    result = shell("status", "runs")
    assert [re.split(r"  +", line.strip()) for line in result.out.splitlines()[2:]] == [
        ["runs/set/newer", "bs", "finished", "10", "2023-11-14 22:14"],
        ["runs/older", "dubito", "finished", "10", "2023-11-14 22:13"],
    ]
    assert result.err == "cannot be read: runs/broken/manifest.yaml is damaged: the run's identity is missing\n"
    assert "results digest" in shell("status").out
    assert shell("status").err == "the latest run: runs/set/newer\n"


def test_stopped_run_reports_its_progress(shell: Shell) -> None:
    play(shell, "runs/one", 1_700_000_000)
    manifest = Path("runs/one/manifest.yaml")
    manifest.write_text(manifest.read_text().replace("games: 10", "games: 1000", 1))
    assert " stopped  10 of 1,000 " in shell("status", "runs").out


def test_commands_say_that_a_folder_has_no_runs(shell: Shell) -> None:
    assert shell("status", "runs").err == "dubito: runs does not exist: no runs in runs either\n"
    Path("runs").mkdir()
    for command in ("status", "report", "replay", "compare"):
        assert shell(command).err.startswith("dubito: no runs in runs yet: start one with `dubito demo`"), command


@pytest.mark.parametrize("command", ["status", "report", "replay", "compare"])
def test_misspelt_run_gets_a_suggestion(shell: Shell, command: str) -> None:
    play(shell, "runs/sharp-against-all", 1_700_000_000)
    result = shell(command, "runs/shrap-against-all")
    assert (result.code, result.err) == (
        2,
        "dubito: runs/shrap-against-all does not exist: did you mean runs/sharp-against-all?\n",
    )


def test_exported_run_is_read_like_a_folder(shell: Shell) -> None:
    play(shell, "runs/one", 1_700_000_000, "--contenders", "MrDoubt,ClaudeBot")
    assert shell("export", "runs/one", "one.zip").code == 0
    assert shell("compare", "one.zip").out == shell("compare", "runs/one").out
    assert shell("status", "one.zip").out == shell("status", "runs/one").out
    assert shell("report", "one.zip").out == "report: one.zip-report/index.html\n"
    Path("words.txt").write_text("no run")
    assert shell("status", "words.txt").err.startswith(
        "dubito: words.txt is not a run; give a run folder or an exported run"
    )
    assert (
        shell("export", "runs/two", "two.zip").err
        == "dubito: runs/two does not exist: list the runs with `dubito status runs`\n"
    )


def test_export_with_the_name_of_a_page_is_refused(shell: Shell) -> None:
    play(shell, "runs/one", 1_700_000_000)
    result = shell("export", "runs/one", "one.html")
    assert (result.code, result.out, Path("one.html").exists()) == (2, "", False)
    assert result.err.startswith(
        "dubito: one.html: an export is a zip file; name it one.zip; `dubito report` writes pages"
    )


def test_report_is_rewritten_after_more_games(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_browser(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", open_browser)
    play(shell, "runs/one", 1_700_000_000)
    assert shell("report", "--open").out == "report: runs/one/report/index.html\n"
    index = Path("runs/one/report/index.html")
    assert opened == [index.resolve().as_uri()]
    before = index.stat().st_ino
    shell("report", "--open")
    assert index.stat().st_ino == before
    os.utime("runs/one/run.db", (2**33, 2**33))
    shell("report", "--open")
    assert index.stat().st_ino != before


def test_the_report_of_an_exported_run_is_served_on_loopback(shell: Shell) -> None:
    play(shell, "runs/one", 1_700_000_000)
    shell("export", "runs/one", "one.zip")
    with start(shell.folder, "report", "one.zip", "--port", "0") as process:
        assert process.stdout is not None
        found = re.fullmatch(
            r"report: (http://127\.0\.0\.1:\d+/) \(press Ctrl-C to stop\)\n", process.stdout.readline()
        )
        assert found
        with urlopen(found[1], timeout=20) as page:  # noqa: S310, our own address
            assert b"<title>" in page.read()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "b"), "a report covers one run"),
        (("--title", "T"), "--title needs --site"),
        (("a", "--site", "s", "--odds"), "--odds cannot be used with --site"),
        (("--site", "s"), "--site needs the run folders"),
    ],
)
def test_options_of_a_report_and_of_a_site_are_not_mixed(shell: Shell, words: tuple[str, ...], message: str) -> None:
    refused = shell("report", *words)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err
