"""The house without its socket: a request goes in, an answer and its record come out. No I/O, no clock.

The call log: one record for every request that was answered or struck by a fault. Never a key in it.

How the house's models answer: `house-random` at random, the others as the `stand_in` modules of their games say.

They read nothing but what they were sent: the text, and the schema of the answer. No position, no game, no memory
reaches them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from threading import Lock
from typing import IO, Any, Final

from dubito.errors import UsageError, nearest_first
from dubito.game import ODDS, REASON, STATED, Game, HousePolicy
from dubito.game.find import DUBITO
from dubito.game.words import legal_in
from dubito.house.events import EVENTS, as_events
from dubito.house.faults import CONTENT_FAULTS, DECISION_FAULTS, PAGE, ContentFault, Delivery, Faults
from dubito.house.request import TRY_HEADER, HeardRequest, JsonBody, Opinion, Refusal, answer_text, canonical_bytes
from dubito.house.wires import ReadPrompt, Wire


@dataclass(frozen=True, slots=True)
class Call:
    """One request and what became of it; `request` is its digest. Tokens are those that the reply itself states."""

    protocol: str
    path: str
    model: str | None  # None if the request did not get as far as to name one
    status: int  # 0 if no whole answer was sent
    request: str
    draw: str
    try_number: int
    input_tokens: int = 0  # cached ones included, in both protocols
    output_tokens: int = 0
    cached_tokens: int = 0
    understood: bool | None = None  # whether the policy found the facts in the prompt; None if it was not asked
    fault: str | None = None

    def unsent(self) -> "Call":
        return replace(self, status=0, input_tokens=0, output_tokens=0, cached_tokens=0)


class CallLog:
    """All calls in order, in memory and, if a file is given, as JSON lines. Any thread may read it."""

    def __init__(self, file: Path | None = None) -> None:
        self._lock = Lock()
        self._calls: list[Call] = []
        self._file: IO[str] | None = None
        if file is not None:
            try:
                self._file = file.open("a", encoding="utf-8")
            except OSError as error:
                raise UsageError(f"the call log {file} cannot be written: {error.strerror}") from error

    def add(self, call: Call) -> None:
        """Keep a call; it is in the file when this returns."""
        with self._lock:
            self._calls.append(call)
            if self._file is not None:
                self._file.write(json.dumps(asdict(call)) + "\n")
                self._file.flush()

    def calls(self) -> list[Call]:
        with self._lock:
            return list(self._calls)

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


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
            self._check_prompt(prompt)
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        opinion = self.policy.answer(prompt.model, prompt.text, asked.chance("answer"), prompt.schema)
        name = self.faults.of_reply(asked)
        known = {**CONTENT_FAULTS, **(DECISION_FAULTS if wire.name == "decisions" else {})}
        fault = known.get(name or "", ContentFault())
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
        headers = wire.headers(_request_id(asked), limited=False)
        streamed = as_events(wire.name, content) if body.get("stream") is True else None
        if streamed is not None:
            return ServerAnswer(200, headers, streamed, call, EVENTS)
        return ServerAnswer(200, headers, content, call, fault.media)

    def models(self, wire: Wire, asked: HeardRequest, headers: Mapping[str, str], name: str | None) -> ServerAnswer:
        try:
            wire.admit(headers)
            if name is not None and name not in self.policy.models:
                raise self._unknown(name)
        except Refusal as refusal:
            return self.refuse(wire, asked, refusal)
        body = wire.models(self.policy.models) if name is None else wire.model(name)
        call = Call(wire.name, asked.path, name, 200, asked.digest, asked.draw, asked.try_number)
        return ServerAnswer(200, wire.headers(_request_id(asked), limited=False), canonical_bytes(body), call)

    def refuse(self, wire: Wire, asked: HeardRequest, refusal: Refusal) -> ServerAnswer:
        model = (asked.body or {}).get("model")
        named = model if isinstance(model, str) else None
        status = wire.problems[refusal.kind].status
        call = Call(wire.name, asked.path, named, status, asked.digest, asked.draw, asked.try_number)
        request_id = _request_id(asked)
        headers = wire.headers(request_id, limited=refusal.kind == "rate_limit")
        return ServerAnswer(status, headers, canonical_bytes(wire.error(refusal, request_id)), call)

    def _unknown(self, model: str) -> Refusal:
        known = ", ".join(nearest_first(model, self.policy.models))
        return Refusal("unknown_model", name="model", model=model, known=known)

    def _check_prompt(self, prompt: ReadPrompt) -> None:
        if prompt.model not in self.policy.models:
            raise self._unknown(prompt.model)
        if prompt.tokens > self.context:
            raise Refusal("too_long", name="input", tokens=prompt.tokens, limit=self.context)


def _request_id(asked: HeardRequest) -> str:
    return f"req_{asked.digest_for('request', by_try=True)[:32]}"


RANDOM: Final = "house-random"
_SAYINGS: Final = ("Well.", "I see.", "Who knows?", "Trust me.", "Not me.", "Maybe.")
_Schema = Mapping[str, Any]
_NODE_LINE: Final = "node: "
_NODE: Final = re.compile(rf"^{_NODE_LINE}(.*)$", re.MULTILINE)


def house_policy(games: Sequence[Game]) -> Policy:
    """The house's models for these games, Dubito's first."""
    policies: dict[str, HousePolicy | None] = {RANDOM: None}
    for game in sorted(games, key=lambda game: game.name != DUBITO):
        policies |= _policies(game)

    def answer(model: str, text: str, chance: Random, schema: _Schema | None) -> Opinion:
        return opinion(policies[model], text, chance, schema)

    return Policy(tuple(policies), answer)


def models_of(game: Game) -> tuple[str, ...]:
    return (RANDOM, *_policies(game))


def _policies(game: Game) -> Mapping[str, HousePolicy]:
    module = game.module("stand_in")
    return {} if module is None else module.MODELS


def opinion(policy: HousePolicy | None, text: str, chance: Random, schema: _Schema | None = None) -> Opinion:
    """What a model says to the prompt; without a policy, or with one that cannot read the text, it draws lots.

    A prompt's line `node: C D E` asks these questions at once: each is answered as if it stood there alone.
    """
    if schema is not None and "questions" in schema:
        return decided(policy, text, chance, schema["questions"])
    if nodes := _several(text, schema):
        each = {node: opinion(policy, _asking(text, node), chance, _of_one(schema, node)) for node in nodes}
        stated = [one.stated for one in each.values() if one.stated is not None]
        understood = all(one.understood for one in each.values())
        answers = {node: one.answer for node, one in each.items()}
        reason = next((one.reason for one in each.values() if one.reason), None)
        return Opinion(None, understood, stated[0] if stated else None, answers, reason=reason)
    drawn = by_lot(schema, text, chance)
    if policy is None:
        return drawn
    try:
        said = policy(text, chance)
        answer = said["answer"]
        if _kind(schema).get("type") == "number":  # the probability of yes
            answer = float(answer)
        return Opinion(answer, True, said.get(STATED), odds=said.get(ODDS), reason=said.get(REASON))
    except (LookupError, ValueError, ArithmeticError):
        return Opinion(drawn.answer, understood=False)


def decided(policy: HousePolicy | None, text: str, chance: Random, questions: Sequence[_Schema]) -> Opinion:
    """The answers to the questions of a decision, named as their nodes: as probable as the policy makes them."""
    answers, understood = list[dict[str, Any]](), True
    for question in questions:
        name = question.get("name", "")
        if question["type"] == "choice":
            values = [choice["value"] for choice in question["choices"]]
            said = opinion(policy, _asking(text, name.partition("-")[0]), chance, _of_values(values))
            chosen = said.answer if isinstance(values[0], bool) else str(said.answer)
            chosen, sure = (chosen, policy is not None and said.understood) if chosen in values else (values[0], False)
            shares = [float(value == chosen) if sure else 1 / len(values) for value in values]
            if sure and said.odds is not None:
                shares = [said.odds.get(value, 0.0) for value in values]
            understood = understood and said.understood
            answers.append(_choice(name, chosen, values, shares))
        else:
            stated = (
                (opinion(policy, _asking(text, node), chance).stated for node in _nodes_named(text)) if policy else ()
            )
            share = next((each for each in stated if each is not None), 0.5)
            answers.append({"type": "predicate", "name": name, "probability": share})
    return Opinion(answers, understood)


def _choice(name: str, chosen: Any, values: Sequence[Any], shares: Sequence[float]) -> dict[str, Any]:
    rows = [{"value": value, "probability": share} for value, share in zip(values, shares, strict=True)]
    confidence = shares[values.index(chosen)]
    return {"type": "choice", "name": name, "choice": chosen, "confidence": confidence, "probabilities": rows}


def _of_values(values: Sequence[Any]) -> _Schema:
    kind = {"type": "boolean"} if isinstance(values[0], bool) else {"type": "string", "enum": values}
    return {"properties": {"answer": kind}}


def _nodes_named(text: str) -> list[str]:
    named = _NODE.findall(text)
    return named[-1].split() if named else [""]


def _several(text: str, schema: _Schema | None) -> list[str]:
    fields = (schema or {}).get("properties", {})
    return [node for node in _nodes_named(text) if node in fields] if "answer" not in fields else []


def _asking(text: str, node: str) -> str:
    """The text as if it asked this question alone."""
    if f"\n{_NODE_LINE}" not in text or not node:
        return text
    before, _, behind = text.rpartition(f"\n{_NODE_LINE}")
    return f"{before}\n{_NODE_LINE}{node}\n{behind.partition(chr(10))[2]}"


def _kind(schema: _Schema | None) -> _Schema:
    kind: _Schema = (schema or {}).get("properties", {}).get("answer", {})
    return kind


def _of_one(schema: _Schema | None, node: str) -> _Schema:
    return {"properties": {"answer": (schema or {})["properties"][node]}}


def by_lot(schema: _Schema | None, text: str, chance: Random) -> Opinion:
    """An answer that fits the schema, of what the text says is legal: where it lists cards, one or more of them.

    Without a list it is any that fits, and it says that it did not understand; yes or no needs none, nor does what is
    said, which harms nobody.
    """
    kind = _kind(schema)
    legal = legal_in(text)
    match kind.get("type"):
        case "string" if "description" in kind and not legal:  # something is to be said
            return Opinion(chance.choice(_SAYINGS), understood=True)
        case "string":
            known = kind.get("enum", legal)
            return _one_of([option for option in legal if option in known], known or [""], chance)
        case "number":
            return Opinion(0.5, understood=True)
        case "integer":
            return _one_of(_numbers(legal), [0], chance)
        case "object" if kind.get("properties"):
            return _shares(legal, kind["properties"])
        case "array" if "enum" in kind.get("items", {}):
            known = kind["items"]["enum"]
            return _some_of([card for card in _numbers(legal) if card in known], known, chance)
        case _:
            return Opinion(chance.random() < 0.5, understood=True)


def _one_of(legal: Sequence[Any], possible: Sequence[Any], chance: Random) -> Opinion:
    return Opinion(chance.choice(legal or possible), understood=bool(legal))


def _shares(legal: Sequence[str], known: Iterable[str]) -> Opinion:
    share = 1 / len(legal) if legal else 0.0
    return Opinion({name: share if name in legal else 0.0 for name in known}, understood=bool(legal))


def _some_of(held: Sequence[int], possible: Sequence[int], chance: Random) -> Opinion:
    if not held:
        return Opinion([chance.choice(possible)], understood=False)
    return Opinion(chance.sample(held, chance.randint(1, len(held))), understood=True)


def _numbers(words: Sequence[str]) -> list[int]:
    return [int(word) for word in words if word.removeprefix("-").isdecimal()]
