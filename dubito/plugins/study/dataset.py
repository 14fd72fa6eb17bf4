"""Export a run as a dataset: Parquet files of its games, model decisions and events.

The dataset card, in Hugging Face's format, explains every column.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import dubito
from dubito.errors import UsageError, one_line
from dubito.experiment.lies import LIES, replay_game
from dubito.experiment.replay import ReplayedLogs
from dubito.experiment.stored import Run
from dubito.game import Game
from dubito.game.reader import Reader
from dubito.plugins.study.event_fields import EventFields, FieldType
from dubito.store.lock import draft_folder
from dubito.workshop.run_rows import DecisionRows, RunRow, game_rows

# The columns of each file, with their pyarrow type and meaning.
GAMES: Final = {
    "game": ("int64", "number of the game in the run"),
    "deal": ("int64", "number of the deal; games of a deal have the same cards"),
    "players": ("strings", "names by seat"),
    "contender_seat": ("int64", "the contender's seat, or null"),
    "buckets": ("strings", "result of each seat"),
    "measures": ("measures", "by seat: the game's measures, each as a number"),
    "counts": ("counts", "by seat: the game's counts"),
    "conditions": ("strings", "by seat: the condition of the player's prompt, silent if none; null for a bot"),
    "lies": ("lies", "by seat: the numbers of voluntary (chosen) and forced lies, and of plays that could be honest"),
    "capped": ("bool", "whether the game ended at the maximum number of turns"),
}
DECISIONS: Final = {
    "game, deal, seat": ("int64", "the place of the decision"),
    "decision": ("int64", "number of the seat's decision in its game, from 0"),
    "turn": ("int64", "the seat's own turn, from 1"),
    "game_turn": ("int64", "the game's turn, from 1: `dubito fork RUN:GAME:TURN` plays on from it"),
    "player, model": ("string", "the player and its model"),
    "node, question": ("string", "the question"),
    "facts": ("string", "JSON: all facts that the prompt can use; no hidden information"),
    "prompt, request": ("string", "digests of the prompt's files and of the request"),
    "condition": ("string", "what the prompt's name adds to it, such as must-not-lie; silent if nothing"),
    "language": ("string", "code of the prompt's language, such as en"),
    "reply": ("string", "text of the last reply, null if there was none"),
    "answer": ("string", "JSON: the answer that was played"),
    "lie": ("string", "whether the resulting move was a lie: chosen (voluntary), forced, null if not"),
    "outcome": ("string", "model, model_after_reask, or fallback:CAUSE, where a hand-written bot answered"),
    "p_bluff": ("float64", "the probability of a bluff that the model stated, from 0 to 1; null if none"),
    "p_win": ("float64", "the probability that the model stated to win, from 0 to 1; null if none"),
    "truth": ("string", "JSON: the right answer according to hidden cards, null if there is none"),
    "attempts": ("int64", "number of requests; 0 if an earlier question of the same request included this one"),
    "tokens_input, tokens_cached, tokens_output": ("int64", "tokens of all attempts, as the server counted them"),
    "usd": ("float64", "their cost in dollars; 0 from the cache, null if the price is unknown"),
}
EVENTS: Final = {
    "game, deal": ("int64", "the place of the event"),
    "number": ("int64", "number of the event in its game, from 0"),
    "turn": ("int64", "the game's turn, from 1; 0 for events of the deal"),
    "event": ("string", "class of the event, such as `CardsPlayedEvent`"),
    "only": ("int64", "the only seat that saw it; -1 if no seat did, null if every seat still in the game did"),
    "fields": ("fields", "a record of the event's other fields; null where its class lacks the field"),
    "sentence": ("string", "the event in words, empty if it has none"),
}
_HONEST: Final = "could_be_honest"
_TABLES: Final = {"decisions": DECISIONS, "games": GAMES, "events": EVENTS}


_READING: Final = """## Reading it

```python
import pandas

games = pandas.read_parquet("games.parquet")
decisions = pandas.read_parquet("decisions.parquet")

import polars

decisions = polars.read_parquet("decisions.parquet")
seats = polars.read_parquet("games.parquet").explode("players", "conditions", "lies").unnest("lies")
lies = seats.group_by("players", "conditions").agg(polars.col("chosen", "could_be_honest").sum())

from datasets import load_dataset

decisions = load_dataset("/path/to/this/folder", "decisions", split="train")
```

