"""The source's bot blueprint works here if pasted unchanged.

Only its indentation was lost and had to be restored. The source says: "Copy this exactly. Rename MyBot. Put it in
bots/manual/ (hand-crafted) or bots/llms/ (LLM-based)."
"""

from pathlib import Path
from typing import get_args

import pytest

from dubito.errors import BotError
from dubito.game.find import KINDS, Bot, BotKind
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, play_game
from dubito.games.dubito.engine import Rules, WinRule, deal_table
from tests.bots.kit import entrants, load_bot, play_out

TEMPLATE = """\
from bots.base import BotBase
from dubito.game_data import TurnData

class MyBot(BotBase):
    def bluff_first_hand(self, p: TurnData) -> bool:
        ...
    def maximize_first_hand(self, p: TurnData) -> bool:
        ...
    def should_doubt(self, p: TurnData) -> bool:
        ...
    def bluff_regular(self, p: TurnData) -> bool:
        ...
    def maximize_regular(self, p: TurnData) -> bool:
        ...
"""

EXAMPLE = '''\
from bots.base import BotBase
from dubito.game_data import TurnData

class ExampleBot(BotBase):
    """
    - First hand: always honest, maximize.
    - Doubt if prev is about to win OR played 3 cards.
    - Never voluntarily bluffs.
    - Always maximizes.
    """
    def bluff_first_hand(self, p: TurnData) -> bool:
        return False # pick our strongest number honestly
    def maximize_first_hand(self, p: TurnData) -> bool:
        return True # dump as many cards as possible
    def should_doubt(self, p: TurnData) -> bool:
        if p.prev.n_cards == 0:
            return True # they're about to win — must stop them
        return p.n_cards_played == 3 # 3 cards played is suspicious
    def bluff_regular(self, p: TurnData) -> bool:
        return False # honest whenever possible
    def maximize_regular(self, p: TurnData) -> bool:
        return True
'''

STATE = """
    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.suspicion: dict[int, float] = {} # example: track suspicion per player id
"""

PLAY = """
    def play(self, p: TurnData):
        self._update(p) # update your state first
        return super().play(p) # framework calls A–E as usual
    def _update(self, p: TurnData) -> None:
        ...
"""  # noqa: RUF001 - the dash is the source's

OBSERVE = """
    def observe(self, event) -> None:
        from dubito.game_data import DoubtResolvedEvent, DiscardEvent
        match event:
            case DoubtResolvedEvent() as e:
                # e.correct, e.target_id, e.latest_cards, e.board_cards …
                ...
            case DiscardEvent() as e:
                # certain: e.player_id no longer holds e.card_number
                ...
"""

EVENT_IMPORTS = """\
from dubito.game_data import (
    TurnData,
    CardsPlayedEvent, DoubtResolvedEvent, DiscardEvent, PlayerWonEvent,
)
"""

OBSERVE_ALL = """
    def observe(self, event) -> None:
        match event:
            case DoubtResolvedEvent(correct=True) as e:
                # Bluffer caught: we know exactly what the bluffer played
                # and that they now hold all of board_cards
                self.mark_bluff(e.target_id, e.latest_cards, e.declared_number)
                self.add_known_cards(e.target_id, e.board_cards)
            case DoubtResolvedEvent(correct=False) as e:
                # Doubter wrong: target was honest, doubter picks up board
                # We know the honest cards target played, and exactly what went
                # into the doubter's hand
                self.mark_honest(e.target_id, e.latest_cards, e.declared_number)
                self.add_known_cards(e.loser_id, e.board_cards)
            case DiscardEvent() as e:
                # Certain: this player no longer holds this number at all
                self.mark_exhausted(e.player_id, e.card_number)
            case CardsPlayedEvent() as e:
                # Probabilistic only — update bluff likelihood estimate
                self.update_prior(e.player_id, e.declared_number, e.n_cards)
            case PlayerWonEvent():
                pass # player gone — clean up their belief entry if needed
"""

# The helpers that the source's observe example calls: each one records and checks its arguments.
HELPERS = """
    sources = []

    def mark_bluff(self, player_id, cards, number):
        assert any(card not in (0, number) for card in cards)
        self.sources.append("bluff")

    def mark_honest(self, player_id, cards, number):
        assert all(card in (0, number) for card in cards)
        self.sources.append("honest")

    def add_known_cards(self, player_id, cards):
        assert all(0 <= card <= 13 for card in cards)
        self.sources.append("known")

    def mark_exhausted(self, player_id, number):
        assert 1 <= number <= 13
        self.sources.append("exhausted")

    def update_prior(self, player_id, number, n_cards):
        assert 1 <= n_cards <= 3
        self.sources.append("prior")
"""

