"""`dubito play-game`: one game, told turn by turn."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dubito.bot_deadline import in_time
from dubito.cli.telling import check_save, save_record, tell
from dubito.errors import UsageError
from dubito.games.dubito.dealing import deal_table
from dubito.games.dubito.record import Recorder
from dubito.games.dubito.rules import Rules, WinRule
from dubito.games.dubito.spec import SPEC
from dubito.handlers import Entrant
from dubito.human import labels
from dubito.registry import find_bots
from dubito.streams import DealStreams


@click.command("play-game")
@click.argument("names", nargs=-1, required=True, metavar="BOT BOT BOT [BOT ...]")
@click.option("--seed", default=0, show_default=True, help="Seed of the run the game belongs to.")
@click.option("--deal", default=0, show_default=True, help="Number of the deal: fixes deck and chance.")
@click.option("--jokers", default=2, show_default=True, help="Jokers in the deck, 0 to 2.")
@click.option("--win-rule", default="immediate", show_default=True, help="immediate, or contested.")
@click.option("--max-turns", default=1000, show_default=True, help="Turns after which the game stops.")
@click.option("--on-bot-error", type=click.Choice(["stop", "fallback"]), default="stop", show_default=True)
@click.option("--bot-deadline", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="See `dubito run`.")
@click.option("--show-hands", is_flag=True, help="Show every hand before its turn, and what was really played.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the game's record, for `dubito replay`.")
def play_game(
    names: Sequence[str],
    seed: int,
    deal: int,
    jokers: int,
    win_rule: WinRule,
    max_turns: int,
    on_bot_error: str,
    bot_deadline: float | None,
    show_hands: bool,
    save: Path | None,
) -> None:
    """Tell one game between these bots, seated in this order, in words a card player uses."""
    check_save(save)
    registry = find_bots(Path.cwd())
    rules = Rules(jokers, win_rule, max_turns)
    entrants = [Entrant(name, registry.find(name).cls) for name in names]
    for entrant in entrants:
        if entrant.bot.is_model:
            raise UsageError(f"{entrant.name} asks a model, which needs a run's settings: play it with `dubito run`")
    if bot_deadline is not None:
        entrants = [replace(entrant, bot=in_time(entrant.bot, bot_deadline, SPEC.nodes)) for entrant in entrants]
    fallback = registry.fallback if on_bot_error == "fallback" else None
    table = deal_table(entrants, rules, DealStreams(seed, deal), deal=deal, fallback=fallback)
    recorder = Recorder(table.game)
    tell(table, labels(names, None), recorder, show_hands)
    if save is not None:
        save_record(save, recorder.record(table.game, names, seed, deal))
