"""`dubito play`: a person among bots, in the terminal."""

import io
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dubito.cli.company import opponents
from dubito.cli.options import game_option, rules_from, rules_options, server_options
from dubito.cli.output import note, say
from dubito.cli.telling import check_save, save_record
from dubito.errors import IllegalOutput, RunStopped, UsageError
from dubito.experiment.opponents import Opponents, trouble
from dubito.game import Spec
from dubito.game_registry import DUBITO, find_game
from dubito.human import Setup, Sitting, as_sentence, set_up
from dubito.person import person_of
from dubito.registry import find_bots


@click.command()
@click.argument("bots", nargs=-1, metavar="[BOT ...]")
@game_option
@click.option("--seed", type=click.IntRange(0), help="Seed of the game; by chance if not said.")
@click.option("--deal", default=0, show_default=True, help="Number of the deal: with the seed it fixes the cards.")
@rules_options
@click.option("--seat", type=int, help="Your seat, from 0, which begins; by chance if not said.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the finished game, for `dubito replay`.")
@click.option("--config", type=click.Path(path_type=Path), help="Experiment whose players may be named as well.")
@click.option(
    "--games",
    type=click.Path(path_type=Path),
    default="games",
    show_default=True,
    help="Folder that keeps what model players are asked.",
)
@server_options
def play(
    bots: Sequence[str],
    game: str,
    seed: int | None,
    deal: int,
    seat: int | None,
    save: Path | None,
    config: Path | None,
    games: Path,
    **flags: Any,
) -> None:
    """Play a game yourself against these bots, by default some good ones.

    A BOT is a class name, a player of --config, or a model as in openai:MODEL@PROMPT or house:MODEL.
    For a hard game: `dubito play Sherlock Sherlock`, `dubito play --game defuse Sapper`.
    """
    spec, server = find_game(game, Path.cwd()), {key: flags.pop(key) for key in ("base_url", "api_key_env")}
    against = bots or person_of(spec).BOTS or _anybody(spec)
    setup = set_up(spec, against, rules_from(flags, spec), seat, seed, deal)
    check_save(save)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    number = int(time.time() * 1000)
    with opponents(config, setup.bots, games, number, lambda: False, server, game) as company:
        sitting = company.seat(setup, number)
        _welcome(setup, sitting)
        try:
            while not sitting.game.over:
                try:
                    _turn(sitting)
                except RunStopped as error:
                    sitting = _taken_up(company, sitting, error)
        except EOFError:
            say("\nYou leave the table; the game ends here, unfinished.")
            if sitting.asks_models:
                say(f"The same cards again: {_again(sitting, config)}")
            return
    _farewell(sitting, config)
    if save is not None:
        save_record(save, spec, sitting.record())


def _anybody(spec: Spec) -> list[str]:
    """Bots for a small table of a game that names none: hand-written ones, as they come."""
    return [bot.name for bot in find_bots(Path.cwd(), spec.name).hand_written()][: max(1, spec.seats[0] - 1)]


def _tell(text: str) -> None:
    """A line for a reader: on a terminal, broken between words."""
    say(click.wrap_text(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text)


def _welcome(setup: Setup, sitting: Sitting) -> None:
    seats = [sitting.to_me(sitting.label(seat)) for seat in range(len(setup.players))]
    _tell(f"At the table, in playing order: {', '.join(seats)}.")
    _tell(sitting.rules()[0])
    _tell(sitting.person.HOW)
    say()
    for line in sitting.start:
        _tell(line)


def _turn(sitting: Sitting) -> None:
    before, turn = sitting.person.cheer(sitting.game, sitting.me), sitting.game.turns_played + 1
    thinks = sitting.waits_for
    if thinks is not None and sys.stdout.isatty():
        click.echo(f"      {thinks} is thinking ...\r", nl=False)
    words = _asked(sitting) if sitting.asked else sitting.step()[2]
    if thinks is not None and sys.stdout.isatty():
        click.echo("\033[2K", nl=False)
    for line in words:
        _tell(f"{turn:4}. {line}")
    cheer = sitting.person.cheer(sitting.game, sitting.me)
    if cheer and not before:
        say(cheer)


def _taken_up(company: Opponents, sitting: Sitting, error: RunStopped) -> Sitting:
    """The game once more as it stands before the turn that could not be played, when the person wants to go on."""
    _tell(trouble(error))
    input("Enter tries again, Ctrl-D leaves the table. ")
    company.try_again()
    again = company.seat(sitting.setup, sitting.number)
    again.play_again(sitting.outputs, again.step)
    return again


def _asked(sitting: Sitting) -> list[str]:
    """Ask until the answer is legal, and play it."""
    _show(sitting)
    while True:
        line = input(_prompt(sitting)).strip() or sitting.person.ENTER
        if line in ("?", "rules"):
            _tell_rules(sitting)
        elif line == "hand":
            _show(sitting)
        elif line == "log":
            for turn, said in sitting.said:
                _tell(f"{turn:4}. {said}")
        elif line:
            try:
                return sitting.step(sitting.person.read(line, sitting.game, sitting.me))[2]
            except (IllegalOutput, UsageError) as error:
                _tell(as_sentence(str(error)))


def _prompt(sitting: Sitting) -> str:
    keys = sitting.person.keys(sitting.game)
    return f"{keys}\n> " if keys else "> "


def _show(sitting: Sitting) -> None:
    say()
    for line in sitting.person.sees(sitting.game, sitting.me, sitting.label):
        _tell(line)


def _tell_rules(sitting: Sitting) -> None:
    for line in sitting.rules():
        _tell(f"- {line}")
    _tell(sitting.person.HOW)


def _farewell(sitting: Sitting, config: Path | None) -> None:
    for error in sitting.errors:
        note(error)
    say(f"The same cards again: {_again(sitting, config)}")


def _again(sitting: Sitting, config: Path | None) -> str:
    """The command that deals the same cards."""
    setup, spec = sitting.setup, sitting.spec
    flags = "" if spec.name == DUBITO else f" --game {spec.name}"
    usual, said = spec.rules().model_dump(), setup.rules
    flags += "".join(
        f" --{key.replace('_', '-')} {shlex.quote(str(said[key]))}" for key in usual if said[key] != usual[key]
    )
    if config is not None:
        flags += f" --config {shlex.quote(str(config))}"
    return f"dubito play {shlex.join(setup.bots)} --seed {setup.seed} --deal {setup.deal} --seat {setup.seat}{flags}"
