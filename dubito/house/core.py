"""The house without its socket: a request goes in, an answer and its record come out. No I/O, no clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from dubito.house.asked import Asked, Body, canonical
from dubito.house.calls import Call
from dubito.house.faults import Faults
from dubito.house.refusal import Refusal
from dubito.house.structured import answer_text
from dubito.house.wire import Prompt, Wire, Written


@dataclass(frozen=True, slots=True)
class Policy:
    """What plays: its models' names, and (model, prompt, chance) -> (answer, understood)."""

    models: Sequence[str]
    answer: Callable[[str, str, Random], tuple[bool, bool]]


def house_policy() -> Policy:
    """The house's own models."""
    from dubito.house.policy import MODELS, answer  # late: whoever brings a policy does not need this one

    return Policy(tuple(MODELS), answer)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back, and the record of it."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    call: Call


@dataclass(frozen=True, slots=True)
class Core:
    """Answers requests; `context` is how many tokens a prompt may have."""

    policy: Policy
    faults: Faults
    context: int

    def create(self, wire: Wire, asked: Asked, headers: Mapping[str, str]) -> Answer:
        """One call of a model: checked, struck by a fault or answered."""
        try:
            wire.admit(headers)
            if asked.body is None:
                raise Refusal("malformed")
            if asked.try_number == 0:
                raise Refusal("bad_value", name="x-dubito-try", expected="a whole number from 1")
            self.faults.strike(asked, wire)
            prompt = wire.read(asked.body)
            self._check(prompt)
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        answer, understood = self.policy.answer(prompt.model, prompt.text, asked.chance("answer"))
        written = _written(prompt, answer)
        call = Call(
            *(wire.name, asked.path, prompt.model, 200, asked.digest, asked.draw, asked.try_number),
            input_tokens=prompt.tokens,
            output_tokens=written.tokens,
            cached_tokens=prompt.cached,
            understood=understood,
        )
        return _answer(wire, asked, call, wire.reply(asked, asked.body, prompt, written))

    def models(self, wire: Wire, asked: Asked, headers: Mapping[str, str], name: str | None) -> Answer:
        """The list of models, or one of them."""
        try:
            wire.admit(headers)
            if name is not None and name not in self.policy.models:
                raise Refusal("unknown_model", name="model", model=name)
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        body = wire.models(self.policy.models) if name is None else wire.model(name)
        call = Call(wire.name, asked.path, name, 200, asked.digest, asked.draw, asked.try_number)
        return _answer(wire, asked, call, body)

    def refuse(self, wire: Wire, asked: Asked, refusal: Refusal) -> Answer:
        """The provider's error for the refusal."""
        model = (asked.body or {}).get("model")
        named = model if isinstance(model, str) else None
        status = wire.problems[refusal.kind].status
        call = Call(wire.name, asked.path, named, status, asked.digest, asked.draw, asked.try_number)
        return _answer(wire, asked, call, wire.error(refusal, _request_id(asked)), refusal)

    def _check(self, prompt: Prompt) -> None:
        if prompt.model not in self.policy.models:
            raise Refusal("unknown_model", name="model", model=prompt.model)
        if prompt.tokens > self.context:
            raise Refusal("too_long", name="input", tokens=prompt.tokens, limit=self.context)


def _written(prompt: Prompt, answer: bool) -> Written:
    """The reply's text, cut where the request's limit cuts it."""
    whole = Written(answer_text(prompt.schema, answer), whole=True)
    if prompt.max_output is None or whole.tokens <= prompt.max_output:
        return whole
    return Written(whole.text[: 4 * prompt.max_output], whole=False)  # the text is ASCII: four letters a token


def _answer(wire: Wire, asked: Asked, call: Call, body: Body, refusal: Refusal | None = None) -> Answer:
    headers = wire.headers(_request_id(asked), limited=refusal is not None and refusal.kind == "rate_limit")
    if refusal is not None and "retry_after" in refusal.facts:
        headers["retry-after"] = f"{refusal.facts['retry_after']:g}"
    return Answer(call.status, headers, canonical(body), call)


def _request_id(asked: Asked) -> str:
    return f"req_{asked.digest_for('request', by_try=True)[:32]}"