A column by seat has a list: `games["buckets"][0][2]` is the result of the first game's third seat, and
`games["counts"][0][2]` has its counts by name. How often a player lied where it could be honest is `chosen` divided by
`could_be_honest`.

## Citation

```bibtex
{citation}
```
"""
_CITATION: Final = """@software{{dubito,
  title = {{Dubito: language models, bots and people at games of hidden information}},
  author = {{{{The Dubito founders}}}},
  version = {{{version}}},
  note = {{Dataset with results digest {digest}}}
}}"""


def dataset_card(run: Run, licence: str | None = None) -> str:
    experiment, calls = run.experiment, run.spent.calls if run.resolved.has_records else 0
    citation = _CITATION.format(version=dubito.__version__, digest=run.db.results_digest())
    return f"""---
configs:
- config_name: decisions
  data_files: decisions.parquet
- config_name: games
  data_files: games.parquet
- config_name: events
  data_files: events.parquet
license: {licence or "unknown"}
tags: [games, imperfect-information, {json.dumps(run.registry.game.name)}]
---

# A run of {run.registry.game.name}

{experiment.games:,} games of {run.deals:,} deals, with {calls:,} calls to models. Licence: {licence or "not stated"}.

| provenance | |
| --- | --- |
| played by | dubito {_escape(str(run.versions.get("dubito")))} |
| exported by | dubito {dubito.__version__} |
| results digest | {run.db.results_digest()} |
| seed | {run.seed_in_words} |
| rules | {_escape(json.dumps(experiment.rules))} |
| seats per table | {", ".join(map(str, experiment.table_sizes))} |

Names of models, token counts and dollars are what servers reported, so nobody can verify them.

## Players and conditions

A player is a model with a prompt and settings, or a bot. A condition is part of the prompt's name:
`plain+must-not-lie` is `plain` with the paragraph of `must-not-lie`, and `plain-it` is `plain` in Italian. Contenders
play the same deals in the same seats against the same opponents, so compare them deal by deal.

{_player_table(run)}
Only model players have decisions. Seats are numbers: `facts` contains no names of players.

## decisions.parquet

{_column_table(DECISIONS)}
## games.parquet

{_column_table(GAMES)}
## events.parquet

All events of all games in order, including hidden ones and the seats' answers. A seat saw the events with its number in
`only` and those with null, until it left the game. The table is empty if no model played and a bot's file has changed.

