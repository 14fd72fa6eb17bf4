"""The leaderboard: verified runs have a row, other files a reason, and pages do not depend on the machine."""

import json
import os
import re
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.experiment.config import parse_config, read_config
from dubito.experiment.resolve import resolve
from dubito.experiment.stored import list_contenders
from dubito.game.find import find_bots
from dubito.llm.protocols import read_recorded_reply
from dubito.plugins.leaderboard.submissions import Review, verify_submissions
from dubito.report.tables import cell_text
from dubito.stats.ranking import contender_ranking
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Shell, run_in
from tests.report.kit import SCRIPT, Page, data, pictures_linked

BOOK = ("--bots", "StefaBot,UsualBot", "--table-sizes", "3", "--max-turns", "20", "--games", "6", "--seed", "5")
HOW = ("--no-report", "--quiet", "--workers", "1", "--prices", "prices.yaml")
PRICES = "house-sharp: {input: 1, cached_input: 1, cache_write: 1, output: 4}\n"
MINE = '''
from bots.base import BotBase
class Mine(BotBase):
    """Bluffs never."""
    def bluff_first_hand(self, p): return False
    def should_doubt(self, p): return p.prev.n_cards == 0
    def bluff_regular(self, p): return False
'''
PLAYERS = ("StefaBot", "ClaudeBot", "AdaptyBoi", "RandomBoi", "house:house-sharp@plain")
MODEL = "house-house-sharp@plain"


def submit_run(folder: Path, name: str, *words: str) -> None:
    run_in(folder, "run", *words, *HOW, "--output", f"runs/{name}")
    export_run(folder, name)


def export_run(folder: Path, name: str) -> None:
    (folder / "submissions").mkdir(exist_ok=True)
    run_in(folder, "export", f"runs/{name}", f"submissions/{name}.zip")


def submit_edited_run(folder: Path, before: str, name: str, edit: Callable[[Path], None]) -> None:
    edit(Path(shutil.copytree(folder / "runs" / before, folder / "runs" / name)))
    export_run(folder, name)


def change_reply(run: Path) -> None:
    """Invert the model's first answer and update all digests that include it."""
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        key = "game, seat, decision, attempt"
        *place, raw = db.execute(f"SELECT {key}, raw FROM attempts WHERE game >= 0 ORDER BY {key}").fetchone()  # noqa: S608
        with RunDb.open(run / "run.db") as kept:
            body = ModelLog(kept).text(raw)
        turned = body.replace(*(r"r\":true", r"r\":false") if r"r\":true" in body else (r"r\":false", r"r\":true"))
        assert turned != body
        digest = sha256(turned.encode()).hexdigest()
        db.execute("INSERT INTO texts VALUES (?, ?)", (digest, zlib.compress(turned.encode())))
        reply = read_recorded_reply("responses", turned).digest
        db.execute(f"UPDATE attempts SET raw = ?, reply = ? WHERE ({key}) = (?, ?, ?, ?)", (digest, reply, *place))  # noqa: S608


