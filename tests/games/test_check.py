"""`dubito games check` finds what is planted in a sound game, and finds nothing in a sound one."""

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dubito.game import Choice, Game, Node
from dubito.game.find import find_game
from dubito.game.flaws import flaws_of
from dubito.workshop import conformance, hangs
from dubito.workshop.conformance import Probe
from dubito.workshop.leaks import leaks
from dubito.workshop.listed import lists, shapes
from dubito.workshop.subject import Subject
from tests.cli.kit import REPO, Said, Shell
from tests.conftest import in_gate
from tests.games.kit import EVERY_GAME, GAMES, exchange, write_kuhn, write_kuhn_course, write_stacks

STAGES = (conformance._FIRST, conformance._SOUND, conformance._THEN)
GAME, FACTS, WORDS, STAND_IN = (f"games/stacks/{name}.py" for name in ("game", "facts", "words", "stand_in"))
BOT, PROMPT = "bots/manual/stacks/highest.py", "prompts/stacks/plain/user.jinja"

LEAKS = {  # file, what stands there, what is planted, what is said of which file
    "a fact from another's hand": (
        FACTS,
        "return Position(self._seat, node, cards.held, view.heights,",
        "return Position(self._seat, node, cards.held, tuple(view._state.stacks[0]),",
        "games/stacks/facts.py: facts() shows what its seat cannot know: heights: [",
    ),
    "what is laid, told to all": (
        GAME,
        "[LaidEvent(seat), ",
        "[LaidEvent(seat * 10 + output[0]), ",
        "look: games/stacks/game.py: an event may tell seat ",
    ),
    "cards of all": (
        GAME,
        "return Hand(lambda: self.hands[seat])",
        "hand: Any = Hand(lambda: self.hands[seat])\n        hand.all = self.hands\n        return hand",
        "games/stacks/game.py: cards().all is the state's own hands, which a bot could change: give a copy of it",
    ),
    "stale cards": (
        GAME,
        "Hand(lambda: self.hands[seat])",
        "Hand(lambda held=tuple(self.hands[seat]): held)",
        "games/stacks/game.py: cards() shows what a seat held before, not what it holds now: held: [",
    ),
}
RESULTS = {
    "another ending when asked again": (
        GAME,
        "heights = [sum(stack) for stack in self.stacks]",
        "heights = [sum(stack) for stack in self.stacks]\n        self.stacks[0].append(1)",
        "games/stacks/game.py: ending() says something else when it is asked again",
    ),
    "values too short": (GAME, "(1, 0)", "(1,)", "game.py: results: measure won has 1 values for 2 buckets"),
}
MOVES = {
    "a game that never ends": (
        GAME,
        "return self.turns_played == ROUNDS",
        "return self.turns_played == -ROUNDS",
        "game.py: ",
    ),
    "an output's own code": (
        GAME,
        "type(output) is not list or",
        "output != [7] and",
        "game.py: apply raises TypeError: ",
    ),
    "a move after the end": (
        GAME,
        'if self.over:\n            raise IllegalOutput("the game is over")',
        "if self.over:\n            return []",
        "games/stacks/game.py: apply takes a move after the game is over: raise IllegalOutput",
    ),
    "chance from elsewhere": (
        GAME,
        "chance.shuffle(deck)",
        "Random().shuffle(deck)",
        " goes another way when it is played again: draw from `chance` alone",
    ),
    "another game in silence": (
        GAME,
        "self.hands[seat].append(drawn)",
        "self.hands[seat].append(drawn if announce else 1)",
        "games/stacks/game.py: ",
    ),
    "the bot's own list": (
        GAME,
        "return list(output)",
        "return output",
        "copy_of gives back the very output",
    ),
    "a deal that is no JSON": (GAME, '"deck": list(', '"deck": set(', "deal_to_json gives what JSON has no word for"),
    "an output that is no JSON": (
        GAME,
        "output_to_json=lambda output: output",
        "output_to_json=lambda output: {*output}",
        "games/stacks/game.py: output_to_json gives what JSON has no word for: [",
    ),
    "an output that is another when read": (
        GAME,
        "output_from_json=lambda output: output",
        "output_from_json=lambda output: output[:0]",
        "games/stacks/game.py: output_from_json makes an illegal output of [",
    ),
    "an event that can be changed": (
        GAME,
        "@dataclass(frozen=True, slots=True)\nclass LaidEvent",
        "@dataclass\nclass LaidEvent",
        "games/stacks/game.py: LaidEvent can be changed by whoever observes it: make it frozen",
    ),
    "an event for a seat that there is not": (
        GAME,
        "DrawnEvent(drawn, seat)",
        "DrawnEvent(drawn, 9)",
        "only is 9 in a game",
    ),
    "a rule that the view does not know": (
        GAME,
        'return None if output[0] in self._state.hands[self._state.seat] else "that card is not in the hand"',
        'return None if output[0] in self._state.hands[0] else "that card is not in the hand"',
        "failed in game ",
    ),
}
TEXTS = {
    "facts that raise": (
        FACTS,
        '"held": list(position.held)',
        '"held": list(position.hold)',
        "facts raises Attribute",
    ),
    "an example at another node": (
        FACTS,
        'Position(1, "lay",',
        'Position(1, "put",',
        "games/stacks/facts.py: example_position('lay') is a position at node 'put'",
    ),
    "a steady fact that changes": (
        FACTS,
        '{"seat"}',
        '{"seat", "laid"}',
        "steady_facts names laid, which ch",
    ),
    "a file that is read to no end": (
        FACTS,
        "except (ValueError, TypeError, KeyError):",
        "except ValueError:",
        "games/stacks/facts.py: from_json raises TypeError for the file 'null': raise UsageError",
    ),
    "a position lost in its file": (
        FACTS,
        'tuple(said["drawn"]), laid)',
        'tuple(said["drawn"]), 0)',
        "games/stacks/facts.py: a position at node lay is another one when it was a file",
    ),
    "a notebook that raises": (FACTS, "event.card)", "event.cards)", "facts.py: observe raises AttributeError: "),
    "words that raise": (
        WORDS,
        "a {output[0]}",
        "a {output[1]}",
        "words.py: moved raises IndexError: ",
    ),
    "a word that is no text": (WORDS, 'return " ".join(map(str, ', "return list(map(str, ", "words.py: it says ["),
    "a stand-in without an answer": (
        STAND_IN,
        '"answer"',
        '"reply"',
        "stand_in.py: MODELS: house-lowest gives ",
    ),
    "a prompt that names no fact": (PROMPT, "heights", "hights", "prompts/stacks/plain"),
    "a bot that breaks the rules": (BOT, "max(self.cards.held)", "9", "bots/manual/stacks/highest.py: Highest ("),
    "a bot without a word": (
        BOT,
        '"""Lays its highest card."""',
        "",
        "bots/manual/stacks/highest.py: Highest has",
    ),
    "a base that there is not": (
        GAME,
        '"games.stacks.game.StacksBot"',
        '"games.stacks.Bot"',
        "base_path is games.stacks.Bot",
    ),
    "a share of what there is not": (
        GAME,
        '{"won": 1',
        '{"wins": 1',
        "equal_share names wins, which is none of measures",
    ),
    "no such fallback": (
        GAME,
        'fallback="Lowest"',
        'fallback="Low"',
        "game.py: fallback names Low, which is no",
    ),
}
PLANTED = {name: case for cases in (LEAKS, RESULTS, MOVES, TEXTS) for name, case in cases.items()}


