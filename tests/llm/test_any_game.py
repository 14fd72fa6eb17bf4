"""Models at a user's game with a node of each kind: asked, rejected, re-asked, stored, replayed."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from dubito.errors import UsageError
from dubito.experiment.call_options import CallOptions
from dubito.experiment.model_players import check_house
from dubito.experiment.models import open_pipeline
from dubito.experiment.resolved import ModelPart
from dubito.game import Game, Player
from dubito.game.find import find_bots, find_game
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.house.core import random_answer
from dubito.house.faults import CONTENT_FAULTS
from dubito.llm.answers import answer_format, build_form, read_answer
from dubito.llm.cache import ReplyCache
from dubito.llm.decide import Decider, GameServices, Journal
from dubito.llm.preflight import Preflight
from dubito.llm.price_list import find_price
from dubito.llm.prompts import Prompt, load_prompt, prompt_names
from dubito.llm.recording import ReplayRecording
from dubito.llm.request import AttemptFailed
from dubito.llm.settings import build_settings
from dubito.model_settings import ModelSettings
from dubito.store.model_log import Decision, ModelLog
from dubito.store.run_db import RunDb
from tests.games.kit import changed_game
from tests.llm.kit import Incoming, NoWait, Server, reply, respond

HOME: Final = Path(__file__).parent / "tiny_game"
GAME: Final = find_game("guess", HOME)
BOTS: Final = find_bots(HOME, "guess")
PROMPT: Final = load_prompt("plain", HOME, GAME)
NODES: Final = {node.name: node for node in GAME.nodes}


@pytest.fixture(autouse=True)
def _find_guess() -> None:
    find_game("guess", HOME)


def settings(**more: Any) -> ModelSettings:
    config = {"model": "house-random", "base_url": "house"} | more
    return build_settings(BOTS.find("OpenAIBot").cls, "x", config, GAME)


@contextmanager
def at_the_table(folder: Path, offline: bool = False, **more: Any) -> Iterator[tuple[Table[Any], Journal, ModelLog]]:
    """Play a game of two model players, with a run's tables and cache."""
    folder.mkdir(exist_ok=True)
    checked, journal = settings(**more), Journal()
    calls = CallOptions(8, folder.parent / "cache", offline)
    with RunDb.create(folder / "run.db") as db:
        log, cache = ModelLog(db), ReplyCache(calls.cache)
        with open_pipeline(log, cache, calls, NoWait(), lambda: False, suspend=False, game=GAME) as pipeline:
            asks = pipeline.build_asks("x", checked, None)
            Preflight("x", 0, checked, asks, lambda warning: None).run(PROMPT.samples)
            fallback = ModelPart("x", checked, BOTS).fallback.cls
            decider = Decider("x", checked, PROMPT, fallback, asks, log, 0, GAME.rules(), lambda outcome: None)
            yield table_of(decider, journal), journal, log


def table_of(decider: Decider, journal: Journal) -> Table[Any]:
    """Return a game with this model in both seats."""
    streams = DealStreams(3, 0)
    entrants = [Entrant("x", BOTS.find("OpenAIBot").cls, decider.settings.model_dump())] * 2
    game = GAME.deal(GAME.rules(), 2, streams.deck())
    return Table(game, entrants, streams, services=[GameServices(decider, journal)] * 2)


def finished(table: Table[Any]) -> list[Any]:
    """Play the game and return its outputs."""
    outputs = []
    while not table.state.over:
        outputs.append(step(table)[0])
    return outputs


def decisions(log: ModelLog) -> list[Decision]:
    return [*log.decisions(0).values()]


def test_a_model_plays_a_whole_game_by_its_nodes(tmp_path: Path) -> None:
    with at_the_table(tmp_path / "one") as (table, journal, log):
        outputs = finished(table)
        taken = decisions(log)
    assert len(outputs) == len(taken) == len(journal.decisions) == 16
    assert {one.outcome for one in taken} == {"model"}, "house-random plays legal moves"
    assert [one.node for one in taken] == [*NODES] * 4
    assert [one.turn for one in taken] == [*range(1, 9)] * 2, "every answer is a move"
    assert {type(one.answer) for one in taken} == {str, list, int, bool}
    assert isinstance(outputs[1], tuple), "the game converts the model's list to its own type"


