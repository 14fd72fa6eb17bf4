"""The viewer with other games: in words if available, otherwise as plain data."""

import re
from pathlib import Path
from typing import Any

import pytest

from dubito.games.bs.game import GAME as BS_GAME
from tests.chromium import Chrome
from tests.cli.kit import Shell, run_in
from tests.conftest import in_gate
from tests.games.kit import EVERY_GAME, remove_parts, write_kuhn
from tests.report.kit import Page, data, hands, pile, states

BS = ("--bots", "Player1,Player2,Player3,Player4", "--games", "12")


@pytest.fixture(scope="module")
def bs_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("bs")
    run_in(home, "run", "--game", "bs", *BS, "--workers", "1", "--output", "r", "--quiet", "--report")
    return home


@pytest.fixture
def bs_report(bs_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bs_home)


def game_data(number: int) -> Any:
    page = Path("r/report/games") / f"{number}.html"
    (game,) = Page(page).json
    return game


def accusers(game: Any, turn: Any) -> set[str]:
    return {f"{name} says BS" for name in game["names"]} & {line for line, _ in turn["truth"]}


@pytest.mark.usefixtures("bs_report")
def test_game_of_bs_is_shown_with_all_cards() -> None:
    listed = data(Path("r/report"), "games")
    assert len(listed) == 12
    for row in listed:
        game = game_data(int(row["game"]))
        assert len(game["turns"]) == len(game["story"]) == row["turns"]
        for panels, held in zip(states(game), hands(game), strict=True):
            laid = [card for _, _, cards, *_ in pile(game, panels) for card in cards]
            cards = [name for hand in held for name in hand] + [game["faces"][each][0] for each in laid]
            assert sorted(cards) == sorted(BS_GAME.words.FACES)
            assert [panel.get("seat") for panel in panels] == [0, 1, 2, 3, None]
            assert [panel.get("backs", 0) for panel in panels] == [*map(len, held), len(laid)]
            assert panels[-1]["public"].startswith("Empty." if not laid else f"{len(laid)} card")
        for number, turn in enumerate(game["turns"]):
            assert turn["movers"] == [number % 4, *(seat for seat in range(4) if seat != number % 4)]
        for turn in game["turns"]:
            lie, accused = "a lie" in turn["truth"][0][0], accusers(game, turn)
            assert turn["marks"] == ["lie"] * lie + ["doubt"] * bool(accused)
            wrong = 3 - len(accused) if lie else len(accused)
            assert [*turn["let_pass"].values()] == ["let a lie pass"] * (wrong if lie else 0)
            assert [*turn["mistakes"].values()] == ["doubted an honest play"] * (0 if lie else wrong)
        winner = game["ending"].removeprefix("The game is over: ").removesuffix(" wins.")
        assert f"{winner} (won)" in row["seats"]


@pytest.mark.usefixtures("bs_report")
def test_story_of_bs_has_only_public_information() -> None:
    game = game_data(0)
    public = " ".join(game["story"])
    truth = " ".join(line for turn in game["turns"] for line, _ in turn["truth"])
    for word in ("really", "a lie", "says BS"):
        assert word in truth
        assert word not in public.replace("Nobody says BS", "")
    for word in ("plays", "BS! ", "was honest"):
        assert word in public


def test_forfeit_among_models_is_shown_from_the_record(shell: Shell) -> None:
    bad(Path("bots/manual/bs"))
    field = "Bad,Player1,Player2,house:house-random@plain"
    words = (field, "--games", "2", "--output", "r", "--on-bot-error", "forfeit", "--report", "--quiet")
    result = shell("run", "--game", "bs", "--bots", *words)
    assert result.code == 0, result.err
    for number in range(2):
        check_forfeit(game_data(number))
    assert shell("replay", "r").out.startswith("identical: 2 games")


def bad(folder: Path) -> None:
    folder.mkdir(parents=True)
    source = "from dubito.games.bs.bot import BSBot\nclass Bad(BSBot):\n    def request_cards(self, n, t): return []\n"
    (folder / "bad.py").write_text(f"{source}    def bs(self, s, n, c, t): return False\n")


