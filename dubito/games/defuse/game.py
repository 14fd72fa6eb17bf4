"""The description of draw and defuse for the harness."""

from collections.abc import Mapping
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from dubito.errors import UsageError, one_line
from dubito.game import (
    Choice,
    Game,
    GameEvent,
    Habit,
    HousePolicy,
    Node,
    Results,
    Whole,
    house_contenders,
)
from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import ACTS, GAME_COUNTS, SEAT_COUNTS, HandView, State, deal
from dubito.games.defuse.events import EVENTS

if TYPE_CHECKING:
    from dubito.files import NoRules
    from dubito.games.defuse.facts import DefuseFacts
    from dubito.games.defuse.words import DefuseWords


RESULTS = Results(
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


class DefuseGame(Game["NoRules", State, GameEvent, str | int]):
    name = "defuse"
    summary = "Draw and defuse: two players and a bomb in the pile; peek, dodge, and keep a defuse card"
    seats = (2, 2)
    lineup = "ordered_pairs"
    base = DefuseBot
    fallback = "Simple"
    nodes = NODES
    events = EVENTS
    results = RESULTS
    forfeits = True
    forfeit_means = "the other wins"
    demo = {"games": 60, "bots": ["Medium", "Scared", "Simple"], "contenders": house_contenders("careful", "random")}

    def rules_of_run(self, stored: Mapping[str, Any]) -> SimpleNamespace:
        return SimpleNamespace(**stored)  # there are no rules to set, so pydantic is not needed

    def deal(self, rules: "NoRules", seats: int, chance: Random) -> State:
        if seats != 2:
            raise UsageError(f"draw and defuse needs 2 players, not {seats}")
        return deal(chance)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"hands": [list(HandView(hand)) for hand in state.hands], "pile": list(state.pile)}

    def output_from_json(self, value: Any) -> str | int:
        if type(value) is int or (isinstance(value, str) and value in ACTS):
            return value
        raise UsageError(
            f"the record is damaged: a move of draw and defuse is {', '.join(ACTS)} or a whole number, not "
            f"{one_line(repr(value), 60)}"
        )

    @property
    def words(self) -> "DefuseWords":
        from dubito.games.defuse.words import DefuseWords

        return DefuseWords(self)

    @property
    def facts(self) -> "DefuseFacts":
        from dubito.games.defuse.facts import DefuseFacts

        return DefuseFacts()

    @property
    def fakes(self) -> Mapping[str, HousePolicy]:
        from dubito.games.defuse.fake_models import MODELS

        return MODELS


GAME: Final = DefuseGame()
