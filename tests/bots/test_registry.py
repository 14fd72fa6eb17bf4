"""The registry: a bot is registered by adding its file, and no file can break another one."""

import os
from hashlib import sha256
from itertools import cycle, product
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.game.find import KINDS, BotKind, find_bots
from dubito.game.table import Entrant
from dubito.games.dubito.engine import Rules
from dubito.packages import set_games_path
from tests.bots.kit import REGISTRY, REPO, entrants, load_bot, play_out, run_python, write_bot
from tests.conftest import in_gate

SOURCE = '''
from bots.base import BotBase


class {name}(BotBase):
    """Doubts always."""

    def bluff_first_hand(self, p):
        return False

    def maximize_first_hand(self, p):
        return True

    def should_doubt(self, p):
        return True

    def bluff_regular(self, p):
        return False

    def maximize_regular(self, p):
        return True
'''
GOOD = SOURCE.format(name="Good")


def broken(folder: Path) -> list[str]:
    registry = find_bots(folder)
    assert registry.bots.keys() >= REGISTRY.bots.keys()
    return [str(file) for file in registry.broken]


def only_the_projects(folder: Path) -> bool:
    registry = find_bots(folder)
    return (registry.bots, registry.broken) == (REGISTRY.bots, [])


@pytest.mark.parametrize("kind", KINDS)
def test_new_file_is_registered_automatically(tmp_path: Path, kind: BotKind) -> None:
    bot = load_bot(tmp_path, "good", GOOD, kind)
    assert (bot.name, bot.kind, bot.summary) == ("Good", kind, "Doubts always.")
    assert bot.digest == sha256(GOOD.encode()).hexdigest()
    assert bot.repeatable
    assert find_bots(tmp_path).find("Good") == bot
    table = [*entrants("StefaBot", "RandomBoi"), Entrant("Good", bot.cls)]
    assert play_out(table, Rules(), 1, 2).over


def test_the_projects_bots_are_found_in_any_folder(tmp_path: Path) -> None:
    assert only_the_projects(tmp_path)
    assert only_the_projects(tmp_path / "not" / "there")
    assert REGISTRY.game.fallback in REGISTRY.bots


def test_hand_written_bots_come_from_manual_sorted_by_name(tmp_path: Path) -> None:
    write_bot(tmp_path, "good", GOOD)
    write_bot(tmp_path, "other", SOURCE.format(name="Other"), "llms")
    names = [bot.name for bot in find_bots(tmp_path).hand_written()]
    assert names == sorted(names)
    assert "Good" in names
    assert "Other" not in names


def test_unusual_bot_plays_only_if_named(tmp_path: Path) -> None:
    """Subclasses of an unusual bot are ordinary bots."""
    write_bot(tmp_path, "good", GOOD + "    usual = False\n")
    heir = "from bots.manual.sherlock import Sherlock\nclass Heir(Sherlock):\n    pass\n"
    write_bot(tmp_path, "heir", heir)
    registry = find_bots(tmp_path)
    assert {"Good", "Heir", "Sherlock"} <= registry.bots.keys()
    names = [bot.name for bot in registry.hand_written()]
    assert "Heir" in names
    assert not {"Good", "Sherlock"} & {*names}


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("gemini", "GeminiBot"),
        ("gemini_bot", "Gemini"),
        ("MrNoDoubt_", "mr_No_Doubt"),
        ("strategies", "Careful"),
    ],
)
def test_a_bot_has_the_name_of_its_class(tmp_path: Path, stem: str, name: str) -> None:
    helper = "class Helper:\n    pass\n"
    assert load_bot(tmp_path, stem, helper + SOURCE.format(name=name) + helper).name == name


def test_imported_bot_is_not_the_bot_of_the_file(tmp_path: Path) -> None:
    source = "from bots.manual.stefa_bot import StefaBot\n\nclass Stefa(StefaBot):\n    pass\n"
    bot = load_bot(tmp_path, "stefa", source)
    assert bot.name == "Stefa"
    assert bot.summary == "(no docstring)"
    assert issubclass(bot.cls, REGISTRY.bots["StefaBot"].cls)


