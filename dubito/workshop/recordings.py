"""Recorded positions: questions from games, with their source and the truth that is hidden from the seat.

A file contains the position, and `hidden`, which only this module reads: where it comes from, and the right answer.

Positions are recorded while games of a run, a config or a sample are played.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.experiment.models import Models
from dubito.experiment.play import ChunkPlayer, Lineup
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.stored import Run
from dubito.files import describe_fault, read_text
from dubito.game import Game, node_view
from dubito.game.events import Listener
from dubito.game.find import find_bots
from dubito.game.log import Position
from dubito.game.position_file import dump_position, load_position
from dubito.game.record import Strict
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.llm.prompts import own_prompts
from dubito.llm.recording import ReplayRecording
from dubito.stats.tally import build_outcome

_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Provenance(Strict):
    """Where a position comes from."""

    run: str | None  # digest of the run's identity; None if the game was only played to record positions
    seed: int | str  # or the SHA-256 of a secret seed
    deal: _Count
    game: _Count
    seat: _Count
    decision: _Count  # index among this seat's decisions in this game


@dataclass(frozen=True)
class RecordedPosition:
    """A position from a game. `source` is None if the file does not contain it."""

    game: Game
    position: Position
    source: Provenance | None = None
    right: object = None  # the right answer according to the truth, if there is one

    @cached_property
    def text(self) -> str:
        text = dump_position(self.game, self.position)
        if self.source is None:
            return text
        hidden = {"right": self.right, "source": asdict(self.source)}
        return text.rstrip().removesuffix("}") + f',\n "hidden": {json.dumps(hidden)}' + "}\n"

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
    """Parse a position file. Raises UsageError with the malformed or contradictory key."""
    position = load_position(game, text)
    content = json.loads(text).get("hidden")
    if content is None:
        return RecordedPosition(game, position)
    try:
        hidden = _hidden_format().validate_json(json.dumps(content))
    except ValidationError as error:
        raise UsageError(f"this is not a position: {describe_fault(error, within='hidden')}") from None
    if hidden.source.seat != position.seat:
        raise UsageError(f"this is not a position: hidden.source: the position belongs to seat {position.seat}")
    return RecordedPosition(game, position, hidden.source, hidden.right)


@dataclass(frozen=True, slots=True)
class _Hidden(Strict):
    """What the seat cannot see."""

    source: Provenance
    right: object = None


@cache
def _hidden_format() -> TypeAdapter[_Hidden]:
    return TypeAdapter(_Hidden)


def shipped_positions(game: Game) -> Path:
    return own_prompts(game) / "positions"


def read_folder(folder: Path, game: Game) -> dict[str, RecordedPosition]:
    """Read the positions in a folder's `.json` files, keyed by file name.

    Raises UsageError with the name of the file.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(folder))}: {error.strerror}") from None
    if not files:
        raise UsageError(f"{one_line(str(folder))} has no positions", hint="`dubito prompts record` creates some")
    positions = {}
    for file in files:
        text = read_text(file)
        try:
            positions[file.name] = parse_position(text, game)
        except UsageError as error:
            raise UsageError(f"{one_line(str(file))}: {error}") from None
    return positions


def write_files(files: Mapping[Path, str]) -> None:
    """Write these texts, creating their folders. Raises UsageError."""
    for file, text in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"cannot write {one_line(str(file))}: {error.strerror}") from None


