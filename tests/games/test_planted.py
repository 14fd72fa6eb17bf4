"""`dubito games check` finds bugs that are planted in small sound games, and names the file, the line and the fact."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.games.kit import exchange

FOLDERS = {
    "stacks": REPO / "tests" / "games" / "stacks",
    "cups": REPO / "tests" / "games" / "cups",
    "kuhn": REPO / "examples" / "games" / "kuhn",
    "outsider": REPO / "examples" / "games" / "outsider",
}


class Bug(NamedTuple):
    """What is exchanged in a file of a game, and what the first line must say."""

    game: str
    file: str
    exchanged: list[tuple[str, str]]
    message: str  # its beginning, with the fact
    line: str = ""  # a piece of the line that is named; empty: none is
    code: int = 1


KUHN, CUPS, STACKS, OUTSIDER = (f"games/{name}/game.py" for name in ("kuhn", "cups", "stacks", "outsider"))
CUPS_WORDS, KUHN_WORDS = "games/cups/words.py", "games/kuhn/words.py"
VIEW = "self.order = list(range(self.seats))"
TURN, ROLLED = "return [TurnEvent(seat), RolledEvent(self.dice[seat], seat)]", "RolledEvent(self.dice[seat], seat)"
CHECK = "if why := self.view().why_illegal(output):\n            raise IllegalOutput(why)\n"
CAPPED = "bucket=lambda mark, capped: 2 if capped else 1 - mark"

LEAKS = {
    "a view that counts others' secret moves": Bug(
        "cups",
        CUPS,
        [(VIEW, f"{VIEW}\n        self.rolls = sum(state.rolls)")],
        f"{CUPS}: view() shows what its seat cannot know: rolls: ",
        "self.rolls = sum(",
    ),
    "a view ordered by hidden dice": Bug(
        "cups",
        CUPS,
        [(VIEW, "self.order = sorted(range(self.seats), key=lambda each: sum(state.dice[each]))")],
        f"{CUPS}: view() shows what its seat cannot know: order: [",
        "self.order",
    ),
    "a dict ordered by hidden dice": Bug(
        "cups",
        CUPS,
        [
            (
                VIEW,
                "self.under = {each: 2 for each in sorted(range(self.seats), key=lambda each: state.dice[each])}",
            )
        ],
        f"{CUPS}: view() shows what its seat cannot know: under: [",
        "self.under",
    ),
    "a legal list that depends on hidden dice": Bug(
        "cups",
        CUPS,
        [
            (VIEW, f"{VIEW}\n        self._early = sum(map(sum, state.dice)) > 7 * self.seats"),
            ("if self.turns >= self.seats else", "if self.turns >= self.seats or self._early else"),
        ],
        f"{CUPS}: view() shows what its seat cannot know: legal(): [",
    ),
    "a roll announced to all": Bug(
        "cups",
        CUPS,
        [(ROLLED, "RolledEvent(self.dice[seat], None)")],
        f"{CUPS}: an event tells seat 0 what it cannot know: RolledEvent.dice: [",
        "RolledEvent(self.dice[seat], None)",
    ),
    "a roll announced to a neighbour": Bug(
        "cups",
        CUPS,
        [(ROLLED, "RolledEvent(self.dice[seat], (seat + 1) % len(self.dice))")],
        f"{CUPS}: an event tells seat ",
        "RolledEvent(self.dice[seat], (seat",
    ),
    "the parity of hidden dice in a public event": Bug(
        "cups",
        CUPS,
        [
            ("class TurnEvent(GameEvent):", "class TurnEvent(GameEvent):\n    parity: int"),
            ("return [TurnEvent(seat)]", "return [TurnEvent(sum(map(sum, self.dice)) % 2, seat)]"),
            (TURN, "return [TurnEvent(sum(map(sum, self.dice)) % 2, seat), RolledEvent(self.dice[seat], seat)]"),
        ],
        f"{CUPS}: an event tells seat ",
        "return [TurnEvent(sum",
    ),
    "the parity of hidden dice at the deal": Bug(
        "cups",
        CUPS,
        [
            ("class DealEvent(GameEvent):", "class DealEvent(GameEvent):\n    parity: int"),
            ("DealEvent(seats)", "DealEvent(sum(map(sum, self.dice)) % 2, seats)"),
        ],
        f"{CUPS}: an event tells seat ",
        "self.start = DealEvent",
    ),
}
WORDS = {
    "words that show all hands to the seat to move": Bug(
        "cups",
        CUPS_WORDS,
        [('f"Your dice: {state.dice[seat]}."', 'f"Your dice: {state.dice}."')],
        f"{CUPS_WORDS}: words show what its seat cannot know: sees: [",
        "def sees",
    ),
    "a panel with dice that are hidden": Bug(
        "cups",
        CUPS_WORDS,
        [('"two dice", self.holds(seat), seat', "self.holds(seat), self.holds(seat), seat")],
        f"{CUPS_WORDS}: Panel.public shows what seat ",
        "def panels",
    ),
    "a line that tells a secret move": Bug(
        "cups",
        CUPS_WORDS,
        [("Line(sentence(events[0], self._label),", 'Line(f"{self._label(seat)} moves: {output}.",')],
        f"{CUPS_WORDS}: Line.said shows what seat ",
        "def moved",
    ),
    "a line with hidden dice": Bug(
        "cups",
        CUPS_WORDS,
        [("Line(sentence(events[0], self._label),", "Line(str(self._state.dice),")],
        f"{CUPS_WORDS}: Line.said shows what seat ",
        "def moved",
    ),
    "a hand drawn with the other's card": Bug(
        "kuhn",
        KUHN_WORDS,
        [("return [CARDS[game.dealt[seat]]]", "return [CARDS[card] for card in game.dealt]")],
        f"{KUHN_WORDS}: words show what its seat cannot know: hand: [",
        "def hand",
    ),
}
SHARING = {
    "cards() that hand out the state's list": Bug(
        "stacks",
        STACKS,
        [("return tuple(self._look())", "return self._look()")],
        f"{STACKS}: cards().held is the state's own hands, which a bot could change: give a copy of it",
        "def held",
    ),
    "a view that hands out the state's list": Bug(
        "outsider",
        OUTSIDER,
        [("tuple(state.said)", "state.said")],
        f"{OUTSIDER}: view().said is the state's own said, which a bot could change: give a copy of it",
        "self.said = state.said",
    ),
    "a legal list that is the state's": Bug(
        "cups",
        CUPS,
        [
            ("self.rolls = [0] * seats", "self.rolls = [0] * seats\n        self.acts = [*ACTS[:2]]"),
            (VIEW, f"{VIEW}\n        self._acts = state.acts"),
            ("else ACTS[:2]", "else self._acts"),
        ],
        f"{CUPS}: view().legal() is the state's own acts, which a bot could change: give a copy of it",
    ),
    "an event with the state's list": Bug(
        "cups",
        CUPS,
        [("[CallEvent(seat, tuple(self.dice))]", "[CallEvent(seat, self.dice)]")],
        f"{CUPS}: CallEvent.dice is the state's own dice, which a bot could change: give a copy of it",
    ),
    "an ending with the state's list": Bug(
        "cups",
        CUPS,
        [
            ("marks = [int(", "self.marks = [int("),
            ("(self.turns_played,), marks,", "(self.turns_played,), self.marks,"),
        ],
        f"{CUPS}: ending().marks is the state's own marks, which a bot could change: give a copy of it",
    ),
    "an output that the state keeps": Bug(
        "stacks",
        STACKS,
        [("self.turns_played += 1", "self.turns_played += 1\n        self.last = output")],
        f"{STACKS}: apply() keeps the output itself, which its bot may change later: keep a copy",
    ),
    "counts that games share": Bug(
        "cups",
        CUPS,
        [
            ("class State:", "ROLLS = {2: [0, 0], 3: [0, 0, 0]}\n\n\nclass State:"),
            ("self.rolls = [0] * seats", "self.rolls = ROLLS[seats]"),
        ],
        f"{CUPS}: one game changes another one's rolls: [0, 0] or [",
        "self.rolls = ROLLS",
    ),
    "counts of the module": Bug(
        "cups",
        CUPS,
        [
            ("class State:", "ROLLS = [0, 0, 0]\n\n\nclass State:"),
            ("self.rolls[seat] += 1", "ROLLS[seat] += 1"),
            ("for rolls in self.rolls]", "for rolls in ROLLS[: len(sums)]]"),
        ],
        f"{CUPS}: all games share ROLLS: [0, 0, 0] or [",
        "ROLLS = [0, 0, 0]",
    ),
    "acts that games share by a default": Bug(
        "kuhn",
        KUHN,
        [
            ("def __init__(self, cards: Sequence[int]) -> None:", "def __init__(self, cards, acts=[]) -> None:"),
            ("self.acts: list[str] = []", "self.acts = acts"),
        ],
        f"{KUHN}: one game changes another one's acts: [] or [",
        "self.acts = acts",
    ),
}
MOVES = {
    "a listed move that apply refuses": Bug(
        "kuhn",
        KUHN,
        [(CHECK, f'{CHECK}        if self.acts and output == "bet":\n            raise IllegalOutput("too late")\n')],
        f"{KUHN}: view().legal() lists 'bet' at node act, which apply refuses: too late",
        'raise IllegalOutput("too late")',
    ),
    "a card that apply alone refuses": Bug(
        "stacks",
        STACKS,
        [(CHECK, f'{CHECK}        if output == [6]:\n            raise IllegalOutput("no sixes")\n')],
        f"{STACKS}: view().why_illegal lets pass [6] at node lay, which apply refuses: no sixes",
        'raise IllegalOutput("no sixes")',
    ),
    "a refused move that is kept": Bug(
        "kuhn",
        KUHN,
        [(CHECK, CHECK.replace("            raise", "            self.acts.append('pass')\n            raise"))],
        f"{KUHN}: apply refuses None, but has changed the state by then: acts: [] or ['pass']",
    ),
    "a refused move that draws by chance": Bug(
        "cups",
        CUPS,
        [(CHECK, CHECK.replace("            raise", "            self._chance.random()\n            raise"))],
        f"{CUPS}: apply refuses None, but has changed the state by then: _chance: ",
    ),
    "a refused card that leaves the hand": Bug(
        "stacks",
        STACKS,
        [
            (
                CHECK,
                "if type(output) is list and output == [1, 2, 3, 4, 5, 6]:\n            self.hands[0].sort()\n"
                f"            self.deck.append(self.deck.pop(0))\n        {CHECK}",
            )
        ],
        f"{STACKS}: apply refuses [1, 2, 3, 4, 5, 6], but has changed the state by then: ",
    ),
}
RESULTS = {
    "a bucket out of range at the cap": Bug(
        "cups",
        CUPS,
        [(CAPPED, CAPPED.replace("2 if", "3 if"))],
        f"{CUPS}: with max_turns=1 a game is capped: results: bucket is 3 for the mark 0, but buckets has 3",
        "bucket=lambda",
    ),
    "a bucket out of range at a cap that is no rule": Bug(
        "cups",
        CUPS,
        [
            (CAPPED, CAPPED.replace("2 if", "3 if")),
            ("State(seats, rules.max_turns, chance)", "State(seats, 500, chance)"),
            ("max_turns: int = Field(default=12, ge=1)", "spare: int = 1"),
        ],
        f"{CUPS}: with max_turns=1 a game is capped: results: bucket is 3 for the mark 0, but buckets has 3",
        "bucket=lambda",
    ),
    "a bucket out of range at a cap that is a constant": Bug(
        "cups",
        CUPS,
        [
            (CAPPED, CAPPED.replace("2 if", "3 if")),
            ("class State:", "LIMIT = 500\n\n\nclass State:"),
            ("self.turns_played >= self.max_turns", "self.turns_played >= LIMIT"),
            ("max_turns: int = Field(default=12, ge=1)", "spare: int = 1"),
            ("State(seats, rules.max_turns, chance)", "State(seats, 0, chance)"),
        ],
        f"{CUPS}: with LIMIT=1 a game is capped: results: bucket is 3 for the mark 0, but buckets has 3",
        "bucket=lambda",
    ),
    "a mark below 0 at the cap": Bug(
        "cups",
        CUPS,
        [("marks = [int(called and each == max(sums)) for", "marks = [int(each == max(sums)) if called else -1 for")],
        f"{CUPS}: with max_turns=1 a game is capped: ending() has -1, but marks and counts are whole numbers from 0",
        "def ending",
    ),
    "inverted buckets": Bug(
        "kuhn",
        KUHN,
        [("{4: 0, 3: 1, 1: 2, 0: 3}", "{4: 3, 3: 2, 1: 1, 0: 0}")],
        f"{KUHN}: results: seat ",
        "bucket=lambda",
    ),
    "inverted values": Bug(
        "cups",
        CUPS,
        [("(1, 0, 0)", "(0, 1, 0)")],
        f"{CUPS}: results: by measure won win is worth less than loss: are its values inverted?",
        "measures=",
    ),
    "a rank out of range": Bug(
        "stacks",
        STACKS,
        [("equal_share=", "standing=lambda mark, seats, capped: 9 * mark,\n        equal_share=")],
        f"{STACKS}: results: standing is 9 for the mark 1, outside of 0 to 2",
    ),
    "ranks that contradict the measure": Bug(
        "stacks",
        STACKS,
        [("equal_share=", "standing=lambda mark, seats, capped: 1 - mark,\n        equal_share=")],
        f"{STACKS}: results: seat ",
    ),
}
PROMPTS = {
    "a fixed line of what is legal": Bug(
        "kuhn",
        "prompts/kuhn/plain/user.jinja",
        [('{{ legal | join(" | ") }}', "pass | bet | call")],
        "prompts/kuhn/plain/user.jinja: its line `legal:` has pass | bet | call at node act, where view().legal() ",
        "legal: pass | bet | call",
    ),
    "a line of what is legal that is abridged": Bug(
        "kuhn",
        "prompts/kuhn/plain/user.jinja",
        [('{{ legal | join(" | ") }}', "pass | ...")],
        "look: prompts/kuhn/plain/user.jinja: its line `legal:` has ",
        "legal: pass | ...",
        code=0,
    ),
}
SOUND = {  # what is exchanged in a file of a game, which stays a sound one
    "dice rolled for everybody to see": (
        "cups",
        CUPS,
        [
            ("    dice: tuple[int, ...]\n    only: int | None", "    dice: tuple[int, ...]\n    seat: int"),
            ("class DealEvent(GameEvent):", "class DealEvent(GameEvent):\n    dice: tuple[tuple[int, ...], ...]"),
            ("DealEvent(seats)", "DealEvent(tuple(self.dice), seats)"),
            (VIEW, f"{VIEW}\n        self.dice = tuple(state.dice)"),
        ],
    ),
    "acts that only the view shows": ("kuhn", KUHN, [("        return [event]", "        return []")]),
    "a partner's card": (
        "kuhn",
        KUHN,
        [("return CARDS[self.dealt[seat]]", "return CARDS[self.dealt[seat]], CARDS[self.dealt[1 - seat]]")],
    ),
    "a question that is answered": (
        "cups",
        CUPS,
        [
            ("class TurnEvent(GameEvent):", "class TurnEvent(GameEvent):\n    is_high: bool | None"),
            ("return [TurnEvent(seat)]", "return [TurnEvent(sum(self.dice[seat - 1]) > 7, seat)]"),
            (TURN, "return [TurnEvent(None, seat), RolledEvent(self.dice[seat], seat)]"),
        ],
    ),
    "a list that all games share": (
        "cups",
        CUPS,
        [('ACTS = ("roll", "stay", "call")', 'ACTS = ["roll", "stay", "call"]')],
    ),
}
PLANTED = {name: bug for bugs in (LEAKS, WORDS, SHARING, MOVES, RESULTS, PROMPTS) for name, bug in bugs.items()}
IN_GATE = (
    "a view that counts others' secret moves",
    "words that show all hands to the seat to move",
    "cards() that hand out the state's list",
    "counts that games share",
    "a roll announced to a neighbour",
    "the parity of hidden dice in a public event",
    "a listed move that apply refuses",
    "a bucket out of range at the cap",
    "a refused card that leaves the hand",
    "inverted buckets",
    "a fixed line of what is legal",
)


def plant(bug: Bug, folder: Path) -> None:
    left = shutil.ignore_patterns("pyproject.toml", "__pycache__")
    shutil.copytree(FOLDERS[bug.game], folder, dirs_exist_ok=True, ignore=left)
    exchange(folder / bug.file, *bug.exchanged)


@pytest.mark.parametrize("name", in_gate(PLANTED, IN_GATE))
def test_a_planted_bug_is_reported_with_its_file_and_line(shell: Shell, name: str) -> None:
    bug = PLANTED[name]
    plant(bug, Path.cwd())
    said = shell("games", "check", bug.game, "--quick")
    first = said.out.splitlines()[0]
    assert first.startswith(bug.message), said
    assert said.code == bug.code, said
    if bug.line:
        (number,) = [n for n, text in enumerate(Path(bug.file).read_text().splitlines(), 1) if bug.line in text][:1]
        assert f"(line {number})" in first


@pytest.mark.parametrize("name", in_gate(SOUND, ["a question that is answered"]))
def test_what_the_rules_may_want_is_no_error(shell: Shell, name: str) -> None:
    game, file, exchanged = SOUND[name]
    shutil.copytree(FOLDERS[game], Path.cwd(), dirs_exist_ok=True)
    for other in Path("games", game).glob("*.py"):
        if other.name != "game.py":
            other.unlink()
    shutil.rmtree("prompts", ignore_errors=True)
    exchange(file, *exchanged)
    said = shell("games", "check", game, "--quick")
    assert said.code == 0, said


@pytest.mark.parametrize("name", in_gate(FOLDERS, ["cups"]))
def test_sound_games_have_no_flaw_and_no_hint(shell: Shell, name: str) -> None:
    shutil.copytree(FOLDERS[name], Path.cwd(), dirs_exist_ok=True)
    said = shell("games", "check", name, "--quick")
    assert (said.code, said.out.count("\n")) == (0, 1), said
