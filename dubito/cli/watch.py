"""`dubito watch`: a game between bots and models, or the games of a run, told live."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from dubito.cli.bots_table import BotsGame, TableOrder, seated
from dubito.cli.narrator import Narrator, save_record
from dubito.cli.options import RULES, company_options, game_option, rules_options, server_options
from dubito.cli.output import note
from dubito.cli.telling_pace import PACES, pace_option, waits
from dubito.cli.voice import voice_for
from dubito.errors import RunStopped, UsageError
from dubito.experiment.experiment import stand_ins_in_words
from dubito.llm.request import Suspended

_OF_BOTS: Final = (  # flags that say how bots play a game, which those of a run were played without
    "game", "seed", "deal", *RULES, "on_bot_error", "bot_deadline", "save", "config", "games", "base_url",
    "api_key_env",
)  # fmt: skip


@click.command()
@click.argument("what", nargs=-1, metavar="[RUN | BOT BOT ...]")
@game_option
@click.option("--seed", default=0, show_default=True, help="Seed; with --deal it fixes the cards.")
@click.option("--deal", default=0, show_default=True, help="Number of the deal: fixes deck and chance.")
@rules_options
@click.option("--on-bot-error", type=click.Choice(["stop", "fallback", "forfeit"]), default="stop", show_default=True)
@click.option("--bot-deadline", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="See `dubito run`.")
@click.option("--show-hands", is_flag=True, help="Show every hand before its turn, and what was really played.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the game's record, for `dubito replay`.")
@company_options
@server_options
@pace_option
@click.option(
    "--web", is_flag=True, help="Show it in the browser, hands open, with the models' reasons beside their seats."
)
@click.option("--port", default=8765, show_default=True, help="With --web: port; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --web: where to listen.")
def watch(
    what: tuple[str, ...], pace: float | None, show_hands: bool, web: bool, port: int, host: str, **flags: Any
) -> None:
    """Tell a game between these bots and models live, seated in this order, or the games of a run as they finish.

    A BOT is a class name, a player of --config, or a model as in openai:MODEL@PROMPT or house:MODEL. Models' answers
    and reasons are told as they come. A single name that is the path of a run, or of a file that `dubito export`
    made, is a RUN; with no name it is the latest run: its last finished game is told, then each newest one, until the
    run ends.
    """
    of_run = not what or (len(what) == 1 and _means_a_run(what[0]))
    _refuse(_OF_BOTS if of_run else (), "is for a game between bots: name them, or leave it out")
    _refuse(() if web else ("port", "host"), "goes with --web")
    _refuse(("pace",) if web and of_run else (), "is chosen on the page: leave it out")
    run = Path(what[0]) if what else None
    if of_run and web:
        from dubito.cli.watch_web import serve_run  # late: only this needs a web server

        serve_run(run, host, port)
    elif of_run:
        from dubito.cli.following import follow  # late: reads stores and reports

        follow(run, waits(pace), show_hands)
    elif web:
        from dubito.cli.watch_web import serve_game

        serve_game(_wanted(what, flags), waits(PACES["normal"] if pace is None else pace), host, port)
    else:
        with seated(_wanted(what, flags)) as game:
            _tell(game, pace, show_hands)


def _means_a_run(word: str) -> bool:
    """Whether something lies there, or no bot can be called so: neither a class nor a model."""
    return os.path.exists(word) or not (word.isidentifier() or ":" in word)


def _refuse(flags: Sequence[str], why: str) -> None:
    """Raise UsageError where one of these flags was given."""
    context = click.get_current_context()
    for name in flags:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def _wanted(names: tuple[str, ...], flags: dict[str, Any]) -> TableOrder:
    server = {key: flags.pop(key) for key in ("base_url", "api_key_env")}
    rules = {key: flags.pop(key) for key in RULES}
    return TableOrder(names=names, server=server, rules=rules, **flags)


def _tell(game: BotsGame, pace: float | None, show_hands: bool) -> None:
    """Play the game and tell it; raises RunStopped, one sentence, where a model cannot be asked."""
    if stand_ins := stand_ins_in_words(dict(zip(game.wanted.names, game.kinds, strict=True))):
        note(stand_ins)
    voice = voice_for([game.label(seat) for seat in range(len(game.wanted.names))])
    narrators: list[Narrator] = []
    game.begin(lambda thought: narrators[0].thought(thought))
    narrator = Narrator(game.spec, game.game, game.label, show_hands, voice, waits(pace))
    narrators.append(narrator)
    try:
        narrator.tell(game.move, game.asks_a_model, lambda: narrator.faults(*game.faults()))
    except Suspended as error:
        raise RunStopped(f"the game is paused ({error}): the same command continues it, from the cache") from None
    if game.wanted.save is not None:
        save_record(game.wanted.save, game.spec, game.record())
