"""One game, told turn by turn, in words a card player uses."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from dubito.cli.output import note, say
from dubito.errors import RunStopped, UsageError, one_line
from dubito.games.dubito.core_game import Game
from dubito.games.dubito.game_data import Event, TurnOutput
from dubito.games.dubito.record import GameRecord, Label, Recorder, cards_in_words, dump, ending, narrated
from dubito.games.dubito.rules import is_honest
from dubito.games.dubito.spec import SPEC
from dubito.handlers import Table, step
from dubito.store.folder import write_whole


def tell(
    table: Table, label: Label, recorder: Recorder, show_hands: bool, said: Callable[[], list[str]] = list
) -> None:
    """Play the game and tell it; `said` gives what was asked and said on the turn that was just played."""
    game = table.game
    say(narrated(game.start, label))
    turn = 0
    while not game.over:
        turn += 1
        seat, number = game.seat, game.number
        hand = cards_in_words(game.hands[seat].cards)
        output, events = step(table, announce=True)
        recorder.add(turn, output, events)
        for error in table.errors:
            note(f"{error}; {SPEC.fallback}'s rules played the turn")
        table.errors.clear()
        if show_hands:
            say(f"{turn:4}. [{label(seat)} holds {hand}]")
        for line in said():
            say(f"{turn:4}.   {line}")
        for line in _lines(events, label, output, number, show_hands):
            say(f"{turn:4}. {line}")
    say(_final(game, label))


def _lines(events: Sequence[Event], label: Label, output: TurnOutput, number: int, show_hands: bool) -> list[str]:
    lines = [narrated(event, label) for event in events]
    if show_hands and output.cards:
        verdict = "honest" if is_honest(output.cards, output.number or number) else "a bluff"
        lines[0] += f" [really {cards_in_words(output.cards)}: {verdict}]"
    return lines


def _final(game: Game, label: Label) -> str:
    winners = sorted((place, seat) for seat, place in enumerate(game.places) if place is not None)
    placed = [f"{place}. {label(seat)}" for place, seat in winners]
    turns = f"{game.turns} turns and {game.free_turns} free ones"
    return "\n".join([ending(game, label), *placed, turns])


def check_save(path: Path | None) -> None:
    """Raise UsageError, before the game, unless its record can be written there."""
    if path is None:
        return
    reason = None
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    else:
        try:
            with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}."):  # its name shall not be too long either
                pass
        except OSError as error:
            reason = error.strerror
    if reason is not None:
        raise UsageError(f"cannot save {one_line(str(path))}: {one_line(reason)}")


def save_record(path: Path, record: GameRecord) -> None:
    """Write a game's record and say so; raises RunStopped."""
    try:
        write_whole(path, dump(record))
    except RunStopped as error:
        raise RunStopped(f"the game was played, but {error}") from None
    say(f"record: {path}")