def test_the_same_bytes_in_two_places_are_one_bot(tmp_path: Path) -> None:
    """If a clone and the installed project contain the same bot, the installed file is used."""
    stefa = REGISTRY.bots["StefaBot"]
    write_bot(tmp_path, "stefa_bot", stefa.file.read_text())
    write_bot(tmp_path, "good", GOOD)
    write_bot(tmp_path, "good", GOOD, "llms")
    registry = find_bots(tmp_path)
    assert registry.bots["StefaBot"] == stefa
    assert registry.bots["Good"].kind == "manual"
    assert not registry.broken


def test_a_linked_folder_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "bots").symlink_to(REPO / "bots")
    assert only_the_projects(tmp_path)
    write_bot(tmp_path / "other", "odd", "oops oops\n")
    (tmp_path / "other" / "bots" / "llms").symlink_to("manual")
    assert len(broken(tmp_path / "other")) == 1


def test_same_name_in_two_files_of_the_user_is_a_clash(tmp_path: Path) -> None:
    write_bot(tmp_path, "twin", SOURCE.format(name="StefaBot"))
    write_bot(tmp_path, "stefa_bot", SOURCE.format(name="StefaBot") + "\n", "llms")
    write_bot(tmp_path, "good", GOOD)
    registry = find_bots(tmp_path)
    assert registry.bots.keys() == (REGISTRY.bots.keys() | {"Good"}) - {"StefaBot"}
    with pytest.raises(UsageError) as caught:
        registry.find("StefaBot")
    text = str(caught.value)
    assert "the name StefaBot is used by bots/manual/twin.py and bots/llms/stefa_bot.py; rename one class" in text


@pytest.mark.parametrize("kind", KINDS)
def test_users_bot_replaces_dubitos_bot_of_the_same_name(tmp_path: Path, kind: BotKind) -> None:
    own = SOURCE.format(name="StefaBot")
    write_bot(tmp_path, "mine", own, kind)
    registry = find_bots(tmp_path)
    assert registry.find("StefaBot").digest == sha256(own.encode()).hexdigest()
    assert [bot.name for bot in registry.hand_written()] == [bot.name for bot in REGISTRY.hand_written()]
    assert registry.describe_replaced(["MrDoubt", "StefaBot"]) == (
        f"StefaBot comes from your bots/{kind}/mine.py, not from Dubito"
    )
    assert registry.describe_replaced(["MrDoubt"]) is None
    assert not registry.broken


def test_users_bot_does_not_replace_the_fallback(tmp_path: Path) -> None:
    write_bot(tmp_path, "mine", SOURCE.format(name="RandomBoi"))
    registry = find_bots(tmp_path)
    assert registry.find("RandomBoi").cls is not REGISTRY.fallback
    assert registry.fallback is REGISTRY.fallback


BROKEN = {
    "no class": ("x = 1\n", "no class is a bot (classes found: none); make one a subclass of bots.base.BotBase"),
    "private class": (SOURCE.format(name="_Odd"), "no class is a bot (classes found: _Odd)"),
    "imported class": ("from bots.manual.stefa_bot import StefaBot as Odd\n", "(classes found: none)"),
    "no bot": ("class Odd:\n    pass\n", "(classes found: Odd); make one a subclass of bots.base.BotBase"),
    "syntax": ("class Odd:\n  def\n", "syntax error in line 2: invalid syntax; correct it"),
    "import": ("import surely_not_there\n", "importing it raises ModuleNotFoundError: No module named"),
    "raise": ("1 / 0\n", "importing it raises ZeroDivisionError: division by zero; correct or remove"),
    "exit": ("import sys\nsys.exit(3)\n", "importing it raises SystemExit: 3; correct or remove the file"),
    "recursion": ("def f(): f()\nf()\n", "importing it raises RecursionError: "),
    "two lines": ("raise ValueError('two\\nlines\\x1b')\n", "importing it raises ValueError: two lines\\x1b; correct"),
    "bytes": ("x = '\x00'\n", "correct"),
}


