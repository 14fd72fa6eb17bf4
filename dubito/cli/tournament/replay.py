"""`dubito tournament replay`: every match of a log played again, or one told in words."""

from pathlib import Path

import click

from dubito.cli.output import note, say


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--match", type=int, metavar="K", help="Tell match K in words, counted over all pairs as they play.")
def replay(folder: Path, match: int | None) -> int:
    """Play every match in FOLDER again, without its bots: draws from their seeds, actions from the log, returns
    compared. Exit code 1 if anything differs."""
    from dubito.referee import log
    from dubito.referee.plan import source
    from dubito.referee.replay import difference, differences, match_in_words, match_numbered
    from dubito.referee.rules import load

    kept = log.opened_log(folder)
    if match is not None:
        line = match_numbered(kept, match)
        root = load(line.game).new_initial_state()
        if different := difference(root, line):
            say(f"differs: {different}")
            return 1
        for sentence in match_in_words(root, line):
            say(sentence)
        return 0
    matches = 0
    identity = log.read_manifest(folder)["identity"]
    for line, wrong in differences(kept, source(identity, log.read_secret(folder))):
        matches += 1
        if wrong is not None:
            say(f"differs: {line.game}, {' against '.join(sorted(line.seats))}, match {line.match}: {wrong}")
            return 1
    for sentence in kept.damaged:
        note(f"warning: {sentence}")
    say(f"identical: {matches:,} matches, their draws and returns")
    return 0
