"""Compare random games in the engine and the reference state by state (R1-R12, R20-R23, R26)."""

from collections.abc import Callable, Sequence
from dataclasses import astuple
from functools import cache, partial
from itertools import product
from random import Random

import pytest

from dubito.game import GameEvent
from dubito.games.dubito.cards import NUMBERS, PlayerData, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, WinRule
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    PlayerWonEvent,
)
from tests.conftest import in_gate
from tests.engine import reference
from tests.engine.helpers import WIN_RULES, Deal, Setup, legal_outputs, new_game, output, position, random_output
from tests.engine.reference import Change, World

GAMES = 30  # per combination of win rule, number of players and jokers; a third of this in the gate


def describe_event(event: GameEvent) -> Change:
    """Return an event of the engine in the reference's form."""
    match event:
        case CardsPlayedEvent():
            return ("played", event.player_id, event.declared_number, event.n_cards)
        case DoubtResolvedEvent():
            facts = (tuple(fact) if isinstance(fact, list) else fact for fact in astuple(event))
            return ("doubted", *facts)
        case DiscardEvent():
            return ("discarded", event.player_id, event.card_number)
        case PlayerWonEvent():
            return ("won", event.player_id, event.position)
        case _:
            raise AssertionError(f"the engine does not make {event}")


def as_move(output: TurnOutput) -> reference.Move:
    return None if output.cards is None else (tuple(output.cards), output.number)


def person(data: PlayerData) -> tuple[int, ...]:
    """Return a player's data in the reference's order."""
    return (
        data.id,
        data.n_cards,
        data.turns,
        data.not_first_turns,
        data.doubts,
        data.honest_times,
        data.dishonest_times,
    )


def expected_turn_data(world: World) -> TurnData:
    """Compute what the seat to move should see, from the reference."""

    def data(seat: int) -> PlayerData:
        return PlayerData(*reference.person(world, seat))

    seat, pile = world.mover, world.pile
    return TurnData(
        board_cards=sum(len(play.cards) for play in pile),
        playing_cards=CardList(number for number in NUMBERS if number not in world.sets),
        current_number=world.claim,
        n_cards_played=len(pile[-1].cards) if pile else 0,
        streak=len(pile),
        n_players=len(reference.seated(world)),
        my_n_cards=len(world.hands[seat]),
        me=data(seat),
        prev=data(reference.neighbour(world, seat, -1)),
        next=data(reference.neighbour(world, seat, 1)),
        can_doubt=reference.may_doubt(world),
        last_player_id=pile[-1].seat if pile else None,
    )


def compare(game: State, world: World) -> None:
    """Check that both engines agree on the whole state between two turns."""
    assert [sorted(held.cards) for held in game.hands] == [sorted(held) for held in world.hands]
    assert game.board == [card for play in world.pile for card in play.cards]
    assert (game.over, game.capped) == (world.end != "", world.end == "capped")
    assert game.turns == sum(not turn.free for turn in world.log)
    assert game.free_turns == sum(turn.free for turn in world.log)
    for place, seat in enumerate(world.winners, start=1):
        assert game.places[seat] == place
    assert game.places.count(None) == len(reference.seated(world)) == game.n_players
    if not game.over:
        assert game.seat == world.mover
        assert game.view() == expected_turn_data(world)


def compare_end(game: State, world: World) -> None:
    """Check that both engines agree on a finished game."""
    for seat in range(len(world.hands)):
        counts = game.counts[seat]
        assert reference.counted(world, seat) == (
            counts.play_turns,
            counts.cards_played,
            counts.bluffs,
            counts.successful_doubts,
        )
        assert reference.person(world, seat) == person(game.counts[seat].public())
        assert game.result(seat) == reference.outcome(world, seat)


def sights(before: World, changes: Sequence[Change], now: World) -> set[str]:
    """Return the rare events in this turn."""
    kinds = [event[0] for event in changes]
    caught = changes[0][0] == "doubted" and changes[0][3] is True
    losers = {event[1] for event in changes if event[0] == "discarded"}
    early = len(before.log) > 1 and {"won"} <= set(kinds)
    found = {
        "two sets at once": kinds.count("discarded") > 1,
        "two wins at once": kinds.count("won") > 1,
        "out by discarding after a wrong doubt": not caught and before.mover in losers & set(now.winners),
        "free turn after the caught player left": caught and "won" in kinds and now.free,
        "caught player leaves and the game is over": caught and "won" in kinds and now.end == "over",
        "pending winner caught": before.pending is not None and caught,
        "pending winner caught leaves by discarding": caught and before.pending in losers & set(now.winners),
        "two leave in a row": early and before.log[-1].seat in before.winners and changes[0][0] == "played",
        "a play ends the game": changes[0][0] == "played" and now.end == "over",
        "loser without cards": now.end == "over" and any(not now.hands[seat] for seat in reference.seated(now)),
        "pending at the cap": now.end == "capped" and now.pending is not None,
        "free turn at the cap": now.end == "capped" and before.free,
        "win kept at the cap": now.end == "capped" and now.winners != (),
        "board without anyone to doubt": bool(now.pile) and now.end == "" and not reference.may_doubt(now),
    }
    return {name for name, seen in found.items() if seen}