@pytest.mark.parametrize(("fault", "kind"), in_gate(product(BROKEN, KINDS), zip(BROKEN, cycle(KINDS))))
def test_unusable_file_is_named_and_does_not_affect_others(tmp_path: Path, fault: str, kind: BotKind) -> None:
    source, reason = BROKEN[fault]
    write_bot(tmp_path, "odd", source, kind)
    write_bot(tmp_path, "zgood", SOURCE.format(name="ZGood"), kind)
    registry = find_bots(tmp_path)
    assert registry.bots.keys() == REGISTRY.bots.keys() | {"ZGood"}
    (message,) = broken(tmp_path)
    assert message.startswith(f"bots/{kind}/odd.py: ")
    assert reason in message
    assert "\n" not in message
    for asked in ("Odd", "OddBot", "odd"):
        with pytest.raises(UsageError, match=f"bot '{asked}' cannot be used: bots/{kind}/odd.py: "):
            registry.find(asked)


def test_ctrl_c_during_an_import_is_not_blamed_on_the_bot(tmp_path: Path) -> None:
    write_bot(tmp_path, "odd", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        find_bots(tmp_path)


def test_unknown_name_can_refer_to_a_broken_file(tmp_path: Path) -> None:
    write_bot(tmp_path, "oops", "class Wrong: pass\n")
    with pytest.raises(UsageError, match=r"; bots/manual/oops\.py cannot be used: `dubito bots` shows the reason$"):
        find_bots(tmp_path).find("Wrong")


def test_hand_written_refuses_a_broken_file_in_manual(tmp_path: Path) -> None:
    write_bot(tmp_path, "odd", "oops oops\n")
    with pytest.raises(UsageError, match=r"bots/manual/odd.py: syntax error .*; or name the bots to play with --bots"):
        find_bots(tmp_path).hand_written()


def test_hand_written_ignores_a_broken_file_in_llms(tmp_path: Path) -> None:
    write_bot(tmp_path, "odd", "oops oops\n", "llms")
    assert find_bots(tmp_path).hand_written() == REGISTRY.hand_written()


def test_hand_written_refuses_a_clash_with_a_bot_of_manual(tmp_path: Path) -> None:
    write_bot(tmp_path, "twin", SOURCE.format(name="StefaBot"))
    write_bot(tmp_path, "stefa_bot", SOURCE.format(name="StefaBot") + "\n", "llms")
    with pytest.raises(UsageError, match="the name StefaBot is used by"):
        find_bots(tmp_path).hand_written()


def test_bot_is_loaded_from_the_digested_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits are detected even if they keep the length and the modification time (cp -p, rsync -t)."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    first = load_bot(tmp_path, "good", GOOD)
    time = first.file.stat().st_mtime
    write_bot(tmp_path, "good", GOOD.replace("Doubts always.", "Doubts seldom."))
    os.utime(first.file, (time, time))
    edited = next(bot for bot in find_bots(tmp_path).bots.values() if bot.file == first.file)
    assert edited.digest != first.digest
    assert edited.summary == "Doubts seldom."


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("StefBot", "did you mean 'StefaBot'?"),
        ("stefabot", "did you mean 'StefaBot'?"),
        ("mrdout", "did you mean 'MrDoubt'?"),
        ("xyz", "choose from AdaptyBoi, AlwaysTruthful, "),
        ("", "choose from AdaptyBoi"),
    ],
)
def test_unknown_name_suggests_the_nearest(asked: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        REGISTRY.find(asked)
    assert str(caught.value).startswith(f"no bot is named {asked!r}: {hint}")


@pytest.mark.parametrize(
    ("line", "repeatable"),
    [
        ("import random", True),
        ("def f():\n    from random import Random", True),
        ("def f():\n    from random import SystemRandom", False),
        ("def f():\n    import secrets", False),
        ("import math, \\\n    secrets", False),
        ("import \uff53ecrets", False),  # Python normalizes this to `secrets`
        ("import secrets", False),
        ("from numpy.random import default_rng", False),
        ("import math", True),
        ("from collections import Counter", True),
        ("secretly = 'import secrets'", True),
    ],
)
def test_bot_with_unseeded_randomness_is_marked(tmp_path: Path, line: str, repeatable: bool) -> None:
    """R27: a run's seed does not reach these modules. Imports of missing packages are inside functions here."""
    source = f"{GOOD}\ndef unused():\n    {line.replace(chr(10), chr(10) + '    ')}\n"
    assert load_bot(tmp_path, "good", source).repeatable is repeatable
    if "numpy" not in line:
        assert load_bot(tmp_path, "good_too", f"{line}\n{SOURCE.format(name='GoodToo')}").repeatable is repeatable


def test_files_that_start_with_an_underscore_are_skipped(tmp_path: Path) -> None:
    write_bot(tmp_path, "_good", GOOD)
    write_bot(tmp_path, "__init__", "1 / 0\n")
    write_bot(tmp_path, "_odd", "oops oops\n")
    (tmp_path / "bots" / "manual" / "good.txt").write_text(GOOD)
    assert only_the_projects(tmp_path)


IMPORTED_FIRST = """
from pathlib import Path
from bots.manual.stefa_bot import StefaBot
from dubito.game.find import find_bots
print(find_bots(Path.cwd()).find("StefaBot").cls is StefaBot)
"""


def test_a_class_that_was_imported_before_is_the_one_found(tmp_path: Path) -> None:
    assert run_python(IMPORTED_FIRST, tmp_path) == "True\n"


FOREIGN = """
from pathlib import Path
{first}
from dubito.game.find import find_bots
registry = find_bots(Path.cwd())
assert not registry.broken, registry.broken
from dubito.games.dubito.engine import deal_table
from dubito.game.table import Entrant, play_game
from dubito.games.dubito.engine import Rules
from dubito.game.streams import DealStreams
table = [Entrant(name, registry.find(name).cls) for name in ("Good", "StefaBot", "ClaudeBot")]
assert play_game(deal_table(table, Rules(), DealStreams(1, 1))).over
import bots.base
print(len(registry.bots), bots.base.__file__)
"""


@pytest.mark.parametrize("first", ["", "import bots", "import bots.base, bots.manual"])
def test_other_package_named_bots_does_not_shadow_ours(tmp_path: Path, first: str) -> None:
    """With `python -c`, the working directory comes first on the import path."""
    write_bot(tmp_path, "good", GOOD)
    for name in ("__init__.py", "base.py", "manual/__init__.py", "manual/_helper.py"):
        (tmp_path / "bots" / name).write_text("FOREIGN = True\n")
    out = run_python(FOREIGN.format(first=first), tmp_path)
    bots, base = out.split()
    assert (bots, Path(base).parent) == (str(len(REGISTRY.bots) + 1), REPO / "bots")


@pytest.mark.parametrize("name", ["._good.py", ".#good.py", ".good.py"])
def test_hidden_files_are_not_bots(tmp_path: Path, name: str) -> None:
    load_bot(tmp_path, "good", GOOD)
    (tmp_path / "bots" / "manual" / name).write_bytes(b"\x00\x05\x16\x07")
    assert broken(tmp_path) == []


def test_each_class_of_a_file_is_a_bot(tmp_path: Path) -> None:
    write_bot(tmp_path, "several", "\n\n".join(SOURCE.format(name=name) for name in ("One", "Two", "_Hidden")))
    registry = find_bots(tmp_path)
    assert registry.bots.keys() - REGISTRY.bots.keys() == {"One", "Two"}
    assert registry.find("One").digest == registry.find("Two").digest
    assert not registry.broken


def test_base_classes_in_a_file_are_not_bots(tmp_path: Path) -> None:
    base = GOOD.replace("class Good(", "class Careful(")
    heirs = "class _Between(Careful):\n    pass\n\n\nclass Good(_Between):\n    pass\n"
    assert load_bot(tmp_path, "good", f"{base}\n\n{heirs}").name == "Good"


def test_bots_that_need_settings_are_not_listed_but_can_be_named() -> None:
    assert [name for name, bot in REGISTRY.bots.items() if bot.is_base] == ["LLMBot"]


def test_folder_with_only_bots_can_be_used(tmp_path: Path) -> None:
    write_bot(tmp_path / "theirs", "good", GOOD)
    set_games_path([tmp_path / "theirs"])
    try:
        assert find_bots(tmp_path).find("Good").name == "Good"
    finally:
        set_games_path([])