def test_game_repeats_from_cache_and_recording(tmp_path: Path) -> None:
    with at_the_table(tmp_path / "one") as (table, journal, log):
        first = finished(table)
        taped = Journal()
        tape = ReplayRecording(log)
        decider = table.players[0]._decider  # type: ignore[union-attr]
        again = Decider("x", decider.settings, PROMPT, decider.fallback, tape, tape, 0, decider.rules, print)
        assert finished(table_of(again, taped)) == first
        assert taped.digest() == journal.digest()
    with at_the_table(tmp_path / "two", offline=True) as (table, cached, log):
        assert finished(table) == first
        assert cached.digest() == journal.digest()
        assert log.spent().calls == 0


def answering(answers: dict[str, object]) -> Callable[[Incoming], Any]:
    """Start a server that gives this answer to each question. A text is sent unchanged."""

    def answer(request: Incoming) -> Any:
        text = json.dumps(request.body)
        node = next((name for name in NODES if f"Question {name}." in text), "sure")
        value = answers.get(node, {"hint": "high", "stake": None, "number": 7, "sure": True}[node])
        if value is None:
            value = [int(text.split("You hold ")[-1][0])]
        return respond(
            request.protocol, value if isinstance(value, str) and value[:1] == "{" else json.dumps({"answer": value})
        )

    return answer


def test_illegal_answer_is_asked_again_then_falls_back(tmp_path: Path) -> None:
    with (
        Server(answering({"stake": [5, 5, 5, 5, 5], "number": 0})) as server,
        at_the_table(tmp_path / "r", base_url=server.base_url("responses")) as (table, journal, log),
    ):
        outputs = finished(table)
        taken = decisions(log)
    assert [one.outcome for one in taken] == ["model", "fallback:illegal", "fallback:illegal", "model"] * 4
    asked = {request.last for request in server.requests if request.re_asked}
    again = 'Reply again with nothing but the JSON object, {"answer": X}, X being'
    assert asked == {
        f"Your last answer cannot be played: the card 5 is not in your hand that often. {again} a list of cards, each "
        "one of 1, 2, 3, 5.",
        f"Your last answer cannot be played: 0 is not legal now. {again} a whole number.",
    }
    assert journal.fallback_seats == {0, 1}
    assert outputs[1] == (table.state.hands[0][0],), "the fallback's move is played"
    assert taken[1].answer == [table.state.hands[0][0]], "it is stored as the answer that leads to the move"
    assert [one.answer for one in taken[2:4]] == [1, True]


def test_legal_answer_to_a_re_ask_counts_as_the_models(tmp_path: Path) -> None:
    def answer(request: Incoming) -> Any:
        return answering({} if request.re_asked else {"number": 10})(request)

    with (
        Server(answer) as server,
        at_the_table(tmp_path / "r", base_url=server.base_url("responses")) as (table, _, log),
    ):
        finished(table)
        outcomes = [one.outcome for one in decisions(log)]
    assert outcomes == ["model", "model", "model_after_reask", "model"] * 4


HOSTILE: Final = {
    "hint": ['"HIGH"', '"high "', '""', "null", "true", "0", '["high"]', '{"answer": "high"}', '"\\ud800"'],
    "stake": [
        *('"1"', "1", "null", "true", '["1"]', "[[1]]", "[1.0]", "[true]", "[4]", "[1, null]", '{"1": 1}', "[1e0]"),
        "[99999999999999999999999]",
    ],
    "number": ['"7"', "7.0", "7e0", "true", "null", "[7]", '{"n": 7}', "NaN", "07", "Infinity", '"seven"'],
    "sure": ["1", '"true"', "null", "[true]", "yes"],
}


def test_answer_of_the_wrong_kind_is_malformed(subtests: pytest.Subtests) -> None:
    for node, text in [(node, text) for node, texts in HOSTILE.items() for text in texts]:
        with subtests.test(node=node, text=text):
            value = reply(f'{{"answer": {text}}}')
            with pytest.raises(AttemptFailed) as failed:
                read_answer(value, build_form(("answer",), NODES[node]))
            assert failed.value.cause == "malformed"
            assert len(failed.value.detail) < 200


SPOILT: Final = ("wrong_string", "wrong_number", "wrong_null", "nan", "no_answer", "duplicate_keys", "extra_fields")


def test_house_faults_apply_to_every_kind_of_answer(subtests: pytest.Subtests) -> None:
    for fault in [*SPOILT, "fenced", "prose", "escapes", "deep", "empty_text", "surrogate"]:
        for node, answer in [("hint", "low"), ("stake", [1, 2]), ("number", 3), ("sure", True)]:
            with subtests.test(fault=fault, node=node, answer=answer):
                written = CONTENT_FAULTS[fault].write(json.dumps({"answer": answer}, separators=(",", ":")))
                with pytest.raises(AttemptFailed) as failed:
                    read_answer(reply(written.text or ""), build_form(("answer",), NODES[node]))
                assert failed.value.cause == "malformed"