KUHN, LEGAL, CHECKED = "games/kuhn/game.py", 'return ("pass", "bet")', "if why := self.view().why_illegal(output):"
LISTED = {  # in the game of the guide, where a list is all that says what is legal
    "nothing to do": (KUHN, LEGAL, "return ()", "game.py: view().legal() is empty at node act, so nobody could go on"),
    "what is no answer": (
        KUHN,
        LEGAL,
        'return ("pass", "bet", "raise")',
        "game.py: view().legal() lists 'raise' at node act, which is no answer of its Choice",
    ),
    "the same twice": (KUHN, LEGAL, 'return ("pass", "bet", "pass")', "view().legal() lists 'pass' twice at node act"),
    "no order": (KUHN, LEGAL, 'return {"bet"}', "view().legal() gives {'bet'} at node act: give a list or a tuple"),
    "a list and no reason": (
        KUHN,
        "class KuhnView(View)",
        "class KuhnView",
        "games/kuhn/game.py: KuhnView has no why_illegal(output): let it be a `View` of dubito.game, which has one",
    ),
    "a list that its own reason contradicts": (
        KUHN,
        LEGAL,
        f"{LEGAL}\n\n    def why_illegal(self, output: object) -> str | None:\n"
        '        return super().why_illegal(output) or ("no" if self.acts[1:] and output == "bet" else None)',
        "games/kuhn/game.py: view().legal() lists 'bet' at node act, of which why_illegal says: no",
    ),
    "a reason that its list contradicts": (
        KUHN,
        LEGAL,
        'return ("pass", "bet")[: 2 - len(self.acts)]\n\n    def why_illegal(self, output: object) -> str | None:\n'
        '        return None if type(output) is str and output in ("pass", "bet") else "no"',
        "games/kuhn/game.py: view().legal() leaves out 'bet' at node act, which why_illegal lets pass",
    ),
    "a fact of another list": (
        "games/kuhn/facts.py",
        "list(KuhnView(position.acts).legal())",
        '["pass"]',
        "games/kuhn/facts.py: facts() has ['pass'] for legal at node act, where view().legal() lists pass | bet",
    ),
}


