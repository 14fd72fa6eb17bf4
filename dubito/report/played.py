"""One game, turn by turn, as the viewer shows it. The engine says every state; the viewer knows no rules."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dubito.core_game import Game
from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment import replay
from dubito.experiment.outcome import Outcome, outcome_of, unpack
from dubito.game_data import Event, PlayerWonEvent, TurnOutput
from dubito.handlers import Table, step
from dubito.record import Label, card_name, ending, sentence
from dubito.registry import Registry
from dubito.report.source import Source
from dubito.rules import Rules, deal_hands, is_honest
from dubito.streams import DealStreams

_LETTERS: Final = "*A23456789TJQK"  # a card is a letter, so that a hand is a short word

Turns = Iterator[tuple[TurnOutput, Sequence[Event]]]


class NotShown(DubitoError):
    """A game cannot be shown; the text says why."""


@dataclass
class Games:
    """Plays the games of a run again: with models from their record, hand-written ones from their seed."""

    source: Source
    registry: Registry
    home: Path
    _kept: replay.Kept | None = field(default=None, init=False)
    _reason: str | None = field(default=None, init=False)
    _changed: dict[str, str] = field(default_factory=dict, init=False)

    def play(self, game: int) -> dict[str, Any]:
        """The whole game; raises NotShown if it cannot be had as it was."""
        (row, record) = self._row(game)
        outcome = unpack(row)
        names = [self.source.names[player] for player in outcome.seats]
        return _told(*self._turns(game, names, outcome, record), row, outcome, names)

    def _row(self, game: int) -> tuple[bytes, str | None]:
        rows = self.source.db.read("SELECT outcome, record FROM games WHERE game = ?", (game,))
        if not rows:
            raise UsageError(
                f"{self.source.folder} keeps the games 0 to {self.source.tally.games - 1}: there is no game {game}"
            )
        return rows[0][0], rows[0][1]

    def _turns(self, game: int, names: list[str], outcome: Outcome, record: str | None) -> tuple[Game, Turns]:
        if record is not None:
            return self._from_record(game, json.loads(record))
        kept = self._opened()
        for name in names:
            if name in self._changed:
                raise NotShown(self._changed[name])
        table, seated = replay.table_of(kept, game, lambda place, question, end: None)
        if seated != names:
            raise NotShown("its seed seats other players than the run has it: the harness was changed since")
        return table.game, _stepped(table)

    def _from_record(self, game: int, record: dict[str, Any]) -> tuple[Game, Turns]:
        rules = Rules(**self.source.manifest["identity"]["rules"])
        streams = DealStreams(self.source.seed, game // self.source.games_per_deal)
        dealt = deal_hands(streams.deck(), len(record["hands"]), rules)
        if [hand.cards for hand in dealt] != record["hands"]:
            raise NotShown("its cards are not those that its seed deals: the record was changed by hand")
        table = Game(rules, dealt)
        outputs = (TurnOutput(*output) for output in record["outputs"])
        return table, ((output, table.apply(output)) for output in outputs)

    def _opened(self) -> replay.Kept:
        """The run as it can be played again; raises NotShown with the same reason each time."""
        if self._kept is None and self._reason is None:
            try:
                self._kept = replay.opened(self.source.folder, self.registry, self.home)
                self._changed = {
                    spec.name: f"the file of {one_line(spec.bot)} was changed since, and it would play otherwise"
                    for spec in self._kept.experiment.players
                    if self.registry.find(spec.bot).digest != spec.source
                }
            except UsageError as error:
                self._reason = str(error)
        if self._kept is None:
            raise NotShown(self._reason)
        return self._kept

    def close(self) -> None:
        """Leave the store that was opened for it."""
        if self._kept is not None:
            self._kept.db.__exit__()


def _stepped(table: Table) -> Turns:
    while not table.game.over:
        yield step(table, announce=True)


def _told(game: Game, turns: Turns, row: bytes, outcome: Outcome, names: list[str]) -> dict[str, Any]:
    """The game told; raises NotShown if it does not end as the run has it."""
    label = _labels(names)
    dealt = held = _hands(game)
    told: list[dict[str, Any]] = []
    opened, number, free, seat = 0, 0, 0, game.seat
    try:
        for output, events in turns:
            was_free, free = game.free_turns > free, game.free_turns
            if output.doubt:
                opened = len(told) + 1
            told.append(_turn(game, seat, output, events, label, number, opened) | {"free": was_free})
            told[-1]["hands"], held = _changed(held, _hands(game)), _hands(game)
            number, seat = game.number, game.seat
    except DubitoError as error:
        raise NotShown(f"it cannot be played again: {error}") from None
    fallbacks = [counts[-1] for counts in outcome.counts]
    if not game.over or outcome_of(game, outcome.seats, outcome.contender_seat, fallbacks).pack() != row:
        raise NotShown("played again it ends otherwise than the run has it: a bot or the harness was changed since")
    return {
        "names": [label(place) for place in range(len(names))],
        "hands": dealt,
        "turns": told,
        "places": outcome.places,
        "ending": ending(game, label),
    }


def _turn(
    game: Game, seat: int, output: TurnOutput, events: Sequence[Event], label: Label, number: int, opened: int
) -> dict[str, Any]:
    """One turn: what was played, the events in words, and how the table stands after it."""
    turn: dict[str, Any] = {
        "seat": seat,
        "words": [sentence(event, label) for event in events],  # on the page itself
        "pile": opened,  # the first turn whose cards lie on the board
        "won": [event.player_id for event in events if isinstance(event, PlayerWonEvent)],
    }
    if not output.doubt:
        assert output.cards is not None
        claimed = output.number or number
        turn |= {
            "claimed": card_name(claimed, plural=True),
            "cards": _letters(output.cards),
            "honest": is_honest(output.cards, claimed),
        }
    return turn


def _hands(game: Game) -> list[str]:
    return [_letters(hand.cards) for hand in game.hands]


def _changed(before: Sequence[str], after: Sequence[str]) -> dict[int, str]:
    """The hands that are others now."""
    return {seat: hand for seat, hand in enumerate(after) if hand != before[seat]}


def _letters(cards: Sequence[int]) -> str:
    """The cards sorted, jokers last."""
    return "".join(_LETTERS[card] for card in sorted(cards, key=lambda card: card or len(_LETTERS)))


def _labels(names: Sequence[str]) -> Label:
    """The player's name; where several share one, with the seat."""
    return lambda seat: names[seat] if names.count(names[seat]) == 1 else f"{names[seat]} ({seat})"
