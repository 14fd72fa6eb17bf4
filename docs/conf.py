"""The site of these pages, as `sh scripts/site` builds it: Sphinx reads the Markdown in place."""

import re
from pathlib import Path
from posixpath import normpath

from sphinx.application import Sphinx

project = "Dubito"
copyright = "the authors of Dubito, MIT licence"  # noqa: A001, Sphinx's name
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "dubito/plugins/*/docs/*.md",
    "examples/challenge/README.md",
    "examples/leaderboard/README.md",
    "examples/runs/README.md",
]
exclude_patterns = [".*", "bots", "build", "cache", "dist", "prompts", "runs", "tests"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_show_sphinx = False
html_copy_source = False
html_use_index = False
suppress_warnings = ["misc.highlighting_failure"]  # code blocks of languages without highlighting, such as csv


def read_sections(index: str) -> dict[str, list[str]]:
    """Return the pages of each part of docs/index.md, as paths from the project's root without suffix."""
    _, *parts = re.split(r"^## (.+)$", index, flags=re.MULTILINE)
    return {
        title: [normpath(f"docs/{page}") for page in re.findall(r"\]\((\S+)\.md\)", body)]
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


def with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Add hidden tables of contents, which only Sphinx needs, to the two pages that list others."""
    if page == root_doc:
        source[0] = source[0].replace("[Play](docs/playing.md)", '<a href="play/">Play</a>', 1)  # built by scripts/site
        sections = read_sections((Path(app.srcdir) / "docs" / "index.md").read_text())
        sections["Start"].insert(0, "docs/index")
        sections["Examples"] = ["examples/challenge/README", "examples/leaderboard/README", "examples/runs/README"]
        sections["Project"] = ["CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT", "CHANGELOG"]
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {name}\n\n" + "\n".join(f"/{one}" for one in pages) + "\n```\n"
            for name, pages in sections.items()
        )
    elif page == "docs/decisions/README":
        listed = sorted(path.stem for path in (Path(app.srcdir) / "docs" / "decisions").glob("0*.md"))
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(listed) + "\n```\n"


# What the theme leaves out for people who use a keyboard or a screen reader, as the theme's text and ours.
_ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    "<pre>": '<pre tabindex="0">',
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}


def mend_pages(app: Sphinx, failure: Exception | None) -> None:
    for page in [] if failure else Path(app.outdir).rglob("*.html"):
        text = page.read_text()
        for theirs, ours in _ACCESSIBLE.items():
            text = text.replace(theirs, ours)
        page.write_text(text)


def setup(app: Sphinx) -> None:
    """Register the hooks; Sphinx calls this."""
    app.connect("source-read", with_contents)
    app.connect("build-finished", mend_pages)
