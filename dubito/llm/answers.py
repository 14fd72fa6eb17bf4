"""The answer of a model: its form, its strict reading, and the words of a re-ask.

Only JSON of the node's kind passes as an answer, nothing beside the fields asked for, never a guess from prose. The
fields are those of the prompt; what a node `states` beside its answer is recorded, and never decides anything. A
schema is fixed for its node: whether an answer is legal at a position, the engine says once it is read.

A prompt with `ask: turn` asks all the questions of a turn at once: its reply has a field for each, named as its node.
There a field that cannot be read spoils no other one.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal, NoReturn, cast

from pydantic import AfterValidator, BaseModel, ValidationError, create_model

from dubito.files import Checked
from dubito.game import STATED, Answer, Bool, Cards, Choice, Node, Position, Shares, Text
from dubito.llm.request import AttemptFailed, Cause, DuplicateKey, Reply, parse_json, refuse_duplicate_keys

Field = Literal["reasoning", "p_bluff", "answer"]
ANSWER: Final = "answer"  # the field of an answer that stands alone
Schema = Mapping[str, Any]

_SCHEMAS: Final[Mapping[str, Schema]] = {
    "reasoning": {"type": "string"},
    STATED: {"anyOf": [{"type": "number"}, {"type": "null"}]},
}
_TYPES: Final[Mapping[str, Any]] = {"reasoning": str, STATED: Any}
_NO_JSON: Final = "it is not JSON"
_EVEN: Final = 0.5  # a probability above it says yes
_ROUNDING: Final = 0.01 + 1e-9  # how far the sum of probabilities may be from 1
_EXAMPLES: Final[Mapping[str, str]] = {"reasoning": '"..."', STATED: "0.4"}
_LISTED: Final = 40  # names that an answer's description lists; where there are more, the request says what is legal
_NAMED: Final = "one of the legal answers, as they are listed"
_SEARCHED: Final = 2**15  # characters at the end of a reply in which an object is looked for
_THOUGHTS: Final = r"(?:think|thinking|thought|thoughts|reasoning|reflection)"
_THOUGHTS_BEGIN: Final = re.compile(rf"<{_THOUGHTS}>", re.IGNORECASE)
_THOUGHTS_END: Final = re.compile(rf"</{_THOUGHTS}>", re.IGNORECASE)
_YES_OR_NO: Final = '{"answer": true} or {"answer": false}'


@dataclass(frozen=True, slots=True)
class Odds:
    """What is asked for in place of yes or no by a prompt with `say: odds`: the probability of yes."""


def with_odds(node: Node) -> Node:
    return node._replace(answer=cast(Any, Odds())) if node.answer == Bool() else node


@dataclass(frozen=True, slots=True)
class Form:
    """What a reply has to look like."""

    fields: tuple[str, ...]
    answers: Mapping[str, Node]  # of the fields: those that are answers, `answer` or one for each node
    schema: Schema
    model: type[BaseModel]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.answers.values())

    @property
    def kind(self) -> str:
        return str(self.schema)

    def covers(self, other: "Form") -> bool:
        return self.answers.keys() > other.answers.keys()

    def key_of(self, position: Position) -> str | None:
        return position.node if position.node in self.keys else None

    def states(self, key: str) -> bool:
        stating = [node.name for node in self.answers.values() if node.states == STATED]
        return STATED in self.fields and key in stating

    def read(self, reply: Reply) -> "ReadAnswers":
        return read_answers(reply, self)

    def reask_text(self, failure: AttemptFailed) -> str | None:
        return reask_text(failure, self)

    @property
    def wanted(self) -> str:
        """The reply in an example or two, or with an X and what it is."""
        if self.fields == (ANSWER,) and isinstance(self.answers[ANSWER].answer, Bool):
            return _YES_OR_NO
        kinds = {field: node.answer for field, node in self.answers.items()}
        examples = {**_EXAMPLES, **{field: "true" if kind == Bool() else "X" for field, kind in kinds.items()}}
        shape = "{" + ", ".join(f'"{field}": {examples[field]}' for field in self.fields) + "}"
        others = {field: kind for field, kind in kinds.items() if kind != Bool()}
        if not others:
            return shape
        if ANSWER in others:
            return f"{shape}, X being {kind_in_words(others[ANSWER])}"
        return f"{shape}, X being at " + "; at ".join(f"{field} {kind_in_words(others[field])}" for field in others)

    def of_keys(self, keys: Collection[str]) -> "Form":
        fields = tuple(field for field in self.fields if field not in self.answers)
        return build_turn_form(fields, tuple(node for node in self.answers.values() if node.name in keys))


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answers, as its reply was read."""

    answer: Any  # of the node's kind
    stated: float | None = None  # within [0, 1]
    impossible: bool = False  # what was stated is not a probability; it counts as missing
    shares: tuple[
        tuple[Any, float], ...
    ] = ()  # each answer that was offered, and how probable it is, where that is said


