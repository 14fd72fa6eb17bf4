"""`dubito prompts record`: positions from games. No model is asked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from dubito.cli.output import note, say
from dubito.cli.prompts.show import node_of
from dubito.errors import UsageError, one_line
from dubito.experiment.config import check, read_config
from dubito.experiment.replay import opened
from dubito.experiment.resolve import resolve
from dubito.experiment.stored import game_of
from dubito.game import Spec
from dubito.game_registry import find_game
from dubito.registry import Registry, find_bots
from dubito.store.export import is_export, unpacked
from dubito.workshop.collect import files, from_config, from_run
from dubito.workshop.craft import node_names
from dubito.workshop.recorded import Recorded, write_files


@click.command()
@click.argument("what", metavar="RUN|FILE|CONFIG", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), default="positions", show_default=True, metavar="FOLDER",
              help="Where the files go, beside those that are there.")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many positions.")
@click.option("--node", metavar="NODE", help="Of this node only. [default: all alike]")
@click.option("--game", metavar="NAME", help="That it is of this game. [default: what the run or the config says]")
def record(what: Path, output: Path, count: int, node: str | None, game: str | None) -> None:
    """Take positions from the games of a run, also an exported one, or of a config of hand-written bots.

    They are spread over games and nodes. A run is played again, its models from what is kept; a config's games are
    played.
    """
    with _folder(what) as folder:
        spec = _game_of(what, folder, game)
        nodes = node_names(spec) if node is None else [node_of(spec, node)]
        found = _found(folder or what, find_bots(Path.cwd(), spec.name), nodes, count)
    if not found:
        raise UsageError(f"{what} has no such positions: none of its bots answers the nodes one by one")
    write_files(files(found, output))
    told = Counter(one.position.node for one in found)
    each = ", ".join(f"{name} {told[name]}" for name in nodes if told[name])
    fewer = "" if len(found) == count else f" (there are no more, of {count} asked for)"
    say(f"written: {len(found)} positions{fewer} of {len({one.deal for one in found})} deals in {output}: {each}")


@contextmanager
def _folder(what: Path) -> Iterator[Path | None]:
    """The run folder that is meant, unpacked if it was exported; None: it is a config."""
    if what.is_file() and is_export(what):
        with unpacked(what) as folder:
            yield folder
    else:
        yield what if what.is_dir() else None


def _game_of(what: Path, folder: Path | None, wanted: str | None) -> Spec:
    """The game of a run, or of a config; raises UsageError if another one is wanted."""
    game = game_of(folder) if folder else check(read_config(what), str(what)).game
    if wanted not in (None, game):
        raise UsageError(f"{one_line(str(what))} is of {game}, not of {one_line(str(wanted))}: leave --game away")
    return find_game(game, Path.cwd())


def _found(what: Path, registry: Registry, nodes: Sequence[str], count: int) -> list[Recorded]:
    if what.is_dir():
        return _of_run(what, registry, nodes, count)
    return from_config(resolve(check(read_config(what), str(what)), registry), registry, nodes, count)


def _of_run(folder: Path, registry: Registry, nodes: Sequence[str], count: int) -> list[Recorded]:
    kept = opened(folder, registry, registry.working_directory)
    with kept.db:
        found = from_run(kept, nodes, count)
    for mismatch in dict.fromkeys(kept.mismatches):
        note(f"manifest mismatch: {mismatch}")
    return found
