"""Collected positions are real questions with their truth, spread over games and nodes."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from dubito.errors import UsageError
from dubito.experiment.stored import Run, read_replayable_run
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant
from dubito.games.dubito.bot import NODES, FiveNodes, PlayerAI
from dubito.games.dubito.cards import TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, deal_hands, deal_table, is_honest
from dubito.games.dubito.game import GAME
from dubito.llm.decide import Decider, Journal
from dubito.llm.prompts import Prompt
from dubito.llm.request import Attempt, AttemptFailed, Place, Reply
from dubito.llm.settings import check_settings
from dubito.model_settings import ModelSettings
from dubito.store.spend import Caps
from dubito.workshop.recordings import (
    Origin,
    Provenance,
    RecordedPosition,
    Watcher,
    evenly_spaced,
    parse_position,
    record_from_config,
    record_from_run,
    record_positions,
    spread_evenly,
)
from tests.cli.kit import Shell
from tests.experiment.kit import REPO, experiment, play_all, resolved
from tests.llm.kit import contender, rows, run_games, small
from tests.prompts.kit import RULES, Asked, asked_bot, by_temper, record_questions
from tests.workshop.kit import FIELD, PLAIN, REASONED, positions, prompt


def open_run(folder: Path) -> Run:
    return read_replayable_run(folder, REPO)


def sources(found: list[RecordedPosition]) -> list[tuple[int, int, int]]:
    sources_found = [one.source for one in found if one.source]
    return [(source.game, source.seat, source.decision) for source in sources_found]


class _Deaf:
    """A model that is never reached, with a log that stores nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, ask: Attempt) -> Reply:
        self.asked.append(ask.request.digest)
        raise AttemptFailed("unreachable", "deaf")

    def decision(self, *of: object) -> None:
        """Store nothing."""


def request_of(prompt: Prompt, settings: ModelSettings, one: RecordedPosition) -> str:
    """Return the digest of the request that a model player with this prompt would send at this position."""
    deaf, node = _Deaf(), one.position.node
    player = Decider("x", settings, prompt, PlayerAI, deaf, deaf, 0, Rules(), lambda outcome: None)
    place = Place("x", 0, 0, one.position.seat, 0, 0, node)
    asked = player.begin(prompt.render(one.position), prompt.form_at(one.position), place)
    player.decide(asked, place, 0, Journal(), lambda: False)
    return deaf.asked[0]


def test_recorded_positions_render_the_sent_request(tmp_path: Path) -> None:
    """Check the digests of all requests in all protocols, with prompts that were changed since."""
    own = prompt(tmp_path, user="{{ history | join('|') }} {{ question }} {{ answers }} {{ own_plays }} {{ players }}")
    models = [
        contender("a", "house-sharp", prompt="reasoned"),
        contender("b", "house-random", bot="AnthropicBot", prompt=str(own.folder)),
        contender("c", "house-random", bot="LLMBot", api="chat"),
    ]
    run = run_games(small(*models, games=3, turns=16), tmp_path / "run")
    (own.folder / "user.jinja").write_text("Something else.")
    found = record_from_run(open_run(tmp_path / "run"), "ABCDE", 10_000)
    query = "SELECT game, seat, decision, player, request FROM attempts WHERE attempt = 0"
    sent = {(game, seat, decision): (name, request) for game, seat, decision, name, request in rows(run.folder, query)}
    settings = {player.name: check_settings("x", player.settings) for player in run.experiment.players if player.prompt}
    prompts = {"a": REASONED, "b": own, "c": PLAIN}
    rendered = {}
    for one, place in zip(found, sources(found), strict=True):
        if place in sent:
            name, _ = sent[place]
            rendered[place] = name, request_of(prompts[name], settings[name], one)
    assert len(rendered) > 40
    assert rendered == sent
    assert len(found) > 2 * len(rendered), "other seats' questions are collected too"


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("size", [3, 6])
def test_a_watched_question_is_the_players_with_the_engines_truth(rules: Rules, size: int) -> None:
    """Compare with players that record their own questions, and with a second engine that gets the same outputs."""
    streams = DealStreams(3, size)
    table = deal_table([Entrant(f"p{seat}", asked_bot(by_temper)) for seat in range(size)], rules, streams)
    record_questions(table, rules)
    watcher, game = (
        Watcher(table, Origin("a run", 3, size, 8), GAME, GAME.rules(**rules.stored_form())),
        State(rules, deal_hands(streams.deck(), size, rules)),
    )
    decisions = Counter[int]()
    while not game.over:
        before = len(watcher.recorded)
        player = table.players[game.seat]
        move = watcher.step()
        assert isinstance(player, Asked)
        assert [one.position for one in watcher.recorded[before:]] == player.asked
        for one in watcher.recorded[before:]:
            dishonest = not is_honest(game.board[-game.n_cards_played :], game.number)
            source = Provenance("a run", 3, size, 8, game.seat, decisions[game.seat])
            assert one.right == (dishonest if one.position.node == "C" else None)
            assert one.source == source
            decisions[game.seat] += 1
        game.apply(move)
    assert sum(decisions.values()) > 40