@lru_cache(maxsize=64)
def build_form(fields: tuple[Field, ...], node: Node) -> Form:
    return _form(tuple(field for field in fields if field != STATED or node.states == STATED), {ANSWER: node})


@lru_cache(maxsize=256)
def build_turn_form(fields: tuple[str, ...], nodes: tuple[Node, ...]) -> Form:
    stated = any(node.states == STATED for node in nodes)
    beside = tuple(field for field in fields if field != ANSWER and (field != STATED or stated))
    return _form((*beside, *(node.name for node in nodes)), {node.name: node for node in nodes})


def _form(fields: tuple[str, ...], answers: Mapping[str, Node]) -> Form:
    schemas = {**_SCHEMAS, **{field: answer_schema(node.answer) for field, node in answers.items()}}
    schema = {
        "additionalProperties": False,
        "properties": {field: schemas[field] for field in fields},
        "required": list(fields),
        "type": "object",
    }
    known = {**_TYPES, **{field: _type_of(node.answer) for field, node in answers.items()}}
    types: dict[str, Any] = {field: (known[field], ...) for field in fields}
    return Form(fields, answers, schema, create_model("Answer", __base__=Checked, **types))


HARMLESS: Final = "This is a card game among programs; bluffing is part of its rules and harms nobody."
REASKS: Final[dict[Cause, str]] = {
    "malformed": (
        "Your last reply could not be read: {detail}. Reply again with nothing but the JSON object, {wanted}."
    ),
    "truncated": (
        "Your last reply was cut off before the answer. Think less this time and reply with nothing but the JSON "
        "object, {wanted}."
    ),
    "refused": HARMLESS + " Please reply with nothing but the JSON object, {wanted}.",
    "illegal": ("Your last answer cannot be played: {detail}. Reply again with nothing but the JSON object, {wanted}."),
}


def reask_text(failure: AttemptFailed, form: Form) -> str | None:
    text = REASKS.get(failure.cause)
    return text and text.format(detail=failure.detail, wanted=form.wanted)


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """What a reply answers, by the keys of its form."""

    given: Mapping[str, ModelAnswer]
    unread: Mapping[str, AttemptFailed] = field(default_factory=dict)  # why the others have no answer


_TOOL_CALL: Final = re.compile(
    r'"tool_calls"\s*:\s*\[\s*\{|"function_call"\s*:\s*\{|"type"\s*:\s*"(tool_use|(function|custom_tool)_call)"'
)


def read_answer(reply: Reply, form: Form) -> ModelAnswer:
    return read_answers(reply, form).given[form.keys[0]]


def read_answers(reply: Reply, form: Form) -> ReadAnswers:
    """The answers in a reply; raises AttemptFailed with its cause where there is none."""
    if reply.finish == "refusal":
        raise AttemptFailed("refused", "the model or a filter declined", reply.text)
    if reply.finish == "length":
        raise AttemptFailed("truncated", "the reply stopped at its length limit", reply.text)
    text = reply.text or ""
    if not text.strip():
        called = _TOOL_CALL.search(reply.received.raw) is not None
        raise AttemptFailed(
            "malformed", "it calls a tool, and there is none" if called else "it holds no text", reply.text
        )
    try:
        _DECODER.decode(text)  # refuses twin keys, NaN and Infinity before pydantic reads it
        return ReadAnswers(_answers_in(form.model.model_validate_json(text).__dict__, form))
    except DuplicateKey as error:
        detail = str(error)
    except ValidationError as error:
        detail = _detail(dict(error.errors()[0]), form)
        spoilt = {str(each["loc"][0]) if each["loc"] else "" for each in error.errors()}
        if spoilt < form.answers.keys():
            return _answers_beside(text, form, spoilt, AttemptFailed("malformed", detail, text))
    except (ValueError, RecursionError):
        detail = _unreadable(text)
    raise AttemptFailed("malformed", detail, text)


