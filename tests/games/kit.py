"""Helpers for game tests: every built-in game, and the game from docs/writing-a-game.md."""

import re
import shutil
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dubito.game import Game, State
from dubito.game.find import Registry, find_bots, find_game, find_games
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from tests.cli.kit import REPO
from tests.conftest import in_gate

OPENSPIEL: Final = (
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "leduc_poker",
    "liars_dice",
    "gin_rummy",
    "goofspiel(imp_info=True,num_cards=5,points_order=descending)",
    "phantom_ttt",
    "dark_chess",
)
GAMES: Final = {game.name: game for game in find_games(REPO)}
if find_spec("pyspiel"):
    GAMES.update((f"openspiel:{name}", find_game(f"openspiel:{name}", REPO)) for name in OPENSPIEL)
IN_GATE: Final = [  # the quickest of OpenSpiel's games, including one with simultaneous moves
    game for game in GAMES if ":" not in game or game.endswith((":kuhn_poker", ":liars_dice", "descending)"))
]
EVERY_GAME: Final = in_gate(sorted(GAMES), IN_GATE)
WRITING: Final = (REPO / "docs" / "writing-a-game.md").read_text()
KUHN: Final = REPO / "examples" / "games" / "kuhn"


def write_kuhn(folder: Path) -> None:
    left = shutil.ignore_patterns("pyproject.toml", "__pycache__")
    shutil.copytree(KUHN, folder, dirs_exist_ok=True, ignore=left)


def write_stacks(folder: Path) -> None:
    shutil.copytree(REPO / "tests" / "games" / "stacks", folder, dirs_exist_ok=True)


def exchange(file: Path | str, *exchanged: tuple[str, str]) -> None:
    """Replace these texts in a file. Each must occur exactly once."""
    text = Path(file).read_text()
    for old, new in exchanged:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    Path(file).write_text(text)


def remove_parts(game: Path, *parts: str) -> None:
    """Remove properties of a game's class, such as `words`."""
    found = rf"\n    @property\n    def ({'|'.join(parts)})\(.*?(?=\n    @|\n\n\n)"
    text, removed = re.subn(found, "", game.read_text(), flags=re.DOTALL)
    assert removed == len(parts)
    game.write_text(text)


def changed_game(game: Game, **attributes: Any) -> Game:
    """Return a copy of the game with other attributes. Methods are functions without `self`."""
    changed = copy(game)
    vars(changed).update(attributes)
    return changed


def deal_game(game: Game, deal: int = 0, size: int | None = None) -> State:
    state: State = game.deal(game.rules(), size or game.seats[0], DealStreams(0, deal).deck())
    return state


def table_of(registry: Registry, deal: int, size: int, **how: Any) -> Table[Any]:
    """Return a table of hand-written bots, chosen differently for each game."""
    bots = registry.hand_written()
    entrants = [Entrant(f"{seat}", bots[(deal + 3 * seat) % len(bots)].cls) for seat in range(size)]
    streams = DealStreams(0, deal)
    game = registry.game.deal(registry.game.rules(), size, streams.deck())
    return Table(game, entrants, streams, deal=deal, **how)


def registry_of(game: str) -> Registry:
    return find_bots(REPO, game)


def outputs_of(table: Table) -> list[Any]:
    """Play a game to its end and return all outputs."""
    outputs = []
    while not table.state.over:
        output, _ = step(table, announce=True)
        outputs.append(output)
    return outputs
