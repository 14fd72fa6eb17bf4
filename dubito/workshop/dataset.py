"""A run as a dataset: Parquet files of its games and of its models' decisions, with a card that explains every column
in the form that Hugging Face reads.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import dubito
from dubito.errors import UsageError, one_line
from dubito.experiment.replay import LIES, MAX_LIE_GAMES, replay_lies
from dubito.experiment.resolve import model_settings, model_specs
from dubito.experiment.stored import Run
from dubito.llm.prices import PICO
from dubito.llm.protocols import parse_stored_request, read_recorded_reply
from dubito.llm.request import replace_surrogates
from dubito.stats.rates import Rate
from dubito.stats.tally import read_outcome
from dubito.store.lock import draft_folder
from dubito.store.model_log import ModelLog, attempt_keys
from dubito.workshop.recordings import RecordedPosition, position_recorder

# Columns of one kind: what a column holds, as pyarrow names it, and what it tells.
GAMES: Final = {
    "game": ("int64", "number of the game in the run"),
    "deal": ("int64", "number of the deal; games of one deal have the same cards"),
    "players": ("strings", "names by seat"),
    "contender_seat": ("int64", "the seat of the contender, null without one"),
    "buckets": ("strings", "what the game was for each seat"),
    "measures": ("string", "JSON, by seat: the game's measures"),
    "counts": ("string", "JSON, by seat: what the game counts"),
    "lies": ("string", "JSON, by seat: moves that deceived, by choice and forced; null beyond the first 1,000 games"),
    "capped": ("bool", "whether it was stopped at the most turns"),
}
DECISIONS: Final = {
    "game, deal, seat": ("int64", "where it was taken"),
    "decision": ("int64", "number of the seat's decision in its game, from 0"),
    "turn": ("int64", "the seat's own turn, from 1"),
    "player, model": ("string", "who took it"),
    "node, question": ("string", "what was asked"),
    "facts": ("string", "JSON: all that the prompt could tell of the position; nothing that the seat cannot know"),
    "prompt, request": ("string", "digests of the prompt's files and of what was sent"),
    "reply": ("string", "text of the last reply, null if none came"),
    "answer": ("string", "JSON: the answer that was played"),
    "lie": ("string", "whether the move that it led to deceived: chosen, forced, null if not"),
    "outcome": ("string", "model, model_after_reask, or fallback:CAUSE, where a hand-written bot answered"),
    "p_bluff": ("float64", "the probability of a bluff that the model stated, if it did"),
    "truth": ("string", "JSON: what the engine knew, hidden from the seat"),
    "attempts": ("int64", "how often it was asked; 0 where a question before it was asked in the same request"),
    "tokens_input, tokens_cached, tokens_output": ("int64", "over its attempts"),
    "usd": ("float64", "what they cost in dollars; 0 from the cache, null where no price is known"),
}


def dataset_card(kept: Run) -> str:
    """The card of a run's dataset."""
    experiment = kept.experiment
    players = ", ".join(_escape(player.name) for player in experiment.players)
    return f"""---
configs:
- config_name: decisions
  data_files: decisions.parquet
- config_name: games
  data_files: games.parquet
tags: [games, imperfect-information, {json.dumps(kept.registry.game.name)}]
---

# A run of {kept.registry.game.name}

{experiment.games:,} games of seed {experiment.seed}, played by dubito {dubito.__version__}; results digest
{kept.db.results_digest()}. Players: {players}.

Decisions are those of players that ask a model. Seats are told as numbers: no name of a player stands in `facts`.

## decisions.parquet

{_column_table(DECISIONS)}
## games.parquet

{_column_table(GAMES)}
## Reading it

```python
import pandas

decisions = pandas.read_parquet("decisions.parquet")

from datasets import load_dataset

decisions = load_dataset(".", "decisions", split="train")
```
"""


def _escape(name: str) -> str:
    return re.sub(r"([!-&(-+./:-@\[-`{-~])", r"\\\1", one_line(name))


def _column_table(columns: dict[str, tuple[str, str]]) -> str:
    rows = [f"| {name} | {meaning} |" for name, (_, meaning) in columns.items()]
    return "\n".join(["| column | |", "| --- | --- |", *rows, ""])


