"""Check and play bots that a model wrote. Each runs as a program in the sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dubito.cli.run import play_with_progress
from dubito.errors import RunStopped
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import PROGRAM_BOT, PlayerSpec
from dubito.experiment.lies import replay_game
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import resolve
from dubito.experiment.run import RunResult, find_finished_run
from dubito.experiment.stored import Run, open_recorded_run
from dubito.game import Game
from dubito.game.find import Registry
from dubito.seats.program import check_program
from dubito.store.folder import to_yaml
from dubito.workshop.bot_check import run_bot_check
from dubito.workshop.recordings import position_recorder

REFERENCE: Final = "reference"  # the reference's name in the games
DEADLINE: Final = 2.0  # seconds per decision of a written bot
DRIVER: Final = Path(__file__).with_name("driver.py")
_FEWEST_KEPT: Final = 2  # hand-written bots in a field


@dataclass(frozen=True, slots=True)
class Mistake:
    """A decision of a bot that was wrong, by the cards that it did not see."""

    game: int
    turn: int  # the bot's own turn, from 1
    pile: int
    what: str
    facts: Mapping[str, object]


@dataclass(frozen=True)
class Bench:
    """The games of a forge: the opponents, and how programs run."""

    registry: Registry
    calls: CallOptions
    workers: int | None
    quiet: bool

    @property
    def game(self) -> Game:
        return self.registry.game

    @cached_property
    def opponents(self) -> list[str]:
        """The names of the opponents: the game's hand-written bots without the reference."""
        bots = [bot for bot in self.registry.hand_written() if not bot.cls.rules_incompatibility(self.game.rules())]
        names = [bot.name for bot in bots if bot.name != self.reference]
        return names if len(names) >= _FEWEST_KEPT else [bot.name for bot in bots]

    @property
    def reference(self) -> str:
        """The bot that plays in the same seats as the written ones: the game's fallback, its weakest bot."""
        return self.registry.fallback.__name__

    def write_bot(self, folder: Path, source: str, author: str) -> dict[str, Any]:
        """Write a bot's file into a folder, with what makes the folder a bot. Return its settings in a config."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = to_yaml({"process": ["python3", "driver.py", "bot.py"], "deadline": DEADLINE, "written_by": author})
        for name, text in (("bot.py", source), ("driver.py", DRIVER.read_text("utf-8")), ("bot.yaml", settings)):
            folder.joinpath(name).write_text(text, encoding="utf-8", newline="\n")
        files = [str(folder / name) for name in ("driver.py", "bot.py")]
        return {"process": ["python3", *files], "deadline": DEADLINE}

    def check(self, name: str, settings: Mapping[str, Any]) -> tuple[list[str], bool]:
        """Return what `bots check` says about a bot, and whether it can play: one that answers too late cannot."""
        complete = check_program(name, settings, {}, None, self.registry.working_directory)
        spec = PlayerSpec(name, PROGRAM_BOT, complete)
        found = run_bot_check(spec, self.registry, self.calls.permits, lambda games: None)
        return [f"{problem} ({where})" for problem, where in found.findings.items()], not found.is_late

    @property
    def unusual(self) -> list[str]:
        """The hand-written bots that play only when they are named, such as the strongest."""
        manual = [bot for bot in self.registry.playable() if bot.kind == "manual" and not bot.usual]
        rules = self.game.rules()
        return [bot.name for bot in manual if not (bot.cls.is_program or bot.cls.rules_incompatibility(rules))]

    def play(self, folder: Path, bots: Mapping[str, Mapping[str, Any]], seed: int, deals: int) -> RunResult:
        """Play the same deals with each of these bots and the reference."""
        return self.run(folder, [describe_program(name, settings) for name, settings in bots.items()], seed, deals, {})

    def run(
        self, folder: Path, players: Sequence[Mapping[str, Any]], seed: int, deals: int, more: Mapping[str, Any]
    ) -> RunResult:
        """Play the same deals with each of these players and the reference. Returns a finished run if there is one.

        `more` replaces settings of the run.
        Raises RunStopped if the games did not finish.
        """
        seats = 2 if self.game.is_duel else 1
        content = {
            "game": self.game.name,
            "seed": seed,
            "games": deals * seats * (1 + len(players)),
            "bots": [name for name in self.opponents if name != self.reference] or [*self.opponents],
            "contenders": [*players, {"bot": self.reference, "name": REFERENCE}],
            "on_bot_error": "fallback",
            **more,
        }
        run = check_models(resolve(parse_config(content, "the forge"), self.registry), self.calls)
        if finished := find_finished_run(run, folder):
            return finished
        result = play_with_progress(run, folder, self.calls, {}, workers=self.workers, quiet=self.quiet)
        if result.failure is not None or result.interrupted:
            raise result.failure or RunStopped("stopped")
        return result


def describe_program(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "bot": PROGRAM_BOT, **settings}


def find_mistakes(folder: Path, name: str, count: int) -> list[Mistake]:
    """Return the wrong decisions of a player about lies with the most cards at stake."""
    with open_recorded_run(folder) as run:
        if not run.game.has_lie_marks:
            return []
        found = [mistake for number in run.planned.game_numbers for mistake in _mistakes_in_game(run, number, name)]
        costliest = sorted(found, key=lambda one: (-one.pile, one.game, one.turn))[:count]
        return [replace(one, facts=_facts_at(run, one)) for one in costliest]


def _seat_of(run: Run, number: int, name: str) -> int | None:
    outcome = run.outcome_of(number)
    seat = outcome.contender_seat
    return seat if seat is not None and run.names[outcome.seats[seat]] == name else None


def _mistakes_in_game(run: Run, number: int, name: str) -> list[Mistake]:
    seat = _seat_of(run, number, name)
    if seat is None:
        return []
    lie, call = run.game.results.lie_words[:2]
    found, own_turn = list[Mistake](), 0
    for mover, turn, _, _, mark in replay_game(run, number):
        own_turn = turn if mover == seat else own_turn
        if mark is None or mark.of is None or not (mark.called or mark.is_lie):
            continue
        if mover == seat and mark.called != mark.is_lie:
            what = f"you let a {lie} pass" if mark.is_lie else f"your {call} was wrong"
        elif mark.of == seat and mark.called and mark.is_lie:
            what = f"your {lie} was caught"
        else:
            continue
        found.append(Mistake(number, own_turn, mark.pile, what, {}))
    return found


def _facts_at(run: Run, mistake: Mistake) -> Mapping[str, object]:
    """Return the facts of a mistake's turn, without those that stay the same in a game."""
    facts, workshop = run.game.facts, run.game.workshop
    steady = facts.steady_facts() | {"history", "own_plays", "own_moves"}
    seat = run.outcome_of(mistake.game).contender_seat
    for one in position_recorder(run)(mistake.game):
        if one.position.seat == seat and workshop.own_turn(one.position) in (mistake.turn, None):
            return {key: fact for key, fact in facts.facts(one.position).items() if key not in steady}
    return {}
