"""Helpers for the bot tests: scripted draws, a seated bot, a made-up turn, and a whole game."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import cast

import dubito
from dubito.game import Player, Seating, make_player
from dubito.game.find import Bot, BotKind, find_bots
from dubito.game.streams import DealStreams, SeatStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import Hand, HandView, PlayerData, TurnData
from dubito.games.dubito.engine import Rules, State, deal_table
from dubito.games.dubito.events import CardList
from dubito.games.dubito.sentences import ending, sentence

REPO = Path(dubito.__file__).resolve().parent.parent
REGISTRY = find_bots(REPO)
NUMBER = 7  # the current number in every made-up round
HIGHEST_DRAW = 1 - 2**-53

NODES_A_TO_E = {
    "A": "bluff_first_hand",
    "B": "maximize_first_hand",
    "C": "should_doubt",
    "D": "bluff_regular",
    "E": "maximize_regular",
}


class Scripted(Random):
    """A random generator that draws the given values through any of its methods. One draw too many fails the test."""

    def __new__(cls, *values: float) -> "Scripted":
        return super().__new__(cls)

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def random(self) -> float:
        assert self.values, "the test provides too few draws"
        return self.values.pop(0)


def in_seat(
    cls: type[Player],
    hand: Sequence[int],
    settings: Mapping[str, object] | None = None,
    *,
    framework: Random | None = None,
) -> PlayerAI:
    streams = SeatStreams(bytes(24), Scripted(), Scripted() if framework is None else framework)
    return make_player(
        cast(type[PlayerAI], cls), Seating(1, 0, 0, streams, partial(HandView, Hand(hand))), settings or {}
    )


def answer(player: PlayerAI, node: str, p: TurnData, *draws: float) -> bool:
    player.rng = Scripted(*draws)
    answer: bool = getattr(player, NODES_A_TO_E[node])(p)
    return answer


def chance(player: PlayerAI, node: str, p: TurnData, *first: float) -> float:
    """Return a bot's probability of yes at a node: 0.0, 1.0, or the threshold of the draw after the `first` ones.

    Later draws are so high that no probability below 1 leads to a yes.
    """

    def says_yes(draw: float) -> bool:
        return answer(player, node, p, *first, draw, HIGHEST_DRAW, HIGHEST_DRAW)

    low, high = 0.0, HIGHEST_DRAW
    if not says_yes(low):
        return 0.0
    if says_yes(high):
        return 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if says_yes(middle) else (low, middle)
    return high


def neighbour(
    id: int,
    n_cards: int = 9,
    *,
    honest: int = 0,
    dishonest: int = 0,
    doubts: int = 0,
    not_first_turns: int = 0,
) -> PlayerData:
    return PlayerData(id, n_cards, 3 + not_first_turns, not_first_turns, doubts, honest, dishonest)


def opening(hand: Sequence[int], *, prev: PlayerData | None = None, next: PlayerData | None = None) -> TurnData:
    return _turn(hand, prev, next, board=0, played=0, can_doubt=False)


def regular(
    hand: Sequence[int],
    *,
    played: int = 1,
    older: int = 4,
    prev: PlayerData | None = None,
    next: PlayerData | None = None,
    can_doubt: bool = True,
) -> TurnData:
    return _turn(hand, prev, next, board=older + played, played=played, can_doubt=can_doubt)


def _turn(
    hand: Sequence[int],
    prev: PlayerData | None,
    next: PlayerData | None,
    *,
    board: int,
    played: int,
    can_doubt: bool,
) -> TurnData:
    return TurnData(
        board_cards=board,
        playing_cards=CardList(range(1, 14)),
        current_number=NUMBER if board else 0,
        n_cards_played=played,
        streak=2 if board > played else min(board, 1),
        n_players=3,
        my_n_cards=len(hand),
        me=neighbour(1, len(hand)),
        prev=prev or neighbour(0),
        next=next or neighbour(2),
        can_doubt=can_doubt,
        last_player_id=0 if board else None,
    )


def write_bot(folder: Path, stem: str, source: str, kind: BotKind = "manual") -> Path:
    """Write a bot file into this working directory."""
    file = folder / "bots" / kind / f"{stem}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file


def load_bot(folder: Path, stem: str, source: str, kind: BotKind = "manual") -> Bot:
    """Write a bot file and find the bot through the registry."""
    file = write_bot(folder, stem, source, kind)
    registry = find_bots(folder)
    assert not registry.broken, registry.broken
    return next(bot for bot in registry.bots.values() if bot.file == file)


def entrants(*names: str) -> list[Entrant]:
    return [Entrant(name, REGISTRY.bots[name].cls) for name in names]


def story_of(table: Sequence[Entrant], rules: Rules, seed: int, deal: int) -> list[str]:
    """Play a whole game and return its events, one per line. A BotError fails the test."""
    sitting = deal_table(table, rules, DealStreams(seed, deal), deal=deal)
    story = []
    while not sitting.state.over:
        _, events = step(sitting, announce=True)
        story += [sentence(event) for event in events]
    return [*story, ending(sitting.state)]


def play_out(table: Sequence[Entrant], rules: Rules, seed: int, deal: int) -> State:
    sitting = deal_table(table, rules, DealStreams(seed, deal), deal=deal)
    while not sitting.state.over:
        step(sitting)
    game: State = sitting.state
    return game


def run_python(code: str, cwd: Path, **environment: str) -> str:
    """Run the code in a new process and return its output. The working directory comes first on the import path."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(REPO), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
