"""`dubito prompts record`: positions from games. No model is asked."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from dubito.cli.output import note, say
from dubito.cli.prompts.show import check_node, nodes_of
from dubito.errors import UsageError
from dubito.experiment.config import Config, check, read_config
from dubito.experiment.replay import run_to_replay
from dubito.experiment.resolve import resolve
from dubito.experiment.stored import Identity, opened_run
from dubito.game.find import Registry, find_bots
from dubito.store.folder import is_export, unpacked
from dubito.workshop.recordings import RecordedPosition, files, from_config, from_run, write_files


@click.command()
@click.argument("what", metavar="RUN|FILE|CONFIG", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), default="positions", show_default=True, metavar="FOLDER",
              help="Where the files go, beside those that are there.")  # fmt: skip
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="How many positions.")
@click.option("--node", metavar="NODE", help="Of this node only. [default: all nodes, evenly]")
def record(what: Path, output: Path, count: int, node: str | None) -> None:
    """Take positions from the games of a run, also an exported one, or of a config of hand-written bots.

    They are spread over games and nodes. A run is played again, its models from what is kept; a config's games are
    played.
    """
    found = _found(what, node, count)
    if not found:
        raise UsageError(f"{what} has no such positions: none of its bots answers the nodes one by one")
    write_files(files(found, output))
    nodes = Counter(one.position.node for one in found)
    each = ", ".join(f"{name} {nodes[name]}" for name in nodes_of(found[0].game) if nodes[name])
    fewer = "" if len(found) == count else f" (there are no more, of {count} asked for)"
    say(f"written: {len(found)} positions{fewer} of {len({one.deal for one in found})} deals in {output}: {each}")


def _found(what: Path, node: str | None, count: int) -> list[RecordedPosition]:
    if what.is_dir():
        return _of_run(what, node, count)
    if what.is_file() and is_export(what):
        with unpacked(what) as folder:
            return _of_run(folder, node, count)
    config = check(read_config(what), str(what))
    registry = _bots(config)
    return from_config(resolve(config, registry), registry, _nodes(registry, node), count)


def _bots(said: Config | Identity) -> Registry:
    """The bots of the game that a config or a run's identity names."""
    return find_bots(Path.cwd(), said.game)


def _nodes(registry: Registry, node: str | None) -> Sequence[str]:
    """The nodes to be recorded; refuses one that the game does not have."""
    check_node(registry.game, node)
    return nodes_of(registry.game) if node is None else [node]


def _of_run(folder: Path, node: str | None, count: int) -> list[RecordedPosition]:
    with opened_run(folder) as run:
        registry = _bots(run.identity)
    nodes = _nodes(registry, node)
    kept = run_to_replay(folder, registry)
    with kept.db:
        found = from_run(kept, nodes, count)
    for mismatch in dict.fromkeys(kept.mismatches):
        note(f"manifest mismatch: {mismatch}")
    return found
