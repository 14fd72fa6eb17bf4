"""One game, told turn by turn, in words for people."""

from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from dubito.cli.output import note, say
from dubito.errors import RunStopped, UsageError, one_line
from dubito.game import Spec
from dubito.handlers import Table, step
from dubito.record import Forfeit, Recorder, records_of
from dubito.store.folder import write_whole
from dubito.telling import Label, forfeit_in_words, told_of


def tell(
    spec: Spec,
    table: Table,
    label: Label,
    recorder: Recorder | None,
    show_hands: bool,
    said: Callable[[], list[str]] = list,
) -> None:
    """Play the game and tell it; `said` gives what was asked and answered on the move that was just made."""
    game, words = table.game, told_of(spec)
    teller = words.Teller(game, label)
    say(words.sentence(game.start, label))
    begun = 0  # the turn whose hand is shown
    while not game.over:
        seat, turn = game.seat, game.turns_played + 1
        hand = teller.holds(seat)
        output, events = step(table, announce=True)
        if show_hands and turn > begun and hand:
            say(f"{turn:4}. [{label(seat)} holds {hand}]")
        begun = turn
        for line in said():
            say(f"{turn:4}.   {line}")
        if output is not None:
            if recorder is not None:
                recorder.add(turn, output, events)
            for each in teller.moved(seat, output, events):
                truth = f"[{each.truth}]" if show_hands and each.truth else ""
                if text := " ".join(filter(None, (each.said, truth))):
                    say(f"{turn:4}. {text}")
        _mistakes(spec, table, label, recorder, turn)
    if not game.turns_played:
        _mistakes(spec, table, label, recorder, 1)
    say("\n".join(teller.ending()))


def _mistakes(spec: Spec, table: Table, label: Label, recorder: Recorder | None, turn: int) -> None:
    """What bots did wrong since, and what followed."""
    if table.errors and table.forfeits:
        note(str(table.errors[0]))
        seat = table.errors[0].seat
        say(f"{turn:4}. {forfeit_in_words(seat, label, spec)}")
        if recorder is not None:
            recorder.add(turn, Forfeit(seat), [])
    else:
        for error in table.errors:
            note(f"{error}; {spec.fallback}'s rules played the turn")
    table.errors.clear()


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


def save_record(path: Path, spec: Spec, record: Any) -> None:
    """Write a game's record and say so; raises RunStopped."""
    try:
        write_whole(path, records_of(spec).dump(record))
    except RunStopped as error:
        raise RunStopped(f"the game was played, but {error}") from None
    say(f"record: {path}")
