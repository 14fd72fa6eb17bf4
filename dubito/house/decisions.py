"""OpenAI's Decisions API, as much of it as the house speaks: questions about a text, and the odds of their answers."""

import json
from contextlib import suppress
from typing import Any, Final

from dubito.house.request import HeardRequest, JsonBody, Refusal, blocks, model_of
from dubito.house.wires import ModelOutput, OpenAIWire, ReadPrompt, prompt_of, responses_texts

_DECISIONS_PARAMETERS: Final = "input model prompt_cache_key prompt_cache_options questions safety_identifier"
_MOST_QUESTIONS: Final = 400
_CHOICES: Final = range(2, 256)


class DecisionsWire(OpenAIWire):
    """POST /v1/decisions: questions about a text, each answered with how probable its answers are."""

    name = "decisions"
    unsupported = frozenset[str]()
    parameters = frozenset(_DECISIONS_PARAMETERS.split())

    def read(self, body: JsonBody) -> ReadPrompt:
        self.check_parameters(body)
        model = model_of(body)
        for name in ("input", "questions"):
            if body.get(name) is None:
                raise Refusal("missing", name=name)
        questions = blocks(body["questions"], "questions")
        if not 1 <= len(questions) <= _MOST_QUESTIONS:
            raise Refusal("bad_value", name="questions", expected=f"an array with 1 to {_MOST_QUESTIONS} items")
        for place, question in enumerate(questions):
            _check_question(question, f"questions[{place}]")
        return prompt_of(model, list(responses_texts(body)), {"questions": questions}, None)

    def reply(self, asked: HeardRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """Answers where the text is some; none where it was spoilt, a refusal of each where the model declined."""
        questions = (prompt.schema or {})["questions"]
        if written.end in ("refused", "filtered"):
            answers: Any = [{"type": "refusal", "name": question.get("name")} for question in questions]
        else:
            with suppress(ValueError, RecursionError):
                answers = json.loads(written.text or "[]")
                return self._body(prompt, answers if isinstance(answers, list) else [])
            answers = []
        return self._body(prompt, answers)

    def _body(self, prompt: ReadPrompt, answers: list[JsonBody]) -> JsonBody:
        usage = {
            "input_tokens": prompt.tokens,
            "input_tokens_details": {"cached_tokens": prompt.cached, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt.tokens,
        }
        return {"answers": answers, "model": prompt.model, "usage": usage}


def _check_question(question: JsonBody, name: str) -> None:
    """Raise Refusal for a question that is none of the three kinds, or has nothing to choose from."""
    kind = question.get("type")
    if kind not in ("predicate", "choice", "score"):
        raise Refusal("bad_value", name=f"{name}.type", expected="one of predicate, choice, score")
    if question.get("instructions") is None:
        raise Refusal("missing", name=f"{name}.instructions")
    if kind != "choice":
        return
    choices = blocks(question.get("choices"), f"{name}.choices")
    values = [(type(choice.get("value")), choice.get("value")) for choice in choices]
    if len(values) not in _CHOICES or len(set(values)) < len(values):
        raise Refusal("bad_value", name=f"{name}.choices", expected="2 to 255 unique choices")
    if not all(kind in (str, bool) for kind, _ in values):
        raise Refusal("bad_value", name=f"{name}.choices", expected="values that are strings or booleans")
