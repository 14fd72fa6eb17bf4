"""The built-in model server without its socket: it turns a request into an answer and a record.

This module does no I/O and reads no clock. The call log contains every request that was answered or affected by a
fault, without keys. The `house-random` model answers at random. Other models use the `fake_models` modules of their
games. Models only see the text and the schema of the answer, and have no access to positions, games or earlier calls.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from threading import Lock
from typing import IO, Any, Final

from dubito.errors import UsageError, sort_by_similarity
from dubito.game import ODDS, REASON, STATED, WINS, Game, HousePolicy
from dubito.game.find import DUBITO
from dubito.game.words import parse_legal
from dubito.house.events import EVENTS, stream_reply
from dubito.house.faults import CONTENT_FAULTS, DECISION_FAULTS, PAGE, ContentFault, Delivery, Faults
from dubito.house.request import TRY_HEADER, HouseRequest, JsonBody, Opinion, Refusal, answer_text, canonical_bytes
from dubito.house.wires import Wire
from dubito.house.writers import WRITERS, asks_for_bot


@dataclass(frozen=True, slots=True)
class Call:
    """A request and its result. `request` is its digest. Token counts are as reported in the reply."""

    protocol: str
    path: str
    model: str | None  # None if the request was refused before its model was read
    status: int  # 0 if no complete answer was sent
    request: str
    draw: str
    try_number: int
    input_tokens: int = 0  # includes cached tokens, for all protocols
    output_tokens: int = 0
    cached_tokens: int = 0
    understood: bool | None = None  # whether the model found the facts in the prompt; None if it was not asked
    fault: str | None = None

    def without_response(self) -> "Call":
        return replace(self, status=0, input_tokens=0, output_tokens=0, cached_tokens=0)


class CallLog:
    """All calls in order, in memory and optionally in a file as JSON lines. Thread-safe."""

    def __init__(self, file: Path | None = None) -> None:
        self._lock = Lock()
        self._calls: list[Call] = []
        self._file: IO[str] | None = None
        if file is not None:
            try:
                self._file = file.open("a", encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot write the call log {file}: {error.strerror}") from error

    def add(self, call: Call) -> None:
        """Add a call and write it to the file before returning."""
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
    """Model names, and a function (model, prompt, chance, optional reply schema) -> opinion."""

    models: Sequence[str]
    answer: Callable[[str, str, Random, Mapping[str, Any] | None], Opinion]


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer to send and its record. `delivery` is None if the answer is sent normally."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    call: Call
    media: str = "application/json"
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Core:
    """Answers requests. `context` is the maximum number of tokens in a prompt."""

    policy: Policy
    faults: Faults
    context: int

    def create(self, wire: Wire, request: HouseRequest, headers: Mapping[str, str]) -> ServerAnswer:
        """Check a call to a model and answer it or apply a fault."""
        try:
            wire.admit(headers)
            if request.body is None:
                raise Refusal("malformed")
            if request.try_number == 0:
                raise Refusal("bad_value", name=TRY_HEADER, expected="a whole number from 1")
        except Refusal as refusal:
            return self.refuse(wire, request, refusal)
        named_fault = self.faults.find_for_try(request)
        if named_fault is None:
            return self._reply(wire, request, request.body)
        name, fault = named_fault
        if fault.error is None:
            answer = self._reply(wire, request, request.body)
        else:
            answer = self.refuse(wire, request, Refusal(fault.error))
        headers = {**answer.headers, **fault.headers}
        content, media = (PAGE, "text/html") if fault.page else (answer.content, answer.media)
        call = replace(answer.call, fault=name)
        return replace(answer, headers=headers, content=content, media=media, call=call, delivery=fault.delivery)

    def _reply(self, wire: Wire, request: HouseRequest, body: JsonBody) -> ServerAnswer:
        """Reply to a valid request. Replies do not depend on the try number."""
        try:
            prompt = wire.read(body)
            if prompt.model not in self.policy.models:
                raise self._unknown_model(prompt.model)
            if prompt.tokens > self.context:
                raise Refusal("too_long", name="input", tokens=prompt.tokens, limit=self.context)
        except Refusal as refusal:
            return self.refuse(wire, request, refusal)
        opinion = self.policy.answer(prompt.model, prompt.text, request.chance("answer"), prompt.schema)
        name = self.faults.find_for_reply(request)
        known = {**CONTENT_FAULTS, **(DECISION_FAULTS if wire.name == "decisions" else {})}
        fault = known.get(name or "", ContentFault())
        output = replace(fault.write(answer_text(prompt.schema, opinion)), odds=opinion.odds)
        written = output.truncate(prompt.max_output)
        call = Call(
            *(wire.name, request.path, prompt.model, 200, request.digest, request.draw, request.try_number),
            input_tokens=prompt.tokens if fault.has_usage else 0,
            output_tokens=written.tokens if fault.has_usage else 0,
            cached_tokens=prompt.cached if fault.has_usage else 0,
            understood=opinion.understood,
            fault=name,
        )
        content = fault.pack(wire.reply(request, body, prompt, written), self.faults.parameters.size)
        headers = wire.headers(_request_id(request), limited=False)
        streamed = stream_reply(wire.name, content) if body.get("stream") is True else None
        if streamed is not None:
            return ServerAnswer(200, headers, streamed, call, EVENTS)
        return ServerAnswer(200, headers, content, call, fault.media)

    def models(self, wire: Wire, request: HouseRequest, headers: Mapping[str, str], name: str | None) -> ServerAnswer:
        try:
            wire.admit(headers)
            if name is not None and name not in self.policy.models:
                raise self._unknown_model(name)
        except Refusal as refusal:
            return self.refuse(wire, request, refusal)
        body = wire.models(self.policy.models) if name is None else wire.model(name)
        call = Call(wire.name, request.path, name, 200, request.digest, request.draw, request.try_number)
        return ServerAnswer(200, wire.headers(_request_id(request), limited=False), canonical_bytes(body), call)

    def refuse(self, wire: Wire, request: HouseRequest, refusal: Refusal) -> ServerAnswer:
        model = (request.body or {}).get("model")
        name = model if isinstance(model, str) else None
        status = wire.problems[refusal.kind].status
        call = Call(wire.name, request.path, name, status, request.digest, request.draw, request.try_number)
        request_id = _request_id(request)
        headers = wire.headers(request_id, limited=refusal.kind == "rate_limit")
        return ServerAnswer(status, headers, canonical_bytes(wire.error(refusal, request_id)), call)

    def _unknown_model(self, model: str) -> Refusal:
        known = ", ".join(sort_by_similarity(model, self.policy.models))
        return Refusal("unknown_model", name="model", model=model, known=known)


def _request_id(request: HouseRequest) -> str:
    return f"req_{request.digest_for('request', by_try=True)[:32]}"


RANDOM: Final = "house-random"
FOLLOWER: Final = "house-follower"  # follows its adviser, and writes bots like `house-writer`
_ADVICE: Final = re.compile(r"would answer (.+?)\.(?: Its reason: .*)?$", re.MULTILINE)
_MESSAGES: Final = ("Well.", "I see.", "Who knows?", "Trust me.", "Not me.", "Maybe.")
_Schema = Mapping[str, Any]
_NODE_LINE: Final = "node: "
_NODE: Final = re.compile(rf"^{_NODE_LINE}(.*)$", re.MULTILINE)


def house_policy(games: Sequence[Game]) -> Policy:
    """Return the built-in models for these games, starting with those for Dubito."""
    policies: dict[str, HousePolicy | None] = {RANDOM: None}
    for game in sorted(games, key=lambda game: game.name != DUBITO):
        policies |= game.fakes
    policies[FOLLOWER] = _follow_advice

    def answer(model: str, text: str, chance: Random, schema: _Schema | None) -> Opinion:
        writer = "house-writer" if model == FOLLOWER and asks_for_bot(text) else model
        if (write := WRITERS.get(writer)) is not None:
            return Opinion(None, understood=True, text=write(text))
        return form_opinion(policies[model], text, chance, schema)

    return Policy((*policies, *WRITERS), answer)


def _follow_advice(text: str, chance: Random) -> dict[str, Any]:
    """Answer as advised. Raises LookupError without advice."""
    if (advice := _ADVICE.findall(text)) and (node := _parse_nodes(text)[0]):
        single = re.search(rf"\b{re.escape(node)}: (true|false)\b", advice[-1])
        return {"answer": json.loads(single[1] if single else advice[-1]), REASON: "My adviser says so."}
    raise LookupError


def model_names(game: Game) -> tuple[str, ...]:
    return (RANDOM, *game.fakes)


def form_opinion(policy: HousePolicy | None, text: str, chance: Random, schema: _Schema | None = None) -> Opinion:
    """Return a model's answer to the prompt, or a random one if the policy is missing or cannot read the text.

    The line `node: C D E` in a prompt asks several questions at once. Each is answered as if it were the only one.
    """
    if schema is not None and "questions" in schema:
        return decide(policy, text, chance, schema["questions"])
    fields = (schema or {}).get("properties", {})
    nodes = [node for node in _parse_nodes(text) if node in fields]
    if nodes and "answer" not in fields:
        each = {
            node: form_opinion(policy, _keep_question(text, node), chance, {"properties": {"answer": fields[node]}})
            for node in nodes
        }
        stated = [one.stated for one in each.values() if one.stated is not None]
        understood = all(one.understood for one in each.values())
        answers = {node: one.answer for node, one in each.items()}
        reason = next((one.reason for one in each.values() if one.reason), None)
        odds = {node: one.odds[True] for node, one in each.items() if one.odds and True in one.odds}
        wins = next((one.wins for one in each.values() if one.wins is not None), None)
        return Opinion(None, understood, stated[0] if stated else None, answers, odds, reason, wins)
    random = random_answer(schema, text, chance)
    if policy is None:
        return random
    try:
        result = policy(text, chance)
        answer = result["answer"]
        # A prompt with `say: odds` asks for the probability of yes.
        if fields.get("answer", {}).get("type") == "number":
            answer = float(answer)
        return Opinion(answer, True, result.get(STATED), {}, result.get(ODDS), result.get(REASON), result.get(WINS))
    except (LookupError, ValueError, ArithmeticError):
        return Opinion(random.answer, understood=False)


def decide(policy: HousePolicy | None, text: str, chance: Random, questions: Sequence[_Schema]) -> Opinion:
    """Answer the questions of a decision with the policy's probabilities. Questions are named after their nodes."""
    answers, understood = list[dict[str, Any]](), True
    for question in questions:
        name = question.get("name", "")
        if question["type"] == "choice":
            values = [choice["value"] for choice in question["choices"]]
            kind = {"type": "boolean"} if isinstance(values[0], bool) else {"type": "string", "enum": values}
            single_text = _keep_question(text, name.partition("-")[0])
            opinion = form_opinion(policy, single_text, chance, {"properties": {"answer": kind}})
            choice = opinion.answer if isinstance(values[0], bool) else str(opinion.answer)
            is_sure = choice in values and policy is not None and opinion.understood
            choice = choice if choice in values else values[0]
            shares = [float(value == choice) if is_sure else 1 / len(values) for value in values]
            if is_sure and opinion.odds is not None:
                shares = [opinion.odds.get(value, 0.0) for value in values]
            understood = understood and opinion.understood
            rows = [{"value": value, "probability": share} for value, share in zip(values, shares, strict=True)]
            confidence = shares[values.index(choice)]
            answer = {"type": "choice", "name": name, "choice": choice, "confidence": confidence, "probabilities": rows}
            answers.append(answer)
        else:
            nodes = _parse_nodes(text) if policy else []
            opinions = (form_opinion(policy, _keep_question(text, node), chance) for node in nodes)
            stated = (one.wins if name == WINS else one.stated for one in opinions)
            share = next((each for each in stated if each is not None), 0.5)
            answers.append({"type": "predicate", "name": name, "probability": share})
    return Opinion(answers, understood)


