"""`dubito play-game`: one game, told turn by turn."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dubito.bot_deadline import in_time
from dubito.cli.options import game_option, rules_from, rules_options
from dubito.cli.telling import check_save, save_record, tell
from dubito.errors import UsageError
from dubito.handlers import Entrant, Table
from dubito.record import records_of
from dubito.registry import find_bots
from dubito.streams import DealStreams
from dubito.telling import labels


@click.command("play-game")
@click.argument("names", nargs=-1, required=True, metavar="BOT BOT [BOT ...]")
@game_option
@click.option("--seed", default=0, show_default=True, help="Seed of the run the game belongs to.")
@click.option("--deal", default=0, show_default=True, help="Number of the deal: fixes deck and chance.")
@rules_options
@click.option("--on-bot-error", type=click.Choice(["stop", "fallback", "forfeit"]), default="stop", show_default=True)
@click.option("--bot-deadline", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="See `dubito run`.")
@click.option("--show-hands", is_flag=True, help="Show every hand before its turn, and what was really played.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the game's record, for `dubito replay`.")
def play_game(
    names: Sequence[str],
    game: str,
    seed: int,
    deal: int,
    on_bot_error: str,
    bot_deadline: float | None,
    show_hands: bool,
    save: Path | None,
    **flags: str | None,
) -> None:
    """Tell one game between these bots, seated in this order, in words a card player uses."""
    check_save(save)
    registry = find_bots(Path.cwd(), game)
    spec = registry.game
    rules, streams = rules_from(flags, spec), DealStreams(seed, deal)
    entrants = [Entrant(name, registry.find(name).cls) for name in names]
    for entrant in entrants:
        if entrant.bot.is_model:
            raise UsageError(f"{entrant.name} asks a model, which needs a run's settings: play it with `dubito run`")
    if bot_deadline is not None:
        entrants = [replace(entrant, bot=in_time(entrant.bot, bot_deadline, spec.nodes)) for entrant in entrants]
    if on_bot_error == "forfeit" and not spec.forfeits:
        raise UsageError(f"--on-bot-error forfeit: a game of {spec.name} cannot be forfeited: choose stop or fallback")
    fallback = registry.fallback if on_bot_error == "fallback" else None
    state = spec.deal(rules, len(names), streams.deck())
    recorder = records_of(spec).recorder(state, rules.model_dump())
    table = Table(state, entrants, streams, deal=deal, fallback=fallback, forfeits=on_bot_error == "forfeit")
    tell(spec, table, labels(names, None), recorder, show_hands)
    if save is not None:
        save_record(save, spec, recorder.record(table.game, names, seed, deal))