def _answers_in(said: Mapping[str, Any], form: Form) -> dict[str, ModelAnswer]:
    found = {}
    for name, node in form.answers.items():
        stated = _probability(said.get(STATED)) if node.states == STATED else (None, False)
        answer, shares = said[name], tuple[tuple[Any, float], ...]()
        if isinstance(node.answer, Odds):
            answer, shares = said[name] > _EVEN, ((True, said[name]), (False, 1 - said[name]))
        found[node.name] = ModelAnswer(answer, *stated, shares)
    return found


def _answers_beside(text: str, form: Form, spoilt: Collection[str], unread: AttemptFailed) -> ReadAnswers:
    """The answers of a turn in the other fields than those that are spoilt."""
    rest = form.of_keys([node.name for name, node in form.answers.items() if name not in spoilt])
    said = {name: value for name, value in json.loads(text).items() if name in rest.fields}
    given = _answers_in(rest.model.model_validate_json(json.dumps(said)).__dict__, rest)
    return ReadAnswers(given, {key: unread for key in form.keys if key not in given})


def find_last_object(text: str) -> str | None:
    """Return the last complete JSON object after a model's thoughts, as it is written; None if there is none.

    Only the end of a long text is searched, so that a hostile one takes no time.
    """
    rest = _THOUGHTS_END.split(text)[-1][-_SEARCHED:]
    if _THOUGHTS_BEGIN.search(rest):  # they never ended: what is in them is not the answer
        return None
    found, at = None, rest.find("{")
    while at >= 0:
        try:
            value, end = _PLAIN.raw_decode(rest, at)
        except RecursionError:  # nested without end: each of its beginnings would take as long
            return None
        except ValueError:
            end = at + 1
        else:
            found = rest[at:end] if isinstance(value, dict) else found
        at = rest.find("{", end)
    return found


def reasoning_of(reply: str) -> str:
    said = parse_json(find_last_object(reply) or reply)
    reasons = said.get("reasoning") if isinstance(said, dict) else None
    return reasons if isinstance(reasons, str) else ""


def answer_format(fields: Sequence[Field], nodes: Sequence[Node], *, turn: bool = False) -> str:
    """What a prompt says of the reply: to one question, or to all of a turn."""
    kinds = {node.answer: None for node in nodes}
    words = "; ".join(f"at {_where(kind, nodes)} {kind_in_words(kind)}" for kind in kinds)
    if len(kinds) == 1:
        words = kind_in_words(nodes[0].answer)
    if turn and tuple(fields) == (ANSWER,):
        return f"Reply with a JSON object and nothing else. It has a field for each question, named after it, {words}."
    if tuple(fields) != (ANSWER,):
        stated = [node for node in nodes if node.states == STATED]
        names, one = ", ".join(node.name for node in stated), stated[0].stating if stated else ""
        where = f"only where {names} is asked" if turn else f"at question {names} only"
        meanings = {
            "reasoning": '"reasoning", what decides it, in one to three sentences',
            STATED: f'"{STATED}", {where}: how probable it is that {one}, from 0 to 1, or null',
            ANSWER: f"then one for each question, named after it, {words}" if turn else f'"{ANSWER}", {words}',
        }
        listed = "; ".join(meanings[field] for field in fields)
        return f"Reply with a JSON object and nothing else. Its fields, in this order: {listed}."
    if list(kinds) == [Bool()]:
        return f"Reply with a JSON object {_YES_OR_NO}, and nothing else."
    return f'Reply with a JSON object {{"{ANSWER}": X}} and nothing else. X is {words}.'


def _where(kind: Answer, nodes: Sequence[Node]) -> str:
    names = [node.name for node in nodes if node.answer == kind]
    return f"question{'s' if len(names) > 1 else ''} {', '.join(names)}"


