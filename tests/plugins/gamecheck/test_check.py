"""`dubito games check` finds planted bugs, and reports nothing for a correct game."""

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dubito.game import Choice, Game, Node
from dubito.game.find import find_game
from dubito.game.flaws import find_definition_flaws
from dubito.plugins.gamecheck import conformance, hangs
from dubito.plugins.gamecheck.leaks import check_leaks
from dubito.plugins.gamecheck.legal_checks import check_lists, check_shapes
from dubito.plugins.gamecheck.subject import Probe, Subject
from tests.cli.kit import REPO, Result, Shell
from tests.conftest import in_gate
from tests.games.kit import EVERY_GAME, GAMES, changed_game, exchange, remove_parts, write_kuhn, write_stacks

STAGES = (conformance._FIRST_PROBES, conformance._SOUNDNESS_PROBES, conformance._LATER_PROBES)
GAME, FACTS = "games/stacks/game.py", "games/stacks/facts.py"
BOT = "bots/manual/stacks/highest.py"
KUHN = "games/kuhn/game.py"


@pytest.fixture
def stacks(shell: Shell) -> None:
    write_stacks(Path.cwd())


@pytest.mark.at_length
@pytest.mark.usefixtures("stacks")
def test_fake_model_need_not_read_every_prompt(shell: Shell) -> None:
    other = shutil.copytree(Path("prompts/stacks/plain"), Path("prompts/stacks/in-other-words")) / "user.jinja"
    assert "You hold" in other.read_text()
    other.write_text(other.read_text().replace("You hold", "In hand"))
    result = shell("games", "check", "stacks", "--quick")
    assert result.code == 0, result


LIVE_ACTS = """class Acts:
    def __init__(self, state):
        self._state = state

    def __len__(self):
        return len(self._state.acts)

    def __iter__(self):
        return iter(self._state.acts)


class KuhnState:"""


@pytest.mark.parametrize(("seen", "found"), [("()", True), ("self.acts if self.seat == 0 else ()", False)])
def test_hidden_move_before_another_own_move_is_tried(shell: Shell, seen: str, found: bool) -> None:
    """If the seat later sees its own hidden move, the rules may make the move public, so nothing is reported."""
    write_kuhn(Path.cwd())
    remove_parts(Path(KUHN), "facts", "words", "courses")
    shutil.rmtree("prompts")
    exchange(
        KUHN,
        ("= 1 - self.seat,", "= len(self.acts) // 2,"),
        ("ActEvent(self.seat, output)", 'ActEvent(self.seat, "hidden" if self.acts else output)'),
        ("return KuhnView(self.acts)", f"return KuhnView({seen})"),
        ("return CARDS[self.dealt[seat]]", "return self.dealt[seat], () if seat else Acts(self)"),
        ("class KuhnState:", LIVE_ACTS),
        ("tuple(self.acts) in ENDS", "len(self.acts) == 3"),
    )
    result = shell("games", "check", "kuhn", "--quick")
    assert ("look: games/kuhn/game.py: an event may reveal to seat 1 " in result.out) == found, result


@pytest.mark.usefixtures("stacks")
def test_diverging_game_is_not_tried_further(shell: Shell) -> None:
    exchange(GAME, ("chance.shuffle(deck)", "Random().shuffle(deck)"))
    (line,) = shell("games", "check", "stacks", "--quick").out.splitlines()
    assert line.endswith("game.py: deal returns a different game for the same stream; only draw from `chance`")


