"""`dubito rate`: three numbers that do not depend on the machine, and reports of changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.experiment.stored import open_recorded_run
from dubito.game.find import find_bots
from dubito.games.dubito.game import GAME
from dubito.plugins.leaderboard.book import book_names, check_book, find_book_of, read_book
from dubito.plugins.leaderboard.bots.manual.counter_bot import situation
from dubito.plugins.leaderboard.documents import RatingObject
from dubito.plugins.leaderboard.rating import RatedGame, mean_beside_worst
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate

BOOKS = {
    "bs-1": "8ad40f11e5158609",
    "defuse-1": "6babf00b35789eea",
    "dubito-1": "dd9f355deb268c65",
    "dubito-sizes-1": "21369afa65b9d4f2",
    "kuhn-1": "febf9d468098154f",
    "leduc-1": "ce171e391d051755",
}

FOLDERS = {  # folders of the bots in a book
    "dubito-1": "bots/manual",
    "dubito-sizes-1": "bots/manual",
    "bs-1": "bots/manual/bs",
    "defuse-1": "bots/manual/defuse",
    "kuhn-1": "dubito/plugins/openspiel/bots/manual/openspiel",
    "leduc-1": "dubito/plugins/openspiel/bots/manual/openspiel",
}
SHIPPED = [(name, file.stem) for name, folder in FOLDERS.items() for file in sorted((REPO / folder).glob("[a-z]*.py"))]


def cut(name: str, folder: Path, **other: Any) -> str:
    book = read_book(name).book.model_dump() | {"deals": 12, "exploiter_deals": 4} | other
    folder.joinpath("small.yaml").write_text(yaml.safe_dump(book, sort_keys=False))
    return "./small.yaml"


@pytest.fixture
def rated(shell: Shell) -> Callable[..., RatingObject]:
    def rated(*words: str) -> RatingObject:
        result = shell("rate", *words, "--quiet", "--json")
        assert result.code == 0, result.err
        return RatingObject.model_validate_json(result.out, strict=True)

    return rated


@pytest.mark.parametrize(
    ("book", "player"),
    in_gate([("dubito-sizes-1", "ClaudeBot"), ("bs-1", "Player3"), ("defuse-1", "Sapper")], 1),
)
def test_rating_does_not_depend_on_workers(
    shell: Shell, rated: Callable[..., RatingObject], book: str, player: str
) -> None:
    words = player, "--book", cut(book, shell.folder)
    one = rated(*words, "--workers", "1", "--output", "one")
    two = rated(*words, "--workers", "2", "--output", "two")
    assert one.results_digests == two.results_digests
    assert one.model_copy(update={"folders": []}) == two.model_copy(update={"folders": []})
    assert one == rated(*words, "--output", "one"), "the second command prints the same"
    for part in ("field", "exploiters"):
        assert shell("replay", f"one/{part}", "--workers", "1").code == 0
        with open_recorded_run(shell.folder / "one" / part) as run:
            found = find_book_of(run, "small.yaml")
            assert found is not None
            assert (found.name, found.part, found.faults) == ("small", part, [])


def test_small_game_has_exact_best_response(shell: Shell, rated: Callable[..., RatingObject]) -> None:
    pytest.importorskip("pyspiel")
    found = rated("FirstLegal", "--book", cut("kuhn-1", shell.folder))
    assert found.exact == pytest.approx(1.0)  # the player always passes, so an opponent that bets wins the pot
    assert found.exact_draws is None
    assert rated("CounterBot", "--book", "./small.yaml").exact_draws == 100, "CounterBot does not publish its policy"
    assert [one.name for one in found.taken] == ["Solved", "CounterBot"]
    assert found.taken[1].rate.value == pytest.approx(1.0)  # it was fitted to this player


def test_differences_from_the_book_are_listed(shell: Shell, rated: Callable[..., RatingObject]) -> None:
    rated("StefaBot", "--book", cut("dubito-1", shell.folder), "--output", "r")
    cut("dubito-1", shell.folder, seed=2, deals=11)
    with open_recorded_run(shell.folder / "r" / "field") as run:
        found, by_name = find_book_of(run, "small.yaml"), find_book_of(run)
    assert found is not None
    assert found.faults == [
        "it was played with another version of small",
        "different from the book: seed",
        "different from the book: deals",
    ]
    assert by_name is not None
    assert by_name.faults == [
        "unknown book 'small'; choose from bs-1, defuse-1, dubito-1, dubito-sizes-1, kuhn-1, leduc-1"
    ]
    assert shell("run", "--bots", "StefaBot,SusBoi", "--games", "2", "--output", "other").code == 0
    with open_recorded_run(shell.folder / "other") as run:
        assert find_book_of(run) is None


def test_counter_bot_is_fitted_to_the_player(shell: Shell, rated: Callable[..., RatingObject]) -> None:
    """AlwaysTruthful bluffs only if it must, and doubts only if it lacks the number."""
    book = cut("dubito-1", shell.folder)
    for name in ("AlwaysTruthful", "MrDoubt"):
        rated(name, "--book", book, "--output", name)
    taken = rated("CounterBot", "--book", book).taken
    assert [one.name for one in taken] == ["Sherlock", "CounterBot 2"], "CounterBot 2 is fitted to the other player"
    with open_recorded_run(shell.folder / "AlwaysTruthful/exploiters") as answer:
        sherlock, counter = answer.planned.contenders
        assert sherlock.settings == {}
        fit = counter.settings
        assert max(fit["opens"], fit["answers"], fit["loose"]) < 0.1
        assert fit["doubts"][situation(3, False, True, 3)] > 0.7 > 0.3 > fit["doubts"][situation(3, True, True, 3)]


def test_changed_bot_or_rule_is_an_error(shell: Shell) -> None:
    bots = read_book("dubito-1").book.bots
    for other, why in (
        ({"bots": bots | {"StefaBot": "0" * 64}}, "StefaBot's file has changed"),
        ({"exploiters": {"Nobody": "0" * 64}}, "its bot Nobody is missing"),
        ({"rules_version": 3}, "the game dubito has changed since the book was written"),
        ({"game_source": "0" * 64}, "the game dubito has changed since the book was written"),
        ({"rules": {"wilds": 2}}, "dubito no longer has a rule wilds"),
    ):
        result = shell("rate", "SusBoi", "--book", cut("dubito-1", shell.folder, **other))
        assert (result.code, result.out) == (2, "")
        assert result.err == f"dubito: small cannot be played: {why}; that is a new book\n"
    assert not (shell.folder / "runs").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("SusBoi", "--book", "dubito"), "unknown book 'dubito'; did you mean 'dubito-1'?"),
        (("SusBoy",), "no bot is named 'SusBoy': did you mean 'SusBoi'?"),
        (("SusBoi", "--workers", "none"), "--workers: must be a whole number, not 'none'"),
    ],
)
def test_invalid_argument_is_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], why: str) -> None:
    result = shell("rate", *words)
    assert (result.code, result.out, result.err) == (2, "", f"dubito: {why}\n")


def test_each_half_of_the_deals_chooses_neighbours_for_the_other() -> None:
    """In even deals seat 1 behind is worst, in odd ones seat 2. In front no seat is worse, so the first is named."""
    even = [RatedGame(2 * n, [("before", 0), ("after", 1 + n % 2)], 2 * (n % 2)) for n in range(20)]
    odd = [RatedGame(2 * n + 1, [("before", 3), ("after", 1 + n % 2)], 2 - 2 * (n % 2)) for n in range(20)]
    found = mean_beside_worst(even + odd, ["A", "B", "C", "D"], GAME.results.measures[0])
    assert dict(found.who) == {"before": ["A", "D"], "after": ["B", "C"]}
    assert found.games == 20  # even deals with C behind, all of them won, and odd ones with B
    assert found.rate.value == 1.0


def test_books_never_change() -> None:
    assert {name: read_book(name).book.digest for name in book_names()} == BOOKS
    for name in book_names():
        named = read_book(name)
        if named.book.game.startswith("openspiel"):
            pytest.importorskip("pyspiel")
        check_book(named, find_bots(Path("/"), named.book.game))


@pytest.mark.at_length
@pytest.mark.parametrize(("name", "stem"), SHIPPED)
def test_rating_of_built_in_bots_does_not_depend_on_workers(
    rated: Callable[..., RatingObject], name: str, stem: str
) -> None:
    if FOLDERS[name] == "openspiel":
        pytest.importorskip("pyspiel")
    registry = find_bots(Path("/"), read_book(name).book.game)
    usual = registry.game.rules()  # all books use these rules
    playing = (bot for bot in registry.bots.values() if not bot.cls.rules_incompatibility(usual))
    bot = next((bot.name for bot in playing if bot.file.stem == stem), None)
    if bot is None:
        pytest.skip("this bot does not support the game")
    one, two = (rated(bot, "--book", name, "--workers", str(many), "--output", str(many)) for many in (1, 2))
    assert one.model_copy(update={"folders": []}) == two.model_copy(update={"folders": []})


@pytest.mark.parametrize(("book", "bot"), in_gate([("defuse-1", "Medium"), ("bs-1", "ConMan")], 1))
def test_identical_bots_have_equal_ratings(
    shell: Shell, rated: Callable[..., RatingObject], book: str, bot: str
) -> None:
    game = book.removesuffix("-1")
    program = find_bots(REPO, game).find(bot).cls
    shell.bot(
        "twin.py", f"from {program.__module__} import {bot}\n\n\nclass Twin({bot}):\n    'A twin.'\n", f"manual/{game}"
    )
    one, two = (rated(player, "--book", cut(book, shell.folder), "--output", player) for player in (bot, "Twin"))
    assert (one.mean, one.beside_worst, one.taken) == (two.mean, two.beside_worst, two.taken)


def climbed(shell: Shell, *words: str) -> str:
    result = shell("rate", *words, "--ladder", "--quiet", "--workers", "1")
    assert result.code == 0, result.err
    return result.out


def test_a_ladder_ends_with_the_first_bot_that_wins(shell: Shell) -> None:
    book = cut("dubito-1", shell.folder, deals=200)
    output = climbed(shell, "RandomBoi", "--book", book)
    *_, last = [line for line in output.splitlines() if line.endswith(("beaten", "undecided", "stronger"))]
    assert last.endswith("stronger")
    assert output.count("stronger") == 1
    assert f"; {last.split()[0]} is the weakest that beats it" in output
    strongest = climbed(shell, "Sherlock", "--book", book)
    assert "Sherlock stands on " in strongest
    assert "; no bot beats it" in strongest
    # The finished run is printed again.
    assert climbed(shell, "Sherlock", "--book", book) == strongest


def test_a_ladder_has_no_json(shell: Shell) -> None:
    result = shell("rate", "RandomBoi", "--ladder", "--json")
    assert result.code == 2
    assert "--ladder and --json cannot be combined" in result.err