def check_forfeit(game: Any) -> None:
    """Check that Bad ended the game in its first turn."""
    seat = game["names"].index("Bad")
    assert len(game["turns"]) == seat + 1
    assert game["turns"][-1]["seat"] == seat
    assert game["story"][-1] == "Bad has failed: the game is over, and nobody wins."
    assert game["ending"] == "The game is over because of a mistake by Bad; nobody wins."


def test_a_game_without_words_is_shown_as_plain_data(shell: Shell, chrome: Chrome) -> None:
    write_kuhn(Path.cwd())
    remove_parts(Path("games/kuhn/game.py"), "words")
    flags = ("--games", "8", "--contenders", "house:house-random@plain,Careful", "--output", "r", "--report")
    assert shell("run", "--game", "kuhn", *flags).code == 0
    game = game_data(0)
    assert game["story"][0].startswith("ActEvent: seat 0, act ")
    (panel,) = game["panels"]
    assert panel.keys() == {"title", "truth"}
    assert panel["title"] == "The deal"
    assert panel["truth"].startswith("deal: ")
    chrome.open(Path("r/report/games/0.html"), "#turn=1")
    assert chrome.errors == []
    assert chrome.text("#said") == game["story"][0]
    assert " gives " in chrome.text("#really")
    assert game["decisions"]
    for decision in game["decisions"]:
        chrome.open(Path("r/report/games/0.html"), f"#turn={decision['turn']}")
        assert f"Act? {decision['answer']} answered" in chrome.text("#decisions")
        assert f"act {decision['answer']}" in game["story"][decision["turn"] - 1]


@pytest.mark.usefixtures("bs_report")
@pytest.mark.parametrize("width", in_gate([390, 1440], 1))
def test_viewer_of_bs_steps_and_hides_cards(chrome: Chrome, width: int) -> None:
    game = game_data(0)
    chrome.screen(width)
    chrome.open(Path("r/report/games/0.html"), "#turn-0")
    assert chrome.text("#said") == game["start"]
    for key, turn in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", len(game["turns"]))):
        chrome.key(key)
        assert chrome.run("location.hash") == f"#turn-{turn}"
        assert chrome.run("document.querySelector('#said p').textContent") == game["story"][turn - 1]
        in_words = [line for line, cards in game["turns"][turn - 1]["truth"] if not cards]  # other truths are drawn
        assert all(line in chrome.text("#really") for line in in_words)
    panels = states(game)[-1]
    for panel in panels:
        assert panel["public"] in chrome.text("#boards" if "seat" not in panel else "#seats")
    assert game["ending"] in chrome.text("#said")
    drawn = "[...document.querySelectorAll('#seats li.seat')].map(seat => [...seat.querySelectorAll('[role=img]')]"
    drawn += ".map(one => one.ariaLabel))"
    opened = game.get("me") or 0
    assert chrome.run(drawn) == [cards if seat == opened else [] for seat, cards in enumerate(hands(game)[-1])]
    chrome.key("h")
    assert chrome.run(drawn) == hands(game)[-1], "all hands are open"
    chrome.key("h")
    assert chrome.run(drawn) == [[], [], [], []]
    assert chrome.run("document.querySelectorAll('.plays [role=img]').length") == 0
    assert chrome.run("document.querySelector('#really').hidden")
    assert panels[0]["public"] in chrome.text("#seats")
    chrome.key("ArrowLeft")
    assert "honest" not in chrome.text("#boards")
    assert chrome.run("document.documentElement.scrollWidth") <= width
    assert chrome.errors == []


@pytest.mark.parametrize("game", EVERY_GAME)
def test_links_of_a_report_resolve(shell: Shell, game: str) -> None:
    result = shell("run", "--game", game, "--games", "12", "--output", "r", "--quiet", "--report", "--workers", "1")
    assert result.code == 0, result.err
    followed = 0
    for page in Path("r/report").rglob("*.html"):
        for link in re.findall(r'href="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"
            followed += 1
    assert followed > 100
