"""Audits of games and prompts find planted leaks, with line, byte and fact."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.kit import Shell
from tests.games.kit import GAMES, write_kuhn

GAME, FACTS = Path("games/kuhn/game.py"), Path("games/kuhn/facts.py")
USER = Path("prompts/kuhn/plain/user.jinja")
# The cards in the order dealt, in an attribute of an event that no seat can see.
DEALT = "next(getattr(event, '_deck', CARDS) for event in position.log if isinstance(event, CardEvent))"
PLANTED = {  # inserted after the four lines of the user text: the leak, and the file and line that are reported
    "a value": ("Cards:\n{{ deck | join }}", "user.jinja, line 6"),
    "a branch": ("{{ seat }}\n{% if (deck | join).endswith('queen') %}\nQueen.\n{% endif %}", "user.jinja, line 6"),
    "a loop": ("{% for card in deck %}\n- one is\n  the {{ card }}\n{% endfor %}", "user.jinja, line 7"),
    "a file that is included": ("{% if seat %}\n\n{% include 'more.jinja' %}\n{% endif %}", "more.jinja, line 2"),
}


def exchange(file: Path, *pairs: tuple[str, str]) -> None:
    text = file.read_text()
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text)


@pytest.fixture
def kuhn(shell: Shell) -> Shell:
    """Return the guide's game, whose facts leak the three cards in the order dealt."""
    write_kuhn(Path.cwd())
    exchange(
        FACTS,
        ("import ACTS, ActEvent", "import ACTS, CARDS, ActEvent"),
        ('"legal": list', f'"deck": dict.fromkeys({DEALT}, True),\n            "legal": list'),
    )
    order = "tuple(dict.fromkeys([*map(CARDS.__getitem__, cards), *CARDS]))"
    exchange(
        GAME,
        ("@dataclass(frozen=True, slots=True)\nclass CardEvent", "@dataclass(frozen=True)\nclass CardEvent"),
        (
            "\n\n    def view",
            f"\n        [object.__setattr__(card, '_deck', {order}) for card in self.start[1:]]\n\n    def view",
        ),
    )
    return shell


@pytest.mark.parametrize(("planted", "place"), PLANTED.values())
def test_prompt_that_reveals_hidden_information_is_detected(kuhn: Shell, planted: str, place: str) -> None:
    """The facts are equal in both worlds, but a prompt that shows their order has different bytes."""
    shutil.copytree(USER.parent, "prompts/kuhn/loud", dirs_exist_ok=True)
    exchange(Path("prompts/kuhn/loud/user.jinja"), ("What do you do?\n", f"What do you do?\n{planted}\n"))
    Path("prompts/kuhn/loud/more.jinja").write_text("Dealt:\n{{ deck | join }}\n")
    result = kuhn("games", "audit", "kuhn")
    assert result.code == 1
    line = rf"prompts/kuhn/loud/{place}: byte \d+ of the user text \(line \d+\) "
    line += r"reveals information hidden from seat [01] at "
    assert re.fullmatch(rf"{line}node act through the fact deck: .+ or .+\n", result.out)
    if place == "user.jinja, line 6":
        assert kuhn("prompts", "audit", "prompts/kuhn/loud").out.startswith(result.out[:40])
        assert kuhn("prompts", "audit", "--game", "kuhn", "plain").code == 0


def test_the_byte_is_the_first_that_differs(kuhn: Shell) -> None:
    exchange(USER, ("What do you do?\n", "What do you do?\n{{ deck | join }}\n"))
    (line,) = kuhn("prompts", "audit", "prompts/kuhn/plain").out.splitlines()
    found = re.search(r"byte (\d+) of the user text \(line 2\).*: '(\w)\w+' or '(\w)\w+'$", line)
    assert found
    assert found[2] != found[3]
    assert int(found[1]) > len("You hold the jack. What do you do?\n")


def test_game_that_reveals_hidden_information_is_detected(kuhn: Shell) -> None:
    seen = "view = KuhnView(self.acts)\n        view.other = CARDS[self.dealt[1 - self.seat]]\n        return view"
    exchange(GAME, ("return KuhnView(self.acts)", seen))
    result = kuhn("games", "audit", "games/kuhn")
    assert result.code == 1
    what = r"games/kuhn/game\.py: view\(\) shows hidden information: other: '\w+' or '\w+' \(differs at byte 2\) "
    (line,) = [place for place, text in enumerate(GAME.read_text().splitlines(), 1) if "view.other" in text]
    what += rf"differs for seat [01] between two deals that look the same to it \(line {line}\)\n"
    assert re.fullmatch(what, result.out), result


def test_clean_audit_reports_what_was_compared(kuhn: Shell) -> None:
    for words in (["kuhn"], [str(Path("games/kuhn").resolve())]):
        result = kuhn("games", "audit", *words)
        what = r"kuhn, prompt plain: no leaks in \d+ turns, each compared across two deals that look the same"
        assert re.fullmatch(f"{what}\\.\n", result.out), result
        assert result.code == 0
    shutil.rmtree("bots")
    assert "no bot plays kuhn, so there are no games to check" in kuhn("games", "audit", "kuhn").err
    assert kuhn("games", "audit", "kuhm").code == 2


@pytest.mark.at_length
@pytest.mark.parametrize("name", sorted(GAMES))
def test_a_game_of_the_house_and_its_prompts_are_clean(shell: Shell, name: str) -> None:
    result = shell("games", "audit", name)
    assert result.code == 0
    assert ": no leaks in " in result.out, result
