"""A game can be installed as a package or used with --games-path (docs/writing-a-game.md)."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dubito.game import find
from dubito.game.find import digest_of_game, find_bots, find_game
from dubito.llm.prompts import game_of_folder
from dubito.packages import games_path
from tests.cli.kit import Shell
from tests.games.kit import KUHN, WRITING, write_kuhn

PINNED: Final = "dubito-kuhn==0.1.0"
RUN: Final = ("run", "--game", "kuhn", "--games", "40", "--output")
MODELS: Final = (*RUN[:3], "--games", "8", "--contenders", "house:house-random@plain,Careful", "--output")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package with the guide's two commands, without a network."""
    project, site = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("site")
    write_kuhn(project)
    shutil.copy(KUHN / "pyproject.toml", project)
    make, install = [shlex.split(line) for line in re.findall(r"^pip .*$", WRITING, re.MULTILINE)]
    here = ("--disable-pip-version-check", "--no-index")
    for words in ((*make, "--no-build-isolation"), (*install, "--no-deps", "--no-compile", "--target", str(site))):
        command = [sys.executable, "-m", *words, *here]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
    return site


@pytest.fixture
def site(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a modifiable copy of the package on Python's path, and unload its modules at the end."""
    folder = Path(shutil.copytree(package, tmp_path.parent / f"{tmp_path.name}-site"))
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ("dubito_kuhn", "games"):
        find._forget(name)


def write_point(site: Path, text: str) -> None:
    (site / "dubito_kuhn-0.1.0.dist-info" / "entry_points.txt").write_text(f"[dubito.games]\n{text}\n")


def test_an_installed_game_plays_in_any_folder(shell: Shell, site: Path) -> None:
    listed = shell("games")
    assert re.search(rf"^kuhn .* {re.escape(PINNED)}$", listed.out, re.MULTILINE)
    assert listed.err == ""
    kuhn = next(game for game in json.loads(shell("games", "--json").out)["games"] if game["name"] == "kuhn")
    assert kuhn["origin"] == PINNED
    assert {bot.name for bot in find_bots(Path.cwd(), "kuhn").hand_written()} == {"Careful", "Coin"}
    assert "plain" in shell("prompts", "list", "--game", "kuhn").out
    result = shell(*MODELS, "r")
    assert result.code == 0, result.err
    for words in (("replay", "r"), ("report", "r"), ("status", "r"), ("prompts", "record", "r")):
        replayed = shell(*words)
        assert (replayed.code, "mismatch" in replayed.err) == (0, False), replayed.err
    assert shell("watch", "--game", "kuhn", "Coin", "Careful", "--save", "game.json").code == 0
    assert shell("replay", "game.json").out.startswith("identical: ")
    assert game_of_folder(site / "dubito_kuhn" / "prompts" / "plain", Path.cwd()).name == "kuhn"


def test_installed_game_is_checked_in_place(shell: Shell, site: Path) -> None:
    assert shell("games", "check", "kuhn", "--quick").out.startswith("kuhn passed all checks")
    facts = site / "dubito_kuhn" / "facts.py"
    facts.write_text(facts.read_text().replace('"card"}', '"card", "hand"}'))
    result = shell("games", "check", "kuhn", "--quick")
    assert (result.code, result.out.startswith(f"{facts}: ")) == (1, True), result.out


def test_workers_find_an_installed_game(shell: Shell, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell(*RUN, "r", "--workers", "2").code == 0
    monkeypatch.setenv("PYTHONPATH", str(site))
    command = [sys.executable, "-m", "dubito", "replay", "r", "--workers", "2"]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed.stdout.startswith("identical: 40 games")


def test_run_resumes_where_the_game_is_installed(shell: Shell, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes have the same digest in a folder and in a package."""
    with monkeypatch.context() as before:
        before.setattr(sys, "path", [path for path in sys.path if path != str(site)])
        write_kuhn(Path("there"))
        monkeypatch.chdir("there")
        assert shell(*MODELS, "../r").code == 0
        digest = digest_of_game(find_game("kuhn", Path.cwd()), Path.cwd())
    monkeypatch.chdir("..")
    assert digest_of_game(find_game("kuhn", Path.cwd()), Path.cwd()) == digest
    assert shell("replay", "r").out.startswith("identical: 8 games")
    longer = shell(*("16" if word == "8" else word for word in MODELS), "r")
    assert longer.code == 0, longer.err
    assert shell("replay", "r").out.startswith("identical: 16 games")
    monkeypatch.chdir("there")  # this folder also contains the game, with the same bytes
    assert shell("replay", "../r").out.startswith("identical: 16 games")


def test_installed_game_can_be_imported_by_either_name(shell: Shell, site: Path) -> None:
    bots = site / "dubito_kuhn" / "bots" / "manual"
    careful = bots / "careful.py"
    careful.write_text(careful.read_text().replace("from games.kuhn.game", "from dubito_kuhn.game"))
    assert {bot.name for bot in find_bots(Path.cwd(), "kuhn").hand_written()} == {"Careful", "Coin"}
    shell.folder.joinpath("bots/manual/kuhn").mkdir(parents=True)
    own = (bots / "coin.py").read_text().replace("Coin", "Own")
    shell.folder.joinpath("bots/manual/kuhn/own.py").write_text(own)
    assert shell(*RUN, "r", "--bots", "Own,Careful").code == 0


def test_export_names_the_package_of_its_game(shell: Shell, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell(*RUN, "r").code == 0
    assert shell("export", "r", "r.zip").code == 0
    manifest = zipfile.ZipFile("r.zip").read("manifest.yaml").decode()
    digest = digest_of_game(find_game("kuhn", Path.cwd()), Path.cwd())
    assert f"game: kuhn\n  rules_version: 1\n  game_source: {digest}\n" in manifest
    assert f"\n  game: {PINNED}\n" in manifest
    assert str(Path.home()) not in manifest
    assert str(shell.folder) not in manifest
    game = site / "dubito_kuhn" / "game.py"
    game.write_text(f"{game.read_text()}# another\n")
    for words in (("replay", "r.zip"), ("report", "r.zip"), ("report", "r", "--output", "again")):
        other = shell(*words)
        assert other.code == 0
        lines = [line for line in other.err.splitlines() if line.startswith("manifest mismatch: ")]
        assert [line.count(digest[:12]) for line in lines] == [1], words
        assert f"install the package {PINNED} if you trust" in lines[0]
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(site)])
    for line in ("replay r.zip", "report r", "report r.zip", "prompts record r"):
        result = shell(*line.split(" "))
        assert (result.code, result.err.count("\n")) == (2, 1), line
        assert f"contains games of kuhn (sources {digest[:12]}), which is not installed" in result.err
        assert f"install the package {PINNED} if you trust" in result.err


def test_export_does_not_contain_the_users_folder(shell: Shell) -> None:
    write_kuhn(Path("there"))
    assert shell(*RUN, "r", "--games-path", "there").code == 0
    assert shell("export", "r", "r.zip").code == 0
    manifest = zipfile.ZipFile("r.zip").read("manifest.yaml").decode()
    assert str(shell.folder) not in manifest
    missing = shell("replay", "r.zip")
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "which is not installed; put its folder into games/, or set --games-path to its location" in missing.err
    for name in ("replay", "report", "status"):
        assert shell(name, "r.zip", "--games-path", "there").code == 0


@pytest.mark.parametrize("message", ["x; rm -rf ~==1", "--index-url=http://evil/==1", "games/kuhn`", 5, None])
def test_run_of_unknown_origin_cannot_suggest_commands(shell: Shell, message: object) -> None:
    write_kuhn(Path("there"))
    assert shell(*RUN, "r", "--games-path", "there").code == 0
    manifest = Path("r/manifest.yaml")
    manifest.write_text(f"{manifest.read_text()}  game: {json.dumps(message)}\n")
    result = shell("replay", "r")
    assert (result.code, result.err.count("\n"), "pip" in result.err) == (2, 1, False)
    assert "put its folder into games/" in result.err


def test_games_path_is_used_like_the_working_directory(shell: Shell, at_length: bool) -> None:
    """Check `--games-path` without worker processes.

    The next test covers worker processes; test_check.py covers `check`, which starts processes for a game's folder.
    """
    workers, quick = ("--workers", "2" if at_length else "1"), () if at_length else ("--quick",)
    write_kuhn(Path("there"))
    path = ("--games-path", "there")
    assert re.search(r"^kuhn .* there/games/kuhn$", shell("games", *path).out, re.MULTILINE)
    assert "\nkuhn " not in shell("games").out, "the path applies only to the command"
    assert shell("games", "check", "kuhn", *quick, *path).out.startswith("kuhn passed all checks")
    assert "Careful" in shell("bots", "--game", "kuhn", *path).out
    assert shell(*MODELS, "r", *path).code == 0
    Path("k.yaml").write_text("game: kuhn\ngames: 8\n")
    assert shell("run", "k.yaml", "--output", "k", *path, "--report", *workers).code == 0
    for words in (("replay", "r", *workers), ("report", "r"), ("compare", "r"), ("prompts", "record", "r")):
        result = shell(*words, *path)
        assert result.code == 0, result.err
    assert shell("prompts", "lint", "plain", "--game", "kuhn", *path).code == 0
    assert shell("run", "--game", "kuhn", "--help", *path).code == 0, "its rules are listed in the help"


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ((), "--games-path F: no such folder; name a folder with games, bots or prompts"),
        (
            ("F/",),
            "--games-path F: the folder has no games/NAME/game.py, no bots and no prompts; put a game into "
            "games/NAME there",
        ),
        (("F/kuhn/game.py",), "--games-path F: the folder has no games/NAME/game.py, no bots and no prompts; use "),
        (("F/games/bs/game.py",), "F/games/bs: bs is the name of a game that comes with Dubito; rename the folder"),
    ],
)
def test_a_games_path_without_games_is_reported_in_one_sentence(
    shell: Shell, made: tuple[str, ...], sentence: str
) -> None:
    for name in made:
        (Path(name) if name.endswith("/") else Path(name).parent).mkdir(parents=True)
        if not name.endswith("/"):
            Path(name).write_text("")
    for words in (("games",), ("run", "--game", "kuhn"), ("bots", "--game", "kuhn")):
        result = shell(*words, "--games-path", "F")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert sentence in result.err
        assert games_path() == (), "the path is reset however the command ends"


@pytest.mark.parametrize(
    ("point", "game", "sentence"),
    [
        ("kuhn = nowhere_at_all", None, "kuhn = 'nowhere_at_all': the package was not found; reinstall or remove it"),
        (
            "kuhn = dubito_kuhn.game:GAME",
            None,
            "the value must be the package that contains game.py, such as 'my_package'",
        ),
        ("kuhn = games.kuhn", None, "games is a reserved name; rename the package"),
        ("kuhn = raising.inner", None, "kuhn = 'raising.inner': searching for the package raised ValueError: no"),
        ("kuhn = dubito_kuhn", "raise SystemExit(3)", "importing it raises SystemExit: 3"),
        ("kuhn = dubito_kuhn", "GAME = 5", "dubito_kuhn/game.py does not define a game; add `GAME = MyGame()`"),
        ("kun = dubito_kuhn", None, "the game is named 'kuhn'; it must be named after its entry point, kun"),
    ],
)
def test_unusable_package_does_not_affect_other_games(
    shell: Shell, site: Path, point: str, game: str | None, sentence: str
) -> None:
    write_point(site, point)
    (site / "raising").mkdir()
    (site / "raising" / "__init__.py").write_text("raise ValueError('no')")
    if game is not None:
        (site / "dubito_kuhn" / "game.py").write_text(game)
    listed = shell("games")
    assert (listed.code, listed.err.count("\n")) == (0, 1)
    assert listed.err.startswith("broken: ")
    assert sentence in listed.err
    assert {"bs", "defuse", "dubito"} <= {line.split(" ")[0] for line in listed.out.splitlines()}
    result = shell(*("run", "--game", point.split(" ")[0], "--games", "4"))
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert sentence in result.err


def test_unreadable_metadata_does_not_affect_games(shell: Shell, site: Path) -> None:
    write_point(site, "kuhn")
    listed = shell("games")
    assert (listed.code, listed.err.count("\n"), "\nkuhn " in listed.out) == (0, 1, False)
    assert listed.err.startswith(f"broken: {PINNED}: its entry points cannot be read (")


def test_package_cannot_replace_a_shipped_game(shell: Shell, site: Path) -> None:
    write_point(site, "bs = dubito_kuhn")
    listed = shell("games")
    assert (listed.code, listed.err.count("\n")) == (0, 1)
    assert f"{PINNED}: bs is a game that comes with Dubito" in listed.err
    assert find_game("bs", Path.cwd()).package == "dubito.games.bs"


def test_conflicting_games_are_both_named(shell: Shell, site: Path) -> None:
    write_kuhn(Path.cwd())
    assert shell(*RUN, "r").code == 0, "the same bytes are the same game"
    game = Path("games/kuhn/game.py")
    game.write_text(f"{game.read_text()}# another\n")
    result = shell(*RUN, "r")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert f"two games are named kuhn, in {shell.folder / 'games/kuhn'} and in {PINNED}; keep only one" in result.err
    write_kuhn(Path("there"))
    game.unlink()
    game = Path("there/games/kuhn/game.py")
    game.write_text(f"{game.read_text()}# another\n")
    result = shell(*RUN, "r", "--games-path", "there")
    assert f"two games are named kuhn, in {shell.folder / 'there/games/kuhn'} and in {PINNED}" in result.err


def test_listing_bots_reads_no_metadata_of_packages() -> None:
    script = "import sys; from dubito.cli.main import main\ntry: main(['bots'])\nfinally: print(*sys.modules)"
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "importlib.metadata" not in completed.stdout.splitlines()[-1].split(" ")