def describe_flaws(probes: Sequence[Probe], game: Game, legal: Callable[[Any], Any]) -> list[str]:
    subject = Subject(changed_game(game, legal=legal), Path.cwd())
    return [flaw.sentence for probe in probes for flaw in probe(subject)]


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (lambda pile: range(pile + 1), ""),
        (lambda pile: range(max(1, pile)), "view().legal() leaves out "),
        (lambda pile: range(pile + 2), "at node place, but why_illegal refuses it: the bomb goes to "),
        (lambda pile: [0, 0], "view().legal() lists 0 twice at node place"),
        (
            lambda pile: range(10**12),
            "lists 1,000,000,000,000 outputs at node place; return None unless the list is short",
        ),
        (lambda pile: ["top"], "view().legal() lists 'top' at node place, which is not a valid answer for its Whole"),
        (lambda pile: (place for place in range(pile)), "at node place; return a list, a tuple or None"),
    ],
)
def test_bounds_of_a_list_of_numbers_are_checked(places: Callable[[int], Any], sentence: str) -> None:
    flaws = describe_flaws(
        (check_shapes, check_lists),
        GAMES["defuse"],
        lambda view: view.legal() if view.node == "turn" else places(view.pile),
    )
    assert any(sentence in each for each in flaws) if sentence else not flaws, flaws


def test_listing_cards_is_a_flaw() -> None:
    (flaws,) = describe_flaws((check_shapes,), GAMES["bs"], lambda view: [True, False] if view.node == "bs" else [[]])
    assert flaws == "view().legal() lists outputs at node cards, whose answer is Cards; return None"


def test_a_choice_without_names_needs_a_list() -> None:
    nodes = (Node("turn", "turn", Choice(None)), GAMES["defuse"].nodes[1])
    (flaws,) = describe_flaws((check_shapes,), changed_game(GAMES["defuse"], nodes=nodes), lambda view: None)
    assert flaws == "view().legal() and the Choice of node turn list nothing, so a person has no buttons"


@pytest.mark.at_length
@pytest.mark.usefixtures("stacks")
def test_list_that_reveals_hidden_state_is_reported() -> None:
    stacks = find_game("stacks", Path.cwd())
    (flaws,) = describe_flaws((check_leaks,), stacks, lambda view: view._state.hands[view._state.seat - 1])
    assert flaws.startswith("view() shows hidden information: legal(): [")


def checked(shell: Shell, name: str, *flags: str) -> Result:
    result = shell("games", "check", name, *flags)
    assert result.code == 0, result
    assert re.fullmatch(r".* passed all checks, in \d+ games\.\n", result.out)
    return result


LARGE = ("bs", "dubito")


@pytest.mark.parametrize("name", in_gate(EVERY_GAME, ["defuse", "openspiel:kuhn_poker"]))
def test_shipped_game_has_no_flaws(shell: Shell, name: str) -> None:
    checked(shell, name, "--quick")


@pytest.mark.at_length
@pytest.mark.parametrize("name", LARGE)
def test_course_of_a_large_game_has_no_flaws(name: str) -> None:
    assert [*find_definition_flaws(GAMES[name])] == []
    stages = [[probe for probe in stage if probe is not conformance._check_prompts] for stage in STAGES]
    assert [*conformance.run_probes(Subject(GAMES[name], REPO), *stages)] == []


@pytest.mark.at_length
@pytest.mark.usefixtures("stacks")
def test_sound_game_in_a_folder_has_no_flaws(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The check runs in another folder and includes runs, with and without models."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.move(Path("games"), elsewhere)
    shutil.move(Path("bots"), elsewhere)
    shutil.move(Path("prompts"), elsewhere)
    checked(shell, str(elsewhere / "games" / "stacks"))


def test_game_of_the_guide_has_no_flaws(shell: Shell) -> None:
    """Check the guide's game by folder, and by name."""
    write_kuhn(Path.cwd())
    checked(shell, "games/kuhn", "--quick")
    checked(shell, "kuhn", "--quick")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("class KuhnCourse(Course):", "class KuhnCourse:", "KuhnCourse is not a subclass of Course"),
        (
            "class KuhnCourse(Course):",
            "class KuhnCourse(Kuhn):",
            "importing it raises NameError: name 'Kuhn' is not defined; correct it",
        ),
        ("longest = 5", "longest = 4", "in a random game there are 5 steps, but `longest` is 4"),
        (
            "(first, second)))",
            "(first, second)))\n        self.log.add([CardEvent('king', only=2)])",
            "CardEvent is only for seat 2, but there are 2",
        ),
        (
            'draw("deal", range(3))',
            'Fork("deal", (), lambda: [(0, 0.5), (1, 0.4)])',
            "probabilities that do not sum to 1",
        ),
        ("KuhnState((first", "KuhnStates((first", "a random game raises "),
    ],
)
def test_flaws_of_a_course_are_found(shell: Shell, old: str, new: str, sentence: str) -> None:
    write_kuhn(Path.cwd())
    file = Path("games/kuhn/training.py")
    text = (
        file.read_text()
        .replace("import Course,", "import Course, Fork,")
        .replace("GAME, KuhnState", "GAME, CardEvent, KuhnState")
    )
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    result = shell("games", "check", "kuhn", "--quick")
    assert (result.code, result.out.count("\n")) == (1, 1)
    assert result.out.startswith("games/kuhn/training.py: ")
    assert sentence in result.out


