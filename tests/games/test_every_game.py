"""What every game of the house keeps to, by existing: nothing here names one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.errors import IllegalOutput
from dubito.experiment.config import check
from dubito.experiment.resolve import resolve
from dubito.experiment.run import RunOptions, play
from dubito.game import Bool, Cards, Choice, Game, Whole
from dubito.game.find import Registry
from dubito.game.table import step
from dubito.game.words import seat_label, words_of
from dubito.stats.tally import outcome_of, unpack
from dubito.workshop.recordings import read_recorded, sample_games
from tests.cli.kit import REPO, Shell
from tests.experiment.kit import means
from tests.games.kit import EVERY_GAME, GAMES, dealt, outputs_of, registry_of, table_of

DEALS = range(6)


class Hostile:
    """Any code of it that runs ends the test."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} of an output was asked for")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("an output was compared")

    __hash__ = None  # type: ignore[assignment]


NO_OUTPUTS = [None, 7, -1, 1.0, "x", b"x", [], (), {}, set(), [None], [[]], [1.0], ["7"], object(), range(3)]


def no_outputs(game: Game) -> list[Any]:
    """What no game takes; where one asks for whole numbers, 7 may be one."""
    asks_numbers = any(isinstance(node.answer, Whole) for node in game.nodes)
    return [output for output in NO_OUTPUTS if not (asks_numbers and type(output) is int and output >= 0)]


@pytest.fixture(params=EVERY_GAME)
def game(request: pytest.FixtureRequest) -> Game:
    return GAMES[request.param]


@pytest.fixture
def registry(game: Game) -> Registry:
    return registry_of(game.name)


def sizes(game: Game) -> Iterator[int]:
    yield from sorted({*game.seats})


def test_names_are_one_word_and_nodes_answer_by_a_known_kind(game: Game) -> None:
    assert game.folder.isidentifier()
    assert game.name.partition(":")[0] == game.folder
    assert len(game.summary.splitlines()) == 1
    for node in game.nodes:
        assert isinstance(node.answer, Bool | Choice | Whole | Cards)
        assert callable(getattr(game.base, node.method, None)) or game.name == "dubito"


def test_all_its_bots_can_be_used_and_say_what_they_do(registry: Registry) -> None:
    assert registry.broken == []
    assert registry.game.fallback in registry.bots
    for bot in registry.bots.values():
        assert bot.summary != "(no docstring)"
        assert bot.repeatable
        assert bot.missing == []


def test_whole_games_of_its_bots_end(registry: Registry, game: Game) -> None:
    for size in sizes(game):
        for deal in DEALS:
            table = table_of(registry, deal, size)
            outputs_of(table)
            ending = table.state.ending()
            assert len(ending.marks) == len(ending.counts) == size
            assert len(ending.game_counts) == len(game.results.game_counts)
            assert {len(counts) for counts in ending.counts} == {len(game.results.seat_counts)}


def test_results_are_whole_numbers_that_agree(registry: Registry, game: Game) -> None:
    results = game.results
    assert len(results.endings) == len(results.buckets)
    assert {*results.headline} <= {measure.key for measure in results.measures}
    for measure in results.measures:
        if measure.count:
            assert measure.count in results.seat_counts
            continue
        assert len(measure.values) == len(results.buckets)
        assert 0 == min(measure.values) <= max(measure.values) <= measure.scale
    for size in sizes(game):
        assert results.equal_share(size).keys() <= {measure.key for measure in results.measures}
        table = table_of(registry, 1, size)
        outputs_of(table)
        outcome = outcome_of(table.state, [*range(size)], None, table.fallback_turns)
        assert unpack(outcome.pack(), results) == outcome
        assert all(0 <= bucket < len(results.buckets) for bucket in outcome.buckets(results))
        assert all(0 <= measured[0] <= results.measures[0].scale for measured in outcome.measured(results))


def test_illegal_outputs_change_nothing(registry: Registry, game: Game) -> None:
    for deal in DEALS:
        table = table_of(registry, deal, game.seats[0])
        state = dealt(game, deal)
        for output in outputs_of(table):
            before = state.seat, state.over, state.turns_played, json.dumps(game.deal_to_json(state))
            for wrong in [*no_outputs(game), Hostile()]:
                with pytest.raises(IllegalOutput):
                    state.apply(wrong)
            assert before == (state.seat, state.over, state.turns_played, json.dumps(game.deal_to_json(state)))
            state.apply(output)
        assert state.ending() == table.state.ending()
        with pytest.raises(IllegalOutput, match="the game is over"):
            state.apply(output)


def test_a_record_played_again_is_the_same_game(registry: Registry, game: Game) -> None:
    for size in sizes(game):
        for deal in DEALS:
            state = dealt(game, deal, size)
            begun = json.dumps(game.deal_to_json(state))
            kept = json.loads(json.dumps([game.output_to_json(o) for o in outputs_of(table_of(registry, deal, size))]))
            table = table_of(registry, deal, size)
            assert json.dumps(game.deal_to_json(table.state)) == begun
            events = []
            for plain in kept:
                events += [*state.apply(game.output_from_json(plain))]
            assert state.over
            again = table_of(registry, deal, size)
            outputs_of(again)
            assert state.ending() == again.state.ending()
            assert all(event.only in (None, *range(size)) for event in events)


def test_nothing_is_told_where_nobody_asks(registry: Registry, game: Game) -> None:
    """With `announce` off no event is built, and the game is the same one."""
    for output_count, announce in ((0, False), (1, True)):
        state = dealt(game)
        told = 0
        for output in outputs_of(table_of(registry, 0, game.seats[0])):
            told += len(state.apply(output, announce))
        assert bool(told) is announce
        assert (output_count, state.over) == (int(announce), True)