def change_table(run: Path) -> None:
    table = run / "all_games.yaml"
    text = table.read_text()
    table.write_text(re.sub(r"games: (\d)", r"games: 1\1", text, count=1))
    assert table.read_text() != text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ten submissions, four of them invalid."""
    folder = tmp_path_factory.mktemp("board")
    bots = folder / "bots" / "manual"
    bots.mkdir(parents=True)
    (bots / "mine.py").write_text(MINE)
    (folder / "prices.yaml").write_text(PRICES)
    for player in PLAYERS:
        submit_run(folder, player.replace(":", "-"), *BOOK, "--contenders", player)
    config = {"contenders": [{"bot": "UsualBot", "name": SCRIPT}]}
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    submit_run(folder, "<b>named", "c.yaml", *BOOK)
    submit_edited_run(folder, MODEL, "another reply", change_reply)
    submit_edited_run(folder, "StefaBot", "another table", change_table)
    submit_run(folder, "another book", *BOOK[:-1], "6", "--contenders", "StefaBot")
    submit_run(folder, "another bot", *BOOK, "--contenders", "Mine")
    (bots / "mine.py").write_text(MINE.replace("== 0", "== 1"))
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Path:
    run_in(
        folder,
        "leaderboard",
        "submissions",
        "--output",
        "site",
        "--workers",
        "1",
        "--url",
        "https://me.github.io/board",
    )
    return folder / "site"


REASONS = {
    "another reply.zip": "its replay differs: game 0, seat 2, decision 0: the decision differs (rec",
    "another table.zip": "its replay differs: all_games.yaml: its counts do not match its games",
    "another book.zip": "its conditions differ: seed is 6 in it and 5 in the others",
    "another bot.zip": "it cannot be replayed: Mine's file has changed",
}


def test_valid_submissions_have_rows_and_invalid_ones_reasons(site: Path) -> None:
    rows, refused = data(site, "board-0"), {row["file"]: row["reason"] for row in data(site, "refused")}
    assert sorted(row["player"] for row in rows) == sorted([*PLAYERS, SCRIPT])
    assert {file: reason[: len(REASONS[file])] for file, reason in refused.items()} == REASONS
    (model,) = [row for row in rows if row["calls"] is not None]
    assert (model["answered"], model["tier"], model["kind"]) == ("house-sharp", "replayed", "fake model")
    assert {row["player"]: row["server"] for row in rows if row["server"]} == {model["player"]: "house"}
    assert model["calls"] > 0
    (dollars,) = [chart for chart in Page(site / "index.html").json if chart["kind"] == "scatter"]
    drawn = {one["name"]: [point[0] for point in one["points"] if point] for one in dollars["series"]}
    assert drawn == {"hand-written": [0.0] * 5, "fake model": [pytest.approx(model["cost"], abs=1e-4)]}
    assert model["cost"] > 0.01


def test_first_screen_has_the_rung_of_the_model(site: Path) -> None:
    """The run is too small for a significant difference, so the model beats no bot."""
    page = (site / "index.html").read_text()
    first, _, more = page.partition('<details class="folded"')
    assert '<h1 class="hero">It is too early to name a winner.</h1>' in first
    assert re.findall(r'<p class="(rung|ground)">', first) == ["rung"] * 5 + ["ground"]
    assert first.index("house:house-sharp@plain", first.index('class="climbers"')) < first.index('class="ground"')
    assert 'id="board-0"' in more


def read_files(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


@pytest.mark.at_length
def test_pages_are_identical_in_another_folder_with_two_workers(folder: Path, site: Path) -> None:
    shutil.copytree(folder / "submissions", folder / "elsewhere")
    with pytest.raises(AssertionError):  # the command exits with code 1
        run_in(
            folder,
            "leaderboard",
            "elsewhere",
            "--output",
            "again",
            "--workers",
            "2",
            "--url",
            "https://me.github.io/board",
            "--strict",
        )
    first, second = read_files(site), read_files(folder / "again")
    assert [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)] == []
    assert [name for name, content in first.items() if str(folder).encode() in content] == []


def test_links_resolve_and_names_are_escaped(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for tag, attributes in page.elements:
            assert tag not in ("b", "img")
            assert tag != "script" or attributes.get("src") or attributes.get("type") == "application/json"
            for address in (attributes.get("src"), attributes.get("href")):
                file = (address or "data:").partition("#")[0]
                assert file.startswith("data:") or not file or (path.parent / file).exists(), (path, file)
    first = pages[site / "index.html"]
    described = [attributes for tag, attributes in first.elements if tag == "meta" and "property" in attributes]
    assert "og:description" in [each["property"] for each in described]
    pictures = pictures_linked(site, "https://me.github.io/board/")
    folders = {page.rpartition("/")[0] for page in pictures if not page.startswith("runs/")}
    assert folders == {"", "rows", "pairs"}
    assert "#6fa488" not in pictures["index.html"]  # there all rows stand out, elsewhere one or two
    assert "#6fa488" in next(drawn for page, drawn in pictures.items() if page.startswith("rows/"))
    assert "dubito replay" in first.words


def test_row_links_to_its_games(site: Path) -> None:
    (rows,) = [page for page in (site / "rows").glob("*-games.html") if SCRIPT in Page(page).words]
    links = [attributes["href"] or "" for tag, attributes in Page(rows).elements if tag == "a"]
    games = [link for link in links if "/games/" in link]
    assert len(games) == 6
    assert "Game 3" in Page((rows.parent / games[3]).resolve()).words


def test_pair_page_lists_the_games_that_differ(site: Path) -> None:
    row = next((site / "rows").glob("*-0.html"))
    pairs = {attributes["href"] or "" for tag, attributes in Page(row).elements if tag == "a"}
    pages = [Page((row.parent / link).resolve()) for link in pairs if "/pairs/" in link]
    assert len(pages) == len(PLAYERS)
    for page in pages:
        (title, *games) = page.tables[next(key for key in page.tables if key.endswith("-games"))]
        assert title[:3] == ["deal", "size", "seat"]
        assert all(row[4] != row[6] for row in games)
        both, same, different = map(
            int, re.findall(r"(\d+) games were .* result in (\d+) of them and .* in (\d+)\.", page.words)[0]
        )
        assert (len(games), same) == (different, both - different)


HOSTILE: dict[str, tuple[bytes | dict[str, bytes], str]] = {
    "bomb.zip": (
        {"manifest.yaml": b"", "run.db": bytes(17 << 20)},
        "bomb.zip unpacks to more than 50 times its size, unlike any exported run",
    ),
    "text.zip": (b"hello", "it is not an exported run; submit a file written by `dubito export RUN FILE`"),
    "cut.zip": (b"PK\x03\x04", "it is not an exported run"),
    "other.zip": ({"run.py": b"import os"}, "other.zip is not an exported run: it should contain manifest.yaml"),
    "<img src=x>.zip": ({"manifest.yaml": b"[" * 1000}, "<img src=x>.zip/manifest.yaml is damaged"),
    "no run.zip": ({"manifest.yaml": b"identity: {}\nformat: 4"}, "no run.zip/manifest.yaml is damaged"),
}


def test_each_invalid_file_has_a_reason(tmp_path: Path) -> None:
    for name, (content, _) in HOSTILE.items():
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
            continue
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, text in content.items():
                archive.writestr(part, text)
    with verify_submissions(tmp_path, REPO, 1) as found:
        reasons = {one.file: one.reason for one in found.invalid}
        assert not found.books
    assert {name: reason[: len(HOSTILE[name][1])] for name, reason in reasons.items()} == {
        name: sentence for name, (_, sentence) in HOSTILE.items()
    }
    assert not any("\n" in reason or str(tmp_path) in reason for reason in reasons.values())


def review(file: Path, **values: Any) -> None:
    digest = sha256(file.read_bytes()).hexdigest()
    file.with_name(f"{file.stem}.review.yaml").write_text(json.dumps({"submission": digest, "by": "Ada", **values}))


def model_decisions(folder: Path) -> list[tuple[str, bool]]:
    query = "SELECT game, seat, decision, answer FROM decisions WHERE outcome = 'model' ORDER BY 1, 2, 3"
    with closing(sqlite3.connect(folder / "runs" / MODEL / "run.db")) as db:
        return [(f"{game}.{seat}.{number}", bool(answer)) for game, seat, number, answer in db.execute(query)]


@pytest.mark.parametrize(
    ("asked", "turned", "tier", "message"),
    [
        (
            60,
            0,
            "attested",
            "Ada repeated 60 of its requests twice: the first new answer equals the submission's in 60",
        ),
        (60, 3, "attested", "Ada repeated 60"),
        (60, 20, "challenged", "the difference is too large to be chance"),
        (40, 0, "replayed", "too few requests: at least 50 are needed"),
    ],
)
def test_review_sample_determines_the_tier(
    folder: Path, tmp_path: Path, asked: int, turned: int, tier: str, message: str
) -> None:
    """In the first `turned` requests, both new answers are changed."""
    file = Path(shutil.copy(folder / "submissions" / f"{MODEL}.zip", tmp_path))
    taken = model_decisions(folder)[:asked]
    assert len(taken) == asked
    now = [answer != (place < turned) for place, (_, answer) in enumerate(taken)]
    review(
        file,
        asked=[{"decision": place, "answers": [new, new]} for (place, _), new in zip(taken, now, strict=True)],
    )
    with verify_submissions(tmp_path, folder, 1) as found:
        ((_, (one,)),) = found.books
        assert one.tier == tier
        assert any(sentence.startswith(message) for sentence in one.tier_reasons)


def test_review_can_challenge_its_own_file_only(folder: Path, tmp_path: Path) -> None:
    for name in ("StefaBot", "ClaudeBot", "AdaptyBoi"):
        shutil.copy(folder / "submissions" / f"{name}.zip", tmp_path)
    review(tmp_path / "StefaBot.zip", challenge="It is said to know the cards.")
    review(tmp_path / "ClaudeBot.zip", submission="0" * 64)
    review(tmp_path / "AdaptyBoi.zip", believed=True)
    with verify_submissions(tmp_path, folder, 1) as found:
        ((_, proven),) = found.books
        tiers = {one.file: (one.tier, [*one.tier_reasons]) for one in proven}
        reasons = {one.file: one.reason for one in found.invalid}
    assert tiers.pop("StefaBot.zip") == ("challenged", ["Ada: It is said to know the cards."])
    assert {*tiers} == {"ClaudeBot.zip", "AdaptyBoi.zip"}
    assert all(tier == ("replayed", []) for tier in tiers.values())
    assert reasons["ClaudeBot.review.yaml"] == "the review is for another version of ClaudeBot.zip"
    assert "believed" in reasons["AdaptyBoi.review.yaml"]


def repack(file: Path, target: Path) -> None:
    with zipfile.ZipFile(file) as before, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as after:
        for part in reversed(before.infolist()):
            after.writestr(zipfile.ZipInfo(part.filename, (2026, 1, 2, 3, 4, 6)), before.read(part))


@pytest.mark.parametrize(("reviewed", "keeps"), [(False, "b.zip"), (True, "c.zip")])
def test_run_packed_in_several_ways_is_one_submission(folder: Path, tmp_path: Path, reviewed: bool, keeps: str) -> None:
    """The reviewed file is ranked, or the oldest if none is reviewed."""
    original = folder / "submissions" / "StefaBot.zip"
    shutil.copy(original, tmp_path / "b.zip")
    shutil.copy(original, tmp_path / "d.zip")
    for number, name in enumerate(["b.zip", "a.zip", "c.zip", "d.zip"]):
        if name in ("a.zip", "c.zip"):
            repack(original, tmp_path / name)
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    if reviewed:
        with zipfile.ZipFile(tmp_path / "c.zip", "a") as archive:
            archive.comment = b"the bytes of one file alone"
        review(tmp_path / "c.zip", challenge="It is said to know the cards.")
    with verify_submissions(tmp_path, folder, 1) as found:
        ((_, proven),) = found.books
        reasons = {one.file: one.reason for one in found.invalid}
    assert [one.file for one in proven] == [keeps]
    others = {"a.zip", "b.zip", "c.zip", "d.zip"} - {keeps}
    assert reasons == dict.fromkeys(others, f"it is the same run as {keeps}, which already has a row")


def _add_score(run: Path, db: sqlite3.Connection) -> None:
    ((sums,),) = db.execute("SELECT sums FROM tally WHERE chunks = 'all'")
    tables = json.loads(sums)
    tables["contended"][0][-1][1] += 1
    db.execute("UPDATE tally SET sums = ?", (json.dumps(tables),))


def _add_decisions(run: Path, db: sqlite3.Connection) -> None:
    rest = "turn, node, answer, outcome, p_bluff"
    db.execute(f"INSERT INTO decisions SELECT game, seat, decision + 1000, {rest} FROM decisions")  # noqa: S608


def _change_prompt(run: Path, db: sqlite3.Connection) -> None:
    db.execute("UPDATE prompts SET text = text || 'Be bold.' WHERE file = 'user.jinja'")


def _add_book(run: Path, db: sqlite3.Connection) -> None:
    manifest = yaml.safe_load((run / "manifest.yaml").read_text())
    manifest["identity"]["book"] = {"name": "dubito-1", "digest": "0" * 16, "part": "field"}
    (run / "manifest.yaml").write_text(yaml.safe_dump(manifest))


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_add_score, "its replay differs: run.db: its sums do not match its games (contended [0]; "),
        (_add_decisions, "its replay differs: run.db: it has 206 decisions of models instead of 103"),
        (
            _change_prompt,
            "its replay differs: run.db: house:house-sharp@plain's prompt does not match its digest",
        ),
        (_add_book, "it names the book dubito-1, but it was played with another version of dubito-1"),
    ],
)
def test_data_that_no_game_needs_is_verified(
    folder: Path, tmp_path: Path, edit: Callable[[Path, sqlite3.Connection], None], reason: str
) -> None:
    run = Path(shutil.copytree(folder / "runs" / MODEL, tmp_path / "runs" / "submit_edited_run"))
    with closing(sqlite3.connect(run / "run.db")) as db, db:
        edit(run, db)
    export_run(tmp_path, "submit_edited_run")
    with verify_submissions(tmp_path / "submissions", folder, 1) as found:
        assert [one.reason[: len(reason)] for one in found.invalid] == [reason]


def test_folder_without_submissions_is_an_error(shell: Shell) -> None:
    Path("empty").mkdir()
    assert shell("leaderboard", "none").code == 2
    result = shell("leaderboard", "empty")
    assert (result.code, "empty has no submissions" in result.err) == (2, True)


def test_documented_review_and_workflow_are_valid() -> None:
    page = (REPO / "dubito" / "plugins" / "leaderboard" / "docs" / "leaderboard.md").read_text()
    (found,) = (yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S))
    workflow = yaml.safe_load((REPO / "examples" / "leaderboard" / "leaderboard.yml").read_text())
    assert len(Review.model_validate(found).asked) == 2
    commands = [step["run"] for step in workflow["jobs"]["site"]["steps"] if "run" in step]
    url = '--url "https://OWNER.github.io/REPOSITORY"'
    assert commands[-1] == f"dubito leaderboard submissions --output site --strict {url}"


def test_example_submissions_are_valid() -> None:
    with verify_submissions(REPO / "examples" / "leaderboard" / "submissions" / "dubito", REPO, 1) as found:
        assert [one.file for one in found.invalid] == []
        ((_, proven),) = found.books
        assert len(proven) == 5


def test_challenge_is_the_config_of_its_ladder() -> None:
    folder = REPO / "examples" / "challenge"
    config = REPO / "examples" / "challenge.yaml"
    experiment = resolve(parse_config(read_config(config), str(config)), find_bots(REPO)).experiment
    with verify_submissions(folder / "submissions", REPO, 1) as found:
        assert [one.reason for one in found.invalid] == []
        ((_, (proven,)),) = found.books
        ladder = proven.run.planned
        rows = contender_ranking(proven.run.tally, list_contenders(ladder), proven.run.game.results)
    assert [ladder.bots, ladder.seed, ladder.rules, ladder.table_sizes] == [
        *(experiment.bots, experiment.seed, experiment.rules, experiment.table_sizes)
    ]
    assert (ladder.deals, experiment.deals) == (100, 100)
    stated = re.findall(r"^(\w+) +hand-written +\d+ +100  (\S+ \[.*\])$", (folder / "README.md").read_text(), re.M)
    assert dict(stated) == {row.contender.name: cell_text(row.rates["score"], "rate") for row in rows}
    assert rows[-1].contender.name == "RandomBoi"


def test_run_of_an_earlier_version_is_valid(tmp_path: Path) -> None:
    shutil.copy(REPO / "tests" / "freeze" / "finished.zip", tmp_path)
    with verify_submissions(tmp_path, REPO, 1) as found:
        assert [one.reason for one in found.invalid] == []


@pytest.fixture
def submission(folder: Path, shell: Shell) -> Path:
    Path("alone").mkdir()
    return Path(shutil.copy(folder / "submissions" / f"{MODEL}.zip", "alone/m.zip"))


def test_review_attests_the_row(submission: Path, shell: Shell) -> None:
    result = shell(
        "leaderboard", "review", str(submission), "--by", "Ada", "--sample", "50", "--cache", "own", "--quiet"
    )
    assert result.out.splitlines() == [
        "50 of 50 requests got two answers: the first equals the submission's in 50, and both are equal in 50; "
        "calls: 101",  # including the preflight's
        "review: alone/m.review.yaml",
    ]
    review = Review.model_validate(yaml.safe_load(Path("alone/m.review.yaml").read_text()))
    assert (review.by, len({one.decision for one in review.asked})) == ("Ada", 50)
    assert shell("leaderboard", "alone", "--output", "site", "--quiet").code == 0
    (row,) = data(Path("site"), "board-0")
    assert row["tier"] == "attested"
    again = shell("leaderboard", "review", str(submission), "--by", "Ada")
    assert again.err == "dubito: alone/m.review.yaml already exists; delete it to repeat the sample\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("alone/m.zip", "--sample", "9000"), "made 103 decisions, too few for a sample of 9000"),
        (("alone", "--sample", "50"), "alone is not an exported run; name a file written by `dubito export`"),
        (("alone/m.zip", "--sample", "50", "--budget", "calls=3"), "the budget is used up: 3 of 3 calls spent"),
    ],
)
def test_impossible_review_is_an_error(submission: Path, shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    result = shell("leaderboard", "review", *words, "--by", "Ada", "--quiet", "--cache", "own")
    assert result.code in (2, 3)
    assert sentence in result.err
    assert not Path("alone/m.review.yaml").exists()
