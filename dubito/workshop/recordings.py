"""Recorded positions: with the truth that the seat could not see, kept apart, and where they were taken from.

The file is a position's file, as its game's `facts` write it, with `hidden` in it. Only what is here reads `hidden`.

What a game may bring for the workshop: names of its module `workshop`, each with what serves where it is missing.

- `Questions(table, rules, note)`, with `step()`: plays a game and tells `note(seat, position)` of each question. Needed
  by a game whose moves are not each one node's answer.
- `Hidden`, a dataclass, `hidden(state)`, `contradiction(position, hidden)`: the truth, kept beside a position.
- `right(position, hidden)`: the answer that the truth makes right, if any; `RIGHT` says in words which.
- `world_pairs()`: pairs of positions that differ only in what their seat cannot know.
- `sample_tables()`: tables to try prompts on, each with its rules; else the game's own bots play.
- `INSTEAD`, `IMPORTANT`: facts that make up for others, and facts that matter at a node.
- `check(position, answer)`: raises IllegalOutput for an answer that the rules refuse there; else all are taken.
- `where(position)`, `own_turn(position)`: which game it is of, in words; which of its seat's turns it is.

Watching a game: every question that its players are asked becomes a recorded position.

Collecting positions from a run that was played, or from the games that a config describes.

Some games to try a prompt on: those that the game brings, or a few by its own bots.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.experiment.experiment import Experiment
from dubito.experiment.models import Models
from dubito.experiment.play import ChunkPlayer, Lineup
from dubito.experiment.resolve import model_specs
from dubito.experiment.stored import Run
from dubito.files import fault, read_text
from dubito.game import Game, GameEvent, Position
from dubito.game.find import Registry, find_bots
from dubito.game.record import Strict
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.llm.prompts import own_prompts
from dubito.llm.recording import ReplayRecording
from dubito.stats.tally import outcome_of
from dubito.store.model_log import ModelLog


def workshop_part(game: Game, name: str, otherwise: Any) -> Any:
    return getattr(game.module("workshop"), name, otherwise)


_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Provenance(Strict):
    """Where a position was taken from."""

    run: str | None  # digest of the run's identity; None: its game was played to take it
    seed: int
    deal: _Count
    game: _Count
    seat: _Count
    decision: _Count  # of this seat in this game, from 0


@dataclass(frozen=True)
class RecordedPosition:
    """A position of a game, where it was taken from, and the truth; None where a file does not tell it."""

    game: Game
    position: Any  # the game's own kind of `Position`
    source: Provenance | None = None
    hidden: Any = None  # the game's own dataclass, where it has one

    @cached_property
    def text(self) -> str:
        text = self.game.facts.to_json(self.position)
        if self.source is None:
            return text
        told = {**(asdict(self.hidden) if self.hidden else {}), "source": asdict(self.source)}
        return text.rstrip().removesuffix("}") + f',\n "hidden": {json.dumps(told)}' + "}\n"

    @cached_property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    @property
    def file_name(self) -> str:
        return f"{self.position.node}-{self.digest[:12]}.json"

    @property
    def deal(self) -> object:
        if self.source is None:
            return self.digest
        return (self.source.run, self.source.seed, self.source.deal)


def parse_position(text: str, game: Game) -> RecordedPosition:
    """The position in a file's text; raises UsageError that names what is malformed, or what contradicts what."""
    position = game.facts.from_json(text)
    told = json.loads(text).get("hidden")
    if told is None:
        return RecordedPosition(game, position)
    if not isinstance(told, dict):
        raise UsageError("this is not a position: hidden: it is not a JSON object")
    source = _parse_as(Provenance, told.pop("source", None), "hidden.source")
    hidden = _parse_as(workshop_part(game, "Hidden", _Nothing), told, "hidden")
    why = workshop_part(game, "contradiction", lambda position, hidden: None)(position, hidden)
    if why is None and source.seat != position.seat:
        why = f"source: the position is of seat {position.seat}"
    if why is not None:
        raise UsageError(f"this is not a position: hidden.{why}")
    return RecordedPosition(game, position, source, None if isinstance(hidden, _Nothing) else hidden)


@dataclass(frozen=True, slots=True)
class _Nothing(Strict):
    """The truth of a game that keeps none."""


_type_adapter: Final = cache(TypeAdapter)  # made once for a kind, since that takes longer than to read with it


def _parse_as(kind: Any, told: object, where: str) -> Any:
    """What is told, as this dataclass; raises UsageError with the first thing that is wrong."""
    try:
        return _type_adapter(kind).validate_json(json.dumps(told))
    except ValidationError as error:
        raise UsageError(f"this is not a position: {fault(error, within=where)}") from None


def shipped_positions(game: Game) -> Path:
    return own_prompts(game) / "positions"


def positions_folder(game: Game, prompts: Path) -> Path:
    beside = prompts / "positions"
    return beside if beside.is_dir() else shipped_positions(game)


