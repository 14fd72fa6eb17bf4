"""`dubito play`: a person plays against bots in the terminal. `dubito web`: the same in the browser."""

import io
import os
import secrets
import shlex
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.file_limit import raise_file_limit
from dubito.cli.narrator import check_save, make_pause, pace_option, save_record
from dubito.cli.opponents import load_family, open_moment, open_opponents, open_opponents_of_run, rules_at_table
from dubito.cli.options import (
    PORT_DEFAULT,
    SAVED_GAMES_DEFAULT,
    SEED,
    GameCommand,
    Worlds,
    allow_host_option,
    company_options,
    config_options,
    game_option,
    games_path_option,
    moment_options,
    program_options,
    refuse_flags,
    saved_games_folder,
)
from dubito.cli.output import Voice, make_voice, note, read_line, say
from dubito.errors import IllegalOutput, RunStopped, UsageError, one_line
from dubito.experiment.experiment import describe_fake_models, player_labels
from dubito.game import Game
from dubito.game.find import DUBITO, find_bots
from dubito.game.seeds import Seed
from dubito.model_settings import SHORT_FORM_SETTINGS
from dubito.show.opponents import Opponents, as_sentence, bots_of_other_games, describe_trouble
from dubito.show.person import SEEDS, Setup, Sitting, seat_person, set_up
from dubito.show.session import Moment

_COMMANDS: Final = (
    "`help` shows the rules, `hand` what you see, `log` what happened; `quit` or Ctrl-D leaves the table."
)

_CANNOT_CHANGE: Final = "cannot change a moment of a run; leave it out"
_SEAT_AT_MOMENT: Final = "with --from: the seat to move"


@click.command(cls=GameCommand)
@click.argument("bots", nargs=-1, metavar="[BOT ...]")
@game_option
@click.option("--seed", type=SEED, metavar="N", help="Random seed. [default: random]")
@click.option(
    "--deal",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Deal number. Seed and deal determine the cards.",
)
@click.option("--seat", type=int, help=f"Your seat; seat 0 plays first. [default: random; {_SEAT_AT_MOMENT}]")
@click.option("--from", "moment", metavar="RUN:GAME:TURN", help="Take over a seat in a turn of a run's game.")
@moment_options
@click.option("--save", type=click.Path(path_type=Path), help="Save the finished game, for `dubito replay`.")
@company_options
@program_options
@config_options(*SHORT_FORM_SETTINGS)
@pace_option
def play(
    bots: Sequence[str],
    game: Game,
    seed: Seed | None,
    deal: int,
    seat: int | None,
    moment: str | None,
    worlds: Worlds,
    settings: Sequence[str],
    save: Path | None,
    config: Path | None,
    games: Path,
    pace: float | None,
    rules: dict[str, Any],
    **server: str | None,
) -> None:
    """Play a game yourself, in the terminal.

    Name your opponents, or play against a few good bots by default. A BOT is a class name, a player of --config, or a
    model such as openai:MODEL@PROMPT or house:MODEL. For hard games, try `dubito play Sherlock Sherlock` or `dubito
    play --game defuse Sapper`.
    """
    check_save(save)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    number = int(time.time() * 1000)
    if moment is not None:
        if bots or rules:
            raise _run_decides()
        refuse_flags(("game", "deal", "config", *(["seed"] if worlds == "same" else [])), _CANNOT_CHANGE)
        with open_moment(moment) as found:
            setup = found.set_up(settings, _sample_seed(worlds, seed), seat)
            with open_opponents_of_run(found.run, setup.bots, games, number, lambda: False, server) as opponents:
                sitting = _play_setup(opponents, setup, number, None, pace)
    else:
        _require_same_cards(worlds, settings)
        checked = rules_at_table(config, game, rules)
        against = bots
        if not bots:
            usual = game.words.BOTS
            if not usual:
                hand_written = find_bots(Path.cwd(), game.name).hand_written()
                usual = [bot.name for bot in hand_written][: max(1, game.seats[0] - 1)]
            against = usual[: game.seat_range(checked)[1] - 1]
        with open_opponents(config, against, games, number, lambda: False, server, game.name, rules) as opponents:
            setup = set_up(game, against, checked, seat, seed, deal)
            sitting = _play_setup(opponents, setup, number, config, pace)
    if sitting is None:
        return
    for error in sitting.errors:
        note(error)
    say(f"To play the same cards again: {_same_cards_command(sitting, config)}")
    if save is not None:
        save_record(save, sitting.game, sitting.make_record())


