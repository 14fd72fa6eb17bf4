"""The body of each shipped prompt with each setting that changes bodies, checked against the SDKs' types."""

from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from typing import Final

import anthropic
import pytest

from dubito.errors import UsageError
from dubito.game import Game
from dubito.game.find import find_game
from dubito.llm.decide import put_question
from dubito.llm.prompts import Prompt, Sample, load_prompt, prompt_names
from dubito.llm.protocols import find_protocol
from dubito.llm.questions import check_askable
from dubito.llm.request import Attempt, AttemptFailed, Reply, Request
from dubito.llm.settings import check_settings
from dubito.model_settings import Api, ModelSettings, nested_items
from tests.cli.kit import REPO
from tests.conftest import in_gate
from tests.freeze.games import playable
from tests.llm.kit import PLACE, AskFunction, reply
from tests.providers.kit import DEFAULT, MODELS, SETTINGS
from tests.providers.typed import PARAMETERS, find_faults

CASES: Final = [(api, game) for api in PARAMETERS for game in playable()]


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


@pytest.mark.parametrize(("api", "title"), in_gate(CASES, [(api, "dubito") for api in PARAMETERS]))
def test_bodies_have_the_sdks_types(api: Api, title: str, at_length: bool, subtests: pytest.Subtests) -> None:
    """In the gate, each prompt has the default settings, and only one prompt has all settings."""
    game = find_game(title, REPO)
    for name in prompt_names(REPO, game) if is_askable(game, api) else []:
        prompt = load_prompt(name, REPO, game)
        if api == "decisions" and prompt.description.language:
            continue  # refused, since its questions are not part of the text
        asked = questions(prompt.for_api(api), at_length)
        for settings in SETTINGS[api] if at_length or name == "plain" else [DEFAULT]:
            with subtests.test(prompt=name, settings=settings):
                sent = requests(asked, settings_of(api, settings))
                assert len(sent) >= len(asked)
                whole = [request.body for request in sent]
                streamed = [{**body, **find_protocol(api).stream_fields} for body in whole]
                assert {fault for body in whole + streamed for fault in find_faults(body, PARAMETERS[api])} == set()


@pytest.mark.at_length
@pytest.mark.parametrize("title", playable())
def test_gemini_bodies_have_googles_types(title: str, subtests: pytest.Subtests) -> None:
    """Google's own reader of the protocol's JSON refuses unknown fields and wrong types."""
    types = pytest.importorskip("google.ai.generativelanguage_v1beta.types")  # of google-ai-generativelanguage
    json_format = pytest.importorskip("google.protobuf.json_format")
    message = type(types.GenerateContentRequest.pb(types.GenerateContentRequest()))
    game = find_game(title, REPO)
    for name in prompt_names(REPO, game):
        asked = questions(load_prompt(name, REPO, game).for_api("gemini"), at_length=True)
        for settings in SETTINGS["gemini"]:
            with subtests.test(prompt=name, settings=settings):
                for request in requests(asked, settings_of("gemini", settings)):
                    json_format.ParseDict(request.body, message())


@pytest.mark.parametrize("title", in_gate(playable(), ["dubito"]))
def test_schemas_have_only_rules_that_anthropic_enforces(title: str, at_length: bool) -> None:
    """Anthropic's SDK moves other rules, such as the length of a text, into descriptions."""
    game = find_game(title, REPO)
    for name in prompt_names(REPO, game):
        for request in requests(questions(load_prompt(name, REPO, game), at_length), settings_of("messages", DEFAULT)):
            schema = request.body["output_config"]["format"]["schema"]
            sent, enforced = (
                [value for key, value in nested_items(each) if key == "description"]
                for each in (schema, anthropic.transform_schema(deepcopy(schema)))
            )
            assert sent == enforced
