"""The description of Dubito for the harness."""

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from dubito.game import STATED, Bool, Game, LieMark, Node, house_contenders
from dubito.games.dubito.bot import NODES, FiveNodes, PlayerAI, five_questions, missing_nodes
from dubito.games.dubito.cards import COPIES, TurnOutput
from dubito.games.dubito.engine import (
    MAX_JOKERS,
    MAX_PLAYERS,
    MIN_COPIES,
    MIN_PLAYERS,
    MIN_RANKS,
    RESULTS,
    Rules,
    State,
    WinRule,
    classify_bluff,
    deal_game,
    last_play_is_dishonest,
)
from dubito.games.dubito.events import EVENTS

if TYPE_CHECKING:
    from pydantic import BaseModel


@cache
def _rules_of_a_config() -> "type[BaseModel]":
    """Return the config model of `rules`, with the defaults of `Rules`."""
    from pydantic import Field, model_serializer  # imported late, so that listing bots or games does not load pydantic

    from dubito.files import CheckedModel

    usual = Rules()

    class DubitoRules(CheckedModel):
        jokers: int = Field(default=usual.jokers, ge=0, le=MAX_JOKERS, description="Jokers in the deck, 0 to 2.")
        win_rule: WinRule = Field(
            default=usual.win_rule, description="When the last card wins: at once, or once undoubted."
        )
        max_turns: int = Field(default=usual.max_turns, ge=1, description="Turns after which a game stops.")
        ranks: int = Field(
            default=usual.ranks, ge=MIN_RANKS, le=usual.ranks, description="Variant: numbers in the deck, 2 to 13."
        )
        copies: int = Field(
            default=usual.copies, ge=MIN_COPIES, le=COPIES, description="Variant: cards of each number, 2 to 4."
        )
        duel: bool = Field(default=usual.duel, description="Variant: two seats; the first out wins.")

        @model_serializer
        def stored_form(self) -> dict[str, Any]:
            return self.engine_rules.stored_form()

        @cached_property
        def engine_rules(self) -> Rules:
            return Rules(**dict(self))

    return DubitoRules


def _lie_mark(state: State, output: TurnOutput) -> LieMark:
    is_lie = last_play_is_dishonest(state.board, state.n_cards_played, state.number) is True
    of = state.last_player if state.can_doubt else None
    return LieMark(len(state.board), len(output.cards or ()), of, is_lie, output.doubt)


GAME: Final = Game(
    name="dubito",
    summary="Dubito (Cheat, I Doubt It) for 3 to 8 players: play cards face down and claim a number, or doubt",
    rules=lambda **said: _rules_of_a_config()(**said),
    seats=(MIN_PLAYERS, MAX_PLAYERS),
    seats_of=lambda rules: rules.engine_rules.seats,
    lineup="uniform",
    base=PlayerAI,
    base_path="bots.base.BotBase",
    fallback="RandomBoi",
    nodes=tuple(Node(name, method, Bool(), STATED if name == "C" else None) for name, method in NODES.items()),
    events=EVENTS,
    results=RESULTS,
    deal=lambda rules, seats, deck: deal_game(rules.engine_rules, seats, deck),
    deal_to_json=lambda state: {"hands": [list(hand.cards) for hand in state.hands]},
    output_to_json=lambda output: [output.doubt, output.number, output.cards],
    output_from_json=lambda plain: TurnOutput(*plain),
    walk=five_questions,
    package=__package__,
    rules_version=2,
    truth=lambda state: (
        last_play_is_dishonest(state.board, state.n_cards_played, state.number) if state.can_doubt else None
    ),
    lie=lambda state, output: classify_bluff(output.cards, output.number, state.number, state.hands[state.seat].counts),
    lie_mark=_lie_mark,
    missing=missing_nodes,
    must_tell=lambda rules: () if rules.engine_rules.is_default else ("rule_text",),
    deal_rules=("jokers", "ranks", "copies"),
    kept_rules=Rules,
    demo={
        "games": 80,
        "table_sizes": [4],
        "bots": ["StefaBot", "UsualBot", "RandomBoi"],
        "contenders": house_contenders("sharp", "honest"),
    },
    said_of=lambda cls, rules, settings: (
        describe(rules, settings) if (describe := getattr(cls, "describe", None)) else None
    ),
    answers_nodes=lambda cls: issubclass(cls, FiveNodes) and cls.play is FiveNodes.play,
)
