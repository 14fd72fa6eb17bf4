"""Model players at BS: any reply is parsed, or rejected with the right cause."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from dubito.experiment.call_options import CallOptions
from dubito.experiment.models import open_pipeline
from dubito.experiment.resolved import ModelPart
from dubito.game import node_view
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.games.bs.fake_models import MODELS
from dubito.games.bs.game import GAME
from dubito.games.bs.knowledge import BSRules
from dubito.house.core import random_answer
from dubito.llm.answers import build_form
from dubito.llm.cache import ReplyCache
from dubito.llm.decide import Decider, GameServices, Journal
from dubito.llm.prompts import load_prompt
from dubito.llm.settings import build_settings
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.experiment.kit import REPO
from tests.games.bs.kit import questions
from tests.games.bs.models import both, experiment, ran, registry, short
from tests.llm.kit import Incoming, NoWait, Server, respond

PLAIN: Final = load_prompt("plain", REPO, GAME)
MALFORMED: Final = "fallback:malformed"
ILLEGAL: Final = "fallback:illegal"
ScriptedReply = str | Callable[[list[int]], str]  # a function of the held cards

CARDS: Final[list[tuple[ScriptedReply, str]]] = [
    *((text, MALFORMED) for text in ('"3"', "3", "null", "true", '["3"]', "[[3]]", "[3, [3]]", "[3.0]", "[1.5]")),
    *(
        (text, MALFORMED)
        for text in ("[true]", "[null]", '{"3": 1}', "[13]", "[-1]", "[NaN]", "[99999999999999999999]")
    ),
    ("[]", ILLEGAL),
    (json.dumps([*range(13)] * 4), ILLEGAL),
    (lambda held: json.dumps([held[0]] * 5), ILLEGAL),
    (lambda held: json.dumps([held[0]] * (held.count(held[0]) + 1)), ILLEGAL),
    (lambda held: json.dumps([held[0], next(n for n in range(13) if n not in held)]), ILLEGAL),
    (lambda held: json.dumps([held[0]] * held.count(held[0])), "model"),
    (lambda held: json.dumps(held[:2]), "model"),
]
BS: Final[list[tuple[ScriptedReply, str]]] = [
    *((text, MALFORMED) for text in ("1", "0", '"true"', "null", "[true]", "[3]", "{}", "yes", "1.0")),
    *(("true", "model"), ("false", "model")),
]


class Scripted:
    """Gives the scripted answer at each node, then legal ones, and records the questions."""

    def __init__(self) -> None:
        self.left = {"cards": list(CARDS), "bs": list(BS)}

    def __call__(self, request: Incoming) -> Any:
        text = json.loads(request.raw)["input"][-1]["content"]
        held = [
            int(card)
            for card in re.findall(r"^legal: (.*)$", str(text), re.MULTILINE)[-1:]
            for card in card.split(" | ")
        ]
        left = self.left["cards" if held else "bs"]
        value: ScriptedReply = left.pop(0)[0] if left else (lambda held: json.dumps(held[:1]) if held else "false")
        return respond(request.protocol, f'{{"answer": {value if isinstance(value, str) else value(held)}}}')


@contextmanager
def at_the_table(folder: Path, base_url: str) -> Iterator[tuple[Table, ModelLog]]:
    """Play a game of four model players that use this server."""
    bots = registry()
    config = {"model": "m", "base_url": base_url, "reasks": 0, "fallback": "Player1"}
    settings = build_settings(bots.find("OpenAIBot").cls, "x", config, GAME)
    calls = CallOptions(8, folder / "cache", False)
    with RunDb.create(folder / "run.db") as db:
        log, cache = ModelLog(db), ReplyCache(calls.cache)
        with open_pipeline(log, cache, calls, NoWait(), lambda: False, suspend=False, game=GAME) as pipeline:
            asks = pipeline.build_asks("x", settings, None)
            fallback = ModelPart("x", settings, bots).fallback.cls
            decider = Decider("x", settings, PLAIN, fallback, asks, log, 0, BSRules(), lambda outcome: None)
            services = [GameServices(decider, Journal())] * 4
            streams = DealStreams(3, 0)
            game = GAME.deal(BSRules(), 4, streams.deck())
            entrants = [Entrant("x", bots.find("OpenAIBot").cls, settings.model_dump())] * 4
            yield Table(game, entrants, streams, services=services), log


def test_each_hostile_reply_has_the_right_cause(tmp_path: Path) -> None:
    script, found, asked = Scripted(), dict[str, list[str]](cards=[], bs=[]), [0] * 4
    with Server(script) as server, at_the_table(tmp_path, server.base_url("responses")) as (table, log):
        while any(script.left.values()) and not table.state.over:
            seat, node = table.state.seat, node_view(table.state).node
            step(table)
            taken = log.decisions(0)[seat, asked[seat]]
            found[node].append(taken.outcome)
            asked[seat] += 1
    for node, script_of in (("cards", CARDS), ("bs", BS)):
        wanted = [outcome for _, outcome in script_of]
        assert found[node][: len(wanted)] == wanted


def test_plays_of_the_fallback_are_stored_as_numbers() -> None:
    cards = sample_hand()
    assert GAME.answer_of("cards", cards) == [card.number for card in cards]
    assert GAME.answer_of("bs", True) is True


def sample_hand() -> list[Any]:
    return list(GAME.deal(BSRules(), 4, Random(0)).hands[0].cards[:3])


def test_the_house_plays_bs_without_a_fallback(tmp_path: Path) -> None:
    run = ran(experiment(short(*both(), games=2, rounds=6)), tmp_path / "run")
    assert {name: set(log.outcomes) for name, log in run.models.items()} == {"careful": {"model"}, "chance": {"model"}}
    again = ran(experiment(short(*both(), games=2, rounds=6)), tmp_path / "again", offline=True)
    assert again.results_digest == run.results_digest


def test_house_careful_plays_honestly_and_accuses_lies() -> None:
    careful = MODELS["house-careful"]
    lies = honest = 0
    for _, position in questions(2):
        facts = GAME.facts.facts(position)
        answer = careful(PLAIN.render(position).user, Random(0))["answer"]
        if facts["node"] == "bs":
            assert answer is (facts["sure_lie"] or facts["mover_wins"])
        elif facts["held_of_number"]:
            assert answer == [facts["number"]] * facts["held_of_number"]
            honest += 1
        else:
            last = max(map(int, facts["hand"]), key=facts["own_numbers"].index)
            assert answer == [last]
            lies += 1
    assert min(lies, honest) > 2


def test_house_random_is_legal_at_every_node() -> None:
    schemas = {node.name: build_form(("answer",), node).schema for node in GAME.nodes}
    chance = Random(1)
    for _, position in questions(3):
        position = position
        opinion = random_answer(schemas[position.node], PLAIN.render(position).user, chance)
        assert opinion.understood
        if position.node == "cards":
            held = GAME.facts.facts(position)["legal"]
            assert opinion.answer
            assert all(opinion.answer.count(card) <= held.count(card) for card in opinion.answer)
        else:
            assert type(opinion.answer) is bool


@pytest.mark.parametrize("text", ["", "=== facts ===\nnode: bs\n=== end of facts ===\n", "=== facts ===\nnode: cards"])
def test_house_careful_needs_the_facts(text: str) -> None:
    with pytest.raises((LookupError, ValueError)):
        MODELS["house-careful"](text, Random(0))


@pytest.mark.parametrize("value", [[-1], [52], [True], ["3"], [1.0], "3", None, 7, {"a": 1}])
def test_a_damaged_output_is_refused(value: Any) -> None:
    with pytest.raises(Exception, match="a BS move is true, false or a list of deck positions from 0 to 51"):
        GAME.output_from_json(value)
