"""Requirements for every bot in the project that answers without a model. The bots are found, not listed."""

import ast
import inspect
import json
import random
from collections.abc import Iterator
from random import Random
from typing import get_args

import pytest

from dubito.game import Player
from dubito.game.find import KINDS, Bot
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.games.dubito.bot import FiveNodes, PlayerAI
from dubito.games.dubito.cards import Hand, TurnData
from dubito.games.dubito.engine import MAX_PLAYERS, MIN_PLAYERS, Rules, State, WinRule, deal_table
from tests.bots.kit import NODES_A_TO_E, REGISTRY, REPO, Scripted, entrants, in_seat, play_out, run_python, story_of
from tests.conftest import in_gate

BOTS = sorted(
    name for name, bot in REGISTRY.bots.items() if not bot.cls.is_model and not bot.cls.rules_incompatibility(Rules())
)
RULES = [Rules(win_rule=rule) for rule in get_args(WinRule)]
SIZES = range(MIN_PLAYERS, MAX_PLAYERS + 1)
SEED = 20_000  # arbitrary; the tests hold for any seed


def seated(name: str, size: int, deal: int) -> list[Entrant]:
    """Return a table of this size with the bot in two seats and random opponents in the others."""
    draw = Random(f"{name} {size} {deal}")
    table = [Entrant(name, REGISTRY.bots[name].cls)] * 2
    for other in draw.choices(BOTS, k=size - 2):
        table.append(Entrant(other, REGISTRY.bots[other].cls))
    draw.shuffle(table)
    return table


@pytest.fixture(params=BOTS)
def bot(request: pytest.FixtureRequest) -> Bot:
    return REGISTRY.bots[request.param]


@pytest.fixture(params=RULES, ids=lambda rules: rules.win_rule)
def rules(request: pytest.FixtureRequest) -> Rules:
    found: Rules = request.param
    return found


def test_the_registry_finds_every_file_of_the_project() -> None:
    folders = [REPO / "bots", *REPO.glob("dubito/plugins/*/bots")]
    files = {file for folder in folders for kind in KINDS for file in (folder / kind).glob("*.py")}
    files = {file for file in files if file.name[0] != "_"}
    assert {bot.file for bot in REGISTRY.bots.values()} == files
    assert not REGISTRY.broken


@pytest.mark.parametrize("size", in_gate(SIZES, [8]))
def test_plays_whole_games_without_an_error(bot: Bot, rules: Rules, size: int) -> None:
    """R13: a BotError fails the test. A game ends when two players are left, or at the cap (R12)."""
    for deal in range(3):
        game = play_out(seated(bot.name, size, deal), rules, SEED, deal)
        assert game.over
        assert game.capped or sum(place is None for place in game.places) == 2


def test_same_seed_same_game(bot: Bot, rules: Rules) -> None:
    """No instance leaves state behind that affects another one, in the same game or a later one."""
    first = [story_of(seated(bot.name, 4, deal), rules, SEED, deal) for deal in range(2)]
    for deal in range(2, 4):
        play_out(seated(bot.name, 5, deal), rules, SEED + 1, deal)
    again = [story_of(seated(bot.name, 4, deal), rules, SEED, deal) for deal in reversed(range(2))]
    assert first == again[::-1]


def test_bot_uses_only_its_own_randomness(bot: Bot, rules: Rules) -> None:
    """R27: bots neither use nor change the global `random`."""
    table = seated(bot.name, 4, 0)
    random.seed(1)
    untouched = random.getstate()
    story = story_of(table, rules, SEED, 0)
    assert random.getstate() == untouched
    random.seed(2)
    assert story_of(table, rules, SEED, 0) == story
    assert bot.repeatable


A_GAME_OF_ALL = f"""
import json
from dubito.games.dubito.engine import Rules
from tests.bots.kit import entrants, story_of
print(json.dumps([story_of(entrants(name, *{BOTS[:3]}), Rules(), {SEED}, 1) for name in {BOTS}]))
"""


def test_same_game_in_another_process() -> None:
    out = run_python(A_GAME_OF_ALL, REPO, PYTHONHASHSEED="1")
    assert json.loads(out) == [story_of(entrants(name, *BOTS[:3]), Rules(), SEED, 1) for name in BOTS]


def turns(table: Table[State]) -> Iterator[tuple[PlayerAI, TurnData, list[Hand]]]:
    """Yield each turn of a game before it is played: the player, its view, and all hands."""
    game = table.state
    while not game.over:
        player = table.players[game.seat]
        assert isinstance(player, PlayerAI)
        p = game.view()
        yield player, p, game.hands
        turn = game.turns + game.free_turns + 1
        table.send_events(game.apply(player.play(p)), turn)


def a_game(bot: Bot, rules: Rules) -> Table[State]:
    return deal_table([Entrant(bot.name, bot.cls)] * 4, rules, DealStreams(SEED, 9), deal=9)


def test_a_turn_is_built_without_touching_any_hand(bot: Bot, rules: Rules) -> None:
    """R28: helpers build an output; only the engine moves cards."""
    built = 0
    for player, p, hands in turns(a_game(bot, rules)):
        before = [(list(hand.cards), list(hand.counts)) for hand in hands]
        output = player.play(p)
        assert [(hand.cards, hand.counts) for hand in hands] == before
        if output.cards is not None:
            assert all(output.cards is not hand.cards for hand in hands)
            built += 1
    assert built


def test_nodes_answer_exact_bools_and_draw_only_from_their_own_stream(bot: Bot, rules: Rules) -> None:
    """R13, R27: in any position. A draw from the framework's stream fails the test."""
    asked = 0
    for player, p, hands in turns(a_game(bot, rules)):
        if isinstance(player, FiveNodes):
            twin = in_seat(bot.cls, hands[player.id].cards, framework=Scripted())
            twin.rng = Random(p.board_cards)
            for node in "AB" if p.board_cards == 0 else "CDE":
                answer = getattr(twin, NODES_A_TO_E[node])(p)
                assert answer is True or answer is False
            asked += 1
    assert asked or not issubclass(bot.cls, FiveNodes)


@pytest.mark.parametrize("name", BOTS)
def test_bot_can_be_created_with_only_an_id(name: str) -> None:
    """R28: a config entry can be just the bot's name, since all settings have names and defaults."""
    bot = REGISTRY.bots[name]
    assert in_seat(bot.cls, (1, 2, 3)).id == 1
    if bot.cls.__init__ is Player.__init__:  # inherited, and without a signature if it is compiled
        return
    myself, seat, *settings = inspect.signature(bot.cls.__init__).parameters.values()
    assert (myself.name, seat.name) == ("self", "id")
    assert all(setting.default is not inspect.Parameter.empty for setting in settings)


@pytest.mark.parametrize("name", BOTS)
def test_prompt_states_its_purpose_and_origin(name: str) -> None:
    bot = REGISTRY.bots[name]
    assert bot.summary.endswith("."), "the first line of its docstring must be a sentence"
    assert len(bot.summary) <= 120
    assert isinstance(bot.cls.origin, str)
    assert bot.cls.origin.strip()
    assert bot.cls.origin != PlayerAI.origin


@pytest.mark.parametrize("name", BOTS)
def test_bot_is_the_class_named_after_its_file(name: str) -> None:
    """For example, stefa_bot.py contains StefaBot and no other class."""
    bot = REGISTRY.bots[name]
    tree = ast.parse(bot.file.read_text())
    assert [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] == [bot.name]
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in bot.name)
    assert bot.file.stem == words.strip("_")
