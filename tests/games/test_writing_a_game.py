"""The guide's game, built file by file from docs/writing-a-game.md, works."""

import re
import shlex
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from dubito.errors import UsageError
from dubito.experiment.stored import open_recorded_run
from dubito.game.find import find_bots, find_game
from tests.cli.kit import Shell
from tests.games.kit import KUHN, WRITING, remove_parts, write_kuhn
from tests.llm.kit import rows

ENDS = {  # acts -> chips that seat 0 wins with the higher card and with the lower card
    ("pass", "pass"): (1, -1),
    ("pass", "bet", "pass"): (-1, -1),
    ("pass", "bet", "bet"): (2, -2),
    ("bet", "pass"): (1, 1),
    ("bet", "bet"): (2, -2),
}


@pytest.fixture(autouse=True)
def kuhn(shell: Shell) -> None:
    write_kuhn(Path.cwd())


def test_the_commands_of_the_guide_run(shell: Shell) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", WRITING, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    commands = [words for program, *words in lines if program == "dubito"]  # test_travel.py runs pip's commands
    new, *others = commands
    assert (new, len(others)) == (["new", "game", "kuhn"], 3)
    for words in others:
        result = shell(*words, "--output", "run")
        assert result.code == 0, result.err
        assert shell("replay", "run").out.startswith("identical: ")
        assert shell("report", "run").code == 0
        for path in sorted(Path("run").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()


def test_code_in_the_guide_matches_the_example() -> None:
    """The guide also names every file of the example."""
    files = re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", WRITING, re.MULTILINE | re.DOTALL)
    text = re.findall(r"^`(\S+)`:\n\n```text\n(.*?)^```$", WRITING, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == [
        *["games/kuhn/game.py"] * 4,
        "bots/manual/kuhn/coin.py",
        "games/kuhn/facts.py",
        "games/kuhn/words.py",
        *["games/tricks/game.py"] * 2,
        "pyproject.toml",
    ]
    assert [name for name, _ in text] == ["prompts/kuhn/plain/user.jinja"]
    for name, source in files:
        example = KUHN.with_name("tricks") if "tricks" in name else KUHN
        assert source in (example / name).read_text(), f"a part of {name}"
    for name, source in text:
        assert (KUHN / name).read_text() == source
    for file in KUHN.rglob("*.py"):
        assert f"`{file.relative_to(KUHN)}`" in WRITING or f"# {file.relative_to(KUHN)}" in WRITING


def test_example_is_as_short_as_stated() -> None:
    """Count lines without blank ones: the game with its bots, then the facts for models, then the words for people."""
    assert "110 lines, not counting blank lines" in WRITING
    lines = {path: sum(map(bool, map(str.strip, path.read_text().splitlines()))) for path in Path().rglob("*.*")}
    words, facts = Path("games/kuhn/words.py"), Path("games/kuhn/facts.py")
    del lines[Path("games/kuhn/training.py")]
    files = [facts, *Path("prompts").rglob("*.*")]
    first = sum(lines.values()) - lines[words] - sum(lines[path] for path in files)
    assert first <= 110
    assert sum(lines.values()) - lines[words] <= 147
    assert sum(lines.values()) <= 166


def test_prompt_of_the_example_uses_all_facts(shell: Shell) -> None:
    result = shell("prompts", "lint", "plain", "--game", "kuhn")
    assert (result.code, "facts that no template uses" in result.out) == (0, False)


def test_forfeit_works_as_in_the_guide(shell: Shell) -> None:
    (block,) = re.findall(r"```text\n(    def forfeit.*?)```", WRITING, re.DOTALL)
    game, bot = Path("games/kuhn/game.py"), Path("bots/manual/kuhn/coin.py")
    source = game.read_text().replace("    base = KuhnBot", '    base, forfeits, forfeit_means = KuhnBot, True, "so"')
    source = source.replace("        self.start = ", "        self.failed = None\n        self.start = ")
    source = source.replace("    def ending", f"{block}\n    def ending")
    game.write_text(source.replace("int(self.dealt[1] > self.dealt[0])", "1 - (self.failed or 0)"))
    bot.write_text(bot.read_text().replace("self.rng.random()", "1 / 0"))
    flags = ("--game", "kuhn", "--bots", "Coin,Careful", "--games", "8", "--on-bot-error", "forfeit")
    result = shell("run", *flags, "--output", "r")
    assert result.code == 0, result.err
    assert "Coin (seat 0) failed in game 0, deal 0, turn 1: play raised ZeroDivisionError" in result.out + result.err
    assert shell("replay", "r").out.startswith("identical: ")


def test_engine_pays_by_the_rules() -> None:
    game = find_game("kuhn", Path.cwd())
    state_of = type(game.deal(game.rules(), 2, Random(0)))
    for cards in permutations(range(3), 2):
        for acts, (higher, lower) in ENDS.items():
            state = state_of(cards)
            for act in acts:
                assert not state.over
                state.apply(act)
            chips = higher if cards[0] > cards[1] else lower
            assert state.over
            assert state.ending().marks == [2 + chips, 2 - chips]


def test_words_of_the_game_are_used(shell: Shell) -> None:
    words = ("watch", "--game", "kuhn", "Careful", "Careful", "--show-hands")
    cards = [shell(*words, "--deal", f"{deal}").out.splitlines() for deal in range(6)]
    for text in cards:
        assert text[0] == "Each seat is dealt a card, and puts a chip into the pot."
        assert text[1].startswith("   1. [Careful 0 holds ")
        bets = "king" in text[1]
        assert text[2] == f"   1. Careful 0 {'bets' if bets else 'passes'}."
        assert text[-1].startswith("The game is over. Careful 0: ")
    assert len({text[1] for text in cards}) > 1
    remove_parts(Path("games/kuhn/game.py"), "words")
    assert shell(*words).out.startswith("DealEvent\n   1. ActEvent: seat 0, act ")


def test_every_bot_meets_every_other_in_both_seats(shell: Shell) -> None:
    assert shell("run", "--game", "kuhn", "--games", "400", "--output", "r").code == 0
    with open_recorded_run(Path("r")) as run:
        assert run.game.name == "kuhn"
        seats = {tuple(row[5:7]) for (row,) in rows(Path("r"), "SELECT outcome FROM games")}
        assert len(run.names) == 2
    assert len(seats) == 2, "the two bots play in either order"


def test_model_is_asked_again_after_an_invalid_act(shell: Shell) -> None:
    result = shell(
        *("run", "--game", "kuhn", "--games", "40", "--contenders", "house:house-random@plain,Careful"),
        *("--output", "r"),
    )
    assert result.code == 0, result.err
    answers = {answer for (answer,) in rows(Path("r"), "SELECT answer FROM decisions")}
    assert answers == {b'"bet"', b'"pass"'}
    assert shell("replay", "r").code == 0


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "GAME = 5\n",
            "games/kuhn/game.py does not define a game; add `GAME = MyGame()` with a subclass of dubito.game.Game",
        ),
        ("GAME = (\n", "importing it raises SyntaxError: "),
        ("raise SystemExit\n", "importing it raises SystemExit; "),
    ],
)
def test_unusable_game_is_reported_in_one_sentence(shell: Shell, source: str, sentence: str) -> None:
    Path("games/kuhn/game.py").write_text(source)
    with pytest.raises(UsageError) as caught:
        find_game("kuhn", Path.cwd())
    assert sentence in str(caught.value)
    result = shell("run", "--game", "kuhn")
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_edited_game_has_a_different_digest(shell: Shell) -> None:
    before = find_bots(Path.cwd(), "kuhn")
    assert shell("run", "--game", "kuhn", "--games", "4", "--output", "r").code == 0
    game = Path("games/kuhn/game.py")
    game.write_text(game.read_text().replace("two seats, one bet", "two seats and a bet"))
    assert find_bots(Path.cwd(), "kuhn").game.summary != before.game.summary
    result = shell("run", "--game", "kuhn", "--games", "4", "--output", "r")
    assert (result.code, "game_source" in result.err) == (2, True)


def test_shipped_game_cannot_be_replaced(shell: Shell) -> None:
    Path("games/kuhn").rename("games/bs")
    result = shell("run", "--game", "bs")
    assert (result.code, result.out) == (2, "")
    assert "games/bs: bs is the name of a game that comes with Dubito; rename the folder" in result.err
