"""What is kept of a game: a whole one, by its deal and outputs, with its story; and the position of one seat."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model

from dubito.errors import DubitoError, IllegalOutput, UsageError, one_line
from dubito.files import Checked, check_format, fault
from dubito.game import Game, State
from dubito.game.streams import DealStreams
from dubito.game.words import forfeit_in_words, seat_label, words_of

FORMAT: Final = "dubito game 2"


class Strict:
    """A dataclass of this kind is read from JSON as it is: no field more, and none of another type."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class GameRecord(Strict):
    """One game, complete."""

    game: str  # its name
    players: list[str]
    rules: dict[str, Any]
    seed: int
    deal: int
    dealt: dict[str, Any]
    outputs: list[Any]  # as the game writes them; the last may be the Forfeit that ended it
    story: list[str]
    number: Annotated[int, Field(strict=True, ge=0, lt=2**63)] | None = None  # in the store of what models are asked
    format: Literal["dubito game 2"] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Forfeit:
    """Stands where an output would: a seat has ended the game by a mistake."""

    seat: int


def game_named(text: str, otherwise: str) -> str:
    """Return the name of a record's game, `otherwise` if it states none. Raises UsageError if the name is no text."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    name = content.get("game", otherwise) if isinstance(content, dict) else otherwise
    if not isinstance(name, str):
        raise UsageError("this is no game record: game: Input should be a valid string")
    return name


def refuse_other_format(text: str, known: str, shown: str) -> None:
    """Raise UsageError if a text that could not be read has the format of another version, as in `bs position 1`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return
    found = content.get("format") if isinstance(content, dict) else None
    same_kind = not isinstance(found, str) or found.rpartition(" ")[0] == known.rpartition(" ")[0]
    if found is not None and same_kind:
        check_format(found, known, shown)


def as_lines(content: Mapping[str, Any], lists: Collection[str]) -> str:
    """JSON, a key a line, and an item of these lists a line."""
    lines = []
    for key, value in content.items():
        if key in lists:
            items = ",\n  ".join(map(_json, value))
            lines.append(f'"{key}": [\n  {items}\n ]')
        else:
            lines.append(f'"{key}": {_json(value)}')
    return "{" + ",\n ".join(lines) + "}\n"


def _json(value: Any) -> str:
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if hasattr(value, "said"):  # rules that say themselves how they are kept
        value = value.said()
    return json.dumps(asdict(value) if is_dataclass(value) else value, ensure_ascii=False)  # type: ignore[arg-type]


def record_as_lines(record: Any, lists: Collection[str]) -> str:
    """A record of whichever form as JSON, these keys last; one without models looks as it always did."""
    content = {each.name: getattr(record, each.name) for each in fields(record)}
    if record.number is None:
        del content["number"]
    return as_lines(dict(sorted(content.items(), key=lambda item: (item[0] in lists, item[0]))), lists)


P = TypeVar("P")


@dataclass(frozen=True)
class PositionFile(Generic[P]):
    """How a game's positions are kept: JSON with their fields, a line for each item of a list of objects.

    Beside them may stand `hidden`, the truth that the seat cannot see: nothing here reads it.
    """

    kind: type[P]  # a dataclass, whose types a file is checked by
    format: str
    fault: Callable[[P], str | None]  # why no game can have it; may raise UsageError with it instead
    types: Mapping[str, Any] = field(default_factory=dict)  # of fields that are checked by another
    usual: bool = True  # whether an item tells what in it is as usual

    def to_json(self, position: P) -> str:
        content: dict[str, Any] = {"format": self.format}
        lists = []
        for each in fields(cast(Any, position)):
            content[each.name] = value = getattr(position, each.name)
            if isinstance(value, tuple) and value and is_dataclass(value[0]):
                lists.append(each.name)
                content[each.name] = [*map(self._item, value)]
        return as_lines(content, lists)

    def _item(self, item: Any) -> dict[str, Any]:
        usual = {} if self.usual else {each.name: each.default for each in fields(item)}
        return {key: value for key, value in asdict(item).items() if key not in usual or value != usual[key]}

    def from_json(self, text: str) -> P:
        """The inverse; raises UsageError that names what is malformed, or what no game can have."""
        try:
            file = self._file.model_validate_json(text)
            position = self.kind(**{name: getattr(file, name) for name in self._types})
            why = self.fault(position)
        except ValidationError as error:
            refuse_other_format(text, self.format, "this position")
            why = fault(error)
        except UsageError as error:
            why = str(error)
        if why is not None:
            raise UsageError(f"this is no position: {why}")
        return position

    @property
    def _types(self) -> dict[str, Any]:
        return {each.name: each.type for each in fields(cast(Any, self.kind))} | {**self.types}

    @cached_property
    def _file(self) -> type[BaseModel]:
        known: dict[str, Any] = {"format": Literal[self.format], **self._types}
        known = {name: (kind, ...) for name, kind in known.items()} | {"hidden": (Any, None)}
        return create_model("_File", __base__=Checked, **known)


def seal(*parts: object) -> str:
    """A digest of deal and outputs: cards that nobody ever saw are in no other line of a story."""
    return f"Deal and outputs: {sha256(json.dumps(list(parts)).encode()).hexdigest()[:16]}"


