"""A prompt tells nothing that its seat cannot know: neither cards that it has not seen, nor names."""

from random import Random

import pytest

from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.engine import Rules, deal_hands, deal_table
from dubito.games.dubito.facts import facts
from tests.prompts.kit import PROMPTS, RULES, TABLES, asked_bot, by_temper
from tests.prompts.worlds import Move, World, questions, twin


def new_world(rules: Rules, size: int, seed: int) -> World:
    """A dealt game of physical cards."""
    hands = deal_hands(Random(f"deal {seed} {size}"), size, rules)
    values = [card for hand in hands for card in hand.cards]
    numbers = iter(range(len(values)))
    return World(rules, [[next(numbers) for _ in hand.cards] for hand in hands], values)


def random_move(world: World, chance: Random) -> Move:
    """A legal move: a doubt now and then, honest cards if there are any, else what comes."""
    game = world.game
    if game.can_doubt and chance.random() < 0.2:
        return True, None, ()
    held = game.hands[game.seat].cards
    number = game.number or chance.choice(held) or 7
    honest = [card for card in held if card in (0, number)]
    pool = honest if honest and chance.random() < 0.7 else held
    cards = chance.sample(pool, chance.randint(1, min(3, len(pool))))
    return False, None if game.number else number, world.choose(game.seat, cards)


@pytest.mark.parametrize(("rules", "size"), TABLES, ids=str)
def test_worlds_with_other_unseen_cards_render_the_same_bytes(rules: Rules, size: int) -> None:
    """At every decision of every seat of a whole game."""
    chance = Random(f"moves {size} {rules}")
    world = new_world(rules, size, 1)
    decisions = different = 0
    while not world.game.over:
        other = next((found for _ in range(3) if (found := twin(world, chance)) is not None), None)
        for node, answers in questions(world.game):
            decisions += 1
            if other is None or other.values == world.values:
                continue
            different += 1
            here, there = world.position(node, answers), other.position(node, answers)
            assert facts(here) == facts(there)
            for prompt in PROMPTS.values():
                assert prompt.render(here) == prompt.render(there)
        world.move(random_move(world, chance))
    assert decisions > 20
    assert different > decisions / 3, "the second worlds were too seldom different to show anything"


def test_a_twin_differs_only_where_the_seat_cannot_look() -> None:
    """Otherwise the test above would compare a world with itself, or be unfair to the prompt."""
    chance = Random(1)
    world = new_world(Rules(), 4, 2)
    for _ in range(12):
        world.move(random_move(world, chance))
    seat = world.game.seat
    other = next(found for _ in range(20) if (found := twin(world, chance)) is not None)
    assert other.game.hands[seat].cards == world.game.hands[seat].cards
    assert other.events == world.events
    hands = [sorted(hand.cards) for hand in world.game.hands]
    assert [sorted(hand.cards) for hand in other.game.hands] != hands


@pytest.mark.parametrize("rules", RULES[:2], ids=str)
def test_names_of_players_and_bots_reach_no_prompt(rules: Rules) -> None:
    """Runs with renamed players send the same bytes."""

    def texts(names: list[str]) -> list[str]:
        bot = asked_bot(rules, by_temper)
        table = deal_table([Entrant(name, bot) for name in names], rules, DealStreams(3, 3), deal=3)
        said = []
        while not table.state.over:
            player = table.players[table.state.seat]
            assert isinstance(player, bot)
            step(table)
            said += [str(prompt.render(position)) for position in player.asked for prompt in PROMPTS.values()]
        return said

    said = texts(["Zorro-17", "Ötzi", "RandomBoi", "seat 9"])
    assert len(said) > 20
    assert said == texts(["a", "b", "c", "d"])
    assert not any(name in text for text in said for name in ("Zorro", "Ötzi", "RandomBoi", "seat 9"))