def play_both(game: State, choose: Callable[[State], TurnOutput], every_way: bool) -> set[str]:
    """Play a game in both engines, compare them after each turn, and return the rare events."""
    rules, seen = game.rules, set[str]()
    hands = tuple(tuple(held.cards) for held in game.hands)
    world = World(rules.win_rule == "contested", rules.max_turns, hands)
    while not game.over:
        compare(game, world)
        if every_way:
            assert {as_move(way) for way in legal_outputs(game)} == set(reference.moves(world))
        before, output = world, choose(game)
        world, changes = reference.after(before, as_move(output))
        assert [describe_event(event) for event in game.apply(output)] == changes
        seen |= sights(before, changes, world)
    compare(game, world)
    compare_end(game, world)
    return seen


@pytest.fixture
def games(at_length: bool) -> int:
    return GAMES if at_length else GAMES // 3


@cache
def play_all(win_rule: WinRule, players: int, jokers: int, games: int) -> frozenset[str]:
    """Play all random games of one combination and return the rare events."""
    seen = set[str]()
    for number in range(games):
        rng = Random(f"{win_rule} {players} {jokers} {number}")
        deal: Deal = ("clumped", "short", "clumped", "full")[number % 4]
        turns = rng.randint(20, 120) if deal == "full" else rng.choice((rng.randint(1, 12), 60, 250))
        rules = Rules(jokers=jokers, win_rule=win_rule, max_turns=turns)
        temper = rng.choice((0.05, 0.25, 0.6)), rng.choice((0.1, 0.5, 0.9))
        setup = Setup(rng.getrandbits(32), players, rules, deal, *temper)
        choose = partial(random_output, rng=rng, setup=setup)
        seen |= play_both(new_game(setup), choose, every_way=number % 4 == 1)
    return frozenset(seen)


@pytest.mark.parametrize(
    ("win_rule", "players", "jokers"),
    in_gate(
        list(product(WIN_RULES, range(3, 9), range(3))),
        {(rule, 3 + n, n % 3) for rule in WIN_RULES for n in range(6)},
    ),
)
def test_engine_and_reference_agree_on_random_games(win_rule: WinRule, players: int, jokers: int, games: int) -> None:
    assert play_all(win_rule, players, jokers, games)


# Openings that random games almost never reach; the rest of each game is random.
LINES: dict[str, list[tuple[str, str]]] = {
    "A2/AAA/34/56": [("A as 2", "A"), ("A as 2", "AAA")],
    "A2/AAA/34": [("A as 2", "A"), ("A as 2", "AAA")],
    "A*/AAA/34/56/78": [("A* as 2", "AA"), ("* as 2", "AAA")],
    "A/AAA/34/56": [("A as A", "doubt"), ("A as 2", "doubt")],
    "A/AAA/34": [("A as A", "doubt"), ("A as 2", "AAA")],
    "*/AAA/A4/56/78": [("* as A", "AAA"), ("* as 2", "A")],
    "A2/AAA222/34/56": [("A2 as 2", "A"), ("A2 as 3", "22")],
}


@cache
def play_lines(win_rule: WinRule, hands: str) -> frozenset[str]:
    """Play all lines from one position, each continued with a doubt and with some random endings."""
    seen = set[str]()
    for line, turns, seed in product(LINES[hands], (3, 4, 40), range(5)):
        rng, moves = Random(f"{line} {turns} {seed}"), [output(move) for move in (*line, "doubt")]
        setup = Setup(seed, len(hands), Rules(), "full", doubt=0.3, honest=0.5)

        def choose(game: State, moves: list[TurnOutput] = moves, rng: Random = rng, setup: Setup = setup) -> TurnOutput:
            legal = bool(moves) and (game.can_doubt or not moves[0].doubt)
            return moves.pop(0) if legal else random_output(game, rng, setup)

        seen |= play_both(position(hands, win_rule, turns), choose, every_way=True)
    return frozenset(seen)


@pytest.mark.parametrize("hands", LINES)
@pytest.mark.parametrize("win_rule", WIN_RULES)
def test_engine_and_reference_agree_on_rare_lines(win_rule: WinRule, hands: str) -> None:
    assert play_lines(win_rule, hands)


COMMON = {
    "a play ends the game",
    "two sets at once",
    "out by discarding after a wrong doubt",
    "free turn after the caught player left",
    "caught player leaves and the game is over",
    "free turn at the cap",
    "win kept at the cap",
}
RARE: dict[WinRule, set[str]] = {
    "immediate": {"two leave in a row", "board without anyone to doubt"},
    "contested": {
        "two wins at once",
        "pending winner caught",
        "pending winner caught leaves by discarding",
        "loser without cards",
        "pending at the cap",
    },
}


@pytest.mark.parametrize("win_rule", WIN_RULES)
def test_compared_games_cover_all_rare_events(win_rule: WinRule, games: int) -> None:
    seen = set[str]().union(*(play_all(win_rule, *table, games) for table in product(range(3, 9), range(3))))
    seen.update(*(play_lines(win_rule, hands) for hands in LINES))
    assert seen == COMMON | RARE[win_rule]
