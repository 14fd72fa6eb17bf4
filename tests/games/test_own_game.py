"""A user's game works like the built-in ones in every command."""

import os
import re
import sys
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.game.find import find_game
from dubito.game.reader import Reader
from dubito.game.rehearsal import bot_after
from dubito.game.words import Words
from tests.cli.kit import Shell
from tests.games.kit import GAMES, changed_game, deal_game, remove_parts, write_stacks


@pytest.fixture(autouse=True)
def stacks(shell: Shell) -> None:
    write_stacks(Path.cwd())


@pytest.mark.parametrize("bots", [1, 4])
@pytest.mark.parametrize("command", ["watch", "play"])
def test_wrong_number_of_players_is_reported(shell: Shell, command: str, bots: int) -> None:
    """At a table with a person there is one bot fewer than seats."""
    names = ["Lowest"] * (bots - (command == "play"))
    result = shell(command, "--game", "stacks", *names) if names else shell("watch", "--game", "stacks", "Lowest")
    assert (result.code, result.err) == (2, f"dubito: stacks needs 2 to 3 players, not {bots}\n")


def test_saved_game_with_too_many_players_is_refused(shell: Shell) -> None:
    assert shell("watch", "--game", "stacks", "Lowest", "Highest", "--save", "g.json").code == 0
    kept = Path("g.json")
    kept.write_text(kept.read_text().replace('["Lowest", "Highest"]', '["Lowest", "Highest", "Lowest", "Lowest"]'))
    result = shell("replay", "g.json")
    assert (result.code, result.err) == (2, "dubito: stacks needs 2 to 3 players, not 4\n")


def test_broken_prompt_does_not_hide_other_prompts(shell: Shell) -> None:
    Path("prompts/stacks/broken").mkdir()
    Path("prompts/stacks/broken/prompt.yaml").write_text("title: [\n")
    result = shell("prompts", "list", "--game", "stacks")
    assert result.code == 0
    assert "plain   The hand" in result.out
    assert "broken: " in result.out
    assert "prompts/stacks/broken/prompt.yaml, line 2: not valid YAML" in result.out


def test_prompt_folder_determines_its_game(shell: Shell) -> None:
    folder = "prompts/stacks/plain"
    assert shell("prompts", "golden", folder).out.endswith("prompts/stacks/plain/golden/lay.txt\n")
    assert "You hold" in Path(folder, "golden", "lay.txt").read_text()
    assert "You hold" in shell("prompts", "show", folder).out
    assert shell("prompts", "diff", folder, "./prompts/stacks/plain").out == "identical\n"
    assert shell("prompts", "lint", folder).out.startswith("plain: The hand.")


def test_prompts_are_tried_on_positions_in_their_folder(shell: Shell) -> None:
    Path("c.yaml").write_text("game: stacks\ngames: 4\n")
    assert shell("prompts", "record", "c.yaml", "--count", "4", "--output", "prompts/stacks/positions").code == 0
    result = shell("prompts", "test", "prompts/stacks/plain", "--model", "house:house-random")
    assert result.code == 0, result.err
    assert "house-random at 4 positions in 4 deals" in result.out


def test_run_is_not_written_into_the_games_folder(shell: Shell) -> None:
    assert shell("watch", "--game", "stacks", "house:house-random@plain", "Lowest").code == 0
    assert [path.name for path in Path("games").iterdir()] == ["stacks"]
    assert Path("saved/run.db").is_file()


def test_games_folder_with_saved_games_is_still_used(shell: Shell) -> None:
    command = ("watch", "--game", "stacks", "house:house-random@plain", "Lowest")
    assert shell(*command, "--games", "games").code == 0
    assert shell(*command).code == 0
    assert not Path("saved").exists()


def test_run_without_games_is_reported(shell: Shell) -> None:
    bot = Path("bots/manual/stacks/lowest.py")
    bot.write_text(bot.read_text().replace("min(self.cards.held)", "9"))
    assert shell("run", "--game", "stacks", "--games", "4", "--output", "r").code == 3
    result = shell("replay", "r", "--game", "0")
    assert result.code == 2
    assert "0 to -1" not in result.err


def test_hand_is_shown_without_words() -> None:
    remove_parts(Path("games/stacks/game.py"), "words")
    game = find_game("stacks", Path.cwd())
    lines = game.words.describe_view(deal_game(game), 0, Reader())
    assert lines[0] == "heights: (0, 0)"
    assert re.fullmatch(r"Your hand: held \(\d, \d, \d\)", lines[1])


def test_summary_with_punctuation_gets_no_full_stop() -> None:
    game = changed_game(find_game("stacks", Path.cwd()), summary="Stacks: a higher one?")
    assert Words(game).LEAD == Words(game).rules(game.rules(), 2)[0] == "Stacks: a higher one?"


def test_after_seats_a_bot_in_any_game() -> None:
    bot, view = bot_after([], "Highest", game="stacks", seats=2)
    first = bot.play(view)
    assert first == [max(bot.cards.held)]
    bot, view = bot_after([first], "Lowest", game="stacks", seats=2)
    assert (bot.id, view.heights) == (1, (1, 0))
    with pytest.raises(UsageError, match=r"moves\[1\], by seat 1: that card is not in the hand"):
        bot_after([first, [9]], "Lowest", game="stacks", seats=2)
    with pytest.raises(UsageError, match="stacks needs 2 to 3 players, not 5"):
        bot_after([], "Lowest", game="stacks", seats=5)


def test_built_in_games_show_a_seats_hand() -> None:
    for game in GAMES.values():
        state = deal_game(game)
        assert game.words.describe_view(state, state.seat, Reader())


def test_edited_module_is_imported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edit keeps the length and is made within the same second, so old bytecode would look valid."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    facts = Path("games/stacks/facts.py")
    for text in ("first", "other"):
        facts.write_text(
            facts.read_text()
            .replace("first", text)
            .replace("(Facts[Rules]):\n", f'(Facts[Rules]):\n    SAID = "{text}"\n', 1)
        )
        os.utime(facts, (1, 1))
        assert text == find_game("stacks", Path.cwd()).facts.SAID  # type: ignore[attr-defined]
    assert not [*Path("games").rglob("__pycache__")]
