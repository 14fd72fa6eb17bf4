"""R28: the ways to write a bot, the helpers, and the read-only hand."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from bots.base import BotBase
from dubito.errors import BotError, IllegalOutput
from dubito.game import Seating, make_player
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.bot import FiveNodes, PlayerAI
from dubito.games.dubito.cards import NUMBERS, Hand, HandView, TurnData, TurnOutput
from tests.engine.helpers import cards, hand, position, run, table
from tests.engine.test_hostile import Quiet


def view(held: str) -> HandView:
    return HandView(Hand(cards(held)), DealStreams(0, 0).seat(0))


def seated(held: str, moves: tuple[str, ...] = ()) -> tuple[PlayerAI, TurnData]:
    """Return a player with these cards and its view, as seat 0 or in another seat after some moves."""
    hands = ["A2345", "6789T", "AJQK"]
    hands[len(moves)] = held
    game = position("/".join(hands))
    run(game, *moves)
    streams = DealStreams(0, 0).seat(game.seat)
    seating = Seating(game.seat, 0, 0, streams, partial(HandView, game.hands[game.seat]))
    return make_player(PlayerAI, seating, {}), game.view()


def test_r28_five_nodes_are_one_of_three_ways() -> None:
    assert issubclass(BotBase, FiveNodes)
    output, _ = step(table(position("AA2/34/56"), Quiet))
    assert output.number == (output.cards or [0])[0]


class Counting(Quiet):
    """Counts its turns before it plays."""

    def __init__(self, id: int, *, start: int = 0) -> None:
        super().__init__(id)
        self.turns = start

    def play(self, p: TurnData) -> TurnOutput:
        self.turns += 1
        return super().play(p)


def test_r28_an_overridden_play_may_end_in_super() -> None:
    """R28: a bot updates its state, then the nodes decide."""
    games = [position("AA2/34/56"), position("AA2/34/56")]
    tables = [table(games[0], Counting), table(games[1], Quiet)]
    assert step(tables[0])[0] == step(tables[1])[0]
    player = tables[0].players[0]
    assert isinstance(player, Counting)
    assert player.turns == 1


class Own(PlayerAI):
    """Returns a custom output."""

    def play(self, p: TurnData) -> TurnOutput:
        return TurnOutput(False, 13, tuple(self.cards)[:2])


def test_r28_player_may_return_an_output_directly() -> None:
    game = position("AA2/34/56")
    step(table(game, Own))
    assert (hand(game, 0), game.number, game.board) == ("2", 13, [1, 1])


def test_r28_settings_are_keyword_arguments_after_the_id() -> None:
    at = table(position("AA2/34/56"), Entrant("Counting", Counting, {"start": 5}), Counting)
    players = [player for player in at.players if isinstance(player, Counting)]
    assert [(player.id, player.turns) for player in players] == [(0, 5), (1, 0)]


class Collecting(Quiet):
    """Modifies its settings."""

    def __init__(self, id: int, *, notes: list[int]) -> None:
        super().__init__(id)
        notes.append(id)
        self.notes = notes


def test_r28_each_seat_and_game_has_a_new_instance_and_settings() -> None:
    notes: list[int] = []
    entrant = Entrant("Collecting", Collecting, {"notes": notes})
    players = [
        player
        for _ in range(2)
        for player in table(position("AA2/34/56"), entrant, entrant).players
        if isinstance(player, Collecting)
    ]
    assert len({id(player) for player in players}) == 4
    assert [player.notes for player in players] == [[0], [1], [0], [1]]
    assert notes == []


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("moves", [(), ("A as 3",)])
def test_r28_bluff_plays_random_cards(maximize: bool, moves: tuple[str, ...]) -> None:
    """R28, R24: a bluff plays random cards, and has a number only when opening."""
    player, p = seated("2344", moves)
    sizes = set()
    for _ in range(60):
        output = player.bluff(p, maximize=maximize)
        assert output.doubt is False
        assert (output.number is None) if moves else (output.number in NUMBERS)
        assert not Counter(output.cards) - Counter(cards("2344"))
        sizes.add(len(output.cards or ()))
    assert sizes == ({3} if maximize else {1, 2, 3})


@pytest.mark.parametrize(
    ("held", "moves", "maximize", "expected"),
    [
        ("2443", (), True, TurnOutput(False, 4, [4, 4])),
        ("3", (), False, TurnOutput(False, 3, [3])),
        ("*3343", ("A as 3",), True, TurnOutput(False, None, [3, 3, 3])),
        ("*34", ("A as 3",), False, TurnOutput(False, None, [3])),
    ],
)
def test_r28_play_truthfully_is_honest(held: str, moves: tuple[str, ...], maximize: bool, expected: TurnOutput) -> None:
    player, p = seated(held, moves)
    assert player.play_truthfully(p, maximize=maximize) == expected
    assert sorted(player.cards) == sorted(cards(held))


def test_r28_play_truthfully_without_the_number_is_the_bots_error() -> None:
    """R28: jokers do not help."""
    player, p = seated("*45", ("A as 3",))
    for maximize in (True, False):
        with pytest.raises(IllegalOutput, match=r"^play_truthfully needs a card of number 3 in the hand$"):
            player.play_truthfully(p, maximize=maximize)


class Honest(PlayerAI):
    """Always plays honestly, even without the number."""

    def play(self, p: TurnData) -> TurnOutput:
        return self.play_truthfully(p, maximize=True)


def test_r28_bot_is_blamed_by_name() -> None:
    game = position("A2/45/67")
    run(game, "A as 3")
    with pytest.raises(BotError, match=r"^Honest \(seat 1\) .*: play_truthfully needs a card of number 3 in the hand$"):
        step(table(game, Honest, Honest, Honest))


@pytest.mark.parametrize(
    ("held", "pick", "expected"),
    [
        ("2443", lambda view: view.pick_most(), "44"),
        ("7777", lambda view: view.pick_most(), "777"),
        ("**3", lambda view: view.pick_most(), "**"),
        ("*34", lambda view: view.pick_most(), "*"),
        ("*344", lambda view: view.pick_most(), "44"),
        ("**", lambda view: view.pick_most(), "**"),
        ("", lambda view: view.pick_most(), ""),
        ("2443", lambda view: view.pick_all(4), "44"),
        ("4444", lambda view: view.pick_all(4), "444"),
        ("**43", lambda view: view.pick_all(0), "**"),
        ("2443", lambda view: view.pick(4, 1), "4"),
        ("2443", lambda view: view.pick(4, 5), "44"),
        ("2443", lambda view: view.pick(4, 0), ""),
        ("2443", lambda view: view.pick(14, 2), ""),
        ("2443", lambda view: view.pick_random(4), "2344"),
        ("2443", lambda view: view.pick_random(0), ""),
        ("", lambda view: view.pick_random(1), ""),
    ],
)
def test_r28_picks_take_only_held_cards(held: str, pick: Callable[[HandView], list[int]], expected: str) -> None:
    """R28, R25: picks return at most the held cards and leave the hand unchanged. The bot owns the returned list."""
    own = view(held)
    picked = pick(own)
    assert type(picked) is list
    assert sorted(picked) == cards(expected)
    picked.clear()
    assert list(own) == cards(held)


def test_r28_pick_random_draws_from_the_framework() -> None:
    """R27, R28: it draws without replacement and not from the bot's own stream."""
    streams = DealStreams(0, 0).seat(0)
    own = HandView(Hand(cards("A23456789")), streams)
    seen = set()
    for _ in range(200):
        picked = own.pick_random(3)
        assert len(set(picked)) == 3
        seen.update(picked)
    assert seen == set(range(1, 10))
    assert streams.bot.random() == DealStreams(0, 0).seat(0).bot.random()
    assert streams.framework.random() != DealStreams(0, 0).seat(0).framework.random()