def _play_setup(
    opponents: Opponents, setup: Setup, number: int, config: Path | None, pace: float | None
) -> Sitting | None:
    """Play the game and return it, or return None if the person left."""
    kinds = dict(zip(setup.bots, opponents.kinds(setup.bots), strict=True))
    if fake_models := describe_fake_models(kinds):
        note(fake_models)
    seated = seat_person(opponents, setup, number)
    with seated.code:
        return _play_until_over(opponents, seated, config, pace)


def _play_until_over(opponents: Opponents, sitting: Sitting, config: Path | None, pace: float | None) -> Sitting | None:
    """Play the game and return it, or return None if the person left."""
    seats = [sitting.reader.name(seat) for seat in range(len(sitting.setup.players))]
    others = [name for seat, name in enumerate(seats) if seat != sitting.me]
    voice, wait = make_voice(others, opponents.game.results.lie_words[0]), make_pause(pace)
    voice(f"Players, in playing order: {', '.join(seats)}.")
    voice(sitting.rules()[0])
    voice(f"{sitting.words.HOW} {_COMMANDS}")
    voice()
    for line in sitting.start:
        voice(line)
    try:
        while not sitting.state.over:
            try:
                if _play_move(sitting, voice) and not (sitting.is_asked or sitting.repeats):
                    wait()
            except RunStopped as error:
                voice(describe_trouble(error))
                read_line("Press Enter to try again, or Ctrl-D to leave. ")
                opponents.try_again()
                # Go on with the game before the failed turn.
                again = seat_person(opponents, sitting.setup, sitting.number)
                again.replay(sitting.outputs, again.step)
                sitting = again
    except EOFError:
        say("\nYou left before the game was over.")
        if sitting.asks_models:
            say(f"To play the same cards again: {_same_cards_command(sitting, config)}")
        return None
    return sitting


def _run_decides() -> UsageError:
    return UsageError("--from uses the run's players and rules", hint="leave out the other arguments")


def _require_same_cards(worlds: Worlds, settings: Sequence[str]) -> None:
    """Raise UsageError if hidden cards are changed without a moment."""
    if settings or worlds != "same":
        raise UsageError(f"{'--set' if settings else '--worlds'} needs --from")


def _sample_seed(worlds: Worlds, seed: Seed | None) -> str | None:
    """Return the seed of sampled hidden cards, by default a random one."""
    return None if worlds == "same" else str(secrets.randbelow(SEEDS) if seed is None else seed)


def _play_move(sitting: Sitting, voice: Voice) -> bool:
    """Make a move and print it. Return whether anything was printed."""
    before = sitting.words.cheer(sitting.state, sitting.me)
    if sitting.is_asked:
        moment, words = _play_typed_move(sitting, voice)
    else:
        if sitting.thinks(sitting.state.seat):
            voice.show_thinking(sitting.reader.name(sitting.state.seat))
        try:
            moment, words = sitting.step()
        finally:
            voice.hide_thinking()
    for line in words:
        voice(f"{moment.turn:4}. {line}")
    cheer = sitting.words.cheer(sitting.state, sitting.me)
    if cheer and not before:
        voice(cheer)
    return bool(words)


def _play_typed_move(sitting: Sitting, voice: Voice) -> tuple[Moment, list[str]]:
    """Ask the person until the answer is legal, then play it."""
    _show(sitting, voice)
    while True:
        keys = sitting.words.key_hint(sitting.state)
        line = read_line(f"{keys}\n> " if keys else "> ").strip() or sitting.words.ENTER
        if line in ("help", "?", "rules"):
            for rule in sitting.rules():
                voice(f"- {rule}")
            voice(f"{sitting.words.HOW} {_COMMANDS}")
        elif line in ("quit", "exit"):
            raise EOFError
        elif line == "hand":
            _show(sitting, voice)
        elif line == "log":
            for turn, text in sitting.log:
                voice(f"{turn:4}. {text}")
        elif line:
            try:
                return sitting.step(sitting.words.parse_line(line, sitting.state, sitting.me))
            except (IllegalOutput, UsageError) as error:
                voice(as_sentence(str(error)))


