"""The body of each shipped prompt with each setting that changes bodies, checked against the SDKs' types."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest

from dubito.errors import UsageError
from dubito.game import Game
from dubito.game.find import find_game
from dubito.llm.decide import put_question
from dubito.llm.prompts import Prompt, Sample, load_prompt, prompt_names
from dubito.llm.questions import check_askable
from dubito.llm.request import Attempt, AttemptFailed, Reply, Request
from dubito.llm.settings import check_settings
from dubito.model_settings import Api, ModelSettings
from tests.cli.kit import REPO
from tests.conftest import in_gate
from tests.freeze.games import playable
from tests.llm.kit import PLACE, AskFunction, reply
from tests.providers.kit import MODELS
from tests.providers.typed import PARAMETERS, find_faults

DEFAULT: Final = "default"
SETTINGS: Final[Mapping[Api, Mapping[str, dict[str, Any]]]] = {
    "responses": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "house": {"base_url": "house"},
        "reasoning": {"parameters": {"reasoning": {"effort": "low", "summary": "auto"}}},
        "verbosity": {"parameters": {"text": {"verbosity": "low"}}},
        "sampling": {"parameters": {"temperature": 0.5, "top_p": 1}},
        "tier": {"parameters": {"service_tier": "flex", "prompt_cache_options": {"ttl": "12h"}}},
        "marks": {"parameters": {"metadata": {"study": "one"}, "safety_identifier": "me"}},
    },
    "chat": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "house": {"base_url": "house"},
        "server": {"base_url": "http://127.0.0.1:8000/v1"},
        "object": {"response_format": "json_object"},
        "text": {"response_format": "text"},
        "limit": {"output_limit": "max_tokens"},
        "belief": {"belief": "logprobs"},
        "reasoning": {"parameters": {"reasoning_effort": "low", "verbosity": "low"}},
        "sampling": {"parameters": {"temperature": 0, "top_p": 0.9, "seed": 1, "frequency_penalty": 0.1}},
        "tier": {"parameters": {"service_tier": "flex", "prompt_cache_options": {"ttl": "30m"}}},
    },
    "decisions": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "marks": {"parameters": {"safety_identifier": "me", "prompt_cache_options": {"ttl": "30m"}}},
    },
    "messages": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "house": {"base_url": "house"},
        "thinking": {"parameters": {"thinking": {"type": "adaptive"}}},
        "budget": {"parameters": {"thinking": {"type": "enabled", "budget_tokens": 2048}}},
        "no thinking": {"parameters": {"thinking": {"type": "disabled"}}},
        "effort": {"parameters": {"output_config": {"effort": "low"}}},
        "tier": {"parameters": {"service_tier": "auto", "inference_geo": "us", "speed": "fast"}},
        "marks": {"parameters": {"metadata": {"user_id": "me"}, "cache_control": {"type": "ephemeral"}}},
    },
}
CASES: Final = [(api, game) for api in SETTINGS for game in playable()]


def settings_of(api: Api, name: str) -> ModelSettings:
    return check_settings("x", {"api": api, "model": MODELS[api], **SETTINGS[api][name]})


def questions(prompt: Prompt, at_length: bool) -> list[Sample]:
    """Return the question of each node or, in the gate, of each form of answer."""
    if not at_length:
        return prompt.samples
    positions = [prompt.game.facts.example_position(node.name) for node in prompt.game.nodes]
    return [(prompt.render(position), prompt.form_at(position)) for position in positions]


def requests(asked: Iterable[Sample], settings: ModelSettings) -> list[Request]:
    """Return the requests of these questions and, since the replies are not JSON, of their re-asks."""
    sent = list[Request]()

    def refuse(attempt: Attempt) -> Reply:
        sent.append(attempt.request)
        return reply("I doubt it")

    for rendered, form in asked:
        with suppress(AttemptFailed):
            put_question(rendered, form, settings, PLACE, lambda place: "d", AskFunction(refuse))
    return sent


def is_askable(game: Game, api: Api) -> bool:
    with suppress(UsageError):
        if api == "decisions":
            check_askable("x", game)
        return True
    return False


@pytest.mark.parametrize(("api", "title"), in_gate(CASES, [(api, "dubito") for api in SETTINGS]))
def test_bodies_have_the_sdks_types(api: Api, title: str, at_length: bool, subtests: pytest.Subtests) -> None:
    """In the gate, each prompt has the default settings, and only one prompt has all settings."""
    game = find_game(title, REPO)
    for name in prompt_names(REPO, game) if is_askable(game, api) else []:
        asked = questions(load_prompt(name, REPO, game).for_api(api), at_length)
        for settings in SETTINGS[api] if at_length or name == "plain" else [DEFAULT]:
            with subtests.test(prompt=name, settings=settings):
                sent = requests(asked, settings_of(api, settings))
                assert len(sent) >= len(asked)
                assert {fault for request in sent for fault in find_faults(request.body, PARAMETERS[api])} == set()