def test_error_detail_names_the_expected_answer() -> None:
    for node, detail in {
        "hint": '`answer` is not one of "high", "low", "none"',
        "stake": "`answer` is not a list of cards, each one of 1, 2, 3, 5 (without quotes)",
        "number": "`answer` is not a whole number (without quotes)",
    }.items():
        with pytest.raises(AttemptFailed) as failed:
            read_answer(reply('{"answer": "7"}'), build_form(("answer",), NODES[node]))
        assert failed.value.detail == detail


def test_prompt_describes_the_answer_of_each_node() -> None:
    text = answer_format(("reasoning", "answer"), GAME.nodes)
    assert text.endswith(
        '"answer", at question hint one of "high", "low", "none"; at question stake a list of cards, each one of 1, 2, '
        "3, 5; at question number a whole number; at question sure true or false."
    )
    assert answer_format(("answer",), GAME.nodes[2:3]).endswith("X is a whole number.")


@pytest.mark.parametrize("answer", [True, False, 0, 1, 7, -1, 10**25, "high", "1", [], [1], [1, 2, 2], 0.5, None])
def test_answers_survive_storage(tmp_path: Path, answer: object) -> None:
    with RunDb.create(tmp_path / "run.db") as db:
        log = ModelLog(db)
        log.decision(Decision(0, 1, 2, 3, "stake", answer, "model"))
        taken = log.decisions(0)[1, 2]
        ((row,),) = db.read("SELECT answer FROM decisions")
    assert (type(taken.answer), taken.answer) == (type(answer), answer)
    assert row == (answer if isinstance(answer, bool) else json.dumps(answer, separators=(",", ":")).encode())


SCHEMAS: Final = {name: build_form(("answer",), node).schema for name, node in NODES.items()}


def draw_answers(node: str, text: str) -> list[Any]:
    return [random_answer(SCHEMAS[node], text, Random(seed)).answer for seed in range(300)]


def test_house_random_draws_from_the_last_line_of_what_is_legal() -> None:
    earlier = "legal: none\nsomething\n"
    assert set(draw_answers("hint", f"{earlier}  legal: high | low\nthe end")) == {"high", "low"}
    assert set(draw_answers("number", f"{earlier}legal: 3 | 4")) == {3, 4}
    stakes = draw_answers("stake", f"{earlier}legal: 3 | 3 | 5")
    assert {tuple(sorted(cards)) for cards in stakes} == {(3,), (5,), (3, 3), (3, 5), (3, 3, 5)}
    assert set(draw_answers("sure", "legal: 3")) == {True, False}


def test_house_random_follows_the_schema_without_a_legal_line() -> None:
    assert set(draw_answers("hint", "")) == {"high", "low", "none"}
    assert {tuple(cards) for cards in draw_answers("stake", "")} == {(1,), (2,), (3,), (5,)}
    assert set(draw_answers("number", "legal: a")) == {0}
    assert not random_answer(SCHEMAS["number"], "", Random(0)).understood
    assert random_answer(SCHEMAS["sure"], "", Random(0)).understood


def test_fake_models_play_any_game_from_its_facts() -> None:
    for name, api in {"OpenAIBot": "responses", "AnthropicBot": "messages"}.items():
        bot, own = BOTS.find(name), find_bots(HOME).find(name)
        assert bot.cls.is_model
        assert bot.cls.defaults == own.cls.defaults == {"api": api}
        assert (bot.summary, bot.digest) == (own.summary, own.digest)


def test_failure_falls_back_on_the_games_own_bot() -> None:
    assert settings().fallback == "Dull"
    assert ModelPart("x", settings(), BOTS).fallback.name == "Dull"
    with pytest.raises(UsageError, match="no bot of guess is named 'RandomBoi', but dubito has one"):
        _ = ModelPart("x", settings(fallback="RandomBoi"), BOTS).fallback
    with pytest.raises(UsageError, match=r"does not answer the nodes hint-sure separately; .* such as Dull"):
        _ = ModelPart("x", settings(fallback="OpenAIBot"), BOTS).fallback


