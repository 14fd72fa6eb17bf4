"""The house without its socket: a request goes in, an answer and its record come out. No I/O, no clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from dubito.errors import nearest_first
from dubito.house.call_log import Call
from dubito.house.content_faults import CONTENT_FAULTS, PAGE, ContentFault
from dubito.house.faults import Faults
from dubito.house.refusal import Refusal
from dubito.house.request import TRY_HEADER, HeardRequest, JsonBody, canonical
from dubito.house.structured import Opinion, answer_text
from dubito.house.transport_faults import Delivery
from dubito.house.wire_base import ReadPrompt, Wire


@dataclass(frozen=True, slots=True)
class Policy:
    """What plays: its models' names, and (model, prompt, chance, schema of the reply, if any) -> opinion."""

    models: Sequence[str]
    answer: Callable[[str, str, Random, Mapping[str, Any] | None], Opinion]


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What is sent back, and the record of it; `delivery` is None where it arrives as it should."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    call: Call
    media: str = "application/json"
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Core:
    """Answers requests; `context` is how many tokens a prompt may have."""

    policy: Policy
    faults: Faults
    context: int

    def create(self, wire: Wire, asked: HeardRequest, headers: Mapping[str, str]) -> ServerAnswer:
        """One call of a model: checked, struck by a fault or answered."""
        try:
            wire.admit(headers)
            if asked.body is None:
                raise Refusal("malformed")
            if asked.try_number == 0:
                raise Refusal("bad_value", name=TRY_HEADER, expected="a whole number from 1")
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        struck = self.faults.of_try(asked)
        if struck is None:
            return self._reply(wire, asked, asked.body)
        name, fault = struck
        if fault.error is None:
            answer = self._reply(wire, asked, asked.body)
        else:
            answer = self.refuse(wire, asked, Refusal(fault.error))
        headers = {**answer.headers, **fault.headers}
        content, media = (PAGE, "text/html") if fault.page else (answer.content, answer.media)
        call = replace(answer.call, fault=name)
        return replace(answer, headers=headers, content=content, media=media, call=call, delivery=fault.delivery)

    def _reply(self, wire: Wire, asked: HeardRequest, body: JsonBody) -> ServerAnswer:
        """A model's reply to a good request; it depends on no try."""
        try:
            prompt = wire.read(body)
            self._check(prompt)
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        opinion = self.policy.answer(prompt.model, prompt.text, asked.chance("answer"), prompt.schema)
        name = self.faults.of_reply(asked)
        fault = ContentFault() if name is None else CONTENT_FAULTS[name]
        written = fault.write(answer_text(prompt.schema, opinion)).within(prompt.max_output)
        call = Call(
            *(wire.name, asked.path, prompt.model, 200, asked.digest, asked.draw, asked.try_number),
            input_tokens=prompt.tokens if fault.counted else 0,
            output_tokens=written.tokens if fault.counted else 0,
            cached_tokens=prompt.cached if fault.counted else 0,
            understood=opinion.understood,
            fault=name,
        )
        content = fault.pack(wire.reply(asked, body, prompt, written), self.faults.size)
        return ServerAnswer(200, wire.headers(_request_id(asked), limited=False), content, call, fault.media)

    def models(self, wire: Wire, asked: HeardRequest, headers: Mapping[str, str], name: str | None) -> ServerAnswer:
        """The list of models, or one of them."""
        try:
            wire.admit(headers)
            if name is not None and name not in self.policy.models:
                raise self._unknown(name)
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        body = wire.models(self.policy.models) if name is None else wire.model(name)
        call = Call(wire.name, asked.path, name, 200, asked.digest, asked.draw, asked.try_number)
        return ServerAnswer(200, wire.headers(_request_id(asked), limited=False), canonical(body), call)

    def refuse(self, wire: Wire, asked: HeardRequest, refusal: Refusal) -> ServerAnswer:
        """The provider's error for the refusal."""
        model = (asked.body or {}).get("model")
        named = model if isinstance(model, str) else None
        status = wire.problems[refusal.kind].status
        call = Call(wire.name, asked.path, named, status, asked.digest, asked.draw, asked.try_number)
        request_id = _request_id(asked)
        headers = wire.headers(request_id, limited=refusal.kind == "rate_limit")
        return ServerAnswer(status, headers, canonical(wire.error(refusal, request_id)), call)

    def _unknown(self, model: str) -> Refusal:
        known = ", ".join(nearest_first(model, self.policy.models))
        return Refusal("unknown_model", name="model", model=model, known=known)

    def _check(self, prompt: ReadPrompt) -> None:
        if prompt.model not in self.policy.models:
            raise self._unknown(prompt.model)
        if prompt.tokens > self.context:
            raise Refusal("too_long", name="input", tokens=prompt.tokens, limit=self.context)


def _request_id(asked: HeardRequest) -> str:
    return f"req_{asked.digest_for('request', by_try=True)[:32]}"
