"""Measure how exploitable hand-written bots and programs are in a small variant of their game."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from dubito.errors import BotError
from dubito.experiment.experiment import PlayerSpec
from dubito.game.find import Registry
from dubito.game.table import Entrant
from dubito.plugins.openspiel.policy.small import SmallGame, find_course, small_game
from dubito.plugins.openspiel.policy.stated_policy import read_bot_policy
from dubito.plugins.openspiel.policy.tree import Tree
from dubito.plugins.openspiel.policy.values import nash_conv
from dubito.sandbox.consent import Permits
from dubito.seats.program import ProgramPlayer, ProgramPool, find_program, make_confinement, try_programs
from dubito.store.folder import RUNS

BOT_DRAWS: Final = 100  # a bot's turns in each state, unless it states its strategy
PROGRAM_DRAWS: Final = 10  # the same for a program


def measure_players(players: Sequence[PlayerSpec], registry: Registry, permits: Permits) -> list[float | None]:
    """Return the nash_conv of each player, None for one that fails, or nothing if the game has no small variant."""
    course = find_course(registry.game)
    if course is None or not course.small:
        return []
    small = small_game(registry.game, registry.game.rules(**course.small))
    tree = Tree(small.engine)
    return [_measure(player, registry, permits, small, tree) for player in players]


def _measure(player: PlayerSpec, registry: Registry, permits: Permits, small: SmallGame, tree: Tree) -> float | None:
    bot = registry.find(player.bot).cls
    draws = PROGRAM_DRAWS if bot.is_program else BOT_DRAWS
    entrant = Entrant(player.name, bot, {} if bot.is_program else player.settings)
    try:
        with start_program(player if bot.is_program else None, small, 0, permits) as program:
            return nash_conv(tree, read_bot_policy(entrant, small, tree.states, draws, 0, program).rows)
    except BotError:
        return None


@contextmanager
def start_program(
    player: PlayerSpec | None, small: SmallGame, seed: int, permits: Permits
) -> Iterator[ProgramPlayer | None]:
    """Start a player's program, if it is one."""
    if player is None:
        yield None
        return
    game, here, settings = small.game, Path.cwd(), player.settings
    program, deadline = find_program(player.name, settings, here), settings["deadline"]
    typed = "folder" not in settings  # the user wrote this command, and no file did
    try_programs([program], here, replace(permits, trust=permits.trust or typed))
    with closing(ProgramPool(program, deadline, make_confinement(permits), "policy", [here / RUNS])) as pool:
        steady = game.facts.steady_facts()
        yield ProgramPlayer(player.name, game, small.rules, seed, deadline, steady, lambda inner: inner, pool)
