"""`dubito fork`: play one moment of a game on many times."""

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from dubito.cli.opponents import open_moment, open_opponents_of_run
from dubito.cli.options import (
    SAVED_GAMES_DEFAULT,
    Worlds,
    config_options,
    games_path_option,
    json_option,
    moment_options,
    program_options,
    saved_games_folder,
)
from dubito.cli.output import GamesProgress, note, print_document, say, show
from dubito.errors import one_line
from dubito.experiment.experiment import describe_fake_models
from dubito.game import PlayerKind
from dubito.model_settings import SHORT_FORM_SETTINGS
from dubito.plugins.study.documents import ForkObject, PlayerForksResult
from dubito.plugins.study.fork import Forks, PlayerForks
from dubito.report.documents import Interval
from dubito.report.tables import Column, ResultTable, column_kind, difference_kind
from dubito.show.moment import RunMoment

_THREADS = 8  # forks with models that are played at the same time


@click.command()
@click.argument("moment", metavar="RUN:GAME:TURN")
@click.option("--player", "players", multiple=True, metavar="NAME",
              help="Also let this player move. Can be repeated.")  # fmt: skip
@click.option("--count", type=click.IntRange(2), default=20, show_default=True, help="Number of forks per player.")
@moment_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the forks.")
@click.option("--games", type=click.Path(path_type=Path), default=saved_games_folder, show_default=SAVED_GAMES_DEFAULT,
              help="Folder for model players' requests.")  # fmt: skip
@games_path_option
@program_options
@config_options("in_flight", *SHORT_FORM_SETTINGS)
@json_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def fork(
    moment: str,
    players: Sequence[str],
    count: int,
    worlds: Worlds,
    settings: Sequence[str],
    seed: int,
    games: Path,
    as_json: bool,
    quiet: bool,
    **server: str | None,
) -> None:
    """Play on from one moment of a game, many times.

    RUN is a run folder or an exported run, GAME a game's number in it and TURN a turn of that game. The player who
    moved there plays on, and then each --player: a bot, a player of the run, or a model such as openai:MODEL@PROMPT.
    The turns before are repeated, and the other seats keep their players. Fork K has the same cards and random numbers
    for all players, so differences are paired.
    """
    with open_moment(moment) as found:
        names = [*dict.fromkeys([found.players[found.seat], *players])]
        first = int(time.time() * 1000)
        seated = [*dict.fromkeys([*found.players, *names])]
        with open_opponents_of_run(found.run, seated, games, first, lambda: False, server) as opponents:
            kinds = dict(zip(seated, opponents.kinds(seated), strict=True))
            if fake_models := describe_fake_models(kinds):
                note(fake_models)
            setups = [found.set_up(settings, f"{seed}/{k}" if worlds == "sampled" else None) for k in range(count)]
            threads = 1 if {*kinds.values()} == {"hand-written"} else int(server["in_flight"] or _THREADS)
            forks = Forks(found, opponents, setups, seed, threads)
            with GamesProgress(count * len(names), quiet, time.monotonic, unit="forks") as progress:
                ended = itertools.count(1)
                played = [
                    forks.play(each, first + place * count, lambda: progress(next(ended)))
                    for place, each in enumerate(names)
                ]
        if as_json:
            print_document(_document(found, played, kinds, worlds, settings, seed))
            return
        say(f"Game {found.number}, turn {found.turn}: in the run, {one_line(found.played)}")
        show(*_tables(found, played), kinds=kinds)


def _tables(moment: RunMoment, played: Sequence[PlayerForks]) -> list[ResultTable]:
    names, results = [one.name for one in played], moment.game.results
    measure = results.measures[0]
    players = Column("player", "player", "player", names)
    first, *others = played
    ends = [
        players,
        *(Column(key, key, "count", [one.buckets[key] for one in played]) for key in results.buckets),
        Column("score", measure.column_title, column_kind(measure), [one.score for one in played]),
    ]
    if others:
        differences = [None, *(one.minus(first) for one in others)]
        ends.append(Column("difference", f"minus {one_line(first.name)}", difference_kind(measure), differences))
    moves = [*dict.fromkeys(move for one in played for move in one.moves)]
    rows = [Column("move", "first move", "text", moves)]
    rows += [
        Column(f"forks_{place}", one_line(one.name), "count", [one.moves.get(move, 0) for move in moves])
        for place, one in enumerate(played)
    ]
    return [
        ResultTable("fork", f"How {len(first.endings)} forks ended for seat {moment.seat}", ends),
        ResultTable("fork-moves", "First moves", rows),
    ]


def _document(
    moment: RunMoment,
    played: Sequence[PlayerForks],
    kinds: Mapping[str, PlayerKind],
    worlds: Worlds,
    settings: Sequence[str],
    seed: int,
) -> ForkObject:
    first, *_ = played
    players = [
        PlayerForksResult(
            name=one.name,
            kind=kinds[one.name],
            results=one.buckets,
            score=Interval.model_validate(one.score),
            difference=None if one is first else Interval.model_validate(one.minus(first)),
            moves=one.moves,
        )
        for one in played
    ]
    return ForkObject(
        run=str(moment.run),
        game=moment.number,
        turn=moment.turn,
        seat=moment.seat,
        played=moment.played,
        count=len(first.endings),
        worlds=worlds,
        set=[*settings],
        seed=seed,
        measure=moment.game.results.measures[0].key,
        players=players,
    )
