"""Checks of the project: the README's commands and folders, links, rulings, architecture, and a working wheel."""

import ast
import functools
import graphlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import check_jsonschema  # type: ignore[import-untyped]
import pytest

REPO = Path(__file__).resolve().parent.parent
RULINGS = re.findall(r"^- \*\*R(\d+) ", (REPO / "docs" / "rules.md").read_text(), re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
RULING = re.compile(r"\bR\d+\b")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def syntax(path: Path) -> list[ast.AST]:
    return [*ast.walk(parsed(path))]


def shell_blocks(text: str) -> list[str]:
    return [block.strip() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]


def test_the_gate_runs_exactly_the_test_command_of_the_readme() -> None:
    blocks = shell_blocks((REPO / "README.md").read_text())
    main_job, tests = [block for block in blocks if block.startswith("python3 -m venv .venv")]
    assert (REPO / ".ci" / "run").read_text().rstrip().splitlines()[-1] == tests
    assert main_job.endswith(".venv/bin/dubito demo")
    assert "\n" not in "".join(blocks), "each block must be one line that can be pasted"


def test_readme_fits_on_one_screen() -> None:
    assert len((REPO / "README.md").read_text().split()) <= 600
    assert (REPO / "docs" / "images" / "bluff.webp").stat().st_size < 400_000


def test_links_of_the_pages_have_targets() -> None:
    plugins = REPO.glob("dubito/plugins/*/docs/*.md")
    pages = [*REPO.glob("*.md"), *REPO.glob("docs/**/*.md"), *REPO.glob("examples/**/*.md"), *plugins]
    assert len(pages) > 60
    assert [
        f"{page}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", page.read_text()))
        if not link.startswith("https://") and not is_there(page, *link.partition("#")[::2])
    ] == []


def is_there(page: Path, file: str, anchor: str) -> bool:
    there = page.parent / file if file else page
    return there.exists() and (not anchor or anchor in anchors(there.resolve()))


@functools.cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_has_its_place_on_the_site() -> None:
    """docs/conf.py reads the site's sections from docs/index.md."""
    index = REPO / "docs" / "index.md"
    listed = [(index.parent / link).resolve() for link in re.findall(r"\]\((\S+\.md)\)", index.read_text())]
    pages = {*REPO.glob("docs/*.md"), *REPO.glob("dubito/plugins/*/docs/*.md")} - {index}
    assert pages - {*listed} == set()
    assert len(listed) == len({*listed}), "a page must be listed once"


@pytest.mark.at_length
def test_the_pages_build_into_a_site_that_can_be_searched(tmp_path: Path) -> None:
    """A dead link to a page or a heading fails the build."""
    pytest.importorskip("sphinx", reason="sphinx is not installed, so the site was not built: '.[docs]'")
    flags = ("--quiet", "--fail-on-warning", "-c", "docs", "-d", f"{tmp_path / 'read'}", ".", f"{tmp_path / 'site'}")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *flags], cwd=REPO, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "docs/money" in (tmp_path / "site" / "searchindex.js").read_text()
    for page, generated in (("commands", "--allow-host"), ("python", "dubito.errors.UsageError")):
        assert generated in (tmp_path / "site" / "docs" / f"{page}.html").read_text()


def test_every_ruling_that_the_code_names_is_in_the_rulebook_once() -> None:
    rooms = [path for room in ("dubito", "bots", "tests") for path in (REPO / room).rglob("*.py")]
    named = {number for path in rooms for number in re.findall(r"\bR(\d+)\b", path.read_text())}
    assert sorted(RULINGS, key=int) == sorted(named, key=int)


def test_no_text_that_users_read_names_a_ruling() -> None:
    """Only comments and docstrings cite rulings, for readers who can look them up."""
    for path in [path for room in ("dubito", "bots") for path in (REPO / room).rglob("*.*") if path.suffix != ".pyc"]:
        if path.suffix in (".py", ".html", ".js", ".css", ".jinja", ".md") and not RULING.search(path.read_text()):
            continue
        if path.suffix == ".py":
            texts = shown_texts(path)
        elif path.suffix in (".html", ".js", ".css", ".jinja", ".md") and "echarts" not in path.name:
            texts = iter([path.read_text()])
        else:
            continue
        assert not [text for text in texts if RULING.search(text)], path