def _parse_nodes(text: str) -> list[str]:
    lines = _NODE.findall(text)
    return lines[-1].split() if lines else [""]


def _keep_question(text: str, node: str) -> str:
    """Return the text with all other questions removed."""
    if f"\n{_NODE_LINE}" not in text or not node:
        return text
    before, _, after = text.rpartition(f"\n{_NODE_LINE}")
    return f"{before}\n{_NODE_LINE}{node}\n{after.partition(chr(10))[2]}"


def random_answer(schema: _Schema | None, text: str, chance: Random) -> Opinion:
    """Return a random answer that fits the schema and, if the text lists legal answers, is legal.

    Without such a list, the answer is not marked as understood, unless it is a yes-or-no answer or a message.
    """
    part: _Schema = (schema or {}).get("properties", {}).get("answer", {})
    legal = parse_legal(text)
    numbers = [int(word) for word in legal if word.removeprefix("-").isdecimal()]
    match part.get("type"):
        case "string" if "description" in part and not legal:
            return Opinion(chance.choice(_MESSAGES), understood=True)
        case "string":
            options = part.get("enum", legal)
            fitting = [option for option in legal if option in options]
            return Opinion(chance.choice(fitting or options or [""]), understood=bool(fitting))
        case "number":
            return Opinion(0.5, understood=True)
        case "integer":
            return Opinion(chance.choice(numbers or [0]), understood=bool(numbers))
        case "object" if part.get("properties"):
            share = 1 / len(legal) if legal else 0.0
            shares = {name: share if name in legal else 0.0 for name in part["properties"]}
            return Opinion(shares, understood=bool(legal))
        case "array" if "enum" in part.get("items", {}):
            cards = part["items"]["enum"]
            held = [card for card in numbers if card in cards]
            if not held:
                return Opinion([chance.choice(cards)], understood=False)
            return Opinion(chance.sample(held, chance.randint(1, len(held))), understood=True)
        case _:
            return Opinion(chance.random() < 0.5, understood=True)
