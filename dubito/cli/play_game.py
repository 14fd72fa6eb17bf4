"""`dubito play-game`: one game, told turn by turn."""

from collections.abc import Sequence
from pathlib import Path

import click

from dubito.cli.output import note, say
from dubito.core_game import Game
from dubito.errors import RunStopped, UsageError, one_line
from dubito.game_data import Event, GameStartEvent, TurnOutput
from dubito.handlers import Entrant, Table, deal_table, step
from dubito.record import Label, Recorder, cards_in_words, dump, ending, sentence
from dubito.registry import FALLBACK, find_bots
from dubito.rules import Rules, WinRule, is_honest
from dubito.store.folder import write_whole
from dubito.streams import DealStreams


@click.command("play-game")
@click.argument("names", nargs=-1, required=True, metavar="BOT BOT BOT [BOT ...]")
@click.option("--seed", default=0, show_default=True, help="Seed of the run the game belongs to.")
@click.option("--deal", default=0, show_default=True, help="Number of the deal: fixes deck and chance.")
@click.option("--jokers", default=2, show_default=True, help="Jokers in the deck, 0 to 2.")
@click.option("--win-rule", default="immediate", show_default=True, help="immediate, or contested.")
@click.option("--max-turns", default=1000, show_default=True, help="Turns after which the game stops.")
@click.option("--on-bot-error", type=click.Choice(["stop", "fallback"]), default="stop", show_default=True)
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
    show_hands: bool,
    save: Path | None,
) -> None:
    """Tell one game between these bots, seated in this order, in words a card player uses."""
    registry = find_bots(Path.cwd())
    rules = Rules(jokers, win_rule, max_turns)
    entrants = [Entrant(name, registry.find(name).cls) for name in names]
    for entrant in entrants:
        if entrant.bot.is_model:
            raise UsageError(f"{entrant.name} asks a model, which needs a run's settings: play it with `dubito run`")
    fallback = registry.find(FALLBACK).cls if on_bot_error == "fallback" else None
    table = deal_table(entrants, rules, DealStreams(seed, deal), deal=deal, fallback=fallback)
    recorder = Recorder(table.game)
    _tell(table, _labels(names), recorder, show_hands)
    if save is not None:
        _save(save, dump(recorder.record(table.game, names, seed, deal)))


def _labels(names: Sequence[str]) -> Label:
    """The bot's name; where several share one, with the seat."""
    return lambda seat: one_line(names[seat]) if names.count(names[seat]) == 1 else f"{one_line(names[seat])} {seat}"


def _tell(table: Table, label: Label, recorder: Recorder, show_hands: bool) -> None:
    game = table.game
    dealt = tuple(len(hand.cards) for hand in game.hands)
    say(sentence(GameStartEvent(tuple(range(len(dealt))), dealt), label))
    turn = 0
    while not game.over:
        turn += 1
        seat, number = game.seat, game.number
        hand = cards_in_words(game.hands[seat].cards)
        output, events = step(table, announce=True)
        recorder.add(turn, output, events)
        for error in table.errors:
            note(f"{error}; {FALLBACK}'s rules played the turn")
        table.errors.clear()
        if show_hands:
            say(f"{turn:4}. [{label(seat)} holds {hand}]")
        for line in _lines(events, label, output, number, show_hands):
            say(f"{turn:4}. {line}")
    say(_final(game, label))


def _lines(events: Sequence[Event], label: Label, output: TurnOutput, number: int, show_hands: bool) -> list[str]:
    lines = [sentence(event, label) for event in events]
    if show_hands and output.cards:
        verdict = "honest" if is_honest(output.cards, output.number or number) else "a bluff"
        lines[0] += f" [really {cards_in_words(output.cards)}: {verdict}]"
    return lines


def _final(game: Game, label: Label) -> str:
    winners = sorted((place, seat) for seat, place in enumerate(game.places) if place is not None)
    placed = [f"{place}. {label(seat)}" for place, seat in winners]
    turns = f"{game.turns} turns and {game.free_turns} free ones"
    return "\n".join([ending(game, label), *placed, turns])


def _save(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except RunStopped as error:
        raise RunStopped(f"the game was played, but {error}") from None
    say(f"record: {path}")