def shown_texts(path: Path) -> Iterator[str]:
    """Return the texts in a module that are not docstrings, and the docstrings that are a command's help."""
    nodes = syntax(path)
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
        and not any("command" in ast.unparse(one) for one in getattr(node, "decorator_list", ()))
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_every_ruling_is_cited_by_a_test() -> None:
    texts = [path.read_text() for path in (REPO / "tests").rglob("test_*.py") if path != Path(__file__)]
    cites = re.compile(r"\bR(\d+)\b|def test_(?:\w*_)?r(\d+)_")
    cited = {number for text in texts for found in cites.findall(text) for number in found}
    assert set(RULINGS) - cited == set()


def test_modules_and_functions_stay_within_limits() -> None:
    """The limits are 700 lines for a module, script or style sheet, and 60 for a function, without its docstring."""
    sources = [path for room in ("dubito", "bots", "tests", "benchmarks") for path in (REPO / room).rglob("*.py")]
    assert len(sources) > 60
    pages = [path for kind in ("js", "css") for path in (REPO / "dubito").rglob(f"*.{kind}")]
    assert len(pages) > 20
    assert [str(path) for path in [*sources, *pages] if len(path.read_text().splitlines()) > 700] == []
    functions = [
        f"{path}: {node.name}"
        for path in sources
        if "tests" not in path.relative_to(REPO).parts
        for node in syntax(path)
        if isinstance(node, ast.FunctionDef)
        and (node.end_lineno or 0) - node.lineno - (ast.get_docstring(node) or "").count("\n") >= 60
    ]
    assert functions == []


def test_no_two_types_share_a_name() -> None:
    """Games may share names with each other; elsewhere a name has one owner."""
    owners: dict[str, list[str]] = {}
    for path in (REPO / "dubito").rglob("*.py"):
        if not {"games", "plugins"} & {*path.relative_to(REPO).parts}:
            for name in types_of(path):
                owners.setdefault(name, []).append(str(path.relative_to(REPO)))
    assert len(owners) > 300
    assert owners.pop("Run") == ["dubito/api.py", "dubito/experiment/stored.py"], (
        "the public class wraps the stored one"
    )
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


def test_public_functions_have_unique_names_in_their_room() -> None:
    """Games may share names. Functions of commands have the commands' names."""
    owners: dict[tuple[str, str], list[str]] = {}
    for path in (REPO / "dubito").rglob("*.py"):
        if not {"games", "plugins"} & {*path.relative_to(REPO).parts}:
            for name in functions_of(path):
                owners.setdefault((path.relative_to(REPO).parts[1], name), []).append(str(path.relative_to(REPO)))
    assert len(owners) > 400
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


def functions_of(path: Path) -> Iterator[str]:
    """Return the public functions of a module, except commands."""
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name != "main":
            made = " ".join(map(ast.dump, node.decorator_list))
            if "command" not in made and "group" not in made:
                yield node.name


def types_of(path: Path) -> Iterator[str]:
    """Return the public classes and type aliases of a module."""
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name) and not target.id.isupper()]
        else:
            continue
        yield from (name for name in names if name[0].isupper())