KUHN_FACTS, KUHN_WORDS = "games/kuhn/facts.py", "games/kuhn/words.py"
MOVED = "        self.acts.append(output)"
IN_KUHN: dict[str, tuple[str, list[tuple[str, str]], str]] = {  # file, what is exchanged in it, what is said
    "a node that no bot has": (
        KUHN,
        [('node = "act"', 'node = "acts"'), ("return self.act(view)", "return getattr(self, view.node)(view)")],
        "games/kuhn/game.py: view().node is 'acts', which is none of nodes (act)",
    ),
    "a method by another name": (
        KUHN,
        [("def legal", "def leagl")],
        "KuhnView lists nothing at act: write why_illegal there, or is `leagl` to be `legal`?",
    ),
    "a search that finds nothing": (
        KUHN,
        [(MOVED, f"        next(act for act in self.acts if act == output)\n{MOVED}")],
        "games/kuhn/game.py: apply raises StopIteration",
    ),
    "a bot without its method": (
        "bots/manual/kuhn/careful.py",
        [("def act", "def move")],
        "failed in game 0, deal 0, turn 1: play raised NotImplementedError: act is not written (game.py, line ",
    ),
    "a position without its node": (
        KUHN_FACTS,
        [("    node: str\n", "    asked: str\n"), ("position.node", "position.asked")],
        "games/kuhn/facts.py: a Position has no `node`: let it say so, the name of the node that is asked",
    ),
    "own moves beyond the history": (
        KUHN_FACTS,
        [("len(position.acts), 2))", "len(position.acts) + 2, 2))")],
        "games/kuhn/facts.py: own_moves has places, as ",
    ),
    "a sentence that is not spoken to the person": (
        KUHN_WORDS,
        [('f"{ME} passes": "You pass", ', "")],
        "look: games/kuhn/words.py: a person at the table reads 'you passes.': has TO_ME a phrase for it?",
    ),
}


@pytest.fixture
def stacks(shell: Shell) -> None:
    write_stacks(Path.cwd())


@pytest.mark.usefixtures("stacks")
@pytest.mark.parametrize("fault", in_gate(PLANTED, [*PLANTED][::3]))
def test_what_is_planted_is_found(shell: Shell, fault: str) -> None:
    file, old, new, sentence = PLANTED[fault]
    exchange(file, (old, new))
    said = shell("games", "check", "stacks", "--quick")
    assert sentence in said.out, said
    assert "keeps to all" not in said.out or sentence.startswith("look: ")


@pytest.mark.usefixtures("stacks")
def test_a_stand_in_need_not_read_every_prompt(shell: Shell) -> None:
    other = shutil.copytree(Path("prompts/stacks/plain"), Path("prompts/stacks/in-other-words")) / "user.jinja"
    assert "You hold" in other.read_text()
    other.write_text(other.read_text().replace("You hold", "In hand"))
    said = shell("games", "check", "stacks", "--quick")
    assert said.code == 0, said


@pytest.mark.parametrize(("file", "old", "new", "sentence"), LISTED.values(), ids=LISTED)
def test_a_list_that_is_not_what_the_game_takes_is_found(
    shell: Shell, file: str, old: str, new: str, sentence: str
) -> None:
    write_kuhn(Path.cwd())
    exchange(file, (old, new))
    said = shell("games", "check", "kuhn", "--quick")
    assert sentence in said.out, said
    assert said.code == (not sentence.startswith("look: "))


@pytest.mark.parametrize(("file", "exchanged", "sentence"), IN_KUHN.values(), ids=IN_KUHN)
def test_what_is_planted_in_the_game_of_the_guide_is_one_line(
    shell: Shell, file: str, exchanged: list[tuple[str, str]], sentence: str
) -> None:
    write_kuhn(Path.cwd())
    exchange(file, *exchanged)
    said = shell("games", "check", "kuhn", "--quick")
    first, *others = said.out.splitlines()
    assert sentence in first
    assert all(line.startswith("kuhn keeps to all") for line in others), said
    assert said.code == (not sentence.startswith("look: "))


