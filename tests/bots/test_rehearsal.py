"""`bot_at_turn` puts a bot into a chosen turn, in the state that the engine would have created."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.games.dubito.bot import FiveNodes, PlayerAI
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.events import CardList, CardsPlayedEvent, DoubtResolvedEvent, Event, GameStartEvent
from dubito.games.dubito.rehearsal import bot_at_turn
from tests.bots.kit import NODES_A_TO_E, REGISTRY, write_bot

HANDS = [[7, 7, 1, 2], [3, 4, 13, 0], [7, 7, 5, 6]]
TWO_SEVENS = TurnOutput(False, 7, [7, 7])
A_LIE = TurnOutput(False, None, [13])
DOUBT = TurnOutput(True)


class Watching(PlayerAI):
    """Records what it observes, with its number of cards at that time."""

    def __init__(self, id: int, *, risk: float = 0.0) -> None:
        super().__init__(id)
        self.risk, self.dealt = risk, list(self.cards)
        self.seen: list[tuple[Event, int]] = []

    def observe(self, event: Event) -> None:
        self.seen.append((event, len(self.cards)))


def test_bot_is_in_the_seat_that_moves_next() -> None:
    for moves, seat in (([], 0), ([TWO_SEVENS], 1), ([TWO_SEVENS, A_LIE], 2), ([TWO_SEVENS, A_LIE, DOUBT], 2)):
        bot, p = bot_at_turn(Watching, HANDS, moves)
        assert (bot.id, p.me.id, bot.dealt) == (seat, seat, HANDS[seat])
        assert sorted(bot.cards) == sorted(HANDS[seat])


def test_turn_data_and_events_include_the_moves() -> None:
    bot, p = bot_at_turn(Watching, HANDS, [TWO_SEVENS, A_LIE])
    assert (p.current_number, p.board_cards, p.n_cards_played, p.streak, p.last_player_id) == (7, 3, 1, 2, 1)
    assert (p.prev.id, p.prev.n_cards, p.next.id, p.next.n_cards) == (1, 3, 0, 2)
    events = [event for event, _ in bot.seen]
    assert events == [
        GameStartEvent(CardList([0, 1, 2]), CardList([4, 4, 4])),
        CardsPlayedEvent(0, 7, 2),
        CardsPlayedEvent(1, 7, 1),
    ]


def test_own_moves_change_the_hand() -> None:
    bot, p = bot_at_turn(Watching, HANDS, [TWO_SEVENS, DOUBT, TurnOutput(False, 5, [5])])
    assert (bot.id, bot.dealt, sorted(bot.cards)) == (0, HANDS[0], [1, 2])
    assert [held for _, held in bot.seen] == [4, 2, 2, 2]
    assert isinstance(bot.seen[2][0], DoubtResolvedEvent)
    assert (p.me.honest_times, p.current_number) == (1, 5)


def test_rehearsal_uses_the_given_rules_and_settings() -> None:
    bot, p = bot_at_turn(
        Watching, [[1], [2, 3], [4, 5]], [TurnOutput(False, 9, [1])], rules=Rules(win_rule="contested"), risk=0.5
    )
    assert (bot.risk, p.prev.n_cards, p.can_doubt, p.n_players) == (0.5, 0, True, 3)
    assert bot.rules == Rules(win_rule="contested")


def test_a_bot_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'from bots.base import BotBase\nclass Mine(BotBase):\n    """Mine."""\n'
    write_bot(tmp_path, "mine", source)
    monkeypatch.chdir(tmp_path)
    assert type(bot_at_turn("Mine", HANDS)[0]).__name__ == "Mine"
    with pytest.raises(UsageError, match="no bot is named 'Min': did you mean 'Mine'"):
        bot_at_turn("Min", HANDS)


def test_project_bots_can_be_rehearsed() -> None:
    # Solved plays only duels
    manual = [bot for name, bot in REGISTRY.bots.items() if bot.kind == "manual" and name != "Solved"]
    for bot in manual:
        player, p = bot_at_turn(bot.cls, HANDS, [TWO_SEVENS, A_LIE])
        nodes = isinstance(player, FiveNodes)
        assert not nodes or {getattr(player, node)(p) for node in list(NODES_A_TO_E.values())[2:]} <= {True, False}
        assert type(player.play(p)) is TurnOutput
    assert len(manual) == 13


@pytest.mark.parametrize(
    ("hands", "moves", "sentence"),
    [
        ([[1], [2], [14]], [], "unknown card 14: use 0 for a joker, or a number from 1 to 13"),
        ([[1, 1, 1], [1, 1], [2]], [], "card 1 is dealt 5 times, but the deck has 4"),
        ([[0], [0], [0]], [], "card 0 is dealt 3 times, but the deck has 2"),
        ([[1], [2], [3, 3, 3, 3]], [], "seat 2 has an impossible hand: no cards, or 4 of one number"),
        ([[1], [], [2]], [], "seat 1 has an impossible hand: no cards, or 4 of one number"),
        ([[1], [2]], [], "Dubito needs 3 to 8 players, not 2; two players need the `duel` variant"),
        (HANDS, [TWO_SEVENS, TWO_SEVENS], "moves[1], by seat 1: the hand holds 0 of card 7, not 2"),
        (HANDS, [DOUBT], "moves[0], by seat 0: an empty board has no play to doubt"),
        ([[1], [2], [3]], [TurnOutput(False, 1, [1])], "the game is over after these moves; leave out the last ones"),
    ],
)
def test_impossible_situations_are_refused(
    hands: Sequence[Sequence[int]], moves: Sequence[TurnOutput], sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        bot_at_turn(Watching, hands, moves)
    assert str(caught.value) == sentence


def test_bot_continues_the_game() -> None:
    """The turn data describe this turn, so a whole turn can be tried without making a move."""

    class Opener(PlayerAI):
        def play(self, p: TurnData) -> TurnOutput:
            return self.play_truthfully(p, maximize=True)

    bot, p = bot_at_turn(Opener, HANDS)
    assert bot.play(p) == TurnOutput(False, 7, [7, 7])
    assert sorted(bot.cards) == [1, 2, 7, 7]