def read_folder(folder: Path, game: Game) -> dict[str, RecordedPosition]:
    """The positions of a folder's `.json` files, by the files' names; raises UsageError, with the file's name."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(folder))}: {error.strerror}") from None
    if not files:
        raise UsageError(f"{one_line(str(folder))} holds no positions: `dubito prompts record` makes some")
    return {file.name: _read_position(file, game) for file in files}


def _read_position(file: Path, game: Game) -> RecordedPosition:
    text = read_text(file)
    try:
        return parse_position(text, game)
    except UsageError as error:
        raise UsageError(f"{one_line(str(file))}: {error}") from None


def write_files(files: Mapping[Path, str]) -> None:
    """Write these texts, making their folders; raises UsageError."""
    for file, text in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"cannot write {one_line(str(file))}: {error.strerror}") from None


def digest_of_folder(found: Mapping[str, RecordedPosition]) -> str:
    return sha256("".join(one.digest for one in found.values()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Origin:
    """Which game it is."""

    run: str | None
    seed: int
    deal: int
    game: int


def record_positions(table: Table, origin: Origin, game: Game, rules: Any) -> list[RecordedPosition]:
    """Play the game to its end and return the positions of all its questions, in their order."""
    watcher = Watcher(table, origin, game, rules)
    while not table.state.over:
        watcher.step()
    return watcher.recorded


class Watcher:
    """Plays a game at a table turn by turn; `recorded` are the positions of all questions so far."""

    def __init__(self, table: Table, origin: Origin, game: Game, rules: Any) -> None:
        """Watch a table whose game has not begun; `rules` as the game's notebooks take them."""
        self.recorded: list[RecordedPosition] = []
        self._table, self._origin, self._game = table, origin, game
        self._asked = Counter[int]()
        self._hidden: Callable[[Any], Any] = workshop_part(game, "hidden", lambda state: None)
        questions = workshop_part(game, "Questions", None)
        made = (
            questions(table, rules, self._record_question)
            if questions
            else _Moves(table, rules, self._record_question, game)
        )
        self.step: Callable[[], Any] = made.step  # plays one turn; its output

    def _record_question(self, seat: int, position: Position) -> None:
        origin, number = self._origin, self._asked[seat]
        self._asked[seat] += 1
        source = Provenance(origin.run, origin.seed, origin.deal, origin.game, seat, number)
        self.recorded.append(RecordedPosition(self._game, position, source, self._hidden(self._table.state)))


class _Moves:
    """The questions of a game in which every move is one node's answer: one a move."""

    def __init__(self, table: Table, rules: Any, note: Callable[[int, Position], None], game: Game) -> None:
        self._table, self._record_question = table, note
        self._notebooks = [game.facts.Notebook(seat, rules) for seat in range(len(table.players))]
        self._tell([table.state.start])

    def step(self) -> Any:
        game = self._table.state
        seat, view = game.seat, game.view()
        node, player, notebook = view.node, self._table.players[seat], self._notebooks[seat]
        if player is not None:
            self._record_question(seat, notebook.position(node, view, player.cards))
        output, events = step(self._table, announce=True)
        notebook.note_answer(node, output)
        self._tell(events)
        return output

    def _tell(self, events: Sequence[GameEvent]) -> None:
        for event in events:
            for seat, (notebook, player) in enumerate(zip(self._notebooks, self._table.players, strict=True)):
                if player is not None and event.only in (None, seat):
                    notebook.observe(event, player.cards)


def record_from_run(run: Run, nodes: Collection[str], count: int) -> list[RecordedPosition]:
    """Positions of a run's games, played again: hand-written bots from the seed, models through the tape.

    Raises UsageError if the run keeps no game, or a bot now plays differently; Differs if a model would be asked
    something else now.
    """
    experiment = run.experiment
    if not experiment.games:
        raise UsageError(f"{run.folder} keeps no finished game: there is nothing to record from")
    return _collect_positions(experiment.game_numbers, position_recorder(run), nodes, count)