def test_r26_the_view_of_a_hand_is_read_only() -> None:
    """R26, R28: the view has no mutable attributes, and returns copies."""
    own = view("*2443")
    for name in ("cards", "anything"):
        with pytest.raises(AttributeError):
            setattr(own, name, [])
    with pytest.raises(TypeError):
        own[0] = 1  # type: ignore[index]
    own.count_all().clear()
    assert list(own) == cards("*2443")


def test_r28_questions_about_the_hand() -> None:
    """R28: counts and membership. Objects that are not cards count as absent."""
    own = view("*244K")
    assert (len(own), sorted(own), own.most_common()) == (5, cards("*244K"), 4)
    assert own.count_all() == {0: 1, 2: 1, 4: 2, 13: 1}
    assert [own.count(number) for number in (-1, 0, 2, 4, 5, 13, 14)] == [0, 1, 1, 2, 0, 1, 0]
    assert [own.has(number) for number in (-1, 0, 2, 4, 5, 13, 14)] == [False, True, True, True, False, True, False]
    assert [view(held).all_equal() for held in ("", "4", "44", "**", "45", "*4")] == [True] * 4 + [False] * 2
    assert repr(own) == "HandView([0, 2, 4, 4, 13])"


def test_r28_the_view_follows_the_hand() -> None:
    """R28: played cards and discarded sets are gone, and picked-up cards are present."""
    game = position("A2/AAA3/45")
    at = table(game, Own, Own, Own)
    views = [player.cards for player in at.players if player is not None]
    run(game, "A as A")
    assert [sorted(own) for own in views] == [[2], [1, 1, 1, 3], [4, 5]]
    run(game, "doubt")
    assert [sorted(own) for own in views] == [[2], [3], [4, 5]]
    assert [(own.count(1), own.has(3), len(own)) for own in views][1] == (0, True, 1)


def test_r28_hand_counts_its_cards() -> None:
    held = Hand(cards("*2443"))
    held.add(cards("44K"))
    held.remove(cards("*2"))
    assert (sorted(held.cards), held.counts[0], held.counts[4], held.counts[13]) == (cards("34444K"), 0, 4, 1)
    assert held.discard_sets() == [4]
    assert (sorted(held.cards), held.counts[4]) == (cards("3K"), 0)
    assert held.discard_sets() == []
