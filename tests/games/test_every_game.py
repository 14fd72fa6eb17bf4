"""Requirements for all built-in games.

tests/plugins/gamecheck tests `dubito games check` on users' games.
"""

import re
from pathlib import Path

import pytest
import yaml

from dubito.experiment.config import parse_config
from dubito.experiment.resolve import resolve
from dubito.experiment.run import RunOptions, play
from dubito.game import Game
from dubito.game.find import Registry
from dubito.game.reader import Reader
from dubito.game.table import step
from tests.cli.kit import REPO, Shell
from tests.experiment.kit import means
from tests.games.kit import EVERY_GAME, GAMES, deal_game, outputs_of, registry_of, table_of


@pytest.fixture(params=EVERY_GAME)
def game(request: pytest.FixtureRequest) -> Game:
    return GAMES[request.param]


@pytest.fixture
def registry(game: Game) -> Registry:
    return registry_of(game.name)


def test_no_events_are_built_without_observers(registry: Registry, game: Game) -> None:
    """With `announce` off, no events are built, and the game is the same."""
    for output_count, announce in ((0, False), (1, True)):
        state = deal_game(game)
        events = 0
        for output in outputs_of(table_of(registry, 0, game.seats[0])):
            events += len(state.apply(output, announce))
        assert bool(events) is announce
        assert (output_count, state.over) == (int(announce), True)


def test_all_shown_cards_have_a_face_and_a_known_icon(registry: Registry, game: Game) -> None:
    words, ours = game.words, (REPO / "dubito" / "report" / "static" / "cards.js").read_text()
    table = table_of(registry, 0, game.seats[0])
    teller, drawn = words.teller(table.state, Reader()), set[str]()
    while not table.state.over:
        seat = table.state.seat
        drawn.update(words.hand(table.state, seat))
        drawn.update(card for line in teller.describe_move(seat, *step(table, announce=True)) for card in line.cards)
        drawn.update(card for panel in teller.panels() for card in panel.cards)
    assert drawn <= {*words.FACES}
    assert drawn or not words.FACES
    for face in words.FACES.values():
        assert re.search(rf'^ +.*"?{face.icon}"?:\s*("M|die\()', ours, re.MULTILINE), face


def test_a_run_does_not_depend_on_its_workers(registry: Registry, game: Game, tmp_path: Path, at_length: bool) -> None:
    """The run is longer than a chunk, so that two processes share it.

    The gate tests only Dubito, and for a family one of its quickest games.
    """
    if (game.family and "poker" not in game.name) or not at_length:
        return
    experiment = resolve(
        parse_config({"game": game.name, "games": 1100, "table_sizes": [game.seats[0]]}, "test"), registry
    )
    digests = set()
    for workers in (1, 2):
        how = means(tmp_path / f"{workers}", workers=workers)
        run = play(experiment, tmp_path / f"{workers}", RunOptions(workers, how.calls, how.stop))
        assert run.failure is None
        digests.add((run.results_digest, (tmp_path / f"{workers}" / "all_games.yaml").read_bytes()))
    assert len(digests) == 1


SHORT = {"dubito": {"max_turns": 20}, "bs": {"max_rounds": 1}}  # shortens games of models


def test_a_run_of_models_on_the_house_ends_and_replays(game: Game, shell: Shell, at_length: bool) -> None:
    if game.name.startswith(("openspiel:dark_chess", "openspiel:gin_rummy")):
        return  # this game has a hundred moves, and the family's others ask the same way
    if game.family and "poker" not in game.name and not at_length:
        return  # the gate plays one game of a family
    if not game.has_facts:
        pytest.skip(f"no model plays {game.name} yet")
    size = game.seats[0]
    field = [bot.name for bot in registry_of(game.name).hand_written()][: size + 1]
    games = 4 if size == 2 else 2  # two contenders, each in both seats if there are two
    words = ("--game", game.name, "--bots", ",".join(field), "--table-sizes", f"{size}", "--games", f"{games}")
    rules = [f"--{rule.replace('_', '-')}={most}" for rule, most in SHORT.get(game.name, {}).items()]
    result = shell(
        "run", *words, *rules, "--contenders", "house:house-random@plain,house:house-random@reasoned", "--output", "r"
    )
    assert result.code == 0, result.err
    replayed = shell("replay", "r")
    assert (replayed.code, replayed.out.splitlines()[-1]) == (0, result.out.splitlines()[-2])


BOLD = """from bots.llms.openai_bot import OpenAIBot


class BoldBot(OpenAIBot):
    \"\"\"Asks by OpenAI's protocol, and says what it was asked.\"\"\"

    def facts(self, position):
        with open("asked", "a") as file:
            print(position.node, file=file)
        return super().facts(position)
"""


def test_a_users_own_model_bot_plays_it(game: Game, shell: Shell, at_length: bool) -> None:
    if game.name.startswith(("openspiel:dark_chess", "openspiel:gin_rummy")):
        return  # see above
    if game.family and "poker" not in game.name and not at_length:
        return  # see above
    folder = Path("bots/llms", "" if game.name == "dubito" else game.folder)
    folder.mkdir(parents=True)
    (folder / "bold_bot.py").write_text(BOLD)
    field = [bot.name for bot in registry_of(game.name).hand_written()][: game.seats[0] + 1]
    bold = {"bot": "BoldBot", "model": "house-random", "base_url": "house", "prompt": "plain"}
    config = {"game": game.name, "games": 2, "table_sizes": [game.seats[0]], "bots": field, "contenders": [bold]}
    config["rules"] = SHORT.get(game.name, {})
    Path("c.yaml").write_text(yaml.safe_dump(config))
    result = shell("run", "c.yaml", "--output", "r")
    assert result.code == 0, result.err
    assert {*Path("asked").read_text().split()} & {node.name for node in game.nodes}
    assert shell("replay", "r").code == 0


def test_every_built_in_game_is_listed(shell: Shell) -> None:
    listed = shell("games").out
    for folder in (REPO / "dubito" / "games").glob("*/game.py"):
        assert re.search(rf"^{folder.parent.name}(:NAME)? ", listed, re.MULTILINE)