def position_recorder(run: Run) -> Callable[[int], list[RecordedPosition]]:
    """Plays a game of the run again, by its number, and gives all its positions, in their order.

    Raises UsageError if a bot now plays differently; Differs if a model would be asked something else now.
    """
    models = run.replay_models(ReplayRecording(ModelLog(run.db)), stored_prompts=True)

    def refuse_another(game: int, lineup: Lineup, table: Table) -> None:
        ended = outcome_of(table.state, lineup.seats, lineup.contender_seat, table.fallback_turns).pack()
        ((outcome,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
        if ended != outcome:
            changed = "; ".join(run.mismatches) or "something was changed since"
            raise UsageError(f"game {game} of {run.folder} is now played differently: {changed}")

    return _position_recorder(run.experiment, run.registry, run.experiment.digest(), models, refuse_another)


def record_from_config(
    experiment: Experiment, registry: Registry, nodes: Collection[str], count: int
) -> list[RecordedPosition]:
    """Positions of an experiment's games; raises UsageError if a model would have to be asked for them."""
    if model_specs(experiment, registry):
        raise UsageError(
            "this config has model players, which have to be asked first: `dubito run` it, then record from the run"
        )
    return _collect_positions(experiment.game_numbers, _position_recorder(experiment, registry), nodes, count)


def _position_recorder(
    experiment: Experiment,
    registry: Registry,
    run: str | None = None,
    models: Models | None = None,
    ended: Callable[[int, Lineup, Table], None] = lambda number, lineup, table: None,
) -> Callable[[int], list[RecordedPosition]]:
    """Plays the game of a number and gives its positions; `ended` is called when it is over."""
    game = registry.game

    def play(number: int) -> list[RecordedPosition]:
        table, lineup = ChunkPlayer(experiment, registry).build_table(number, models)
        origin = Origin(run, experiment.seed, table.deal, number)
        found = record_positions(table, origin, game, game.rules(**experiment.rules))
        ended(number, lineup, table)
        return found

    return play


def _collect_positions(
    games: range, play: Callable[[int], list[RecordedPosition]], nodes: Collection[str], count: int
) -> list[RecordedPosition]:
    """So many positions of these nodes, from as many games as may be; fewer if there are no more."""
    chosen = [games[place] for place in evenly_spaced(len(games), min(len(games), count))]
    most = -(-count // len(chosen))  # of one node in one game: more than its share is needed where others lack it
    found: list[RecordedPosition] = []
    for game in chosen:
        piles = _group_positions(one for one in play(game) if one.position.node in nodes)
        found += [one for pile in piles.values() for one in pile[:most]]
    return spread_evenly(found, count)


def evenly_spaced(games: int, n: int) -> list[int]:
    width = games // n
    return [place * games // n + place % width for place in range(n)]


def spread_evenly(found: Sequence[RecordedPosition], count: int) -> list[RecordedPosition]:
    """The first so many of an order in which nodes take turns, and for each node the games: always the same ones.

    Each node begins with another game, so that few positions too come from many games.
    """
    piles = _group_positions(found)
    games = sorted({game for _, game in piles})
    nodes = (
        [node.name for node in found[0].game.nodes if any(node.name == other for other, _ in piles)] if found else []
    )
    turns: dict[str, list[RecordedPosition]] = {}
    for number, node in enumerate(nodes):
        first = number * len(games) // len(nodes)
        own = [piles.get((node, game), []) for game in games[first:] + games[:first]]
        rounds = range(max(map(len, own)))
        turns[node] = [pile[place] for place in rounds for pile in own if place < len(pile)]
    longest_samples = max(map(len, turns.values()), default=0)
    order = [turns[node][place] for place in range(longest_samples) for node in nodes if place < len(turns[node])]
    return order[:count]


def _group_positions(found: Iterable[RecordedPosition]) -> dict[tuple[str, int], list[RecordedPosition]]:
    """By node and game, each pile in an order that follows neither seats nor turns."""
    piles = defaultdict(list)
    for one in found:
        assert one.source is not None  # it comes from a game
        piles[one.position.node, one.source.game].append(one)
    for pile in piles.values():
        pile.sort(key=_shuffle_key)
    return piles


def _shuffle_key(one: RecordedPosition) -> bytes:
    source = one.source
    assert source is not None
    return sha256(f"{source.seed} {source.game} {source.seat} {source.decision}".encode()).digest()


def position_files(found: Iterable[RecordedPosition], folder: Path) -> dict[Path, str]:
    return {folder / one.file_name: one.text for one in found}


_SAMPLE_SEED: Final = 0
_SAMPLE_DEALS: Final = 6


@cache
def sample_games(game: Game) -> tuple[tuple[RecordedPosition, ...], ...]:
    """The positions of each game, in the order in which they were asked."""
    tables: Iterable[tuple[Table, Any]] = workshop_part(game, "sample_tables", lambda: _bot_tables(game))()
    return tuple(
        tuple(record_positions(table, Origin(None, _SAMPLE_SEED, table.deal, table.number), game, rules))
        for table, rules in tables
    )


def _bot_tables(game: Game) -> Iterator[tuple[Table, Any]]:
    """Games by the default rules at tables of every size, the game's hand-written bots in turn."""
    bots = find_bots(Path.cwd(), game.name).hand_written()
    if not bots:
        raise UsageError(f"{game.name} has no hand-written bot to play the games that prompts are tried on: write one")
    entrants = cycle(Entrant(bot.name, bot.cls) for bot in bots)
    rules, (least, most) = game.rules(), game.seats
    for deal in range(_SAMPLE_DEALS):
        seats, streams = least + deal % (most - least + 1), DealStreams(_SAMPLE_SEED, deal)
        state = game.deal(rules, seats, streams.deck())
        yield Table(state, list(islice(entrants, seats)), streams, deal=deal, number=deal), rules
