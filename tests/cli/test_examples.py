"""`dubito examples` lists and copies the examples that ship with Dubito."""

import re

from tests.cli.kit import REPO, Shell


def test_examples_are_listed_and_copied(shell: Shell) -> None:
    listed = shell("examples")
    assert listed.code == 0
    names = [path.name for path in (REPO / "examples").iterdir() if path.name[0] not in "._"]
    assert all(re.search(rf"^{re.escape(name)} +\w.+\w", listed.out, re.MULTILINE) for name in names), listed.out
    assert shell("examples", "copy", "kuhn.yaml").out == "copied to kuhn.yaml\n"
    assert (shell.folder / "kuhn.yaml").read_text() == (REPO / "examples" / "kuhn.yaml").read_text()
    assert shell("examples", "copy", "bots", "mine").code == 0
    assert (shell.folder / "mine" / "witness.py").is_file()
    assert shell("examples", "copy", "bs.yaml", "mine").out == "copied to mine/bs.yaml\n"


def test_copy_overwrites_nothing_and_names_what_is_wrong(shell: Shell) -> None:
    (shell.folder / "bs.yaml").write_text("mine")
    refused = [shell("examples", "copy", *words) for words in (["bs.yaml"], ["bs.yml"], ["bs.yaml", "no/such/place"])]
    assert [(one.code, one.err) for one in refused] == [
        (2, "dubito: bs.yaml exists already; give another target\n"),
        (2, "dubito: unknown example 'bs.yml'; did you mean 'bs.yaml'?\n"),
        (3, "dubito: cannot write no/such/place: No such file or directory\n"),
    ]
    assert (shell.folder / "bs.yaml").read_text() == "mine"