LIVE_ACTS = """class Acts:
    def __init__(self, state):
        self._state = state

    def __len__(self):
        return len(self._state.acts)

    def __iter__(self):
        return iter(self._state.acts)


class KuhnState:"""


@pytest.mark.parametrize(("seen", "found"), [("()", True), ("self.acts if self.seat == 0 else ()", False)])
def test_a_hidden_move_of_a_seat_that_moves_again_is_tried_too(shell: Shell, seen: str, found: bool) -> None:
    """A move that its own seat sees afterwards may be a public one: of that nothing is said."""
    write_kuhn(Path.cwd())
    for path in (Path(KUHN_FACTS), Path(KUHN_WORDS), *Path("prompts").rglob("*.*")):
        path.unlink()
    exchange(
        KUHN,
        ("return len(self.acts) % 2", "return len(self.acts) // 2"),
        ("ActEvent(self.seat, output)", 'ActEvent(self.seat, "hidden" if self.acts else output)'),
        ("return KuhnView(self.acts)", f"return KuhnView({seen})"),
        ("return CARDS[self.dealt[seat]]", "return self.dealt[seat], () if seat else Acts(self)"),
        ("class KuhnState:", LIVE_ACTS),
        ("return tuple(self.acts) in ENDS", "return len(self.acts) == 3"),
    )
    said = shell("games", "check", "kuhn", "--quick")
    assert ("look: games/kuhn/game.py: an event may tell seat 1 " in said.out) == found, said


@pytest.mark.usefixtures("stacks")
def test_of_a_game_that_goes_another_way_nothing_more_is_tried(shell: Shell) -> None:
    _, old, new, sentence = MOVES["chance from elsewhere"]
    Path(GAME).write_text(Path(GAME).read_text().replace(old, new))
    (line,) = shell("games", "check", "stacks", "--quick").out.splitlines()
    assert line.endswith(sentence)


def said_of(probes: Sequence[Probe], game: Game, legal: Callable[[Any], Any]) -> list[str]:
    subject = Subject(replace(game, legal=legal), Path.cwd())
    return [flaw.sentence for probe in probes for flaw in probe(subject)]


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (lambda pile: range(pile + 1), ""),
        (lambda pile: range(max(1, pile)), "view().legal() leaves out "),
        (lambda pile: range(pile + 2), "at node place, of which why_illegal says: the bomb goes to "),
        (lambda pile: [0, 0], "view().legal() lists 0 twice at node place"),
        (
            lambda pile: range(10**12),
            "lists 1,000,000,000,000 outputs at node place: give None where there is no short ",
        ),
        (lambda pile: ["top"], "view().legal() lists 'top' at node place, which is no answer of its Whole"),
        (lambda pile: (place for place in range(pile)), "at node place: give a list or a tuple, or None"),
    ],
)
def test_a_list_of_numbers_is_held_to_its_ends(places: Callable[[int], Any], sentence: str) -> None:
    said = said_of(
        (shapes, lists), GAMES["defuse"], lambda view: view.legal() if view.node == "turn" else places(view.pile)
    )
    assert any(sentence in each for each in said) if sentence else not said, said


def test_cards_are_no_list() -> None:
    (said,) = said_of((shapes,), GAMES["bs"], lambda view: [True, False] if view.node == "bs" else [[]])
    assert said == "view().legal() lists outputs at node cards, whose answer is Cards: give None there"


def test_a_choice_without_names_needs_a_list() -> None:
    nodes = (Node("turn", "turn", Choice(None)), GAMES["defuse"].nodes[1])
    (said,) = said_of((shapes,), replace(GAMES["defuse"], nodes=nodes), lambda view: None)
    assert said == "view().legal() lists nothing at node turn, and neither does its Choice: a person has no button"


@pytest.mark.usefixtures("stacks")
def test_a_list_can_show_what_is_hidden() -> None:
    stacks = find_game("stacks", Path.cwd())
    (said,) = said_of((leaks,), stacks, lambda view: view._state.hands[view._state.seat - 1])
    assert said.startswith("view() shows what its seat cannot know: legal(): [")


def checked(shell: Shell, name: str, *flags: str) -> Said:
    said = shell("games", "check", name, *flags)
    assert said.code == 0, said
    assert re.fullmatch(r".* keeps to all that was tried, in \d+ games\.\n", said.out)
    return said


LARGE = ("bs", "dubito")


@pytest.mark.parametrize("name", in_gate(EVERY_GAME, [name for name in EVERY_GAME if name not in LARGE]))
def test_nothing_is_found_in_a_game_of_the_house(shell: Shell, name: str) -> None:
    checked(shell, name, "--quick")


