"""The card of a dataset: a README in the form that Hugging Face reads, with every column explained."""

import json
import re
from typing import Final

import dubito
from dubito.errors import one_line
from dubito.experiment.replay import RunToReplay

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
    "attempts": ("int64", "how often it was asked"),
    "tokens_input, tokens_cached, tokens_output": ("int64", "over its attempts"),
    "usd": ("float64", "what they cost in dollars; 0 from the cache, null where no price is known"),
}


def card(kept: RunToReplay) -> str:
    """The card of a run's dataset."""
    experiment = kept.experiment
    players = ", ".join(_plain(player.name) for player in experiment.players)
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

{_table(DECISIONS)}
## games.parquet

{_table(GAMES)}
## Reading it

```python
import pandas

decisions = pandas.read_parquet("decisions.parquet")

from datasets import load_dataset

decisions = load_dataset(".", "decisions", split="train")
```
"""


def _plain(name: str) -> str:
    """Somebody's name as text: no mark-up, link or HTML of it."""
    return re.sub(r"([!-&(-+./:-@\[-`{-~])", r"\\\1", one_line(name))


def _table(columns: dict[str, tuple[str, str]]) -> str:
    rows = [f"| {name} | {meaning} |" for name, (_, meaning) in columns.items()]
    return "\n".join(["| column | |", "| --- | --- |", *rows, ""])
