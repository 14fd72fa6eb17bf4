"""Bots of the source project's 2026 version run unchanged."""

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.game import Seating, make_player, seat_random
from dubito.game.find import find_bots
from dubito.game.streams import DealStreams
from dubito.games.dubito.cards import Hand, HandView
from dubito.plugins.source import interface
from dubito.plugins.source.plugin import READER
from tests.bots.kit import Scripted, opening, regular, write_bot
from tests.cli.kit import REPO, Shell

HAND = (1, 1, 5, 8, 9, 9)

WHOLE_TURNS = '''
import random as dice
from random import choice
from collections import Counter

from bots.base import BotBase
from dubito.game_data import CardsPlayedEvent, GameStartEvent, TurnData, TurnOutput, turns_count


class WholeTurnsBot(BotBase):
    """Takes whole turns, and checks what it is given."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.mood = dice.random()
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.turns = 0

    def check(self, p: TurnData) -> None:
        start = p.history[0]
        assert isinstance(start, GameStartEvent) and start.player_ids == sorted(start.initial_card_counts)
        assert p.my_cards == self.cards.hand == sorted(self.cards.hand)
        assert p.player_card_counts[p.my_player_id] == len(p.my_cards)
        assert len(p.player_card_counts) in (p.n_players, p.n_players - 1)
        played = [event for event in p.history if isinstance(event, CardsPlayedEvent)]
        assert not p.board_cards or played[-1].n_cards == p.n_cards_played
        assert turns_count(self.id, p.history) == self.turns
        self.turns += 1

    def play_first_turn(self, p):
        self.check(p)
        number, held = Counter(card for card in self.cards.hand if card).most_common(1)[0] if any(
            self.cards.hand
        ) else (p.playing_cards[0], 0)
        return TurnOutput(False, number, self.cards.pick_idx(list(range(min(3, len(self.cards.hand))))))

    def play_regular_turn(self, p):
        self.check(p)
        if self.mood < 0.5 or choice([True, False]):
            return TurnOutput(doubt=True, number=None, cards=None)
        return TurnOutput(doubt=False, number=p.current_number, cards=self.cards.pick_random(2))

    def bluff_regular(self, p):
        return False

    def maximize_regular(self, p):
        return True
'''
NODES = '''
import random

from bots.base import BotBase


class NodesBot(BotBase):
    """Answers the nodes, and updates itself in play."""

    def play(self, input_player):
        self.risk = input_player.player_card_counts.get(input_player.prev_player_id, 0) / 10
        return super().play(input_player)

    def bluff_first_hand(self, p): return random.random() < self.risk
    def maximize_first_hand(self, p): return random.choice([True, False])
    def should_doubt(self, p): return not self.prev_player_started_turn(p) and random.random() < self.risk
    def bluff_regular(self, p): return random.randint(0, 1) == 0
    def maximize_regular(self, p): return False
'''


@pytest.fixture
def home(shell: Shell) -> Shell:
    folder = shell.folder / "bots" / "manual"
    folder.mkdir(parents=True)
    (folder / "whole_turns.py").write_text(WHOLE_TURNS)
    (folder / "nodes_bot.py").write_text(NODES)
    return shell


def test_source_bots_play_and_are_repeatable(home: Shell) -> None:
    digests = []
    for workers in ("1", "2"):
        words = ("--games", "60", "--jokers", "2", "--workers", workers, "--output", f"r{workers}", "--quiet")
        ran = home("run", "--bots", "WholeTurnsBot,NodesBot,StefaBot,MrDoubt", *words)
        assert ran.code == 0, ran.err
        replayed = home("replay", f"r{workers}", "--quiet")
        assert replayed.out.startswith("identical: 60 games")
        digests += [line.split()[2] for line in replayed.out.splitlines() if line.startswith("results digest: ")]
    assert len(digests) == 2
    assert len({*digests}) == 1


def test_source_bots_are_listed_with_their_interface(home: Shell) -> None:
    listed = home("bots").out
    for name in ("WholeTurnsBot", "NodesBot"):
        (line,) = [line for line in listed.splitlines() if line.startswith(name)]
        assert "(source interface of 2026)" in line
        assert "not repeatable" not in line


def test_our_bots_are_not_mistaken_for_source_bots() -> None:
    files = [*REPO.glob("bots/**/*.py"), *REPO.glob("dubito/plugins/*/bots/**/*.py")]
    assert files
    assert [file for file in files if READER.convert_source(file.read_bytes())] == []


