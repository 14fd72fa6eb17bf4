"""The description of Dubito for the harness."""

from collections.abc import Generator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from dubito.game import STATED, Bool, Game, HousePolicy, Lie, LieMark, Node, Player, house_contenders
from dubito.games.dubito.bot import NODES, FiveNodes, PlayerAI, five_questions, missing_nodes
from dubito.games.dubito.cards import JOKER, MAX_PLAY, TurnOutput
from dubito.games.dubito.engine import (
    MAX_PLAYERS,
    MIN_PLAYERS,
    RESULTS,
    Rules,
    State,
    classify_bluff,
    deal_game,
    last_play_is_dishonest,
)
from dubito.games.dubito.events import EVENTS, Event

if TYPE_CHECKING:
    from dubito.games.dubito.facts import DubitoFacts
    from dubito.games.dubito.rules import DubitoRules
    from dubito.games.dubito.words import DubitoWords
    from dubito.games.dubito.workshop import DubitoWorkshop


class DubitoGame(Game["DubitoRules", State, Event, TurnOutput]):
    name = "dubito"
    summary = "Dubito (Cheat, I Doubt It) for 3 to 8 players: play cards face down and claim a number, or doubt"
    seats = (MIN_PLAYERS, MAX_PLAYERS)
    lineup = "uniform"
    base = PlayerAI
    base_path = "bots.base.BotBase"
    fallback = "RandomBoi"
    chance_bot = "RandomBoi"
    turn_limit = "max_turns"
    nodes = tuple(Node(name, method, Bool(), STATED if name == "C" else None) for name, method in NODES.items())
    events = EVENTS
    results = RESULTS
    rules_version = 2
    deal_rules = ("jokers", "ranks", "copies")
    demo = {
        "games": 80,
        "table_sizes": [4],
        "bots": ["StefaBot", "UsualBot", "RandomBoi"],
        "contenders": house_contenders("sharp", "honest"),
    }

    def rules(self, **settings: Any) -> "DubitoRules":
        from dubito.games.dubito.rules import DubitoRules  # late, so that listing bots or games does not load pydantic

        return DubitoRules(**settings)

    def rules_of_run(self, stored: Mapping[str, Any]) -> Rules:
        return Rules(**stored)

    def seat_range(self, rules: Any) -> tuple[int, int]:
        seats: tuple[int, int] = rules.engine_rules.seats
        return seats

    def deal(self, rules: Any, seats: int, chance: Random) -> State:
        return deal_game(rules.engine_rules, seats, chance)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"hands": [list(hand.cards) for hand in state.hands]}

    def output_to_json(self, output: TurnOutput) -> list[Any]:
        return [output.doubt, output.number, output.cards]

    def output_from_json(self, value: Any) -> TurnOutput:
        return TurnOutput(*value)

    def walk(self, bot: Any, view: Any) -> Generator[str, Any, TurnOutput]:
        return five_questions(bot, view)

    def answer_in_turn(self, node: str, output: TurnOutput, view: Any, cards: Any) -> bool | None:
        if node == "C":
            return output.doubt
        if output.doubt:
            return None
        played, number = output.cards or (), output.number or view.current_number
        bluffs = any(card not in (number, JOKER) for card in played)
        if node in "AD":
            return bluffs
        return len(played) >= (MAX_PLAY if bluffs else min(MAX_PLAY, cards.count_all()[number]))

    def truth(self, state: State) -> bool | None:
        return last_play_is_dishonest(state.board, state.n_cards_played, state.number) if state.can_doubt else None

    def lie(self, state: State, output: TurnOutput) -> Lie | None:
        return classify_bluff(output.cards, output.number, state.number, state.hands[state.seat].counts)

    def lie_mark(self, state: State, output: TurnOutput) -> LieMark:
        is_lie = last_play_is_dishonest(state.board, state.n_cards_played, state.number) is True
        of = state.last_player if state.can_doubt else None
        hand = len(state.hands[state.seat].cards)
        return LieMark(len(state.board), len(output.cards or ()), of, is_lie, output.doubt, hand)

    def reference_bot(self, rules: Any) -> str:
        return "Sherlock" if rules.engine_rules.is_full_deck else ""  # it assumes 13 numbers, four times each

    def read_belief(self, bot: Any) -> float:
        belief: float = bot._bluffed()  # Sherlock has no public name for it, and its file is part of runs' identities
        return belief

    def missing(self, bot: type[Player]) -> list[str]:
        return missing_nodes(bot)

    def answers_nodes(self, bot: type[Player]) -> bool:
        return issubclass(bot, FiveNodes) and bot.play is FiveNodes.play

    def note_on(self, bot: type[Player], rules: Mapping[str, Any], settings: Mapping[str, Any]) -> str | None:
        return bot.describe(rules, settings) if issubclass(bot, PlayerAI) else None

    def must_tell(self, rules: Any) -> Sequence[str]:
        own = rules.engine_rules
        return () if own.is_full_deck and not own.duel else ("rule_text",)

    @property
    def words(self) -> "DubitoWords":
        from dubito.games.dubito.words import DubitoWords

        return DubitoWords(self)

    @property
    def facts(self) -> "DubitoFacts":
        from dubito.games.dubito.facts import DubitoFacts

        return DubitoFacts()

    @property
    def fakes(self) -> Mapping[str, HousePolicy]:
        from dubito.games.dubito.fake_models import MODELS

        return MODELS

    @property
    def workshop(self) -> "DubitoWorkshop":
        from dubito.games.dubito.workshop import DubitoWorkshop

        return DubitoWorkshop(self)


GAME: Final = DubitoGame()