def answer_schema(kind: Answer | Odds) -> Schema:
    """The JSON schema of an answer of this kind; without bounds, since no two providers support the same ones."""
    match kind:
        case Bool():
            return {"type": "boolean"}
        case Odds():
            return {"type": "number"}
        case Choice(None):
            return {"type": "string"}
        case Choice(tuple(options)):
            return {"type": "string", "enum": list(options)}
        case Cards(cards):
            return {"type": "array", "items": {"type": "integer", "enum": list(cards)}}
        case Shares(options):
            numbers = {option: {"type": "number"} for option in options}
            return {"type": "object", "properties": numbers, "required": [*options], "additionalProperties": False}
        case Text():
            return {"type": "string", "description": kind_in_words(kind)}
        case _:
            return {"type": "integer"}


def kind_in_words(kind: Answer | Odds) -> str:
    match kind:
        case Bool():
            return "true or false"
        case Odds():
            return "a number from 0 to 1, how probable yes (true) is to be"
        case Choice(None):
            return _NAMED
        case Choice(tuple(options)):
            return _NAMED if len(options) > _LISTED else "one of " + ", ".join(json.dumps(option) for option in options)
        case Cards(cards):
            unbroken = [*cards] == [*range(cards[0], cards[-1] + 1)]
            which = f"a number from {cards[0]} to {cards[-1]}" if unbroken else f"one of {', '.join(map(str, cards))}"
            return f"a list of cards, each {which}"
        case Shares(options):
            named = ", ".join(json.dumps(option) for option in options)
            return f"an object with a number from 0 to 1 for each of {named}, which sum to 1"
        case Text(most):
            return f"what you say: a text on one line, of at most {most} characters"
        case _:
            return "a whole number"


def _type_of(kind: Answer | Odds) -> Any:
    match kind:
        case Bool():
            return bool
        case Odds():
            return Annotated[float, AfterValidator(_share)]
        case Choice(None) | Text():
            return str
        case Choice(tuple(options)):
            return Literal[tuple(options)]
        case Cards(cards):
            return list[Annotated[int, AfterValidator(partial(_known, cards))]]
        case Shares(options):
            return Annotated[dict[str, float], AfterValidator(partial(_shares, options))]
        case _:
            return int


def _share(said: float) -> float:
    if not 0 <= said <= 1:
        raise ValueError(said)
    return said


def _known(cards: Sequence[int], card: int) -> int:
    if card not in cards:
        raise ValueError(card)
    return card


def _shares(options: Sequence[str], said: dict[str, float]) -> dict[str, float]:
    """The probabilities, made to sum to 1 if they nearly do; raises ValueError if they are not, or a name is left out.

    A name that the game does not have is left for the engine to refuse.
    """
    total = sum(said.values())
    if not {*options} <= said.keys() or not all(0 <= share <= 1 for share in said.values()):
        raise ValueError(said)
    if abs(total - 1) > _ROUNDING:
        raise ValueError(total)
    return {name: share / total for name, share in said.items()}


def _probability(stated: object) -> tuple[float | None, bool]:
    if stated is None:
        return None, False
    if isinstance(stated, bool) or not isinstance(stated, int | float) or not 0 <= stated <= 1:
        return None, True
    return float(stated), False


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_PLAIN: Final = json.JSONDecoder()
_DECODER: Final = json.JSONDecoder(object_pairs_hook=refuse_duplicate_keys, parse_constant=_no_constant)


def _unreadable(text: str) -> str:
    """What is wrong with a text that is not JSON: often there is JSON in it, in a fence or a sentence."""
    with suppress(ValueError, RecursionError):
        json.loads(text[text.find("{") : text.rfind("}") + 1], parse_constant=_no_constant)
        return "something stands before or behind the JSON object, where no word and no code fence may stand"
    return _NO_JSON


def _detail(error: dict[str, Any], form: Form) -> str:
    where = error["loc"][0] if error["loc"] else ""
    if where in form.answers and error["type"] not in ("missing", "string_unicode"):
        kind = form.answers[where].answer
        if kind == Bool():
            return f"`{where}` is neither true nor false (without quotes)"
        quotes = "" if isinstance(kind, Choice | Shares | Text) else " (without quotes)"
        return f"`{where}` is not {kind_in_words(kind)}{quotes}"
    match error["type"]:
        case "json_invalid" | "string_unicode":
            return _NO_JSON
        case "missing":
            return f"the field `{where}` is missing"
        case "extra_forbidden":
            return "it has other fields than " + " and ".join(f"`{field}`" for field in form.fields)
        case "string_type":
            return f"`{where}` is no text"
        case _:
            return "it is no JSON object"
