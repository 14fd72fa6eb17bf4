"""The supported part of OpenAI's Decisions API: questions about a text, and the odds of their answers."""

import json
from contextlib import suppress
from typing import Any, Final

from dubito.house.request import HouseRequest, JsonBody, Refusal, blocks, read_model
from dubito.house.wires import ModelOutput, OpenAIWire, ReadPrompt, build_prompt, responses_texts

_DECISIONS_PARAMETERS: Final = "input model prompt_cache_key prompt_cache_options questions safety_identifier"
_MAX_QUESTIONS: Final = 400
_CHOICE_COUNTS: Final = range(2, 256)


class DecisionsWire(OpenAIWire):
    """POST /v1/decisions: questions about a text, each answered with the probability of every possible answer."""

    name = "decisions"
    unsupported = frozenset[str]()
    parameters = frozenset(_DECISIONS_PARAMETERS.split())

    def read(self, body: JsonBody) -> ReadPrompt:
        self.check_parameters(body)
        model = read_model(body)
        for name in ("input", "questions"):
            if body.get(name) is None:
                raise Refusal("missing", name=name)
        questions = blocks(body["questions"], "questions")
        if not 1 <= len(questions) <= _MAX_QUESTIONS:
            raise Refusal("bad_value", name="questions", expected=f"an array with 1 to {_MAX_QUESTIONS} items")
        for place, question in enumerate(questions):
            name, kind = f"questions[{place}]", question.get("type")
            if kind not in ("predicate", "choice", "score"):
                raise Refusal("bad_value", name=f"{name}.type", expected="one of predicate, choice, score")
            if question.get("instructions") is None:
                raise Refusal("missing", name=f"{name}.instructions")
            if kind == "choice":
                choices = blocks(question.get("choices"), f"{name}.choices")
                values = [(type(choice.get("value")), choice.get("value")) for choice in choices]
                if len(values) not in _CHOICE_COUNTS or len(set(values)) < len(values):
                    raise Refusal("bad_value", name=f"{name}.choices", expected="2 to 255 unique choices")
                if not all(value_type in (str, bool) for value_type, _ in values):
                    raise Refusal("bad_value", name=f"{name}.choices", expected="values that are strings or booleans")
        return build_prompt(model, list(responses_texts(body)), {"questions": questions}, None)

    def reply(self, request: HouseRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """Reply with the answers in the text.

        A text damaged by a fault has no answers. If the model declined, the answers are refusals.
        """
        answers: Any = []
        if written.end in ("refused", "filtered"):
            questions = (prompt.schema or {})["questions"]
            answers = [{"type": "refusal", "name": question.get("name")} for question in questions]
        else:
            with suppress(ValueError, RecursionError):
                answers = json.loads(written.text or "[]")
        usage = {
            "input_tokens": prompt.tokens,
            "input_tokens_details": {"cached_tokens": prompt.cached, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt.tokens,
        }
        return {"answers": answers if isinstance(answers, list) else [], "model": prompt.model, "usage": usage}