@pytest.mark.parametrize(
    ("code", "is_converted"),
    [
        ("from bots.base import BotBase\ndef f(p): return p.history", True),
        ("from bots.base import BotBase\nclass A(BotBase):\n  def play_regular_turn(self, p): pass", True),
        ("from bots.base import BotBase\nfrom dubito.game_data import honest_times", True),
        ("from bots.base import BotBase\nfrom random import random", False),
        ("from bots.base import BotBase\nfrom dubito.game_data import turns_count\ndef f(self): self.rng", False),
        ("from bots.base import BotBase\ndef f(p): return p.prev.honest_times", False),
        ("from bots.base import BotBase\nclass A(BotBase):\n  def bluff_regular(self, p): return True", False),
        ("import random\nfrom dubito.game_data import TurnData\ndef f(p): return p.history", False),
    ],
)
def test_interface_is_recognized_by_what_a_file_uses(code: str, is_converted: bool) -> None:
    assert (READER.convert_source(code.encode()) is not None) is is_converted


DRAWING = """
import random
from random import Random, choice
from bots.base import BotBase

BotBase_at_import = random.random()


class Drawing(BotBase):
    def __init__(self, id):
        super().__init__(id)
        self.first = random.random()

    def bluff_first_hand(self, p): return random.random() < 0.5
    def maximize_first_hand(self, p): return choice([True, False])
    def should_doubt(self, p): return Random().random() < 0.5
    def bluff_regular(self, p): return self.flip()
    def maximize_regular(self, p): return True
    def flip(self): return random.getrandbits(1) == 1


class Other(BotBase):
    def bluff_first_hand(self, p): return self.all_equal() or random.random() < 0.5
    def should_doubt(self, p): return random.random() < 0.5
    def bluff_regular(self, p): return False
"""


def test_module_random_draws_from_the_seats_stream(tmp_path: Path) -> None:
    write_bot(tmp_path, "drawing", DRAWING)
    bot = find_bots(tmp_path).find("Drawing")
    assert bot.repeatable
    player: Any = make_player(bot.cls, Seating(0, 0, 0, DealStreams(0, 0).seat(0), partial(HandView, Hand(HAND))), {})
    assert player.first == DealStreams(0, 0).seat(0).bot.random()
    for draw, answer in ((0.4, True), (0.6, False)):
        player.rng = Scripted(draw)
        assert player.bluff_first_hand(opening(HAND)) is answer
    answers = set()
    for seed in range(20):
        seen = []
        for _ in range(2):
            player.rng = Random(seed)
            seen.append((player.should_doubt(regular(HAND)), player.bluff_regular(regular(HAND))))
        assert seen[0] == seen[1]
        answers |= {*seen}
    assert len(answers) == 4


def test_several_drawing_bots_of_a_file_are_repeatable(home: Shell) -> None:
    (home.folder / "bots" / "manual" / "several.py").write_text(DRAWING)
    words = ("--bots", "Drawing,Other,StefaBot", "--games", "60", "--quiet", "--no-report")
    digests = []
    for workers in ("1", "2"):
        ran = home("run", *words, "--workers", workers, "--output", f"s{workers}")
        assert (ran.code, ran.err) == (0, "")
        digests.append(home("replay", f"s{workers}", "--quiet").out.split("results digest: ")[1].split()[0])
    assert digests[0] == digests[1]


def test_imports_keep_their_names() -> None:
    code = (
        b"import os, random as dice\nfrom random import choice as pick\nfrom bots.base import BotBase as Base\n"
        b"from dubito.game_data import honest_times"
    )
    tree = READER.convert_source(code)
    assert tree is not None
    names: dict[str, object] = {}
    exec(compile(seat_random.redirect_random(tree), "bot.py", "exec"), names)  # noqa: S102
    assert names["dice"] is seat_random.random
    assert names["Base"] is interface.BotBase
    assert "os" in names
    assert callable(names["pick"])


def test_picks_take_cards_from_the_hand() -> None:
    hand = interface.Hand([5, 0, 5, 2, 9])
    assert hand.pick_most() == [5, 5]
    assert hand.pick_idx([0, 2]) == [0, 9]
    assert hand.pick(2, 1) == [2]
    assert hand.hand == []
    with pytest.raises(ValueError, match="exceeds"):
        hand.pick(2, 1)


def test_converted_file_keeps_its_line_numbers(home: Shell) -> None:
    file = home.folder / "bots" / "manual" / "nodes_bot.py"
    file.write_text(NODES.replace("random.randint(0, 1) == 0", "1 / 0"))
    line = next(number for number, text in enumerate(NODES.splitlines(), 1) if "bluff_regular" in text)
    ended = home("run", "--bots", "NodesBot,StefaBot,MrNoDoubt", "--games", "20", "--quiet")
    assert ended.code != 0
    assert f"nodes_bot.py:{line}" in ended.err.replace(", line ", ":")


def test_doubt_that_the_rules_forbid_becomes_a_play(home: Shell) -> None:
    """Here a winner's last cards must not be doubted. A bot that always doubts continues without an error."""
    file = home.folder / "bots" / "manual" / "nodes_bot.py"
    always = "def should_doubt(self, p): return True\n    def _old"
    file.write_text(NODES.replace("def should_doubt", always))
    ended = home("run", "--bots", "NodesBot,JustPutCards", "--games", "80", "--table-sizes", "5", "--quiet")
    assert (ended.code, ended.err) == (0, "")
