"""Other games in the terminal: played, narrated, saved, replayed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dubito.game.record import read_game_name
from tests.cli.kit import Shell
from tests.games.kit import GAMES, registry_of, write_kuhn
from tests.llm.test_any_game import HOME
from tests.play.conftest import Play

FOUR = ("Player1", "Player2", "Player3", "Player4")
BS = ("watch", "--game", "bs", *FOUR)
SEATED = ("--game", "bs", "--seed", "4", "--seat", "1")
WHATEVER = "\n".join(("no", "a", *map(str, range(2, 11)), "j", "q", "k", ""))  # one of these inputs is legal
BAD = (
    "from dubito.games.bs.bot import BSBot\nclass Bad(BSBot):\n    def request_cards(self, n, t): return []\n"
    "    def bs(self, s, n, c, t): return False\n"
)


def saved(name: str = "g.json") -> Any:
    return json.loads(Path(name).read_text())


def test_game_of_bs_is_narrated_and_replayed(shell: Shell) -> None:
    narrated = shell(*BS, "--seed", "3", "--deal", "5", "--save", "g.json")
    assert (narrated.code, narrated.err) == (0, "")
    lines = narrated.out.splitlines()
    assert lines[0] == "The cards are dealt: Player1 holds 13, Player2 holds 13, Player3 holds 13, Player4 holds 13."
    assert lines[1].startswith("   1. Player1 plays ")
    assert lines[2] == "   1. Nobody says BS."
    assert lines[-3].endswith(" wins.")
    record = saved()
    assert (record["game"], record["seed"], record["deal"], record["players"]) == ("bs", 3, 5, list(FOUR))
    assert read_game_name(Path("g.json").read_text(), "dubito") == "bs"
    turns = int(lines[-2].removesuffix(" turns"))
    assert len(record["outputs"]) == 4 * turns
    asked = [[seat for seat in range(4) if seat != turn % 4] for turn in range(turns)]
    outputs = [record["outputs"][4 * turn + 1 : 4 * turn + 4] for turn in range(turns)]
    accusers = [
        f"turn {turn + 1}: [seat {seat} says BS]"
        for turn in range(turns)
        for seat, yes in zip(asked[turn], outputs[turn], strict=True)
        if yes
    ]
    heard_of = [line for line in record["story"] if line.endswith("says BS]") and "nobody" not in line]
    assert heard_of == accusers
    result = shell("replay", "g.json")
    assert (result.code, result.out.partition(",")[0]) == (0, f"identical: {turns} turns")


def test_only_show_hands_reveals_hidden_cards(shell: Shell) -> None:
    hidden, shown = shell(*BS).out.splitlines(), shell(*BS, "--show-hands").out.splitlines()
    assert not any(word in line for line in hidden for word in ("[", "really", "to the pile", "a lie"))
    lines = [line.split(" [")[0] for line in shown if not line[5:].strip().startswith("[")]
    assert lines == hidden, "the same game with more details"
    assert any(line.endswith(": a lie]") for line in shown)
    assert any(line.endswith("says BS]") for line in shown)
    assert sum(" holds " in line and "[" in line for line in shown) == int(shown[-1].removesuffix(" turns"))


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        ({"story": 0}, 1, "recorded: changed"),
        ({"outputs": 0}, 1, "replayed: turn 1: refused: "),
        ({"deal": 1}, 2, "dubito: the record's cards do not match its seed, so it was modified or is damaged"),
        ({"seed": "x"}, 2, "dubito: this is not a game record: seed: "),
        ({"rules": {"jokers": 2}}, 2, "dubito: this is not a game record: jokers: "),
        ({"game": "chess"}, 2, "dubito: unknown game 'chess': "),
        ({"game": 5}, 2, "dubito: this is not a game record: "),
        ({"extra": 1}, 2, "dubito: this is not a game record: extra: "),
    ],
)
def test_a_changed_record_is_found(shell: Shell, change: dict[str, Any], code: int, sentence: str) -> None:
    shell(*BS, "--save", "g.json")
    record = saved()
    if "story" in change:
        change = {"story": ["changed", *record["story"][1:]]}
    if "outputs" in change:
        change = {"outputs": [record["dealt"]["hands"][1][:1], *record["outputs"][1:]]}
    Path("g.json").write_text(json.dumps(record | change))
    result = shell("replay", "g.json")
    assert result.code == code
    assert any(line.startswith(sentence) for line in (result.out + result.err).splitlines()), result


@pytest.mark.parametrize("output", ["x", [99], [[1]], {"seat": "0"}, None])
def test_invalid_output_is_reported_in_one_sentence(shell: Shell, output: Any) -> None:
    shell(*BS, "--save", "g.json")
    record = saved()
    Path("g.json").write_text(json.dumps(record | {"outputs": [output]}))
    result = shell("replay", "g.json")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("dubito: this is not an output of bs: ")


def test_a_forfeit_ends_a_game_and_is_kept(shell: Shell) -> None:
    bots = Path("bots/manual/bs")
    bots.mkdir(parents=True)
    (bots / "bad.py").write_text(BAD)
    words = ("watch", "--game", "bs", "Player1", "Bad", "Player3", "Player4", "--on-bot-error")
    result = shell(*words, "forfeit", "--save", "g.json")
    assert result.code == 0
    assert result.err == "Bad (seat 1) failed in game 0, deal 0, turn 2: nothing was played; play at least one card\n"
    assert "   2. Bad has failed: the game is over, and nobody wins." in result.out.splitlines()
    assert saved()["outputs"][-1] == {"seat": 1}
    assert shell("replay", "g.json").code == 0
    result = shell(*words, "fallback", "--save", "f.json")
    assert "; Hoarder's rules played the turn" in result.err
    assert shell("replay", "f.json").code == 0
    assert shell(*words, "stop").err.startswith("dubito: Bad (seat 1) failed in game 0, deal 0, turn 2: ")


def test_mistakes_at_bs_are_reported_in_one_sentence(shell: Shell) -> None:
    for words, sentence in (
        (BS[:-1], "BS needs 4 players, not 3"),
        ((*BS[:-1], "StefaBot"), "no bot of bs is named 'StefaBot', but dubito has one: "),
        ((*BS, "--jokers", "1"), "--jokers: bs has no such rule; "),
        (("watch", "--game", "chess", *FOUR), "unknown game 'chess': "),
        (("watch", "StefaBot", "MrDoubt", "UsualBot", "--on-bot-error", "forfeit"), "--on-bot-error forfeit: "),
    ):
        result = shell(*words)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert result.err.startswith(f"dubito: {sentence}")


def test_a_person_sees_their_own_hand_and_sizes(play: Play) -> None:
    result = play(*SEATED, typed="no\n")
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[0] == "Players, in playing order: Player1, you, Player4, CalculatingLiar."
    assert lines[5:] == [
        "   1. Player1 plays 1 card as aces.",
        "",
        "Cards held: Player1 12, you 13, Player4 13, CalculatingLiar 13. On the pile: 1.",
        "Your hand: A 2 4 4 4 5 6 7 7 9 10 J K",
        "Player1 played 1 card as aces. Do you say BS?",
        ">    1. You answered no.",
        "   1. Nobody says BS.",
        "",
        "Cards held: Player1 12, you 13, Player4 13, CalculatingLiar 13. On the pile: 1.",
        "Your hand: A 2 4 4 4 5 6 7 7 9 10 J K",
        "Your turn: play cards as 2s.",
        "> ",
        "You left before the game was over.",
    ]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("3", "You do not hold that many 3s."),
        ("a a", "You do not hold that many aces."),
        ("13", "'13' is not a list of cards: type for example `3 3 k`."),
        ("yes", "'yes' is not a list of cards: type for example `3 3 k`."),
        ("2 x", "'2 x' is not a list of cards: type for example `3 3 k`."),
        ("\x1b[31m", "'\\x1b[31m' is not a list of cards: type for example `3 3 k`."),
    ],
)
def test_illegal_input_is_asked_again(play: Play, typed: str, sentence: str) -> None:
    out = play(*SEATED, typed=f"1\nno\n{typed}\n").out.splitlines()
    assert "> '1' is not an answer here: type yes or no." in out
    assert f"> {sentence}" in out
    assert out[-2:] == ["> ", "You left before the game was over."]


def test_help_is_given_at_any_question(play: Play) -> None:
    out = play(*SEATED, typed="hand\nlog\nrules\n?\n").out
    assert out.count("Do you say BS?") == 2
    assert out.count("   1. Player1 plays 1 card as aces.") == 2
    assert out.count("- If nobody has won after 1,000 rounds") == 2


def test_a_whole_game_of_bs_is_played_saved_and_proved(play: Play, shell: Shell) -> None:
    result = play(*SEATED, "--save", "g.json", typed=WHATEVER * 300)
    assert (result.code, result.err) == (0, "")
    assert "\n  *  You " in result.out
    again = (
        "To play the same cards again: dubito play Player1 Player4 CalculatingLiar --seed 4 --deal 0 --seat 1 --game bs"
    )
    assert again in result.out.splitlines()
    assert saved()["players"] == ["Player1", "Guest", "Player4", "CalculatingLiar"]
    assert shell("replay", "g.json").code == 0


def test_every_kind_of_answer_is_typed(play: Play) -> None:
    shutil.copytree(HOME, ".", dirs_exist_ok=True)
    typed = "loud\nLOW\n9\n1 1 1 1 1\n2\nmany\n10\n-1\n9\nmaybe\nY\n"
    result = play("Dull", "--game", "guess", "--seed", "1", "--seat", "0", "--save", "g.json", typed=typed)
    lines = [line[2:] for line in result.out.splitlines() if line.startswith("> ")]
    assert lines[:2] == [
        "'loud' is not an answer here: type one of high, low, none.",
        "   1. Moved: seat 0, node hint, seen low",
    ]
    assert "'many' is not an answer here: type a whole number." in lines
    assert "10 is not legal now." in lines
    assert "-1 is not legal now." in lines
    assert "'maybe' is not an answer here: type yes or no." in lines
    assert "   1. Moved: seat 0, node sure, seen True" in result.out


def test_model_plays_a_users_own_game(play: Play) -> None:
    write_kuhn(Path.cwd())
    result = play("house:house-random@plain", "--game", "kuhn", "--seed", "1", "--seat", "1", typed="pass\nbet\npass\n")
    assert result.code == 0, result.err
    assert "dubito play house:house-random@plain --seed 1 --deal 0 --seat 1 --game kuhn" in result.out
    Path("c.yaml").write_text("bots: [ClaudeBot]\n")
    result = play("Coin", "--game", "kuhn", "--config", "c.yaml")
    assert (result.code, result.err) == (
        2,
        "dubito: c.yaml is for another game; use a config with `game: kuhn`, or omit --game\n",
    )


def test_draw_and_defuse_is_typed_by_letters(play: Play) -> None:
    typed = "x\ns\n" + "\n0\n" * 30  # draws cards, and puts the bomb on top
    result = play("Medium", "--game", "defuse", "--seed", "5", "--seat", "0", typed=typed)
    assert result.code == 0, result.err
    assert (
        "Enter draws; s see, k skip, b bottom\n> 'x' is not an answer here: type one of draw, skip, bottom, see."
        in result.out
    )
    assert "You have seen, from the top: nothing, see, see." in result.out
    assert "Where do you put the bomb? 0 is the top of the pile, " in result.out
    assert "You have no defuse card and blow up: Medium wins." in result.out
    assert result.out.endswith(
        "To play the same cards again: dubito play Medium --seed 5 --deal 0 --seat 0 --game defuse\n"
    )


@pytest.mark.parametrize("game", ["dubito", "defuse"])
def test_hint_names_the_hard_bots(shell: Shell, game: str) -> None:
    hard = GAMES[game].words.HARD
    assert {*hard} < {*registry_of(game).bots}
    assert all(f" {bot}" in shell("play", "--help").out for bot in hard)
