"""The golden games: complete records of bots' games with a fixed seed and deal.

`python -m tests.engine.golden` in the project's root rewrites tests/data/golden/*.json after an intended change of
the engine, the streams or a bot. Review the difference before you commit it.
"""

from dataclasses import dataclass
from pathlib import Path

from dubito.game.events import EVERYTHING
from dubito.game.find import find_bots
from dubito.game.record import GameRecord, Recorder, Records
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.engine import Rules, deal_table
from dubito.games.dubito.game import GAME

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDS = Records(GAME)
FOLDER = ROOT / "tests" / "data" / "golden"


@dataclass(frozen=True)
class Golden:
    """The players, deal and rules of a golden game."""

    name: str
    bots: tuple[str, ...]
    deal: int
    rules: Rules
    seed: int = 20

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.json"


GAMES = [
    Golden("three_immediate", ("ClaudeBot", "AdaptyBoi", "RiskCounter"), 23, Rules()),
    Golden("three_contested", ("UsualBot", "ClaudeBot", "SusBoi"), 21, Rules(win_rule="contested")),
    Golden(
        "five_immediate_no_jokers",
        ("StefaBot", "RandomBoi", "MrDoubt", "AlwaysTruthful", "AdaptyBoi"),
        3,
        Rules(jokers=0),
    ),
    Golden(
        "five_contested",
        ("AdaptyBoi", "JustPutCards", "RiskCounter", "MrNoDoubt", "StefaBot"),
        15,
        Rules(win_rule="contested"),
    ),
    Golden(
        "eight_immediate",
        (
            *("RandomBoi", "AlwaysTruthful", "MrNoDoubt", "JustPutCards"),
            *("MrDoubt", "StefaBot", "SusBoi", "ClaudeBot"),
        ),
        36,
        Rules(),
    ),
    Golden("eight_contested_capped", ("RandomBoi",) * 8, 35, Rules(win_rule="contested", max_turns=40)),
]


def entrants(golden: Golden) -> list[Entrant]:
    registry = find_bots(ROOT)
    return [Entrant(name, registry.find(name).cls) for name in golden.bots]


def play(golden: Golden) -> GameRecord:
    """Play the game from its seed and return its record."""
    streams = DealStreams(golden.seed, golden.deal)
    table = deal_table(entrants(golden), golden.rules, streams, deal=golden.deal)
    recorder, turn = Recorder(GAME, table.state, golden.rules.stored_form()), 0
    while not table.state.over:
        turn += 1
        recorder.add(turn, *step(table, EVERYTHING))
    return recorder.record(table.state, golden.bots, golden.seed, golden.deal)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in GAMES:
        each.file.write_text(RECORDS.dump(play(each)), encoding="utf-8")
        print(f"written: {each.file.relative_to(ROOT)}")
