"""File formats for whole games (deal, outputs and story) and for positions."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from random import Random
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.files import check_format, describe_fault
from dubito.game import Game, State
from dubito.game.events import GameEvent
from dubito.game.moves import Forfeit, make_move, output_of
from dubito.game.reader import Reader
from dubito.game.seeds import Seed
from dubito.game.streams import DealStreams
from dubito.game.words import describe_forfeit
from dubito.game.workshop import ForkStart

FORMAT: Final = "dubito game 2"


class Strict:
    """Base class for dataclasses that are parsed strictly: no extra fields, exact types."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class DealChange(Strict):
    """A change of a game's hidden cards, made at one of its moments."""

    seat: int  # the seat that gets other cards, and that cannot distinguish sampled cards from the real ones
    outputs: list[Any]  # the outputs before the moment with the cards of the deal
    settings: list[str] = field(default_factory=list)  # KEY=VALUE
    sample: str | None = None  # seed of sampled hidden cards

    def apply(self, game: Game, rules: BaseModel, deal: Callable[[], State]) -> ForkStart:
        """Return the changed game at the moment. Raises UsageError for unknown keys and impossible values."""
        start, known = ForkStart(deal, [output_of(game, output) for output in self.outputs]), game.workshop.SETTABLE
        try:
            for setting in self.settings:
                key, _, value = setting.partition("=")
                if key not in known:
                    choices = f"known: {', '.join(known.values())}" if known else f"{game.name} has nothing to set"
                    raise UsageError(f"--set {one_line(setting)}: unknown; {choices}")
                start = game.workshop.change_start(start, self.seat, key, value)
            if self.sample is not None:
                _, log = start.replay()
                sampled = game.workshop.sample_start(rules, log.of(self.seat), Random(self.sample))
                if sampled is None:
                    raise UsageError(f"the hidden cards of {game.name} cannot be sampled; use --worlds same")
                if len(sampled.moves) != len(start.moves):
                    raise UsageError(f"seat {self.seat} left the game before this moment, so it saw no more cards")
                start = sampled
        except IllegalOutput as error:
            raise UsageError(f"the moves before the change are illegal: {error}") from None
        return start


def deal_seats(
    game: Game, rules: BaseModel, seats: int, seed: Seed, deal: int, change: DealChange | None
) -> tuple[State, DealStreams]:
    """Deal a game and return it with its random streams. Raises UsageError if it cannot be dealt."""
    streams = DealStreams(seed, deal)
    if change is None:
        return game.deal_game(rules, seats, streams.deck()), streams
    if not 0 <= change.seat < seats:
        raise UsageError(f"change: seat {change.seat} is not between 0 and {seats - 1}")
    return change.apply(game, rules, lambda: game.deal_game(rules, seats, streams.deck())).deal(), streams


@dataclass(frozen=True, slots=True)
class GameRecord(Strict):
    game: str  # the game's name
    players: list[str]
    rules: dict[str, object]
    seed: Seed | None  # None in a game of a run whose seed is secret
    deal: int
    dealt: dict[str, Any]
    outputs: list[Any]  # in the game's own JSON format; the last one can be a Forfeit that ended the game
    story: list[str]
    # the game's number in the database of model calls
    number: Annotated[int, Field(strict=True, ge=0, lt=2**63)] | None = None
    change: DealChange | None = None  # if the seed deals other hidden cards
    format: Literal["dubito game 2"] = field(kw_only=True)


def read_game_name(text: str, default: str) -> str:
    """Return the name of a record's game, or `default` if it has none.

    Raises UsageError if the text is a page, or the name is not a string.
    """
    if text.lstrip()[:9].lower() == "<!doctype":
        raise UsageError("this is a page", hint="download the game's record, which is linked at the end of the page")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return default
    name = content.get("game", default) if isinstance(content, dict) else default
    if not isinstance(name, str):
        raise UsageError("this is not a game record: game: Input should be a valid string")
    return name


