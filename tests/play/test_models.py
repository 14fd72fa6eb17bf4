"""Model players beside a person in the terminal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.games.dubito.record import load
from tests.llm.kit import KEY, Heard, Said, Server, asker, contender, error_body, rows, says
from tests.play.conftest import Play

WHATEVER = "d\n" + "\n".join(f"{card}" for card in ("*", *range(1, 14))) + "\n"


def config(*players: Mapping[str, Any]) -> str:
    Path("c.yaml").write_text(yaml.safe_dump({"bots": list(players), "preflight": False}))
    return "c.yaml"


def test_a_game_with_a_configs_players_is_played_and_kept(play: Play) -> None:
    file = config(contender("sharp", "house-sharp"), {"bot": "MrDoubt", "name": "doubter"})
    said = play(
        "sharp", "doubter", "--config", file, "--seed", "4", "--seat", "0", "--save", "g.json", typed=WHATEVER * 200
    )
    assert said.code == 0
    assert said.out.splitlines()[0] == "At the table, in playing order: you, sharp, doubter."
    assert said.err.startswith("Stand-ins are no language models: the embedded house answers for sharp.\n")
    assert f"dubito play sharp doubter --seed 4 --deal 0 --seat 0 --config {file}" in said.out
    record = load(Path("g.json").read_text())
    taken = rows(Path("games"), "SELECT DISTINCT game, seat, outcome FROM decisions")
    assert taken == [(record.number, 1, "model")]


SILENCE = 20  # failures


def test_what_stands_in_the_way_is_told_and_tried_again(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    answers = iter([True, False] + [False] * SILENCE)  # within a turn, and for long

    def sometimes(heard: Heard) -> Said:
        if next(answers, True):
            return says(heard.protocol)
        return Said(503, error_body(heard.protocol, "overloaded", "come back later"))

    with Server(sometimes) as model:
        file = config(asker(model, name="asker", api_key_env="SOME_KEY", tries=1))
        said = play("asker", "MrDoubt", "--config", file, "--seed", "1", "--seat", "0", typed=WHATEVER * 3)
    assert said.code == 0
    assert said.out.count("which cannot be reached") == SILENCE + 1
    assert said.out.count("   1. You put down") == said.out.count("   2. asker ") == 1
    assert KEY not in said.out + said.err
    assert rows(Path("games"), "SELECT DISTINCT outcome FROM decisions") == [("model",)]
    ((asked, last),) = rows(Path("games"), "SELECT count(*), max(decision) FROM decisions")
    assert asked == last + 1  # each once, none left out


def test_a_model_by_its_short_name_needs_no_config(play: Play) -> None:
    said = play("openai:gpt@plain", "MrDoubt")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("dubito: openai:gpt@plain needs a key for https://api.openai.com/v1: ")
