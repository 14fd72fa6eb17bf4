"""Bots of draw and defuse: how turns are written, mistakes, and the win rates of the original bots."""

from collections.abc import Generator
from typing import Any

import pytest

from dubito.errors import BotError
from dubito.game.table import step
from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import State, View
from tests.conftest import in_gate
from tests.games.defuse.kit import BOTS, deal_game, table_of, with_cards, won_first

Acts = Generator[Any, Any, Any]
SIMPLE = BOTS["Simple"]


class Looker(DefuseBot):
    """Looks, shuffles, looks again, and records what it saw."""

    def turn(self, view: View) -> Acts:
        first = yield "see"
        nothing = yield "shuffle"
        second = yield "see"
        self.shown = (first, nothing, second, view.discard, self.cards.count("see"))
        return "skip"

    def defuse(self, view: View) -> int:
        return 0


def test_turn_continues_after_its_yield() -> None:
    game = with_cards("bomb see skip nothing", "see see shuffle skip")
    table = table_of(game, Looker, SIMPLE)
    outputs = [step(table)[0] for _ in range(4)]
    assert outputs == ["see", "shuffle", "see", "skip"]
    first, nothing, second, discard, left = table.players[0].shown  # type: ignore[union-attr]
    assert (first, nothing, second) == (("bomb", "see", "skip"), (), tuple(game.pile[:-4:-1]))
    assert (discard, left) == (("see", "shuffle", "see"), 0)


def bot(acts: Any, place: Any = 0) -> type[DefuseBot]:
    """Return a bot whose turn is this method, or returns this value."""

    class Wrong(DefuseBot):
        def turn(self, view: View) -> Any:
            return acts(self) if callable(acts) else acts

        def defuse(self, view: View) -> Any:
            if isinstance(place, Exception):
                raise place
            return place

    return Wrong


def forever(self: DefuseBot) -> Acts:
    while True:
        yield "see"


def sees_anew(self: DefuseBot) -> Acts:
    yield "see"
    yield "skip"
    yield "see"


def too_late(self: DefuseBot) -> Acts:
    yield "draw"
    yield "see"


def fails(self: DefuseBot) -> Acts:
    yield "see"
    raise ValueError("no idea")


def fails_at_once(self: DefuseBot) -> str:
    raise KeyError("top")


def sees_and_returns(what: Any) -> Any:
    def acts(self: DefuseBot) -> Acts:
        yield "see"
        return what

    return acts


class Asks(DefuseBot):
    """Plays a card when it is asked for a place."""

    def turn(self, view: View) -> str:
        return "draw"

    def defuse(self, view: View) -> Any:
        yield "see"


class Same(str):
    """A string subclass, which compares equal to the word."""

    __slots__ = ()


WRONG: list[tuple[type[DefuseBot], str]] = [
    (bot("see"), "a turn must return 'draw', 'skip', 'bottom' or None, but it returned 'see'"),
    (bot("bomb"), "but it returned 'bomb'"),
    (bot(7), "but it returned a value of type int"),
    (bot(["skip"]), "but it returned a value of type list"),
    (bot(True), "but it returned a value of type bool"),
    (bot(0), "but it returned a value of type int"),
    (bot(""), "but it returned ''"),
    (bot("Skip"), "but it returned 'Skip'"),
    (bot("defuse"), "but it returned 'defuse'"),
    (bot(Same("draw")), "but it returned a value of type Same"),
    (bot("x" * 1000), "but it returned a value of type str"),
    (bot("bottom"), "the hand holds no bottom card"),
    (bot(sees_and_returns("see")), "but it returned 'see'"),
    (bot(sees_and_returns("bottom")), "the hand holds no bottom card"),
    (bot(sees_and_returns(("bomb",))), "but it returned a value of type tuple"),
    (bot(sees_anew), "it yielded 'skip'"),
    (bot(lambda self: (x for x in ("defuse",))), "it yielded 'defuse'"),
    (bot(lambda self: (x for x in (Same("see"),))), "it yielded a value of type Same"),
    (bot(fails_at_once), "play raised KeyError: 'top'"),
    (bot("skip"), "the hand holds no skip card"),
    (bot(forever), "the hand holds no see card"),
    (bot(too_late), "a turn may only yield shuffle or see, but it yielded 'draw'"),
    (bot(lambda self: (x for x in ("shuffle",))), "the hand holds no shuffle card"),
    (bot(lambda self: (x for x in (None,))), "it yielded a value of type NoneType"),
    (bot(fails), "play raised ValueError: no idea"),
    (bot("draw", True), "and not to True"),
    (bot("draw", 3.0), "and not to 3.0"),
    (bot("draw", -1), "and not to -1"),
    (bot("draw", 4), "a place from 0, the top, to 3, the bottom, and not to 4"),
    (bot("draw", None), "and not to None"),
    (bot("draw", "0"), "and not to '0'"),
    (bot("draw", [0]), "and not to a value of type list"),
    (bot("draw", 10**400), "and not to a value of type int"),
    (Asks, "and not to a value of type generator"),
    (bot("draw", ValueError("where")), "play raised ValueError: where"),
]