def test_packages_import_only_lower_layers() -> None:
    """docs/architecture.md lists the order."""
    rooms = list(rooms_in_import_order())
    found = {path.stem if path.parent == REPO / "dubito" else path.parent.name for path in room_files()}
    assert sorted(rooms) == sorted(found - {"__init__", "__main__"})
    assert len(rooms) > 15
    against = []
    for path in (REPO / "dubito").rglob("*.py"):
        room = path.relative_to(REPO / "dubito").parts[0].removesuffix(".py")
        if room in rooms:
            known = {*rooms[: rooms.index(room) + 1], "__version__"}
            against += [f"{path} imports {name}" for name in imported(path) if name not in known]
    assert against == []


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for types count, and imports within functions do not. `dubito/__init__.py` re-exports the API."""
    files = {module_name(path): path for path in (REPO / "dubito").rglob("*.py")}
    needs = {
        module: {name for name in imported_at_start(path) if name in files and name not in ("dubito", module)}
        for module, path in files.items()
        if module != "dubito"
    }
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")


def imported_at_start(path: Path) -> Iterator[str]:
    late = {id(inner) for node in syntax(path) if isinstance(node, ast.FunctionDef) for inner in ast.walk(node)}
    for node in imports(path):
        if id(node) in late:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names
            if any(not (REPO / f"{name.replace('.', '/')}.py").exists() for name in names):
                yield str(node.module)


def test_the_code_to_read_in_an_hour_has_at_most_2600_lines() -> None:
    page = (REPO / "docs" / "architecture.md").read_text()
    section = page.partition("\n## Read it in an hour\n")[2].partition("\n## ")[0]
    stops = re.findall(r"^(\S+\.py) +(?:from (\w+) ?)?(?:to (\w+))?", section, re.MULTILINE)
    assert len(stops) > 15
    assert len(section.splitlines()) + sum(lines_between(REPO / path, *names) for path, *names in stops) <= 2600


def lines_between(path: Path, first: str, end: str) -> int:
    """Return the number of lines from one definition (or the beginning) to the line before another (or the end)."""
    body = parsed(path).body
    starts = {node.name: node.lineno for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    last = len(path.read_text().splitlines())
    return (starts[end] if end else last + 1) - (starts[first] if first else 1)


WORDS = re.compile(r"bluff|doubt|joker|win_rule|max_turns", re.IGNORECASE)  # terms of Dubito
WORDS_LEFT = {  # lines in folders that serve every game; this list may only shrink
    "api.py": 1,
    "cli/terminal.py": 2,
    "cli/watch.py": 1,
    "game/base.py": 4,
    "game/words.py": 3,
    "llm/answers.py": 2,
    "report/games.py": 1,
    "seats/verifiers.py": 1,
    "show/story.py": 1,
    "store/model_log.py": 2,
    "store/run_db.py": 1,
    "workshop/run_rows.py": 1,
}


def test_game_terms_appear_only_in_the_games_folder() -> None:
    """The list has exceptions. A listed line that no longer exists must be removed from it."""
    counts = {
        path.relative_to(REPO / "dubito").as_posix(): sum(map(bool, map(WORDS.search, path.read_text().splitlines())))
        for path in ours()
        if path.relative_to(REPO).parts[1] not in ("games", "plugins")
    }
    assert {name: count for name, count in counts.items() if count} == WORDS_LEFT


def test_no_two_files_import_each_other() -> None:
    """Imports have no cycles, including late and type-only imports."""
    known = {".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__"): path for path in ours()}
    del known["dubito"]  # a lazy module, which imports its contents only on use
    leads = {name: {found for found in imported_names(path) if found in known} - {name} for name, path in known.items()}
    assert len(leads) > 150
    while free := {name for name, others in leads.items() if not others & leads.keys()}:
        leads = {name: others for name, others in leads.items() if name not in free}
    assert leads == {}, "these modules are in an import cycle, or import one that is"


def ours() -> Iterator[Path]:
    yield from (REPO / "dubito").rglob("*.py")


def imported_names(path: Path) -> Iterator[str]:
    """Return what a module's imports can name: modules, and names within them."""
    for node in imports(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


DOORS = ("game_data", "facts", "player")  # re-exports of Dubito's package, for bots
GROUND = ("errors", "files", "game")  # what a game may import


def test_rooms_know_a_game_only_through_its_interface() -> None:
    """Games do not import other games or the rooms that play them (docs/decisions/0019)."""
    against = [
        f"{path} imports {name}"
        for path in (REPO / "dubito").rglob("*.py")
        if path.relative_to(REPO / "dubito").parts[0].removesuffix(".py") not in ("games", "plugins", *DOORS)
        for name in imported(path)
        if name in ("games", *DOORS)
    ]
    for folder in (REPO / "dubito" / "games").iterdir():
        for path in folder.glob("*.py"):
            against += [f"{path} imports {name}" for name in imported(path) if name not in (*GROUND, "games")]
            against += [f"{path} imports {name}" for name in games_imported(path) if name != folder.name]
    assert against == []


MAY_USE = {  # plugins that use another one if it is installed
    "deception": {"openspiel"},
    "leaderboard": {"openspiel"},
    "tournament": {"openspiel"},
}


def test_the_core_imports_no_plugin_and_a_plugin_only_those_it_may_use() -> None:
    against = []
    for path in (*ours(), *(REPO / "bots").rglob("*.py")):
        parts = path.relative_to(REPO).parts
        own = parts[2] if parts[1] == "plugins" and len(parts) > 3 else None
        allowed = {own, *MAY_USE.get(str(own), ())} if own else set()
        used = {name.split(".")[2] for name in modules(path) if name.startswith("dubito.plugins.")}
        against += [f"{path} imports {name}" for name in used - allowed]
    assert against == []


EXTRAS = {  # extra -> its packages, and the only folders that may import them
    **dict.fromkeys(("gymnasium", "open_spiel", "pettingzoo", "pyspiel", "shimmy"), "dubito/plugins/openspiel"),
    **dict.fromkeys(("dask", "distributed"), "dubito/plugins/dask"),
    **dict.fromkeys(("datasets", "verifiers"), "dubito/seats"),
    "inspect_ai": "dubito/plugins/inspect",
    "numpy": "dubito/plugins",
}


def test_only_these_folders_import_extras() -> None:
    """Everything else works without the extra."""
    against, users = [], set()
    for path in (*ours(), *(REPO / "bots").rglob("*.py")):
        for module in modules(path):
            folder = EXTRAS.get(module.partition(".")[0])
            if folder is not None and path.is_relative_to(REPO / folder):
                users.add(folder)
            elif folder is not None:
                against.append(f"{path} imports {module}")
    assert against == []
    assert users == {*EXTRAS.values()}


@functools.cache
def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return a module's imports, including those for types only."""
    return [node for node in syntax(path) if isinstance(node, ast.Import | ast.ImportFrom)]


def modules(path: Path) -> Iterator[str]:
    """Return all modules that a module imports."""
    for node in imports(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield str(node.module)


def games_imported(path: Path) -> Iterator[str]:
    for node in imports(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dubito.games."):
            yield str(node.module).split(".")[2]


def rooms_in_import_order() -> Iterator[str]:
    """Return the modules and folders of `dubito/` in the order of docs/architecture.md."""
    table = (REPO / "docs" / "architecture.md").read_text().partition("\n| room |")[2].partition("\n\n")[0]
    for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        yield from re.findall(r"`(\w+)`", cell)


def room_files() -> Iterator[Path]:
    yield from (REPO / "dubito").glob("*.py")
    yield from (REPO / "dubito").glob("*/__init__.py")


def imported(path: Path) -> Iterator[str]:
    """Return the rooms that a module imports, and every optional package that the core must not import."""
    for node in imports(path):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        for module in modules:
            wing, _, rest = module.partition(".")
            if wing == "bots" and "bots" in path.parts:  # a plugin's bots may import the project's
                continue
            if wing in ("bots", "tests", "benchmarks"):
                yield wing
            elif wing == "dubito" and rest:
                yield rest.partition(".")[0]


def test_a_wheel_installed_outside_the_clone_plays(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    command(REPO, sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path))
    (wheel,) = tmp_path.glob("dubito-*.whl")
    command(tmp_path, *pip, "install", "--no-deps", "--no-compile", "--target", str(tmp_path / "site"), str(wheel))
    (tmp_path / "here" / "bots" / "manual").mkdir(parents=True)
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [
        "bin",
        "dubito",
        f"{wheel.name.partition('-py3')[0]}.dist-info",
    ]
    assert (tmp_path / "site" / "dubito" / "plugins" / "leaderboard" / "books" / "dubito-1.yaml").exists()
    template = (tmp_path / "site" / "dubito" / "bots" / "manual" / "_template.py").read_text()
    (tmp_path / "here" / "bots" / "manual" / "my_bot.py").write_text(template)
    listed = command(tmp_path / "here", sys.executable, "-m", "dubito", "bots", site=tmp_path / "site")
    assert listed.startswith("18 bots\n")
    assert str(tmp_path / "site" / "dubito" / "bots" / "manual" / "stefa_bot.py") in listed
    run = (
        "run",
        "--bots",
        "MyBot,StefaBot",
        "--games",
        "1100",
        "--table-sizes",
        "3",
        "--max-turns",
        "12",
        "--workers",
        "2",
        "--no-report",
        "--tables",
    )
    ranked = command(tmp_path / "here", sys.executable, "-m", "dubito", *run, site=tmp_path / "site")
    assert "results digest: " in ranked
    assert len(list((tmp_path / "here" / "runs").iterdir())) == 1
    command(tmp_path / "here", sys.executable, "-m", "dubito", "examples", "copy", "bs.yaml", site=tmp_path / "site")
    assert (tmp_path / "here" / "bs.yaml").read_text() == (REPO / "examples" / "bs.yaml").read_text()


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", ".github/workflows/*.yml"),
        ("vendor.github-workflows", "examples/leaderboard/*.yml"),
        ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_files_for_other_programs_follow_their_schemas(
    schema: str, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(map(str, REPO.glob(pattern)))
    assert files
    with pytest.raises(SystemExit) as ended:
        check_jsonschema.main(["--builtin-schema", schema, *files])
    assert ended.value.code == 0, capsys.readouterr().out


RAISING = """from bots.base import BotBase


class MyBot(BotBase):
    def bluff_first_hand(self, p):
        return False

    def should_doubt(self, p):
        raise ValueError("on line nine")

    bluff_regular = bluff_first_hand
"""


COUNT_TWINS = """
from pathlib import Path
from dubito.game.find import find_bots
print(sum(bot.fastest is not bot.cls and bot.fastest.__name__ == name for name, bot in find_bots(Path()).bots.items()))
"""


@pytest.mark.at_length
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) is installed")
def test_a_compiled_wheel_plays_the_same_and_names_a_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel runs outside the clone, without a compiler on the path."""
    monkeypatch.setenv("DUBITO_COMPILE", "1")
    monkeypatch.setenv(
        "MYPYC_OPT_LEVEL", "0"
    )  # the optimization level does not affect results; `scripts/compiled` uses -O3
    command(REPO, sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path))
    (wheel,) = tmp_path.glob("dubito-*.whl")
    site, here = tmp_path / "site", tmp_path / "here"
    with zipfile.ZipFile(wheel) as archive:  # another test installs a wheel
        archive.extractall(site)
    monkeypatch.setenv("PATH", "")
    (here / "bots" / "manual").mkdir(parents=True)
    assert "(compiled)" in command(here, sys.executable, "-m", "dubito", "--version", site=site)
    assert command(here, sys.executable, "-c", COUNT_TWINS, site=site) == "11\n"
    shutil.copy2(REPO / "pyproject.toml", site)
    shutil.copytree(REPO / "tests", site / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    quick = [str(Path("tests", "engine", f"test_{name}.py")) for name in ("hostile", "rounds")]
    output = command(site, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *quick, site=site)
    assert re.search(r"^\d\d+ passed", output, re.MULTILINE)
    run = ("run", "--games", "100", "--table-sizes", "3", "--workers", "1", "--no-report", "--tables", "--output")
    digests = set[str]()
    for name, source in (("compiled", site), ("pure", REPO)):
        ranked = command(here, sys.executable, "-m", "dubito", *run, name, site=source)
        digests |= {line for line in ranked.splitlines() if line.startswith("results digest: ")}
    assert len(digests) == 1
    (here / "bots" / "manual" / "my_bot.py").write_text(RAISING)
    words = (sys.executable, "-m", "dubito", "watch", "MyBot", "StefaBot", "ClaudeBot")
    with pytest.raises(AssertionError, match=r"MyBot .* play raised ValueError: on line nine \(my_bot.py, line 9\)"):
        command(here, *words, site=site)


def command(folder: Path, *words: str, site: Path | None = None) -> str:
    """Run a command, which must succeed, and return its output."""
    environment = os.environ if site is None else os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(words, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