@cache
def _format() -> TypeAdapter[GameRecord]:
    """Made when it is first needed: most commands read no record."""
    return TypeAdapter(GameRecord)


class Recorder:
    """Collects the outputs and the story of a game while it is played."""

    def __init__(self, game: Game, state: State, rules: Mapping[str, Any]) -> None:
        self._game, self._state, self._rules = game, state, dict(rules)
        self._teller = words_of(game).Teller(state, seat_label)
        self._seat = state.seat
        self.dealt = game.deal_to_json(state)
        self.outputs: list[Any] = []
        self.story: list[str] = []

    def add(self, turn: int, output: Any, events: Sequence[Any]) -> None:
        """Keep one move of a turn, counted from 1."""
        if isinstance(output, Forfeit):
            self.outputs.append(asdict(output))
            self.story.append(f"turn {turn}: {forfeit_in_words(output.seat, seat_label, self._game)}")
            return
        self.outputs.append(self._game.output_to_json(output))
        for line in self._teller.moved(self._seat, output, events):
            truth = line.truth and f"[{line.truth}]"
            self.story.append(f"turn {turn}: {' '.join(filter(None, (line.said, truth)))}")
        self._seat = self._state.seat

    def end(self) -> list[str]:
        """The last lines of a finished game's story."""
        return [*self._teller.ending(), seal(self.dealt, self.outputs)]

    def record(self, state: State, players: Sequence[str], seed: int, deal: int, number: int | None = None) -> Any:
        """The finished game; `number` is its own in the `run.db` of its folder, where models played at the table."""
        story = [*self.story, *self.end()]
        name, rules, dealt = self._game.name, self._rules, self.dealt
        return GameRecord(name, list(players), rules, seed, deal, dealt, self.outputs, story, number, format=FORMAT)


class Records:
    """How a game's records are made, written and read: here in a form that every game can have, dealt by its seed.

    What a record is, is the game's: a module `record` with these functions stands in the place of this. It has a
    `story`.
    """

    def __init__(self, game: Game) -> None:
        self._game = game

    def recorder(self, state: State, rules: Mapping[str, Any]) -> Recorder:
        """Of a game just dealt."""
        return Recorder(self._game, state, rules)

    def dump(self, record: Any) -> str:
        """The record as a file's text."""
        return record_as_lines(record, {"outputs", "story"})

    def load(self, text: str) -> Any:
        """The inverse; raises UsageError that names what is wrong."""
        try:
            record = _format().validate_json(text)
            if record.game != self._game.name:
                raise UsageError(f"this is a game of {one_line(record.game, 60)}, not of {self._game.name}")
            self._game.rules(**record.rules)
        except ValidationError as error:
            refuse_other_format(text, FORMAT, "this game")
            raise UsageError(f"this is no game record: {fault(error)}") from None
        return record

    def replay(self, record: Any) -> Iterator[str]:
        """Play it again and tell its story anew, line by line; a refused output ends it with a line that says so."""
        state, outputs = self.opened(record)
        recorder, told = self.recorder(state, record.rules), 0
        for output in outputs:
            turn = state.turns_played + 1
            try:
                recorder.add(turn, output, make_move(state, output))
            except IllegalOutput as error:
                yield f"turn {turn}: refused: {error}"
                return
            yield from recorder.story[told:]
            told = len(recorder.story)
        yield from recorder.end() if state.over else ["The outputs end before the game does."]

    def opened(self, record: Any) -> tuple[Any, Iterator[Any]]:
        """The game as it was dealt, and its outputs; raises UsageError if it is not dealt so."""
        game = self._game
        streams = DealStreams(record.seed, record.deal)
        state = game.dealt(game.rules(**record.rules), len(record.players), streams.deck())
        if game.deal_to_json(state) != record.dealt:
            raise UsageError("the record's cards are not those that its seed deals: it was changed or is damaged")
        return state, (output_of(game, output) for output in record.outputs)


def records_of(game: Game) -> Records:
    module = game.module("record")
    return Records(game) if module is None else cast(Records, module)


def output_of(game: Game, kept: Any) -> Any:
    """An output as it was kept; raises UsageError if it is none."""
    if game.forfeits and isinstance(kept, dict) and list(kept) == ["seat"] and type(kept["seat"]) is int:
        return Forfeit(kept["seat"])
    try:
        return game.output_from_json(kept)
    except (TypeError, ValueError, LookupError, DubitoError):
        raise UsageError(f"an output is none of {game.name}: {one_line(json.dumps(kept), 80)}") from None


@contextmanager
def whole_game(state: Any) -> Iterator[None]:
    """Within, a record's game is played; raises UsageError where it breaks the rules, or ends before it is over."""
    try:
        yield
    except IllegalOutput as error:
        raise UsageError(f"turn {state.turns_played + 1} of the record breaks the rules: {error}") from None
    if not state.over:
        raise UsageError(f"the record breaks off after {state.turns_played} turns, before the game is over")


def make_move(state: Any, output: Any) -> Sequence[Any]:
    """Make the move, or end the game by its forfeit; raises IllegalOutput if the rules refuse it."""
    if not isinstance(output, Forfeit):
        events: Sequence[Any] = state.apply(output)
        return events
    state.forfeit(output.seat)
    return []