class _Doubter(FiveNodes):
    """Asks itself what it would answer in other positions, before and during its turn."""

    def play(self, p: TurnData) -> TurnOutput:
        self.should_doubt(p)
        return super().play(p)

    def bluff_first_hand(self, p: TurnData) -> bool:
        return False

    def maximize_first_hand(self, p: TurnData) -> bool:
        return self.bluff_first_hand(p)

    def should_doubt(self, p: TurnData) -> bool:
        return p.streak > 3

    def bluff_regular(self, p: TurnData) -> bool:
        return self.should_doubt(p)

    def maximize_regular(self, p: TurnData) -> bool:
        return not self.bluff_regular(p)


class _Silent(PlayerAI):
    """A bot that answers no nodes."""

    def play(self, p: TurnData) -> TurnOutput:
        return self.play_truthfully(p, maximize=False) if p.board_cards == 0 else self.bluff(p, maximize=False)


def test_only_questions_of_the_walk_are_collected() -> None:
    rules = Rules(max_turns=30)
    table = deal_table(
        [Entrant("a", _Doubter), Entrant("b", _Silent), Entrant("c", _Doubter)], rules, DealStreams(1, 1)
    )
    found = record_positions(table, Origin(None, 1, 1, 1), GAME, GAME.rules(max_turns=30))
    assert {one.position.seat for one in found} == {0, 2}
    assert all(parse_position(one.text, GAME) == one for one in found), "questions outside the walk could not be parsed"
    assert len(found) > 20


def test_positions_are_spread_over_nodes_and_games_and_repeat() -> None:
    games = experiment(games=10, table_sizes=[3, 5], seed=5, bots=FIELD)
    found = list(positions(20))
    assert Counter(one.position.node for one in found) == dict.fromkeys(NODES, 4)
    assert Counter(game for game, _, _ in sources(found)) == dict.fromkeys(range(10), 2)
    assert record_from_config(resolved(games), NODES, 20) == found
    assert len({decision for _, _, decision in sources(found)}) > 8, "early and late decisions are collected"
    of_c = record_from_config(resolved(games), "C", 20)
    assert Counter(one.position.node for one in of_c) == {"C": 20}
    assert set(Counter(game for game, _, _ in sources(of_c)).values()) == {2}


def test_shortage_at_a_node_is_filled_from_others() -> None:
    found = list(positions(100))
    few = [one for one in found if one.position.node != "A"] + [one for one in found if one.position.node == "A"][:2]
    assert Counter(one.position.node for one in spread_evenly(few, 30)) == {"A": 2, "B": 7, "C": 7, "D": 7, "E": 7}
    assert len(spread_evenly(few, 1000)) == len(few) == len(set(map(id, spread_evenly(few, 1000))))


def test_games_are_taken_from_the_whole_run_and_of_every_contender() -> None:
    assert evenly_spaced(7, 7) == list(range(7))
    assert evenly_spaced(100, 5) == [0, 21, 42, 63, 84]
    for games, contenders in ((400, 2), (300, 3), (1000, 5)):
        chosen = evenly_spaced(games, 100)
        assert sorted(set(chosen)) == chosen
        assert chosen[-1] < games
        assert {game % contenders for game in chosen} == set(range(contenders))


