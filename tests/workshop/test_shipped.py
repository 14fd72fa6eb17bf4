"""The shipped positions can be recorded again and are useful for tests."""

import shutil
from collections import Counter
from pathlib import Path

from dubito.games.dubito.bot import NODES
from dubito.games.dubito.events import GameStartEvent
from dubito.games.dubito.game import GAME
from dubito.workshop.recordings import read_folder, shipped_positions
from tests.cli.kit import Shell


def test_shipped_positions_come_from_the_documented_command(shell: Shell) -> None:
    """After a change to bots or the engine, delete the files and run the command in their first line."""
    for rule in ("immediate", "contested"):
        file = shipped_positions(GAME) / f"{rule}.yaml"
        line = f"# dubito prompts record prompts/positions/{rule}.yaml --count 20 --output prompts/positions"
        assert line in file.read_text().splitlines()
        config = shutil.copy(file, shell.folder)
        assert shell("prompts", "record", str(config), "--count", "20", "--output", "made").code == 0
    made = {file.name: file.read_bytes() for file in Path("made").iterdir()}
    assert {file.name: file.read_bytes() for file in shipped_positions(GAME).glob("*.json")} == made
    assert len(made) == 40


def test_they_are_of_all_nodes_table_sizes_and_win_rules() -> None:
    found = [*read_folder(shipped_positions(GAME), GAME).values()]
    starts = [one.position.log[0] for one in found]
    sizes = Counter(len(start.player_ids) for start in starts if isinstance(start, GameStartEvent))
    assert Counter(one.position.node for one in found) == dict.fromkeys(NODES, 8)
    assert set(sizes) == {3, 4, 5, 6}
    assert {one.position.rules.win_rule for one in found} == {"immediate", "contested"}
    assert len({one.deal for one in found}) == 40
    truths = [one.right for one in found if one.position.node == "C"]
    assert 2 <= sum(map(bool, truths)) <= 6, "both answers must sometimes be right"
