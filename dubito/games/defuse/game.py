"""The description of draw and defuse for the harness."""

from random import Random
from types import SimpleNamespace
from typing import Any

from dubito.errors import UsageError, one_line
from dubito.game import (
    Choice,
    Game,
    Habit,
    Measure,
    Node,
    Results,
    Whole,
    house_contenders,
    make_missing_check,
    no_rules,
)
from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import ACTS, GAME_COUNTS, SEAT_COUNTS, HandView, State, deal
from dubito.games.defuse.events import EVENTS


def _deal(rules: object, seats: int, rng: Random) -> State:
    if seats != 2:
        raise UsageError(f"draw and defuse needs 2 players, not {seats}")
    return deal(rng)


def _output_from_json(value: Any) -> str | int:
    if type(value) is int or (isinstance(value, str) and value in ACTS):
        return value
    raise UsageError(
        f"the record is damaged: a move of draw and defuse is {', '.join(ACTS)} or a whole number, not "
        f"{one_line(repr(value), 60)}"
    )


RESULTS = Results(
    buckets=("wins", "losses"),
    endings=("won", "lost"),
    bucket=lambda mark, capped: 1 - mark,  # a winner's mark is 1, and wins are the first bucket
    measures=(Measure("wins", "won", "Wins", (1, 0)),),  # 1 for wins, 0 for losses
    headline=("wins",),
    equal_share=lambda seats: {"wins": 1 / seats},
    game_counts=GAME_COUNTS,
    seat_counts=SEAT_COUNTS,
    scoreboard=("wins",),
    averaged=("turns",),
    habits=(  # ratios of two counts
        Habit("skips", "skips, % of turns", "skips", "skip", "turns"),
        Habit("bottoms", "draws from the bottom, % of turns", "bottoms", "bottom", "turns"),
        Habit("sees", "see cards per turn", "sees", "see", "turns", most=8),
        Habit("shuffles", "shuffles per turn", "shuffles", "shuffle", "turns", most=4),
        Habit("survives", "defused, % of bombs drawn", "survives", "defuse", "bombs"),
    ),
    charted=("skips", "bottoms", "survives"),
    meaning="A bot's score is the share of its games that it won.",
)

NODES = (Node("turn", "turn", Choice(ACTS)), Node("place", "defuse", Whole()))
GAME = Game(
    name="defuse",
    summary="Draw and defuse: two players and a bomb in the pile; peek, dodge, and keep a defuse card",
    rules=no_rules,
    seats=(2, 2),
    lineup="ordered_pairs",
    base=DefuseBot,
    base_path="dubito.games.defuse.bot.DefuseBot",
    fallback="Simple",
    nodes=NODES,
    events=EVENTS,
    results=RESULTS,
    deal=_deal,
    deal_to_json=lambda state: {"hands": [list(HandView(hand)) for hand in state.hands], "pile": list(state.pile)},
    output_to_json=lambda output: output,
    output_from_json=_output_from_json,
    package="dubito.games.defuse",
    rules_version=1,
    missing=make_missing_check(DefuseBot, NODES),
    kept_rules=SimpleNamespace,  # the game has no rules to set, so pydantic is not needed
    demo={"games": 60, "bots": ["Medium", "Scared", "Simple"], "contenders": house_contenders("careful", "random")},
    forfeits=True,
    forfeit_means="the other wins",
)