def test_a_hand_written_run_gives_its_configs_positions_and_name(tmp_path: Path) -> None:
    games = experiment(games=10, table_sizes=[3, 5], seed=5, bots=FIELD)
    play_all(games, tmp_path / "run")
    found = record_from_run(open_run(tmp_path / "run"), NODES, 20)
    assert [one.position for one in found] == [one.position for one in positions(20)]
    assert {one.source.run for one in found if one.source} == {games.digest()}
    assert {one.source.run for one in positions(20) if one.source} == {None}


def test_a_run_that_is_now_played_another_way_is_refused(tmp_path: Path) -> None:
    play_all(experiment(games=2, table_sizes=[3], bots=FIELD), tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as connection, connection:
        connection.execute("UPDATE games SET outcome = (SELECT outcome FROM games WHERE game = 0) WHERE game = 1")
    with pytest.raises(UsageError, match=r"game 1 of .*run now plays differently: something has changed"):
        record_from_run(open_run(tmp_path / "run"), NODES, 20)


def test_a_run_without_a_finished_game_is_refused(tmp_path: Path) -> None:
    run_games(small(contender("a")), tmp_path / "run", caps=Caps(calls=1))
    with pytest.raises(UsageError, match="run has no finished game to record from"):
        record_from_run(open_run(tmp_path / "run"), NODES, 20)


def test_record_writes_files_and_says_what(shell: Shell) -> None:
    config = {"games": 4, "table_sizes": [4], "bots": FIELD}
    Path("c.yaml").write_text(yaml.safe_dump(config))
    result = shell("prompts", "record", "c.yaml", "--count", "10")
    assert (result.code, result.err) == (0, "")
    assert result.out == "written: 10 positions from 4 deals in positions: A 2, B 2, C 2, D 2, E 2\n"
    assert shell("prompts", "record", "c.yaml", "--count", "10", "--output", "more").code == 0
    files = {file.name: file.read_bytes() for file in Path("positions").iterdir()}
    assert {file.name: file.read_bytes() for file in Path("more").iterdir()} == files
    assert len(files) == 10
    shell("run", "c.yaml", "--quiet", "--output", "run")
    result = shell("prompts", "record", "run", "--count", "1000", "--node", "A", "--output", "all")
    count = len(list(Path("all").iterdir()))
    assert 4 < count < 1000
    assert result.out == (
        f"written: {count} positions (of 1000 requested; there are no more) from 4 deals in all: A {count}\n"
    )
    shell("export", "run", "run.zip")
    packed = shell("prompts", "record", "run.zip", "--count", "1000", "--node", "A", "--output", "packed")
    assert packed.out == result.out.replace(" in all: ", " in packed: ")
    assert sorted(file.name for file in Path("packed").iterdir()) == sorted(file.name for file in Path("all").iterdir())
    shown = shell("prompts", "show", "plain", "--position", str(next(Path("all").iterdir())))
    assert "node: A" in shown.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("models.yaml",),
            "dubito: this config has model players; start it with `dubito run`, then record from the run",
        ),
        (("none.yaml",), "dubito: cannot read none.yaml: No such file or directory"),
        (("empty",), "dubito: empty is not a run folder: it has no manifest.yaml"),
        (("walkers.yaml",), "dubito: walkers.yaml has no such positions because its bots do not"),
        (("models.yaml", "--count", "0"), "dubito: Invalid value for '--count'"),
        (("models.yaml", "--node", "F"), "dubito: Invalid value for '--node'"),
    ],
)
def test_bad_input_to_record_is_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    Path("empty").mkdir()
    shell.bot("silent.py", _SILENT)
    Path("models.yaml").write_text(yaml.safe_dump({"games": 2, "bots": [contender("a"), "StefaBot"]}))
    Path("walkers.yaml").write_text(yaml.safe_dump({"games": 2, "bots": ["Silent"]}))
    result = shell("prompts", "record", *words)
    assert result.code == 2
    assert result.err.startswith(sentence)
    assert result.err.count("\n") == 1
    assert not Path("positions").exists()


_SILENT = """
from dubito.games.dubito.bot import PlayerAI

class Silent(PlayerAI):
    def play(self, p):
        return self.play_truthfully(p, maximize=False) if p.board_cards == 0 else self.bluff(p, maximize=False)
"""
