"""`dubito bots check`: play some games with a bot, and report problems that would break a tournament or a long run."""

import ast
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Final

from pydantic import BaseModel

from dubito.errors import UsageError, one_line
from dubito.experiment.experiment import PROGRAM_BOT, PlayerSpec
from dubito.game import Game
from dubito.game.find import Bot, Registry
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.sandbox.consent import Permits
from dubito.seats.program import (
    ProgramPlayer,
    ProgramPool,
    ProgramSession,
    check_program,
    find_program,
    make_confinement,
    try_programs,
)
from dubito.store.folder import RUNS

_DEALS: Final = 20  # deals per set of rules
_REPEATED_DEALS: Final = 4  # deals that are played twice
_MAX_MOVES: Final = 5_000
_NOT_REPEATED: Final = "a second game with the same seed differs; only use random numbers from self.rng, or from `seed`"
_SLOW_SECONDS: Final = 1.0  # per decision; slower bots would take days for 10,000 games
# Imports that give access to hidden cards.
_HIDDEN: Final = re.compile(
    r"(dubito\.experiment|dubito\.game\.(table|streams)|inspect|gc|ctypes)(\..+)?|(dubito\.)?games\.\w+\.(engine|game)(\.State)?"
)


@dataclass(slots=True)
class BotGames:
    findings: dict[str, str] = field(default_factory=dict)  # where each problem was first seen
    # Number of the bot's turns at each unusual moment of the game.
    moments: Counter[str] = field(default_factory=Counter)
    turns: int = 0  # of the bot
    is_late: bool = False  # whether an answer came too late, which ends the check


def resolve_bot(name: str, registry: Registry) -> PlayerSpec:
    """Return the player with this bot name, program file or program command. Raises UsageError."""
    here = registry.working_directory
    file = (here / name).resolve()
    name = next((bot.name for bot in registry.bots.values() if bot.file.resolve() == file), name)
    if name not in registry.bots and (" " in name or "/" in name or (here / name).is_file()):
        settings = check_program("your bot", {"process": shlex.split(name)}, {}, None, here)
        return PlayerSpec("your bot", PROGRAM_BOT, settings)
    bot = registry.find(name)
    if bot.cls.is_model or name == PROGRAM_BOT:
        raise UsageError(f"{name} needs settings to play", hint="name a bot, or a command in quotes")
    if bot.cls.is_program:
        return PlayerSpec(name, PROGRAM_BOT, check_program(name, {}, bot.cls.defaults, bot.file.parent, here))
    return PlayerSpec(name, name)


def count_check_games(game: Game) -> int:
    """Return how many games a check plays."""
    return len(game.workshop.CHECKED_RULES) * (_DEALS + _REPEATED_DEALS)


def run_bot_check(spec: PlayerSpec, registry: Registry, permits: Permits, progress: Callable[[int], None]) -> BotGames:
    """Play games with a bot, calling `progress` with the number of games so far.

    Raises UsageError if the bot cannot play by the default rules, or does not start.
    """
    game, here, bot = registry.game, registry.working_directory, registry.find(spec.bot)
    if problem := bot.cls.rules_incompatibility(game.rules()):
        raise UsageError(f"{one_line(spec.name)} {problem}")
    if spec.bot != PROGRAM_BOT:
        return _Check(spec, registry, None, BotGames(_check_source(bot)), progress).play()
    program, steady = find_program(spec.name, spec.settings, here), game.facts.steady_facts()
    typed = "folder" not in spec.settings  # the user wrote this command, and no file did
    try_programs([program], here, replace(permits, trust=permits.trust or typed))
    deadline = spec.settings["deadline"]
    with closing(ProgramPool(program, deadline, make_confinement(permits), "check", [here / RUNS])) as pool:
        player = ProgramPlayer(spec.name, game, game.rules(), 0, deadline, steady, lambda inner: inner, pool)
        return _Check(spec, registry, player, BotGames(), progress).play()


