"""Identical programs under two names differ by exactly 0 on every deal (R33), even if they are also opponents."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dubito.experiment.compare import compare_runs
from dubito.experiment.play import draw_lineups
from dubito.experiment.stored import open_recorded_run
from dubito.game.streams import DealStreams
from dubito.stats.tally import Tally
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.experiment.kit import experiment

Config = Mapping[str, Any]

DUBITO: Config = {"bots": ["RandomBoi", "ClaudeBot", "StefaBot", "AdaptyBoi"]}
BS: Config = {"game": "bs", "bots": ["ConMan", "CalculatingLiar", "Player1", "RiskTaker", "Jerk"]}
DEFUSE: Config = {"game": "defuse", "bots": ["Medium", "Scared", "Simple", "Sapper"]}
CONFIGS: dict[str, Config] = {
    "bs": BS,
    "defuse": DEFUSE,
    "dubito, every size": DUBITO,
    "dubito for two": {**DUBITO, "rules": {"duel": True}},
    "dubito, contested": {**DUBITO, "rules": {"win_rule": "contested"}},
    **{f"dubito for {size}": {**DUBITO, "table_sizes": [size]} for size in range(3, 9)},
}
TWINS = [(name, bot) for name, config in CONFIGS.items() for bot in config["bots"]]
IN_GATE = [("bs", "ConMan"), ("defuse", "Medium"), ("dubito, every size", "RandomBoi"), ("dubito for two", "ClaudeBot")]


def twin_config(name: str, bot: str, deals: int) -> dict[str, Any]:
    config = {**CONFIGS[name], "contenders": [bot, {"bot": bot, "name": "Twin"}]}
    seats = experiment(**config, games=4).contender_seats
    return config | {"games": deals * 2 * seats}


def run_words(config: Config) -> list[str]:
    words = [f"--{key.replace('_', '-')}={value}" for key, value in config.items() if not isinstance(value, list)]
    return words + [f"--{key}={','.join(value)}" for key, value in config.items() if isinstance(value, list)]


def write_twin(shell: Shell, bot: str, module: str, game: str) -> str:
    """Write a bot file with the same program as another bot, and return its name."""
    folder = f"bots.manual.{game}" if game else "bots.manual"
    text = f"from {folder}.{module} import {bot}\n\n\nclass Twin({bot}):\n    'A twin.'\n"
    shell.bot("twin.py", text, f"manual/{game}")
    return "Twin"


def deals_by_difference(tally: Tally) -> dict[int, int]:
    return {difference: deals for (_, _, difference), (deals,) in tally.rows("differences")}


def run_differences(shell: Shell, config: Config, workers: str = "1") -> dict[int, int]:
    """Play a config and return how many deals have each difference of its two contenders."""
    (shell.folder / "c.yaml").write_text(json.dumps(config))
    result = shell("run", "c.yaml", "--quiet", "--workers", workers, "--output", "r")
    assert result.code == 0, result.err
    with open_recorded_run(shell.folder / "r") as run:
        return deals_by_difference(run.tally)


@pytest.mark.parametrize("name", CONFIGS)
def test_contender_in_field_meets_same_opponents(name: str) -> None:
    bots = CONFIGS[name]["bots"]
    of, copies = experiment(**twin_config(name, bots[0], 60)), 0
    seats = of.contender_seats
    for deal in range(of.deals):
        games = draw_lineups(of, deal, DealStreams(of.seed, deal))
        opponents = [[bot for seat, bot in enumerate(game.seats) if seat != game.contender_seat] for game in games]
        assert opponents[:seats] == opponents[seats:]
        assert [game.contender_seat for game in games[:seats]] == [game.contender_seat for game in games[seats:]]
        copies += of.names.index(bots[0]) in opponents[0]
    assert 0 < copies < of.deals, "the contender meets a copy of itself in some deals"


@pytest.mark.parametrize("workers", in_gate(["1", "2"], 1))
@pytest.mark.parametrize(("name", "bot"), in_gate(TWINS, IN_GATE))
def test_identical_contenders_differ_by_zero_on_every_deal(
    shell: Shell, name: str, bot: str, workers: str, at_length: bool
) -> None:
    deals = 150 if at_length else 40
    assert run_differences(shell, twin_config(name, bot, deals), workers) == {0: deals}


@pytest.mark.parametrize("workers", in_gate(["1", "2"], 1))
@pytest.mark.parametrize(
    ("config", "bot", "module", "game"),
    in_gate(
        [
            (DEFUSE, "Simple", "simple", "defuse"),
            (BS, "ConMan", "con_man", "bs"),
            (DUBITO, "RandomBoi", "random_boi", ""),
        ],
        1,
    ),
)
def test_identical_contenders_of_two_runs_tie(
    shell: Shell, config: Config, bot: str, module: str, game: str, workers: str
) -> None:
    twin = write_twin(shell, bot, module, game)
    for folder, contender in (("one", bot), ("two", twin)):
        words = *run_words(config), "--contenders", contender, "--games", "80", "--workers", workers
        assert shell("run", *words, "--quiet", "--output", folder).code == 0
    with open_recorded_run(shell.folder / "one") as one, open_recorded_run(shell.folder / "two") as two:
        found = deals_by_difference(compare_runs([one, two]).tally)
    assert found == {0: 40 if game == "defuse" else 80}


@pytest.mark.parametrize(("name", "bot"), in_gate([("bs", "ConMan"), ("defuse", "Simple")], [("defuse", "Simple")]))
def test_run_of_identical_contenders_has_no_winner(shell: Shell, name: str, bot: str) -> None:
    config = twin_config(name, bot, 40) | {"stop": {"within": 1, "most": 400}}
    del config["games"]
    assert run_differences(shell, config).keys() == {0}
    with open_recorded_run(shell.folder / "r") as run:
        assert [how for _, (_, how) in run.tally.rows("decided")] == [0], "the difference is known to be within 1 point"
