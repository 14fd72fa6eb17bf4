"""Draws, which depend only on the game, and accounts."""

from dataclasses import replace

import pytest

from dubito.llm.request import Place, compute_draw
from dubito.llm.settings import build_account
from dubito.model_settings import Account, is_on_this_machine
from tests.llm.kit import PLACE, settings

DRAW = compute_draw(0, PLACE, 0)


def test_the_same_place_in_the_same_game_is_the_same_draw() -> None:
    assert compute_draw(0, replace(PLACE), 0) == DRAW
    assert len(DRAW) == 16


def test_draw_numbers_are_stable() -> None:
    assert DRAW == "a6bc898b23122892"


@pytest.mark.parametrize(
    "other",
    [
        replace(PLACE, deal=PLACE.deal + 1),
        replace(PLACE, seat=PLACE.seat + 1),
        replace(PLACE, decision=PLACE.decision + 1),
        replace(PLACE, attempt=PLACE.attempt + 1),
    ],
)
def test_another_deal_seat_decision_or_attempt_is_another_draw(other: Place) -> None:
    assert compute_draw(0, other, 0) != DRAW


def test_another_seed_or_sample_is_another_draw() -> None:
    assert len({DRAW, compute_draw(1, PLACE, 0), compute_draw(0, PLACE, 1)}) == 3


@pytest.mark.parametrize("other", [replace(PLACE, player="Renamed"), replace(PLACE, game=99)])
def test_draw_does_not_depend_on_name_or_game_number(other: Place) -> None:
    assert compute_draw(0, other, 0) == DRAW


@pytest.mark.parametrize(
    ("server", "loopback"),
    [
        ("house", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost:11434/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://192.168.0.2/v1", False),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("http://0.0.0.0:8000", True),
    ],
)
def test_loopback_addresses_are_recognized(server: str, loopback: bool) -> None:
    assert is_on_this_machine(server) is loopback


def test_the_account_of_a_player() -> None:
    assert build_account(settings(base_url=None)) == Account("responses", "https://api.openai.com/v1", "OPENAI_API_KEY")
    claude = build_account(settings("messages", base_url=None))
    assert claude == Account("messages", "https://api.anthropic.com", "ANTHROPIC_API_KEY")
    assert build_account(settings()) == Account("responses", "house", None)
    assert build_account(settings(base_url="http://127.0.0.1:1/v1/")) == Account(
        "responses", "http://127.0.0.1:1/v1", None
    )
    chat = build_account(settings("chat", base_url=None))
    assert chat == Account("chat", "https://api.openai.com/v1", "OPENAI_API_KEY")
    assert build_account(settings("chat", base_url="https://api.openai.com/v1/")) == chat, (
        "an explicit default address is the same account"
    )
    elsewhere = build_account(settings(base_url="https://models.example/v1", api_key_env="MINE"))
    assert elsewhere == Account("responses", "https://models.example/v1", "MINE")
    assert build_account(settings(base_url="https://models.example/v1")).key_env is None, (
        "keys are never sent to other servers by default"
    )
    assert build_account(settings(api_key_env="MINE")).key_env == "MINE"