# The formulas in the source's table of signals, each with its value for a zero denominator.
SIGNALS = """
    signals = []

    def _update(self, p: TurnData) -> None:
        doubted = p.prev.honest_times + p.prev.dishonest_times
        self.signals.append((
            p.prev.dishonest_times / (p.prev.honest_times + p.prev.dishonest_times) if doubted else 0.5,
            p.next.doubts / p.next.not_first_turns if p.next.not_first_turns else 0.5,
            self.cards.count(p.current_number),
            p.prev.n_cards == 0,
            self.prev_player_started_turn(p),
            p.board_cards or p.streak,
            p.my_n_cards,
        ))
        assert len(self.cards) == p.my_n_cards == p.me.n_cards == sum(self.cards.count_all().values())
        assert self.cards.has(p.current_number) == self.can_play_truthfully(p) or p.board_cards == 0
        assert self.cards.all_equal() == (len(self.cards.count_all()) == 1)
        assert all(self.cards.count(n) == k for n, k in self.cards.count_all().items())
"""


def whole_games(bot: Bot, games: int = 20) -> None:
    """Play whole games against the source's bots under both win rules. A BotError fails the test."""
    table = [Entrant("pasted", bot.cls), *entrants("StefaBot", "AdaptyBoi"), Entrant("pasted too", bot.cls)]
    for rule in get_args(WinRule):
        for deal in range(games):
            assert play_out(table, Rules(win_rule=rule), 8, deal).over


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_loads_and_is_listed(tmp_path: Path, kind: BotKind) -> None:
    bot = load_bot(tmp_path, "my_bot", TEMPLATE, kind)
    assert (bot.name, bot.kind) == ("MyBot", kind)


@pytest.mark.parametrize(
    ("opens", "reason"),
    [
        (True, "node A (bluff_first_hand) answered None, not True or False"),
        (False, "node C (should_doubt) answered None, not True or False"),
    ],
)
def test_template_node_left_empty_is_named_r13(tmp_path: Path, opens: bool, reason: str) -> None:
    bot = load_bot(tmp_path, "my_bot", TEMPLATE)
    table = [*entrants("MrNoDoubt", "MrNoDoubt"), Entrant("mine", bot.cls)]
    if opens:
        table.reverse()
    with pytest.raises(BotError) as caught:
        play_game(deal_table(table, Rules(), DealStreams(1, 17), deal=17, number=5))
    error = caught.value
    assert (error.bot, error.seat, error.game, error.deal, error.reason) == ("mine", 0 if opens else 2, 5, 17, reason)
    assert error.turn == (1 if opens else 3)
    assert str(error) == f"mine (seat {error.seat}) failed in game 5, deal 17, turn {error.turn}: {reason}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_bot_plays_whole_games(tmp_path: Path, kind: BotKind) -> None:
    bot = load_bot(tmp_path, "example_bot", EXAMPLE, kind)
    assert bot.summary == "- First hand: always honest, maximize."
    whole_games(bot)


@pytest.mark.parametrize("stem", ["example", "example_bot", "ExampleBot"])
def test_bot_file_may_be_named_gemini_py(tmp_path: Path, stem: str) -> None:
    assert load_bot(tmp_path, stem, EXAMPLE, "llms").name == "ExampleBot"


@pytest.mark.parametrize("parts", [[STATE], [PLAY], [OBSERVE], [STATE, PLAY, OBSERVE]], ids=len)
def test_state_play_and_observe_work_in_a_bot(tmp_path: Path, parts: list[str]) -> None:
    whole_games(load_bot(tmp_path, "example", EXAMPLE + "".join(parts)))


def attribute_of(bot: Bot, name: str) -> list[object]:
    found: list[object] = getattr(bot.cls, name)
    return found


def test_observe_example_gets_every_kind_of_event(tmp_path: Path) -> None:
    bot = load_bot(tmp_path, "example", EVENT_IMPORTS + EXAMPLE + OBSERVE_ALL + HELPERS)
    whole_games(bot)
    assert set(attribute_of(bot, "sources")) == {"bluff", "honest", "known", "exhausted", "prior"}


def test_the_table_of_signals_can_be_computed_each_turn(tmp_path: Path) -> None:
    bot = load_bot(tmp_path, "example", EXAMPLE + PLAY + SIGNALS)
    whole_games(bot)
    rows = [row for row in attribute_of(bot, "signals") if isinstance(row, tuple)]
    dishonesty, doubting, _, about_to_win, opener, *_ = (set(column) for column in zip(*rows, strict=True))
    assert {0.0, 0.5, 1.0} <= dishonesty
    assert {0.0, 0.5} <= doubting
    assert about_to_win == {True, False}, "under `contested`, prev may have no cards (R9)"
    assert opener == {True, False}