def digest_of_folder(positions: Mapping[str, RecordedPosition]) -> str:
    return sha256("".join(one.digest for one in positions.values()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Origin:
    """The game from which positions are recorded."""

    run: str | None
    seed: int | str
    deal: int
    game: int


def record_positions(table: Table, origin: Origin, game: Game, rules: object) -> list[RecordedPosition]:
    """Play the game and return the positions of all its questions, in order."""
    watcher = Watcher(table, origin, game, rules)
    while not table.state.over:
        watcher.step()
    return watcher.recorded


class Watcher:
    """Plays a game move by move and records the positions of all questions."""

    def __init__(self, table: Table, origin: Origin, game: Game, rules: object) -> None:
        """Watch a table that has not started yet."""
        self.recorded: list[RecordedPosition] = []
        self._table, self._origin, self._game, self._rules = table, origin, game, rules
        self._counts = Counter[int]()
        self._log = table.keep_log()
        for seat, player in enumerate(table.players):
            if game.has_walk and player is not None:
                player.report_answers(_Questions(self, seat))

    def step(self) -> object:
        """Make the next move and return its output."""
        state, seat = self._table.state, self._table.state.seat
        node = "" if self._game.has_walk else node_view(state).node
        if node and self._table.players[seat] is not None:
            self.record_question(seat, node)
        output, _ = step(self._table)
        return output

    def record_question(self, seat: int, node: str) -> None:
        origin, number, state = self._origin, self._counts[seat], self._table.state
        self._counts[seat] += 1
        source = Provenance(origin.run, origin.seed, origin.deal, origin.game, seat, number)
        position = Position(self._rules, node, self._log.of(seat))
        self.recorded.append(
            RecordedPosition(self._game, position, source, self._game.workshop.right_answer(state, node))
        )


@dataclass(eq=False)
class _Questions(Listener):
    """Records the questions of a seat."""

    watcher: Watcher
    seat: int

    def note_question(self, node: str) -> None:
        self.watcher.record_question(self.seat, node)


def record_from_run(run: Run, nodes: Collection[str], count: int) -> list[RecordedPosition]:
    """Replay games of a run and return up to `count` positions of these nodes.

    Raises UsageError if the run has no games or a bot now plays differently, and Differs if a model would now get a
    different request.
    """
    experiment = run.experiment
    if not experiment.games:
        raise UsageError(f"{run.folder} has no finished game to record from")
    return _collect_positions(experiment.game_numbers, position_recorder(run), nodes, count)


def position_recorder(run: Run) -> Callable[[int], list[RecordedPosition]]:
    """Return a function that replays a game of the run and returns its positions in order.

    It raises UsageError if a bot now plays differently, and Differs if a model would now get a different request.
    """
    models = run.replay_models(ReplayRecording(run.model_log), stored_prompts=True)

    def check_outcome(game: int, lineup: Lineup, table: Table) -> None:
        ended = build_outcome(table.state, lineup.seats, lineup.contender_seat, table.fallback_turns).pack()
        ((outcome,),) = run.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
        if ended != outcome:
            changed = "; ".join(run.mismatches) or "something has changed"
            raise UsageError(f"game {game} of {run.folder} now plays differently: {changed}")

    return _position_recorder(run.resolved, run.experiment.digest(), models, check_outcome)


def record_from_config(run: ResolvedRun, nodes: Collection[str], count: int) -> list[RecordedPosition]:
    """Play games of a run and return up to `count` positions. Raises UsageError if models play in it."""
    if run.models:
        raise UsageError("this config has model players", hint="start it with `dubito run`, then record from the run")
    return _collect_positions(run.experiment.game_numbers, _position_recorder(run), nodes, count)


def _position_recorder(
    run: ResolvedRun,
    digest: str | None = None,
    models: Models | None = None,
    ended: Callable[[int, Lineup, Table], None] = lambda number, lineup, table: None,
) -> Callable[[int], list[RecordedPosition]]:
    """Return a function that plays a game and returns its positions. `ended` is called after the game."""
    player, experiment = ChunkPlayer(run), run.experiment

    def play(number: int) -> list[RecordedPosition]:
        table, lineup = player.build_table(number, models)
        origin = Origin(digest, experiment.seed_sha256 or experiment.seed, table.deal, number)
        positions = record_positions(table, origin, run.game, run.rules)
        ended(number, lineup, table)
        return positions

    return play


def _collect_positions(
    games: range, play: Callable[[int], list[RecordedPosition]], nodes: Collection[str], count: int
) -> list[RecordedPosition]:
    """Return up to `count` positions of these nodes, from as many games as possible."""
    chosen = [games[place] for place in evenly_spaced(len(games), min(len(games), count))]
    # Per node and game, since more than a node's share is needed if other nodes are missing.
    most = -(-count // len(chosen))
    positions: list[RecordedPosition] = []
    for game in chosen:
        groups = _group_positions(one for one in play(game) if one.position.node in nodes)
        positions += [one for group in groups.values() for one in group[:most]]
    return spread_evenly(positions, count)


def evenly_spaced(games: int, n: int) -> list[int]:
    width = games // n
    return [place * games // n + place % width for place in range(n)]


def spread_evenly(positions: Sequence[RecordedPosition], count: int) -> list[RecordedPosition]:
    """Select up to `count` positions deterministically, by cycling through the nodes and each node's games.

    Each node starts with a different game, so that even a few positions come from many games.
    """
    groups = _group_positions(positions)
    games = sorted({game for _, game in groups})
    nodes = (
        [node.name for node in positions[0].game.nodes if any(node.name == other for other, _ in groups)]
        if positions
        else []
    )
    turns: dict[str, list[RecordedPosition]] = {}
    for number, node in enumerate(nodes):
        first = number * len(games) // len(nodes)
        own = [groups.get((node, game), []) for game in games[first:] + games[:first]]
        rounds = range(max(map(len, own)))
        turns[node] = [group[place] for place in rounds for group in own if place < len(group)]
    longest = max(map(len, turns.values()), default=0)
    order = [turns[node][place] for place in range(longest) for node in nodes if place < len(turns[node])]
    return order[:count]


def _group_positions(positions: Iterable[RecordedPosition]) -> dict[tuple[str, int], list[RecordedPosition]]:
    """Group positions by node and game. The order in each group is independent of seats and turns."""
    groups = defaultdict(list)
    for one in positions:
        assert one.source is not None  # recorded from a game
        groups[one.position.node, one.source.game].append(one)
    for group in groups.values():
        group.sort(key=_shuffle_key)
    return groups


def _shuffle_key(one: RecordedPosition) -> bytes:
    source = one.source
    assert source is not None
    return sha256(f"{source.seed} {source.game} {source.seat} {source.decision}".encode()).digest()


_SAMPLE_SEED: Final = 0
_SAMPLE_DEALS: Final = 6


@cache
def sample_games(game: Game) -> tuple[tuple[RecordedPosition, ...], ...]:
    """Return the positions of each sample game, in order."""
    tables = game.workshop.sample_tables() or _bot_tables(game)
    return tuple(
        tuple(record_positions(table, Origin(None, _SAMPLE_SEED, table.deal, table.number), game, rules))
        for table, rules in tables
    )


def _bot_tables(game: Game) -> Iterator[tuple[Table, object]]:
    """Yield games under the default rules at tables of every size, rotating the game's hand-written bots."""
    bots = find_bots(Path.cwd(), game.name).hand_written()
    if not bots:
        raise UsageError(f"{game.name} has no hand-written bots, which are needed to test prompts", hint="write one")
    entrants = cycle(Entrant(bot.name, bot.cls) for bot in bots)
    rules, (least, most) = game.rules(), game.seats
    for deal in range(_SAMPLE_DEALS):
        seats, streams = least + deal % (most - least + 1), DealStreams(_SAMPLE_SEED, deal)
        state = game.deal(rules, seats, streams.deck())
        yield Table(state, list(islice(entrants, seats)), streams, deal=deal, number=deal), rules
