"""Shards: a run cut at chunk borders into parts, each played apart into a folder of its own; `merge.py` joins them."""

import re
from dataclasses import replace
from typing import Final

from dubito.errors import UsageError, one_line
from dubito.experiment.chunk import DEALS, chunk_numbers, first_game_of
from dubito.experiment.experiment import Experiment, Shard
from dubito.game.find import Registry, digest_of_game

FOLDER: Final = "{}-shard-{}-of-{}"  # of the whole run's name, the shard's number, and how many there are
_FORM: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})").fullmatch


def shard_named(text: str) -> tuple[int, int]:
    """`3/16` as the third of sixteen; raises UsageError."""
    found = _FORM(text.strip())
    number, of = map(int, found.groups()) if found else (0, 0)
    if not of:
        raise UsageError(f"--shard: say it as 3/16, the third of sixteen, not {one_line(repr(text), 60)}")
    if not 1 <= number <= of:
        raise UsageError(f"--shard {number}/{of}: the shards of {of} are 1/{of} to {of}/{of}")
    return number, of


def cut_shard(experiment: Experiment, number: int, of: int, registry: Registry) -> Experiment:
    """One of so many shards, as even as whole chunks can be; raises UsageError if there are fewer chunks."""
    chunks = chunk_numbers(experiment)
    if of > len(chunks):
        most = "it cannot be cut" if len(chunks) == 1 else f"at most {len(chunks):,} shards can be cut"
        raise UsageError(
            f"--shard {number}/{of}: this run of {experiment.deals:,} deals has {len(chunks):,} chunks of {DEALS:,} "
            f"deals, and a chunk is played in one place: {most}"
        )
    first, end = (first_game_of(experiment, len(chunks) * place // of) for place in (number - 1, number))
    engine = digest_of_game(registry.game, registry.working_directory)
    shard = Shard(number, of, experiment.games, first, engine)
    return replace(experiment, games=min(end, experiment.games) - first, shard=shard)