def refuse_other_format(text: str, known: str, shown: str) -> None:
    """Raise UsageError if the text has another version of the format.

    Call this if parsing failed. Formats look like `bs position 1`.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return
    stated = content.get("format") if isinstance(content, dict) else None
    same_kind = not isinstance(stated, str) or stated.rpartition(" ")[0] == known.rpartition(" ")[0]
    if stated is not None and same_kind:
        check_format(stated, known, shown)


def format_lines(content: Mapping[str, object], lists: Collection[str]) -> str:
    """Format JSON with one line per key and one line per item of these lists."""
    lines = []
    for key, value in content.items():
        if key in lists and isinstance(value, list):
            items = ",\n  ".join(json.dumps(item, ensure_ascii=False) for item in value)
            lines.append(f'"{key}": [\n  {items}\n ]')
        else:
            lines.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{" + ",\n ".join(lines) + "}\n"


@cache
def _format() -> TypeAdapter[GameRecord]:
    """Return the validator. It is built on first use because most commands do not read records."""
    return TypeAdapter(GameRecord)


class Recorder:
    """Collects the outputs and the story of a game while it is played."""

    def __init__(self, game: Game, state: State, rules: Mapping[str, object]) -> None:
        self._game, self._state, self._rules = game, state, dict(rules)
        self._reader = Reader()
        self._teller = game.words.teller(state, self._reader)
        self._seat = state.seat
        self.dealt = game.deal_to_json(state)
        self.outputs: list[Any] = []
        self.story: list[str] = []

    def add(self, turn: int, output: object, events: Sequence[GameEvent]) -> None:
        """Record one move of a turn, counted from 1."""
        if isinstance(output, Forfeit):
            self.outputs.append(asdict(output))
            self.story.append(f"turn {turn}: {describe_forfeit(output.seat, self._reader, self._game)}")
            return
        self.outputs.append(self._game.output_to_json(output))
        for line in self._teller.describe_move(self._seat, output, events):
            truth = line.truth and f"[{line.truth}]"
            self.story.append(f"turn {turn}: {' '.join(filter(None, (line.sentence, truth)))}")
        self._seat = self._state.seat

    def end(self) -> list[str]:
        """Return the closing lines of a finished game's story."""
        # Without this digest, changing cards that were never shown would not change the story.
        digest = sha256(json.dumps([self.dealt, self.outputs]).encode()).hexdigest()[:16]
        return [*self._teller.ending(), f"Deal and outputs: {digest}"]

    def record(
        self, state: State, players: Sequence[str], seed: Seed | None, deal: int, number: int | None = None
    ) -> GameRecord:
        """Return the record of the finished game.

        If models played, `number` is the game's number in the folder's `run.db`.
        """
        story = [*self.story, *self.end()]
        name, rules, dealt = self._game.name, self._rules, self.dealt
        return GameRecord(name, list(players), rules, seed, deal, dealt, self.outputs, story, number, format=FORMAT)


_LISTS: Final = ("outputs", "story")  # keys of records with a line per item


@dataclass(frozen=True, slots=True)
class Records:
    """Writes, reads and replays the records of a game."""

    game: Game

    def dump(self, record: GameRecord) -> str:
        """Return the record as the text of a file. Most records have no `number` and no `change`."""
        content = {key: value for key, value in asdict(record).items() if value is not None or key == "seed"}
        return format_lines(dict(sorted(content.items(), key=lambda item: (item[0] in _LISTS, item[0]))), _LISTS)

    def load(self, text: str) -> GameRecord:
        """Parse a record. Raises UsageError if it is invalid."""
        try:
            record = _format().validate_json(text)
            if record.game != self.game.name:
                raise UsageError(f"this is a game of {one_line(record.game, 60)}, not of {self.game.name}")
            self.game.rules(**record.rules)
        except ValidationError as error:
            refuse_other_format(text, FORMAT, "this game")
            raise UsageError(f"this is not a game record: {describe_fault(error)}") from None
        return record

    def replay(self, record: GameRecord) -> Iterator[str]:
        """Replay the record and yield its story line by line.

        If the rules refuse an output, the last line reports it.
        """
        state, outputs = self.deal_record(record)
        recorder, yielded = Recorder(self.game, state, record.rules), 0
        for output in outputs:
            turn = state.turns_played + 1
            try:
                recorder.add(turn, output, make_move(state, output))
            except IllegalOutput as error:
                yield f"turn {turn}: refused: {error}"
                return
            yield from recorder.story[yielded:]
            yielded = len(recorder.story)
        yield from recorder.end() if state.over else ["The outputs end before the game is over."]

    def deal_record(self, record: GameRecord) -> tuple[State, Iterator[object]]:
        """Return the dealt game and its outputs.

        Raises UsageError if the seed is missing or deals other cards than recorded.
        """
        game = self.game
        if record.seed is None:
            raise UsageError("the record has no seed, so its cards cannot be verified")
        rules = game.rules(**record.rules)
        state, _ = deal_seats(game, rules, len(record.players), record.seed, record.deal, record.change)
        if game.deal_to_json(state) != record.dealt:
            raise UsageError("the record's cards do not match its seed, so it was modified or is damaged")
        return state, (output_of(game, output) for output in record.outputs)