@pytest.mark.parametrize("name", in_gate(LARGE, 1))
def test_nothing_is_found_in_the_course_of_a_large_game(name: str) -> None:
    assert [*flaws_of(GAMES[name])] == []
    stages = [[probe for probe in stage if probe is not conformance._prompts] for stage in STAGES]
    assert [*conformance.found_by(Subject(GAMES[name], REPO), *stages)] == []


@pytest.mark.usefixtures("stacks")
def test_nothing_is_found_in_a_sound_game_by_its_folder(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory, at_length: bool
) -> None:
    """From another folder; its runs, and those of models, where there is time: the commands of the guide make some."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.move(Path("games"), elsewhere)
    shutil.move(Path("bots"), elsewhere)
    shutil.move(Path("prompts"), elsewhere)
    checked(shell, str(elsewhere / "games" / "stacks"), *(() if at_length else ("--quick",)))


def test_nothing_is_found_in_the_game_of_the_guide(shell: Shell) -> None:
    """With its module `training`, and without."""
    write_kuhn(Path.cwd())
    checked(shell, "kuhn", "--quick")
    write_kuhn_course(Path.cwd())
    checked(shell, "kuhn", "--quick")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("COURSE = KuhnCourse", "COURSE = 5", "it has no `COURSE` that is a class of Course"),
        (
            "COURSE = KuhnCourse",
            "COURSE = Kuhn",
            "importing it raises NameError: name 'Kuhn' is not defined: correct it",
        ),
        ("most_rows = 5, 3", "most_rows = 4, 3", "a game at random: it takes 5 steps, and `longest` is 4"),
        (
            "(first, second)))",
            "(first, second)))\n        self.note('x', 'x', 2)",
            "'x' is for seat 2 alone, and there are 2",
        ),
        (
            'draw("deal", range(3))',
            'Fork("deal", (), lambda: [(0, 0.5), (1, 0.4)])',
            "probabilities that do not sum to 1",
        ),
        ("(ActEvent)", "(ActEvents)", "a game at random raises "),
    ],
)
def test_what_is_wrong_with_the_course_of_a_game_is_found(shell: Shell, old: str, new: str, sentence: str) -> None:
    write_kuhn(Path.cwd())
    file = write_kuhn_course(Path.cwd())
    text = (
        file.read_text()
        .replace("import Course,", "import Course, Fork,")
        .replace("what, ActEvent)", "what,(ActEvent))")
    )
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    said = shell("games", "check", "kuhn", "--quick")
    assert (said.code, said.out.count("\n")) == (1, 1)
    assert said.out.startswith("games/kuhn/training.py: ")
    assert sentence in said.out


FOR_EVER = "while True:\n            pass"
STUBBORN = (
    "while True:\n            try:\n                pass\n            except BaseException:\n                continue"
)


@pytest.mark.usefixtures("stacks")
@pytest.mark.parametrize(
    ("file", "before", "loop", "call", "within"),
    [
        (GAME, "        seat, drawn = self.seat, ", FOR_EVER, "apply", "apply"),
        (GAME, "        if self.over:\n", STUBBORN, "apply", "apply"),
        (BOT, "        return [max(", FOR_EVER, "play", "lay"),
        (FACTS, "        return Position(self", FOR_EVER, "position", "position"),
    ],
)
def test_a_call_that_never_comes_back_is_named_with_its_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, file: str, before: str, loop: str, call: str, within: str
) -> None:
    """Also where the code catches whatever would end it."""
    monkeypatch.setattr(hangs, "PATIENCE", 0.2)
    text = Path(file).read_text()
    assert text.count(before) == 1
    first = text.partition(before)[0].count("\n") + 1
    Path(file).write_text(text.replace(before, f"        {loop}\n{before}"))
    said = shell("games", "check", "stacks", "--quick")
    told = re.fullmatch(rf"{file}: {call} has not come back after 0.2 s \(line (\d+), in {within}\)\n", said.out)
    assert told, said
    assert first <= int(told[1]) <= first + loop.count("\n")


@pytest.mark.usefixtures("stacks")
@pytest.mark.at_length
def test_what_no_file_shows_is_found_by_other_processes(shell: Shell) -> None:
    game = Path(GAME)
    game.write_text(game.read_text().replace("chance.shuffle(deck)", "deck.sort(key=lambda card: hash(str(card)))"))
    said = shell("games", "check", "stacks")
    assert (said.code, "two processes play the same deals differently" in said.out) == (1, True)


def test_a_game_that_there_is_not_is_one_sentence(shell: Shell) -> None:
    said = shell("games", "check", "stack")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
