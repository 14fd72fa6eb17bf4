"""The site of these pages, as `sh scripts/site` builds it: Sphinx reads the Markdown where it lies."""

from pathlib import Path

from sphinx.application import Sphinx

project = "Dubito"
copyright = "the authors of Dubito, MIT licence"  # noqa: A001, Sphinx's name
root_doc = "README"
include_patterns = ["README.md", "docs/**.md", "dubito/plugins/*/docs/*.md", "examples/leaderboard/README.md"]
exclude_patterns = [".*", "bots", "build", "cache", "dist", "prompts", "runs", "tests"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_show_sphinx = False
html_copy_source = False
html_use_index = False
suppress_warnings = ["misc.highlighting_failure"]  # a block of a language that has no colours here, as csv

SECTIONS = {
    "Play": ["rules", "playing", "bs", "defuse", "bots"],
    "Rank a model": ["first-run", "servers", "money", "comparing", "report", "when-it-fails"],
    "Write": [
        *("writing-a-bot", "writing-a-bs-bot", "writing-a-model-bot", "prompts"),
        *("writing-a-game", "writing-a-plugin", "python", "verifiers"),
    ],
    "Look up": ["architecture", "commands", "settings", "runs", "clusters", "house", "json", "performance"],
    "Why": ["decisions/README"],
}


def with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """The two pages that lead to others list them for Sphinx, which a reader of the Markdown need not see."""
    trees = {name: [f"docs/{one}" for one in pages] for name, pages in SECTIONS.items()}
    folders = Path(app.srcdir).glob("dubito/plugins/*/docs/*.md")
    trees["Plugins"] = sorted(str(path.relative_to(app.srcdir).with_suffix("")) for path in folders)
    if page == root_doc:
        trees["Examples"] = ["examples/leaderboard/README"]
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {name}\n\n" + "\n".join(f"/{one}" for one in pages) + "\n```\n"
            for name, pages in trees.items()
        )
    elif page == "docs/decisions/README":
        listed = sorted(path.stem for path in (Path(app.srcdir) / "docs" / "decisions").glob("0*.md"))
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(listed) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", with_contents)