FOR_EVER = "while True:\n            pass"
STUBBORN = (
    "while True:\n            try:\n                pass\n            except BaseException:\n                continue"
)


@pytest.mark.usefixtures("stacks")
@pytest.mark.parametrize(
    ("file", "before", "loop", "call", "within"),
    in_gate(
        [
            (GAME, "        seat, drawn = self.seat, ", FOR_EVER, "apply", "apply"),
            (GAME, "        if self.over:\n", STUBBORN, "apply", "apply"),
            (FACTS, "        for event in position.log:\n", FOR_EVER, "facts", "facts"),
            (BOT, "        return [max(", FOR_EVER, "play", "lay"),
        ],
        3,
    ),
)
def test_endless_call_is_reported_with_its_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, file: str, before: str, loop: str, call: str, within: str
) -> None:
    """The code catches every exception, which must not prevent the interruption."""
    monkeypatch.setattr(hangs, "PATIENCE", 0.2)
    text = Path(file).read_text()
    assert text.count(before) == 1
    first = text.partition(before)[0].count("\n") + 1
    Path(file).write_text(text.replace(before, f"        {loop}\n{before}"))
    result = shell("games", "check", "stacks", "--quick")
    found = re.fullmatch(rf"{file}: {call} has not returned after 0.2 s \(line (\d+), in {within}\)\n", result.out)
    assert found, result
    assert first <= int(found[1]) <= first + loop.count("\n")


@pytest.mark.usefixtures("stacks")
@pytest.mark.at_length
def test_differences_between_processes_are_found(shell: Shell) -> None:
    game = Path(GAME)
    game.write_text(game.read_text().replace("chance.shuffle(deck)", "deck.sort(key=lambda card: hash(str(card)))"))
    result = shell("games", "check", "stacks")
    assert (result.code, "two processes play the same deals differently" in result.out) == (1, True)


@pytest.mark.usefixtures("stacks")
@pytest.mark.at_length
def test_replay_with_other_prompts_is_described(shell: Shell) -> None:
    """The facts read the game that was dealt last, which is another one when a run of several games is replayed."""
    exchange(GAME, ("class State:", "LAST: list[Any] = []\n\n\nclass State:"))
    exchange(
        GAME, ("        self.turns_played = 0\n", "        self.turns_played = 0\n        LAST[:] = self.dealt[:1]\n")
    )
    exchange(FACTS, ("LaidEvent, ", "LAST, LaidEvent, "), ('"drawn": drawn', '"drawn": [*LAST, *drawn]'))
    result = shell("games", "check", "stacks")
    assert "`dubito replay` with house:house-random@plain fails: differs: house:house-random@plain, game" in result.out


@pytest.mark.usefixtures("stacks")
def test_flaws_in_python_are_those_of_the_command(shell: Shell) -> None:
    exchange(
        GAME,
        (
            "    if self.over:\n            raise IllegalOutput",
            "    if not self.deck:\n            raise IllegalOutput",
        ),
    )
    flaws = [f"{flaw.file}: {flaw.sentence}\n" for flaw in conformance.check_game("stacks", quick=True)]
    assert flaws
    assert shell("games", "check", "stacks", "--quick").out == "".join(flaws)


def test_unknown_game_is_reported_in_one_sentence(shell: Shell) -> None:
    result = shell("games", "check", "stack")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