def a_game() -> State:
    return with_cards("bomb nothing nothing nothing", "defuse see", "defuse")


def play_mistake(game: State, wrong: type[DefuseBot], **how: Any) -> Any:
    table = table_of(game, wrong, SIMPLE, **how)
    while not game.over and not table.errors:
        step(table)
    return table


def test_a_mistake_stops_falls_back_or_forfeits(subtests: pytest.Subtests) -> None:
    """D4: `forfeit` is what the source calls "cheated and therefore loses"."""
    for wrong, words in WRONG:
        with subtests.test(wrong=wrong, words=words):
            with pytest.raises(BotError) as caught:
                play_mistake(a_game(), wrong)
            assert words in str(caught.value)
            table = play_mistake(a_game(), wrong, forfeits=True)
            assert (table.state.winner, [counts.forfeits for counts in table.state.counts]) == (1, [1, 0])
            table = play_mistake(a_game(), wrong, fallback=SIMPLE)
            assert (table.state.over, table.fallback_turns) == (False, [1, 0])
            assert table.state.turns_played == 1 or table.state.node == "place"


def test_turn_continued_by_a_fallback_starts_again() -> None:
    """After the fallback has finished a bot's turn, the bot's next turn starts from the beginning."""
    asked = []

    def counts(self: DefuseBot) -> Acts:
        asked.append(self.cards.count("see"))
        yield "see"
        return "draw"

    game = with_cards("nothing nothing nothing bomb", "see see see")
    player = table_of(game, bot(counts), SIMPLE).players[0]
    assert player is not None
    assert player.play(game.view()) == "see"
    game.apply("see")
    game.apply("see")  # by the fallback
    assert player.play(game.view()) == "see"
    assert asked == [3, 1]


def test_each_game_has_new_bots() -> None:
    """D6: bots store their state in instances."""
    first, second = (table_of(deal_game(), BOTS["Scared"], BOTS["Medium"]) for _ in range(2))
    while not first.state.over:
        step(first)
    assert vars(first.players[0])["defused"] > 0
    assert vars(second.players[0])["defused"] == 0


def test_sapper_beats_the_best_bot_of_the_source() -> None:
    first = won_first((BOTS["Sapper"], BOTS["Medium"]), 500)
    second = 1 - won_first((BOTS["Medium"], BOTS["Sapper"]), 500)
    assert (first + second) / 2 > 0.68


# The source's win rates in 10,000 games per order, and in 100,000 with Simple first.
@pytest.mark.parametrize(
    ("one", "other", "wins"),
    in_gate([("Simple", "Scared", 0.2165), ("Simple", "Medium", 0.1945), ("Scared", "Medium", 0.3407)], 1),
)
def test_bots_win_as_often_as_in_the_source(one: str, other: str, wins: float) -> None:
    games = 1500
    first = won_first((BOTS[one], BOTS[other]), games)
    second = 1 - won_first((BOTS[other], BOTS[one]), games)
    assert abs((first + second) / 2 - wins) < 0.025
    if (one, other) == ("Simple", "Scared"):
        assert abs(first - 0.2099) < 0.03