_GAMES_PER_GROUP: Final = 500  # games in a group of rows
_Row = dict[str, Any]


def write_dataset(kept: Run, folder: Path, progress: Callable[[int], None]) -> None:
    """Write `games.parquet`, `decisions.parquet` and `README.md` into a new folder; `progress` is told of each game.

    The games are played again, so that each decision stands beside the facts it was based on. Raises UsageError
    without pyarrow, where the folder is there already or cannot be written, or where a game is played differently now.
    """
    if find_spec("pyarrow") is None:
        raise UsageError("Parquet files need pyarrow: pip install 'dubito[parquet]'")
    if not kept.experiment.games:
        raise UsageError(f"{kept.folder} keeps no finished game: there is nothing to export")
    if folder.exists():
        raise UsageError(f"{one_line(str(folder))} is there already: choose another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(folder, "folder") as scratch:
            draft = scratch / "dataset"
            draft.mkdir()
            _write_tables(kept, draft, progress)
            (draft / "README.md").write_text(dataset_card(kept), encoding="utf-8")
            draft.rename(folder)
    except OSError as error:
        raise UsageError(f"cannot write {one_line(str(folder))}: {error.strerror or error}; choose another") from None


def _write_tables(kept: Run, folder: Path, progress: Callable[[int], None]) -> None:
    from pyarrow import Table, parquet

    for name, columns, rows in (
        ("games", GAMES, _game_rows(kept)),
        ("decisions", DECISIONS, _decision_rows(kept, progress)),
    ):
        schema = _schema(columns)
        with parquet.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd") as writer:
            for group in rows:
                writer.write_table(Table.from_pylist(group, schema=schema))


def _schema(columns: Mapping[str, tuple[str, str]]) -> Any:
    import pyarrow as pa

    kinds = {"strings": pa.list_(pa.string())}
    return pa.schema(
        [
            (name, kinds.get(kind) or pa.type_for_alias(kind))
            for names, (kind, _) in columns.items()
            for name in names.split(", ")
        ]
    )


def _game_rows(kept: Run) -> Iterator[list[_Row]]:
    every = kept.experiment.game_numbers
    for first in range(every.start, every.stop, _GAMES_PER_GROUP):
        numbers = range(first, min(first + _GAMES_PER_GROUP, every.stop))
        yield [
            row | {"lies": _lies_by_seat(kept, row["game"], len(row["players"]))} for row in game_rows(kept, numbers)
        ]


def game_rows(kept: Run, numbers: range) -> Iterator[_Row]:
    """Yield what came of each of these games, by the columns of `GAMES` but for its lies."""
    experiment, results = kept.experiment, kept.registry.game.results
    names = [player.name for player in experiment.players]
    query = "SELECT game, outcome FROM games WHERE game >= ? AND game < ? ORDER BY game"
    for game, packed in kept.db.read(query, (numbers.start, numbers.stop)):
        outcome = read_outcome(packed, results, len(names), kept.db.path)
        measured = [
            {
                measure.key: Rate(count / measure.scale).on(measure.span).value
                for measure, count in zip(results.measures, counts, strict=True)
            }
            for counts in outcome.measured(results)
        ]
        yield {
            "game": game,
            "deal": game // experiment.games_per_deal,
            "players": [names[player] for player in outcome.seats],
            "contender_seat": outcome.contender_seat,
            "buckets": [results.buckets[bucket] for bucket in outcome.buckets(results)],
            "measures": json.dumps(measured),
            "counts": json.dumps([dict(zip(results.counts, own, strict=True)) for own in outcome.counts]),
            "capped": outcome.capped,
        }


def _lies_by_seat(kept: Run, game: int, seats: int) -> str | None:
    """By seat, how many lies of each kind a game had; None where there are none to count, or it cannot be played."""
    if (
        kept.registry.game.lie is None
        or game not in kept.experiment.game_numbers[:MAX_LIE_GAMES]
        or not kept.has_same_bots
    ):
        return None
    told = Counter((one.seat, one.lie) for one in replay_lies(kept, game))
    return json.dumps([{lie: told[seat, lie] for lie in LIES} for seat in range(seats)])


def _decision_rows(kept: Run, progress: Callable[[int], None]) -> Iterator[list[_Row]]:
    decisions, rows = DecisionRows(kept), list[_Row]()
    for played, game in enumerate(kept.experiment.game_numbers if decisions else (), start=1):
        told = {(one.seat, one.move): one.lie for one in replay_lies(kept, game)} if kept.registry.game.lie else {}
        rows += [row | {"lie": told.get((row["seat"], row["turn"]))} for row in decisions.of_game(game)]
        progress(played)
        if played % _GAMES_PER_GROUP == 0:
            yield rows
            rows = []
    yield rows


class DecisionRows:
    """What models decided in the games of a run, by the columns of `DECISIONS` but for its lies."""

    def __init__(self, kept: Run) -> None:
        self._kept, self._log, self._positions = kept, ModelLog(kept.db), position_recorder(kept)
        specs = model_specs(kept.experiment, kept.registry)
        self._models = {spec.name: (model_settings(spec, kept.registry).model, spec.prompt) for spec in specs}

    def __bool__(self) -> bool:
        return bool(self._models)

    def of_game(self, game: int) -> list[_Row]:
        """Return the rows of a game, which is played again. Raises UsageError if it is played differently now."""
        found = {(one.source.seat, one.source.decision): one for one in self._positions(game) if one.source is not None}
        return [_decision_row(self._kept, row, found, self._models) for row in _stored_decisions(self._log, game)]


def _decision_row(
    kept: Run,
    row: _Row,
    found: Mapping[tuple[int, int], RecordedPosition],
    models: Mapping[str, tuple[str, str]],
) -> _Row:
    """A decision with the position that it was taken in."""
    place, game = (row["seat"], row["decision"]), kept.registry.game
    if place not in found or row["player"] not in models:
        damaged = f"{one_line(str(kept.folder))} is damaged"
        raise UsageError(f"{damaged}: what it keeps of game {row['game']} is not of that game")
    one = found[place]
    model, prompt = models[row["player"]]
    return {
        **row,
        "deal": row["game"] // kept.experiment.games_per_deal,
        "model": model,
        "prompt": prompt,
        "question": game.node(row["node"]).method,
        "facts": json.dumps(game.facts.facts(one.position)),
        "truth": None if one.hidden is None else json.dumps(asdict(one.hidden)),
    }


def _stored_decisions(log: ModelLog, game: int) -> Iterator[_Row]:
    """What models decided in a game, and what it took; of several attempts the last one's request and reply.

    Where one request asked several questions, what it took stands with the first of them.
    """
    asked, taken = log.attempts(game), log.decisions(game)
    under = attempt_keys(taken, asked)
    for place, one in taken.items():
        attempts, made = asked[place], asked[one.seat, under[place]]
        if not made:
            raise UsageError(f"{log.folder} is damaged: nobody was asked for a decision of game {game}")
        last, priced = made[-1], all(attempt.priced for attempt in made)
        yield {
            "game": game,
            "seat": one.seat,
            "decision": one.number,
            "turn": one.turn,
            "player": last.player,
            "node": one.node,
            "request": last.request,
            "reply": _reply_text(log, last.request, last.raw),
            "answer": json.dumps(one.answer),
            "outcome": one.outcome,
            "p_bluff": one.stated,
            "attempts": len(attempts),
            "tokens_input": sum(attempt.input or 0 for attempt in attempts),
            "tokens_cached": sum(attempt.cached or 0 for attempt in attempts),
            "tokens_output": sum(attempt.output or 0 for attempt in attempts),
            "usd": sum(attempt.picodollars for attempt in attempts) / PICO if priced else None,
        }


def _reply_text(log: ModelLog, request: str, raw: str | None) -> str | None:
    if not raw:
        return None
    text = read_recorded_reply(parse_stored_request(log.text(request)).protocol, raw and log.text(raw)).text
    return None if text is None else replace_surrogates(text)
