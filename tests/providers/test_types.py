"""Whether the check of bodies finds unknown fields, wrong types and missing fields."""

from typing import Any

import pytest

from dubito.house.decisions import DecisionsWire
from dubito.house.wires import AnthropicWire, ChatWire, ResponsesWire, Wire
from dubito.model_settings import Api
from tests.providers.typed import PARAMETERS, find_faults, parameter_names

ASKED = {"role": "user", "content": [{"type": "text", "text": "U"}]}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [ASKED]}
RESPONSES: dict[str, Any] = {"model": "m", "input": [{"role": "developer", "content": "S"}]}


@pytest.mark.parametrize(
    ("protocol", "body", "fault"),
    [
        ("messages", {**MESSAGES, "max_output": 9}, "body.max_output: unknown field"),
        ("messages", {"model": "m", "messages": [ASKED]}, "body.max_tokens: missing"),
        ("messages", {**MESSAGES, "max_tokens": "9"}, "body.max_tokens: '9' instead of <class 'int'>"),
        ("messages", {**MESSAGES, "system": [{"type": "text"}]}, "body.system[].text: missing"),
        (
            "messages",
            {**MESSAGES, "output_config": {"effort": "lowest"}},
            "body.output_config.effort: 'lowest' instead",
        ),
        ("messages", {**MESSAGES, "messages": [{**ASKED, "name": "x"}]}, "body.messages[].name: unknown field"),
        ("responses", {**RESPONSES, "text": {"verbosity": 1}}, "body.text.verbosity: 1 instead"),
        ("responses", {**RESPONSES, "input": [{"role": "user", "content": 7}]}, "body.input[].content: 7 instead"),
        ("responses", {**RESPONSES, "store": "no"}, "body.store: 'no' instead"),
        ("chat", {"model": "m", "messages": [{"role": "user"}]}, "body.messages[].content: missing"),
        ("chat", {"model": "m", "messages": "hello"}, "body.messages: 'hello' instead of a list"),
        (
            "decisions",
            {"model": "m", "input": "hello", "questions": [{"type": "choice"}]},
            "body.questions[].choices: missing",
        ),
    ],
)
def test_faults_are_found(protocol: Api, body: dict[str, Any], fault: str) -> None:
    faults = find_faults(body, PARAMETERS[protocol])
    assert any(one.startswith(fault) for one in faults), faults


def test_correct_bodies_have_no_faults() -> None:
    assert find_faults(MESSAGES, PARAMETERS["messages"]) == []
    assert find_faults({**RESPONSES, "temperature": 1, "user": "u"}, PARAMETERS["responses"]) == []


@pytest.mark.parametrize("wire", [ResponsesWire(), ChatWire(), DecisionsWire(), AnthropicWire()])
def test_the_built_in_server_knows_every_parameter(wire: Wire) -> None:
    assert parameter_names(wire.name) - wire.parameters == set()