def _show(sitting: Sitting, voice: Voice) -> None:
    voice()
    for line in sitting.words.describe_view(sitting.state, sitting.me, sitting.reader):
        voice(line)


def _same_cards_command(sitting: Sitting, config: Path | None) -> str:
    flag = "" if config is None else f" --config {shlex.quote(str(config))}"
    return f"{sitting.setup.replay_command(sitting.game)}{flag}"


@click.command(cls=GameCommand)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--port", type=int, help=f"Port; 0 picks a free one. [default: {PORT_DEFAULT}]")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Unless it is loopback, other machines can connect without a password.",
)
@allow_host_option
@click.option(
    "--games",
    type=click.Path(path_type=Path),
    default=saved_games_folder,
    show_default=SAVED_GAMES_DEFAULT,
    help="Folder for saved games.",
)
@click.option("--game", metavar="NAME", help="The game offered first. [default: the game of CONFIG, or dubito]")
@click.option("--from", "moment", metavar="RUN:GAME:TURN", help="Offer to take over a seat in a turn of a run's game.")
@click.option("--seat", type=int, help="With --from: the seat to take over. [default: the seat to move]")
@moment_options
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in your browser.")
@games_path_option
@program_options
@config_options(*SHORT_FORM_SETTINGS)
def web(
    config: Path | None,
    port: int | None,
    host: str,
    allow_host: Sequence[str],
    games: Path,
    game: str | None,
    moment: str | None,
    seat: int | None,
    worlds: Worlds,
    settings: Sequence[str],
    browser: bool,
    rules: dict[str, Any],
    **server: str | None,
) -> None:
    """Play in the browser.

    You play against hand-written bots and the players of CONFIG, including model players. Only this machine can reach
    the page unless --host is given. Rules given as flags apply to all tables of the game.
    """
    # Imported late: no other command needs a web server.
    from dubito.serve import MAX_CONNECTIONS, listen, serve
    from dubito.web.app import make_app
    from dubito.web.guard import is_loopback
    from dubito.web.tables import Tables

    if config is not None and not config.exists() and str(config) in find_bots(Path.cwd(), game or DUBITO).bots:
        raise UsageError(f"{config} is a bot, but `dubito web` takes a config file", hint="choose bots on the page")
    raise_file_limit(2 * MAX_CONNECTIONS)
    stop, first = threading.Event(), int(time.time() * 1000)
    with ExitStack() as stack:
        listener, setup = stack.enter_context(listen(host, port)), None
        if moment is not None:
            if config is not None or rules:
                raise _run_decides()
            refuse_flags(("game",), _CANNOT_CHANGE)
            found = stack.enter_context(open_moment(moment))
            setup = found.set_up(settings, _sample_seed(worlds, None), seat)
            opening = open_opponents_of_run(found.run, setup.bots, games, first, stop.is_set, server, others=True)
        else:
            refuse_flags(("seat",), "needs --from")
            _require_same_cards(worlds, settings)
            opening = open_opponents(config, None, games, first, stop.is_set, server, game, rules)
        opponents = stack.enter_context(opening)
        opponents_by_game = {opponents.game.name: opponents} | bots_of_other_games(opponents.game)
        tables = Tables(games, opponents_by_game, time.time, family=load_family, moment=setup)
        choices = opponents.choices()
        label = player_labels({one.name: one.kind for one in choices})
        models = [label(one.name) for one in choices if one.asks]
        open_to_all = not is_loopback(listener.getsockname()[0])
        serve(
            make_app(tables, host, allow_host),
            host,
            listener,
            lambda at: _print_address(at, host, open_to_all, games, models, browser),
        )
        stop.set()
        tables.close()
    say("stopped")


def _print_address(address: str, host: str, open_to_all: bool, games: Path, models: list[str], browser: bool) -> None:
    if open_to_all:
        at_your_cost = ", use the models at your cost" if models else ""
        note(
            f"Warning: anyone who can reach {one_line(host)} can play{at_your_cost} and see the saved games without "
            "a password."
        )
    say(f"Play at {address}")
    if models:
        say(f"Model players: {', '.join(models)}")
    say(f"Games are saved in {games}. Press Ctrl-C to stop.")
    chosen = any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    # Without a screen, a text browser would take over the terminal.
    has_screen = chosen or sys.platform in ("darwin", "win32")
    if browser and has_screen and not webbrowser.open(address):
        note("cannot open a browser; open this address yourself")