def _check_source(bot: Bot) -> dict[str, str]:
    """Return forbidden operations in a bot's file, with their locations."""
    findings = {}
    if not bot.repeatable:
        findings["it uses unseeded randomness; use self.rng"] = bot.file.name
    for node in ast.walk(ast.parse(bot.file.read_bytes())):
        if not isinstance(node, ast.ImportFrom | ast.Import):
            continue
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for module in filter(_HIDDEN.fullmatch, [prefix + alias.name for alias in node.names]):
            findings[f"it imports {module}, which exposes hidden cards"] = f"{bot.file.name}, line {node.lineno}"
    return findings


@dataclass(frozen=True, slots=True)
class _Check:
    """Plays the games of a check."""

    spec: PlayerSpec
    registry: Registry
    program: ProgramPlayer | None  # None for a bot in Python
    games: BotGames
    progress: Callable[[int], None]

    def play(self) -> BotGames:
        game, games, played = self.registry.game, self.games, 0
        moments = game.workshop.MOMENTS
        games.moments.update(dict.fromkeys(moments, 0))
        for settings in game.workshop.CHECKED_RULES:
            rules = game.rules(**settings)
            sizes = sorted({*game.seat_range(rules)})
            for deal in range(_DEALS):
                size = sizes[deal % len(sizes)]
                outputs = self._play_game(rules, deal, size, moments)
                if deal < _REPEATED_DEALS and not games.is_late:
                    again = self._play_game(rules, deal, size, {})
                    if outputs != again and not games.is_late:
                        games.findings.setdefault(_NOT_REPEATED, f"deal {deal}")
                if games.is_late:
                    return games
                played += 1 + (deal < _REPEATED_DEALS)
                self.progress(played)
        return games

    def _play_game(
        self, rules: BaseModel, deal: int, size: int, moments: Mapping[str, Callable[[object], bool]]
    ) -> list[str]:
        """Play a game and return all moves. If the bot fails, the fallback makes its move."""
        seat, game, table, session = deal % size, self.registry.game, *self._build_table(rules, deal, size)
        state, outputs = table.state, list[str]()
        first_seconds = _SLOW_SECONDS if self.program is None else self.program.deadline
        try:
            while not (state.over or self.games.is_late) and len(outputs) < _MAX_MOVES:
                is_own, start = state.seat == seat, perf_counter()
                # The first answer of a program includes its start.
                starts = session is not None and not session.is_greeted
                if is_own:
                    view = state.view()
                    self.games.moments.update(name for name, is_met in moments.items() if is_met(view))
                outputs.append(repr(game.output_to_json(step(table)[0])))
                if is_own:
                    self.games.turns += 1
                    if (seconds := perf_counter() - start) > (first_seconds if starts else _SLOW_SECONDS):
                        self.games.is_late = True
                        place = f"deal {deal}, {size} players, turn {len(outputs)}"
                        self.games.findings[f"it answered after {seconds:.1f} s, so the check stopped"] = place
            if session is not None and state.over:
                session.end(game.results, state.ending())
        finally:
            if session is not None:
                session.close()
        # After the first error, a program is not asked again.
        for error in [error for error in table.errors if error.seat == seat][:1]:
            self.games.findings.setdefault(error.reason, f"deal {deal}, {size} players, turn {error.turn}")
        return outputs

    def _build_table(self, rules: BaseModel, deal: int, size: int) -> tuple[Table, ProgramSession | None]:
        registry, streams, seat = self.registry, DealStreams(0, deal), deal % size
        usual = [bot for _, bot in sorted(registry.bots.items()) if bot.kind == "manual" and bot.usual]
        bots = [bot for bot in usual if not bot.cls.rules_incompatibility(rules)]
        entrants = [Entrant(bot.name, bot.cls) for bot in (bots[(deal + at) % len(bots)] for at in range(size))]
        entrants[seat] = Entrant(self.spec.name, registry.find(self.spec.bot).cls, self.spec.settings)
        service = None if self.program is None else replace(self.program, rules=rules).open_game(size)
        services: list[object] = [service if at == seat else None for at in range(size)]
        state = registry.game.deal(rules, size, streams.deck())
        table = Table(state, entrants, streams, deal=deal, number=deal, fallback=registry.fallback, services=services)
        return table, None if service is None else service.session