{_column_table(EVENTS)}
{_event_table(run)}
{_READING.format(citation=citation)}"""


def _player_table(run: Run) -> str:
    """Return a table of the players with what each was asked to be."""
    experiment, shown = run.experiment, ("model", "prompt")
    rows = [
        [
            player.name,
            run.kinds[player.name],
            "contender" if player in experiment.contenders else "opponent",
            player.bot,
        ]
        + [str(player.settings.get(key) or "") for key in shown]
        + [player.prompt[:16]]
        for player in experiment.players
    ]
    lines = ["| player | kind | role | bot | model | prompt | prompt digest |", f"|{' --- |' * 7}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_escape, row))} |" for row in rows), ""])


def _escape(name: str) -> str:
    return re.sub(r"([!-&(-+./:-@\[-`{-~])", r"\\\1", one_line(name))


def _column_table(columns: dict[str, tuple[str, str]]) -> str:
    rows = [f"| {name} | {meaning} |" for name, (_, meaning) in columns.items()]
    return "\n".join(["| column | |", "| --- | --- |", *rows, ""])


def _event_table(run: Run) -> str:
    described = EventFields(run.registry.game).describe()
    rows = [f"| {name} | {_escape(about)} | {', '.join(found)} |" for name, (about, found) in described.items()]
    return "\n".join(["## Events and their fields", "", "| event | | fields |", "| --- | --- | --- |", *rows, ""])


_GAMES_PER_GROUP: Final = 500


def write_dataset(run: Run, folder: Path, progress: Callable[[int], None], licence: str | None = None) -> None:
    """Write the tables and `README.md` into a new folder, calling `progress` for each game.

    Games are replayed, so that each decision has the facts it was based on. Raises UsageError if pyarrow is missing, if
    the folder exists or cannot be written, or if a game now plays differently.
    """
    if find_spec("pyarrow") is None:
        raise UsageError("Parquet files need pyarrow: pip install 'dubito[parquet]'")
    if not run.experiment.games:
        raise UsageError(f"{run.folder} has no finished game to export")
    if folder.exists():
        raise UsageError(f"{one_line(str(folder))} already exists", hint="choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(folder, "folder") as scratch:
            draft = scratch / "dataset"
            draft.mkdir()
            _write_tables(run, draft, progress)
            (draft / "README.md").write_text(dataset_card(run, licence), encoding="utf-8")
            draft.rename(folder)
    except OSError as error:
        raise UsageError(
            f"cannot write {one_line(str(folder))}: {error.strerror or error}", hint="choose another folder"
        ) from None


def _write_tables(run: Run, folder: Path, progress: Callable[[int], None]) -> None:
    from pyarrow import Table, parquet

    with ExitStack() as stack:
        writers = {}
        for name, columns in _TABLES.items():
            schema = _schema(columns, run.game)
            writer = parquet.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd")
            writers[name] = stack.enter_context(writer)
        for name, rows in _rows(run, progress):
            if rows:
                writers[name].write_table(Table.from_pylist(rows, schema=writers[name].schema))


def _schema(columns: Mapping[str, tuple[str, str]], game: Game) -> object:
    import pyarrow as pa

    results = game.results

    def by_seat(kind: object, keys: Iterable[str]) -> object:
        return pa.list_(pa.struct([(key, kind) for key in keys]))

    def of_field(found: FieldType) -> object:
        kind = pa.type_for_alias(found.scalar or "string")
        for _ in range(found.depth):
            kind = pa.list_(kind)
        return kind

    kinds = {
        "strings": pa.list_(pa.string()),
        "measures": by_seat(pa.float64(), (measure.key for measure in results.measures)),
        "counts": by_seat(pa.int64(), results.counts),
        "lies": by_seat(pa.int64(), (*LIES, _HONEST)),
        "fields": pa.struct([(name, of_field(found)) for name, found in EventFields(game).types.items()]),
    }
    return pa.schema(
        [
            (name, kinds.get(kind) or pa.type_for_alias(kind))
            for names, (kind, _) in columns.items()
            for name in names.split(", ")
        ]
    )


def _rows(run: Run, progress: Callable[[int], None]) -> Iterator[tuple[str, list[RunRow]]]:
    """Replay all games and yield the rows of each table, a group of games at a time."""
    decisions, logs = DecisionRows(run), ReplayedLogs(run) if run.has_same_bots else None
    game, events = run.registry.game, EventFields(run.registry.game)
    numbers = run.experiment.game_numbers
    for first in range(0, len(numbers), _GAMES_PER_GROUP):
        games = [*game_rows(run, numbers[first : first + _GAMES_PER_GROUP])]
        asked, happened = list[RunRow](), list[RunRow]()
        for row in games:
            number = row["game"]
            moves = replay_game(run, number) if decisions or (logs and game.has_lies) else []
            row["conditions"] = [decisions.conditions.get(name) for name in row["players"]]
            row["lies"] = None
            if logs and game.has_lies:
                found = Counter((move.seat, move.lie) for move in moves)
                plays = game.results.habit(game.results.lies).of
                row["lies"] = [
                    {lie: found[seat, lie] for lie in LIES} | {_HONEST: own[plays] - found[seat, "forced"]}
                    for seat, own in enumerate(row["counts"])
                ]
            if decisions:
                of_turn = {(move.seat, move.move): {"lie": move.lie, "game_turn": move.turn} for move in moves}
                asked += [one | of_turn.get((one["seat"], one["turn"]), {}) for one in decisions.rows_of_game(number)]
            happened += _event_rows(run, logs, number, events) if logs else ()
            progress(number + 1 - run.experiment.first_game)
        yield from (("games", games), ("decisions", asked), ("events", happened))


def _event_rows(run: Run, logs: ReplayedLogs, game: int, events: EventFields) -> Iterator[RunRow]:
    (log, turns), words, reader = logs.of_game(game), run.registry.game.words, Reader()
    for number, (event, turn) in enumerate(zip(log.events, turns, strict=True)):
        yield {
            "game": game,
            "deal": run.experiment.deal_of(game),
            "number": number,
            "turn": turn,
            "event": type(event).__name__,
            "only": event.only,
            "fields": events.row(event),
            "sentence": words.sentence(event, reader),
        }
