"""Every page: text from elsewhere is escaped, nothing external is loaded, links resolve."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.report import render
from dubito.report.render import embed_json
from dubito.show.story import Texts
from tests.conftest import any_text
from tests.report.kit import HOSTILE, SCRIPT, TEMPLATE, Page

STATIC = Path(render.__file__).parent / "static"
RUNS = pytest.mark.parametrize("which", ["bots_run", "models_run", "stating_run"])


def pages(run: Path) -> dict[Path, Page]:
    found = {path: Page(path) for path in sorted((run / "report").rglob("*.html"))}
    assert len(found) > 10
    return found


@RUNS
def test_pages_have_only_shipped_scripts(which: str, request: pytest.FixtureRequest) -> None:
    for path, page in pages(request.getfixturevalue(which)).items():
        for tag, attributes in page.elements:
            assert not any(name.startswith("on") for name in attributes), path
            assert tag != "img", path
            if tag == "script" and attributes.get("type") != "application/json":
                source = path.parent / (attributes["src"] or "")
                assert source.name == "shared.js" or (STATIC / source.name).is_file()
                assert source.exists()


@RUNS
def test_pages_are_self_contained_and_links_resolve(which: str, request: pytest.FixtureRequest) -> None:
    for path, page in pages(request.getfixturevalue(which)).items():
        for _, attributes in page.elements:
            for address in (attributes.get("src"), attributes.get("href")):
                if address and not address.startswith("data:"):
                    assert "//" not in address, path
                    file, _, _ = address.partition("#")
                    assert not file or (path.parent / file).exists(), (path, address)
    for css in (request.getfixturevalue(which) / "report" / "static").glob("*.css"):
        assert not re.search(r"url\(|@import", css.read_text())


def test_names_are_shown_unchanged(bots_run: Path) -> None:
    page = pages(bots_run)[bots_run / "report" / "index.html"]
    names = [cells[0] for cells in page.tables["players"]]
    assert SCRIPT in names
    assert TEMPLATE in names


def test_hostile_reply_is_shown_unchanged(models_run: Path) -> None:
    shown = 0
    for path, page in pages(models_run).items():
        if path.parent.name == "games":
            (game,) = page.json
            for decision in game["decisions"]:
                for attempt in decision["attempts"]:
                    reply = "".join(
                        "".join(game["pieces"][first:end])
                        for first, end in zip(attempt["reply"][::2], attempt["reply"][1::2], strict=True)
                    )
                    shown += reply == HOSTILE
    assert shown > 0


@given(any_text())
def test_embedded_text_cannot_close_an_element(text: str) -> None:
    assert "<" not in embed_json(text + HOSTILE)


LINES = st.lists(st.sampled_from(["a\n", "b\n", '"key":1,', '"', "\n", "\r", "\u2028", ",", "c"])).map("".join)


@given(st.lists(LINES))
def test_texts_are_stored_unchanged(texts: list[str]) -> None:
    kept = Texts()
    runs = [kept.add(text) for text in texts]
    assert [kept.read(run) for run in runs] == texts
    assert len(set(kept.pieces)) == len(kept.pieces)


def test_very_long_text_is_truncated_with_a_note() -> None:
    kept = Texts()
    text = kept.read(kept.add("x" * 50_000))
    assert len(text) < 21_000
    assert text.endswith("[truncated; run.db has 30,000 more characters]")