def test_all_that_is_drawn_has_a_face_and_an_icon_of_ours(registry: Registry, game: Game) -> None:
    words, ours = words_of(game), (REPO / "dubito" / "report" / "static" / "cards.js").read_text()
    table = table_of(registry, 0, game.seats[0])
    teller, drawn = words.Teller(table.state, seat_label), set[str]()
    while not table.state.over:
        seat = table.state.seat
        drawn.update(words.hand(table.state, seat))
        drawn.update(card for line in teller.moved(seat, *step(table, announce=True)) for card in line.cards)
        drawn.update(card for panel in teller.panels() for card in panel.cards)
    assert drawn <= {*words.FACES}
    assert drawn or not words.FACES
    for face in words.FACES.values():
        assert re.search(rf'^ +.*"?{face.icon}"?: ("M|die\()', ours, re.MULTILINE), face


def test_a_run_does_not_depend_on_its_workers(registry: Registry, game: Game, tmp_path: Path, at_length: bool) -> None:
    """More than a chunk, so that two processes share the work; in the gate it is a run of Dubito's that shows it.

    Of a family it is one of its quickest games.
    """
    if (game.family and "poker" not in game.name) or not at_length:
        return
    experiment = resolve(check({"game": game.name, "games": 1100, "table_sizes": [game.seats[0]]}, "test"), registry)
    digests = set()
    for workers in (1, 2):
        how = means(tmp_path / f"{workers}", workers=workers)
        run = play(experiment, tmp_path / f"{workers}", RunOptions(registry, workers, how.calls, how.stop))
        assert run.failure is None
        digests.add((run.results_digest, (tmp_path / f"{workers}" / "all_games.yaml").read_bytes()))
    assert len(digests) == 1


def test_a_position_comes_back_from_its_file(game: Game) -> None:
    """Alone, which is what a prompt is filled from, and with what is kept beside it: where it was taken, and truth."""
    if game.name.startswith(("openspiel:dark_chess", "openspiel:gin_rummy")):
        return  # long positions; the others of the family have the same form
    if game.module("facts") is None:
        pytest.skip(f"no model plays {game.name} yet")
    asked = [one for played in sample_games(game)[:2] for one in played]
    for one in asked:
        assert read_recorded(one.text, game) == one
        assert game.facts.from_json(one.text) == one.position
        assert game.facts.from_json(game.facts.to_json(one.position)) == one.position
    assert {one.position.node for one in asked} == {node.name for node in game.nodes}


SHORT = {"dubito": {"max_turns": 20}, "bs": {"max_rounds": 1}}  # games of models that are long as they are


def test_a_run_of_models_on_the_house_ends_and_replays(game: Game, shell: Shell) -> None:
    if game.name.startswith(("openspiel:dark_chess", "openspiel:gin_rummy")):
        return  # games of a hundred moves; the others of the family ask in the same way
    if game.module("facts") is None:
        pytest.skip(f"no model plays {game.name} yet")
    size = game.seats[0]
    field = [bot.name for bot in registry_of(game.name).hand_written()][: size + 1]
    games = 4 if size == 2 else 2  # two contenders; of two seats each has both
    words = ("--game", game.name, "--bots", ",".join(field), "--table-sizes", f"{size}", "--games", f"{games}")
    rules = [f"--{rule.replace('_', '-')}={most}" for rule, most in SHORT.get(game.name, {}).items()]
    said = shell(
        "run", *words, *rules, "--contenders", "house:house-random@plain,house:house-random@reasoned", "--output", "r"
    )
    assert said.code == 0, said.err
    replayed = shell("replay", "r")
    assert (replayed.code, replayed.out.splitlines()[-1]) == (0, said.out.splitlines()[-2])


BOLD = """from bots.llms.openai_bot import OpenAIBot


class BoldBot(OpenAIBot):
    \"\"\"Asks by OpenAI's protocol, and says what it was asked.\"\"\"

    def facts(self, position):
        with open("asked", "a") as file:
            print(position.node, file=file)
        return super().facts(position)
"""


def test_a_users_own_model_bot_plays_it(game: Game, shell: Shell) -> None:
    if game.name.startswith(("openspiel:dark_chess", "openspiel:gin_rummy")):
        return  # as above
    folder = Path("bots/llms", "" if game.name == "dubito" else game.folder)
    folder.mkdir(parents=True)
    (folder / "bold_bot.py").write_text(BOLD)
    field = [bot.name for bot in registry_of(game.name).hand_written()][: game.seats[0] + 1]
    bold = {"bot": "BoldBot", "model": "house-random", "base_url": "house", "prompt": "plain"}
    config = {"game": game.name, "games": 2, "table_sizes": [game.seats[0]], "bots": field, "contenders": [bold]}
    config["rules"] = SHORT.get(game.name, {})
    Path("c.yaml").write_text(yaml.safe_dump(config))
    said = shell("run", "c.yaml", "--output", "r")
    assert said.code == 0, said.err
    assert {*Path("asked").read_text().split()} & {node.name for node in game.nodes}
    assert shell("replay", "r").code == 0


def test_every_game_of_the_house_is_in_its_list(shell: Shell) -> None:
    listed = shell("games").out
    for folder in (REPO / "dubito" / "games").glob("*/game.py"):
        assert re.search(rf"^{folder.parent.name}(:NAME)? ", listed, re.MULTILINE)