class Watchful(Player):
    """Records what it observes, and plays according to the view."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.seen: list[Any] = []

    def observe(self, event: Any) -> None:
        self.seen.append(event)

    def play(self, view: Any) -> Any:
        return (self.cards[-1],) if view.node == "stake" else view.legal[-1]


def test_the_fallback_watches_the_game_and_plays_from_its_seat(tmp_path: Path) -> None:
    with (
        Server(answering({"number": "ten"})) as server,
        at_the_table(tmp_path / "r", base_url=server.base_url("responses")) as (table, journal, _),
    ):
        telling = changed_game(GAME, answer_of=lambda node, output: f"{node} {output}")
        decider = table.players[0]._decider  # type: ignore[union-attr]
        other = table_of(replace(decider, fallback=Watchful, prompt=Prompt(PROMPT.folder, game=telling)), journal)
        outputs = finished(other)
    for player in other.players:
        seen = player._fallback.seen  # type: ignore[union-attr]
        assert len(seen) == 1 + len(outputs)
    assert outputs[2::4] == [9] * 4, "the last legal number"
    kept = [decision for decision in journal.decisions if "fallback:malformed" in str(decision)]
    assert len(kept) == 4
    assert all("number 9" in str(decision) for decision in kept), "answers are shown in the game's words"


def test_preflight_asks_once_for_each_form_of_answer() -> None:
    schemas = [form.schema for _, form in PROMPT.samples]
    assert all(PROMPT.form(node.name).schema in schemas for node in GAME.nodes)
    assert all(schemas.count(schema) == 1 for schema in schemas)


def test_house_offers_only_the_games_own_models() -> None:
    check_house("x", settings(), GAME)
    with pytest.raises(UsageError, match="the built-in server has no model 'house-sharp'; it has house-random"):
        check_house("x", settings(model="house-sharp"), GAME)
    assert find_price("house", "house-of-another-game", {}) == find_price("house", "house-random", {})


def refused(name: str, home: Path, game: Any = GAME) -> str:
    with pytest.raises(UsageError) as error:
        load_prompt(name, home, game)
    return str(error.value)


def test_prompts_are_in_the_games_folder(tmp_path: Path) -> None:
    assert prompt_names(HOME, GAME) == ["plain"]
    assert {"mixed", "plain", "plan"} < {*prompt_names(HOME)}
    assert refused("plian", HOME) == "no prompt of guess is named 'plian': did you mean 'plain'?"
    elsewhere = "no prompt of guess is named 'reasoned' (bs, defuse, dubito and openspiel have one): choose from plain"
    assert refused("reasoned", HOME) == elsewhere
    known = ", ".join(prompt_names(HOME))
    assert refused("guess", HOME, None) == f"no prompt is named 'guess': choose from {known}"
    copy(HOME / "prompts/guess/plain", tmp_path / "prompts/guess/mine")
    assert refused("mine", tmp_path, None).startswith("no prompt is named 'mine' (guess has one): ")
    assert load_prompt("mine", tmp_path, GAME).digest == PROMPT.digest


def copy(folder: Path, into: Path, **files: str) -> None:
    into.mkdir(parents=True)
    for file in folder.iterdir():
        (into / file.name).write_text(files.get(file.stem, file.read_text()))


def test_prompt_fields_must_be_supported_by_a_node(tmp_path: Path) -> None:
    copy(HOME / "prompts/guess/plain", tmp_path / "mine", prompt="title: x\nanswer: [p_bluff, answer]\n")
    assert refused("./mine", tmp_path).endswith("answer: no node of guess asks for p_bluff, so remove it")


def test_includes_are_searched_next_to_the_prompt_and_in_the_project(tmp_path: Path) -> None:
    text = '{% include "shared/own.jinja" %}{% include "shared/history.jinja" %}'
    copy(HOME / "prompts/guess/plain", tmp_path / "prompts/guess/mine", history=text)
    own = tmp_path / "prompts/guess/shared/own.jinja"
    own.parent.mkdir()
    own.write_text("Told:\n")
    rendered = load_prompt("mine", tmp_path, GAME).render(GAME.facts.example_position("sure"))
    assert "Told:" in rendered.history[0]


class BareGame(type(GAME)):  # type: ignore[misc]
    facts = Game.facts


def test_game_without_facts_or_prompts_is_reported() -> None:
    bare = changed_game(BareGame(), name="bare")
    with pytest.raises(UsageError, match=r"models cannot play bare: its Game class does not define `facts`"):
        load_prompt("./prompts/guess/plain", HOME, bare)
    assert refused("plian", HOME, bare).endswith("'plian': the game has none yet: write one in prompts/bare")
