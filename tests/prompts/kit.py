"""Helpers: a player that records its questions as positions, and games with many of them."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import dubito
from dubito.game.events import Listener
from dubito.game.find import find_bots
from dubito.game.log import Log, Position
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.games.dubito.bot import FiveNodes
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.engine import MAX_PLAYERS, MIN_PLAYERS, Rules, State, deal_hands, deal_table
from dubito.games.dubito.game import GAME
from dubito.llm.prompts import Prompt, load_prompt, prompt_names
from tests.conftest import in_gate

REPO = Path(dubito.__file__).resolve().parent.parent
REGISTRY = find_bots(REPO)
ARMS = (
    "beliefs",
    "disguised",
    "hud",
    "may-deceive",
    "must-not-lie",
    "others-honest",
    "plain-de",
    "plain-it",
    "plan-de",
    "plan-it",
)  # variants of `plain`; see test_arms.py
SIZES = range(MIN_PLAYERS, MAX_PLAYERS + 1)
RULES = [Rules(), Rules(win_rule="contested"), Rules(jokers=0)]
TABLES = in_gate(  # the gate uses each size once and each rule twice
    [(rules, size) for rules in RULES for size in SIZES], [(RULES[size % len(RULES)], size) for size in SIZES]
)

Decide = Callable[[Position, Random], bool]


@cache
def prompt(name: str) -> Prompt:
    return load_prompt(name, REPO)


class Prompts(Mapping[str, Prompt]):
    """Some of the project's prompts, each loaded when a test asks for it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Prompt:
        return prompt(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


PROMPTS = Prompts(*(name for name in prompt_names(REPO) if name not in ARMS))
PLAIN = PROMPTS["plain"]


class Asked(FiveNodes):
    """Answers every question with a function of its position, and records the positions of its turn."""

    decide: Decide

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.asked: list[Position] = []

    def play(self, p: TurnData) -> TurnOutput:
        self.asked = []
        return super().play(p)

    def _answer(self, node: str, p: TurnData) -> bool:
        return self.decide(self.asked[-1], self.rng)

    def bluff_first_hand(self, p: TurnData) -> bool:
        return self._answer("A", p)

    def maximize_first_hand(self, p: TurnData) -> bool:
        return self._answer("B", p)

    def should_doubt(self, p: TurnData) -> bool:
        return self._answer("C", p)

    def bluff_regular(self, p: TurnData) -> bool:
        return self._answer("D", p)

    def maximize_regular(self, p: TurnData) -> bool:
        return self._answer("E", p)


class Questions(Listener):
    """Records the positions of a player's questions."""

    def __init__(self, player: Asked, rules: Any, log: Log) -> None:
        self.player, self.rules, self.log = player, rules, log

    def note_question(self, node: str) -> None:
        self.player.asked.append(Position(self.rules, node, self.log.of(self.player.id)))


def asked_bot(decide: Decide) -> type[Asked]:
    return type("Asked", (Asked,), {"decide": staticmethod(decide)})


def record_questions(table: Table, rules: Rules) -> None:
    """Let players that are `Asked` know the positions of their questions."""
    log = table.keep_log()
    for player in table.players:
        if isinstance(player, Asked):
            player.report_answers(Questions(player, GAME.rules(**rules.stored_form()), log))


def by_temper(position: Position, chance: Random) -> bool:
    return chance.random() < {"A": 0.3, "B": 0.7, "C": 0.2, "D": 0.3, "E": 0.7}[position.node]


def turns(rules: Rules, size: int, deal: int, decide: Decide = by_temper) -> Iterator[tuple[State, list[Position]]]:
    """Yield the game before each turn, with the questions that the turn will ask.

    The questions come from a second table, which is one turn ahead.
    """
    streams = DealStreams(77, deal)
    bot = asked_bot(decide)
    ahead = deal_table([Entrant(f"p{seat}", bot) for seat in range(size)], rules, streams, deal=deal)
    record_questions(ahead, rules)
    game = State(rules, deal_hands(streams.deck(), size, rules))
    while not ahead.state.over:
        player = ahead.players[ahead.state.seat]
        assert isinstance(player, bot)
        output, _ = step(ahead)
        yield game, player.asked
        game.apply(output)
