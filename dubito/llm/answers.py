"""A model's answer: its form, its strict parser, and the text of a re-ask.

Only JSON with the right fields and values counts as an answer. Answers are never guessed from prose. The prompt sets
the fields. The probability that a node `states` is recorded but does not affect the game. The schema depends only on
the node, and the engine later checks whether the answer is legal at the position.

With `ask: turn`, a prompt asks all questions of a turn at once. The reply has a field for each question, named after
its node. An unreadable field does not affect the other answers.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal, NoReturn, cast, get_args

from pydantic import AfterValidator, BaseModel, ValidationError, create_model

from dubito.files import CheckedModel
from dubito.game import STATED, WINS, Answer, Bool, Cards, Choice, Node, Shares, Text
from dubito.game.log import Position
from dubito.llm.request import AttemptFailed, Cause, DuplicateKey, Reply, parse_json, refuse_duplicate_keys
from dubito.model_settings import ReplyPart

Field = Literal["reasoning", "p_bluff", "answer"]
ANSWER: Final = "answer"  # field of a single answer
Schema = Mapping[str, Any]

_SCHEMAS: Final[Mapping[str, Schema]] = {
    "reasoning": {"type": "string"},
    **{key: {"anyOf": [{"type": "number"}, {"type": "null"}]} for key in (STATED, WINS)},
}
_TYPES: Final[Mapping[str, Any]] = {"reasoning": str, STATED: Any, WINS: Any}
NO_JSON: Final = "it is not JSON"
_YES_ABOVE: Final = 0.5  # probabilities above this mean yes
_MAX_ROUNDING: Final = 0.01 + 1e-9  # how far a sum of probabilities can be from 1
_EXAMPLES: Final[Mapping[str, str]] = {"reasoning": '"..."', STATED: "0.4", WINS: "0.3"}
_MAX_LISTED: Final = 40  # maximum number of names in an answer's description; the request lists the legal ones
_ANY_LEGAL: Final = "one of the legal answers, as they are listed"
_MAX_SEARCHED: Final = 2**15  # characters at the end of a reply that are searched for an object
_THOUGHTS: Final = r"(?:think|thinking|thought|thoughts|reasoning|reflection)"
_THOUGHTS_BEGIN: Final = re.compile(rf"<{_THOUGHTS}>", re.IGNORECASE)
_THOUGHTS_END: Final = re.compile(rf"</{_THOUGHTS}>", re.IGNORECASE)
_YES_OR_NO: Final = '{"answer": true} or {"answer": false}'


@dataclass(frozen=True, slots=True)
class Odds:
    """The answer to a yes-or-no question with `say: odds`: the probability of yes."""


def with_odds(node: Node) -> Node:
    return node._replace(answer=cast(Any, Odds())) if node.answer == Bool() else node


@dataclass(frozen=True, slots=True)
class Form:
    """The expected form of a reply."""

    fields: tuple[str, ...]
    answers: Mapping[str, Node]  # the fields with answers: `answer`, or one per node
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

    def asks_probability(self, key: str) -> bool:
        stating = [node.name for node in self.answers.values() if node.states == STATED]
        return STATED in self.fields and key in stating

    def read(self, reply: Reply) -> "ReadAnswers":
        """Read the answers in a reply. Raises AttemptFailed with the cause if they cannot be read."""
        if reply.finish == "refusal":
            raise AttemptFailed("refused", reply.problem or "the model or a filter declined", reply.text)
        if reply.finish == "length":
            raise AttemptFailed("truncated", reply.problem or "the reply stopped at its length limit", reply.text)
        text = reply.text or ""
        if reply.problem or not text.strip():
            raise AttemptFailed("malformed", reply.problem or "it has no text", reply.text)
        try:
            # Unlike pydantic, this refuses duplicate keys, NaN and Infinity.
            _DECODER.decode(text)
            return ReadAnswers(_parse_answers(self.model.model_validate_json(text).__dict__, self))
        except DuplicateKey as error:
            detail = str(error)
        except ValidationError as error:
            detail = _describe_error(dict(error.errors()[0]), self)
            bad = {str(each["loc"][0]) if each["loc"] else "" for each in error.errors()}
            if bad < self.answers.keys():
                # Read the valid fields of a turn's reply, so that only invalid ones are asked again.
                rest = self.select([node.name for name, node in self.answers.items() if name not in bad])
                values = {name: value for name, value in json.loads(text).items() if name in rest.fields}
                given = _parse_answers(rest.model.model_validate_json(json.dumps(values)).__dict__, rest)
                failed = AttemptFailed("malformed", detail, text)
                return ReadAnswers(given, {key: failed for key in self.keys if key not in given})
        except (ValueError, RecursionError):
            detail = NO_JSON
            with suppress(ValueError, RecursionError):
                json.loads(text[text.find("{") : text.rfind("}") + 1], parse_constant=_refuse_constant)
                detail = "there is text or a code fence before or after the JSON object"
        raise AttemptFailed("malformed", detail, text)

    def reask_text(self, failure: AttemptFailed, translate: Callable[[str], str] = str) -> str | None:
        text = REASKS.get(failure.cause)
        return text and translate(text).format(detail=failure.detail, wanted=translate(self.expected_reply))

    @property
    def expected_reply(self) -> str:
        """The expected reply: an example, or a template with a description of its placeholder X."""
        if self.fields == (ANSWER,) and isinstance(self.answers[ANSWER].answer, Bool):
            return _YES_OR_NO
        kinds = {field: node.answer for field, node in self.answers.items()}
        examples = {**_EXAMPLES, **{field: "true" if kind == Bool() else "X" for field, kind in kinds.items()}}
        shape = "{" + ", ".join(f'"{field}": {examples[field]}' for field in self.fields) + "}"
        others = {field: kind for field, kind in kinds.items() if kind != Bool()}
        if not others:
            return shape
        if ANSWER in others:
            return f"{shape}, X being {describe_kind(others[ANSWER])}"
        return f"{shape}, X being at " + "; at ".join(f"{field} {describe_kind(others[field])}" for field in others)

    def select(self, keys: Collection[str]) -> "Form":
        fields = tuple(field for field in self.fields if field not in self.answers)
        return build_turn_form(fields, tuple(node for node in self.answers.values() if node.name in keys))


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer in a model's reply."""

    answer: Any  # an answer of the node's kind
    stated: float | None = None  # within [0, 1]
    impossible: bool = False  # whether the stated value is not a probability and counts as missing
    shares: tuple[tuple[Any, float], ...] = ()  # each possible answer with its probability, if they are known


@lru_cache(maxsize=64)
def build_form(fields: tuple[str, ...], node: Node) -> Form:
    return _form(tuple(field for field in fields if field != STATED or node.states == STATED), {ANSWER: node})


@lru_cache(maxsize=256)
def build_turn_form(fields: tuple[str, ...], nodes: tuple[Node, ...]) -> Form:
    has_stated = any(node.states == STATED for node in nodes)
    other_fields = tuple(field for field in fields if field != ANSWER and (field != STATED or has_stated))
    return _form((*other_fields, *(node.name for node in nodes)), {node.name: node for node in nodes})


def _form(fields: tuple[str, ...], answers: Mapping[str, Node]) -> Form:
    schemas = {**_SCHEMAS, **{field: answer_schema(node.answer) for field, node in answers.items()}}
    schema = {
        "additionalProperties": False,
        "properties": {field: schemas[field] for field in fields},
        "required": list(fields),
        "type": "object",
    }
    known = {**_TYPES, **{field: _answer_type(node.answer) for field, node in answers.items()}}
    types: dict[str, Any] = {field: (known[field], ...) for field in fields}
    return Form(fields, answers, schema, create_model("Answer", __base__=CheckedModel, **types))


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


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """A reply's answers, by the keys of its form."""

    given: Mapping[str, ModelAnswer]
    unread: Mapping[str, AttemptFailed] = field(default_factory=dict)  # errors for the other keys


def read_answer(reply: Reply, form: Form) -> ModelAnswer:
    return form.read(reply).given[form.keys[0]]


def _parse_answers(values: Mapping[str, Any], form: Form) -> dict[str, ModelAnswer]:
    answers = {}
    for name, node in form.answers.items():
        stated, is_impossible = None, False
        if node.states == STATED and (value := values.get(STATED)) is not None:
            is_impossible = isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1
            stated = None if is_impossible else float(value)
        answer, shares = values[name], tuple[tuple[Any, float], ...]()
        if isinstance(node.answer, Odds):
            answer, shares = values[name] > _YES_ABOVE, ((True, values[name]), (False, 1 - values[name]))
        answers[node.name] = ModelAnswer(answer, stated, is_impossible, shares)
    return answers


def split_reason(reply: Reply) -> tuple[Reply, str]:
    """Return a program's reply without the reason that it may add to its answer, and the reason."""
    content: object = None
    with suppress(ValueError, RecursionError):
        content = _DECODER.decode(reply.text or "")
    if not isinstance(content, dict) or not isinstance(content.get("reason"), str):
        return reply, ""
    reason = content.pop("reason")
    return replace(reply, text=json.dumps(content)), reason


def find_last_object(text: str) -> str | None:
    """Return the last complete JSON object after a model's thoughts, or None if there is none.

    Only the end of a long text is searched, so a hostile text cannot take much time.
    """
    rest = _THOUGHTS_END.split(text)[-1][-_MAX_SEARCHED:]
    # Thoughts that never end contain no answer.
    if _THOUGHTS_BEGIN.search(rest):
        return None
    last, start = None, rest.find("{")
    while start >= 0:
        try:
            value, end = _PLAIN.raw_decode(rest, start)
        except RecursionError:
            # In a deeply nested text, every other brace would take just as long.
            return None
        except ValueError:
            end = start + 1
        else:
            last = rest[start:end] if isinstance(value, dict) else last
        start = rest.find("{", end)
    return last


def extract_answer(reply: Reply, part: ReplyPart) -> str | None:
    """Return the text that `read` takes from a reply instead of its whole text, or None.

    From the reasoning, only an object at its end is taken, since earlier ones may be answers that the model discarded.
    """
    text = (reply.text or "").strip()
    if reply.finish == "invalid" or part == "strict" or (part == "reasoning" and text):
        return None
    source = text if part == "last_object" else (reply.thoughts or "").strip()
    found = find_last_object(source)
    if found is None or (found == text and not reply.problem) or (part == "reasoning" and not source.endswith(found)):
        return None
    return found


def find_helpful_part(reply: Reply, form: "Form") -> ReplyPart | None:
    """Return the value of `read` with which an unusable reply would be an answer, if there is one."""
    for part in get_args(ReplyPart):
        if (text := extract_answer(reply, part)) is not None:
            with suppress(AttemptFailed):
                form.read(replace(reply, text=text, problem=""))
                return cast(ReplyPart, part)
    return None


def extract_reasoning(reply: str) -> str:
    content = parse_json(find_last_object(reply) or reply)
    reasoning = content.get("reasoning") if isinstance(content, dict) else None
    return reasoning if isinstance(reasoning, str) else ""


def answer_format(fields: Sequence[str], nodes: Sequence[Node], *, turn: bool = False) -> str:
    """Return the prompt text that describes the reply to one question, or to all questions of a turn."""
    names_of: dict[Answer | Odds, list[str]] = {}
    for node in nodes:
        names_of.setdefault(node.answer, []).append(node.name)
    words = "; ".join(
        f"at question{'s' if len(names) > 1 else ''} {', '.join(names)} {describe_kind(kind)}"
        for kind, names in names_of.items()
    )
    if len(names_of) == 1:
        words = describe_kind(nodes[0].answer)
    if turn and tuple(fields) == (ANSWER,):
        return f"Reply with a JSON object and nothing else. It has a field for each question, named after it, {words}."
    if tuple(fields) != (ANSWER,):
        stated = [node for node in nodes if node.states == STATED]
        names, one = ", ".join(node.name for node in stated), stated[0].stating if stated else ""
        where = f"only where {names} is asked" if turn else f"at question {names} only"
        meanings = {
            "reasoning": '"reasoning", what decides it, in one to three sentences',
            STATED: f'"{STATED}", {where}: how probable it is that {one}, from 0 to 1, or null',
            WINS: f'"{WINS}": how probable it is that you win this game, from 0 to 1, or null',
            ANSWER: f"then one for each question, named after it, {words}" if turn else f'"{ANSWER}", {words}',
        }
        listed = "; ".join(meanings[field] for field in fields)
        return f"Reply with a JSON object and nothing else. Its fields, in this order: {listed}."
    if list(names_of) == [Bool()]:
        return f"Reply with a JSON object {_YES_OR_NO}, and nothing else."
    return f'Reply with a JSON object {{"{ANSWER}": X}} and nothing else. X is {words}.'


def answer_schema(kind: Answer | Odds) -> Schema:
    """Return the JSON schema of this kind of answer.

    It has no bounds, since not all providers support them.
    """
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
            return {"type": "string", "description": describe_kind(kind)}
        case _:
            return {"type": "integer"}


def union_schema(kinds: Collection[Answer]) -> Schema:
    """Return the JSON schema of an answer of any of these kinds.

    It states the types twice, because some clients ignore `anyOf`, and others a list of types.
    """
    schemas = [answer_schema(kind) for kind in dict.fromkeys(kinds)]
    if len(schemas) == 1:
        return schemas[0]
    return {"type": [*dict.fromkeys(schema["type"] for schema in schemas)], "anyOf": schemas}


def describe_kind(kind: Answer | Odds) -> str:
    match kind:
        case Bool():
            return "true or false"
        case Odds():
            return "a number from 0 to 1, how probable yes (true) is to be"
        case Choice(None):
            return _ANY_LEGAL
        case Choice(tuple(options)):
            return (
                _ANY_LEGAL
                if len(options) > _MAX_LISTED
                else "one of " + ", ".join(json.dumps(option) for option in options)
            )
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


def _answer_type(kind: Answer | Odds) -> Any:
    match kind:
        case Bool():
            return bool
        case Odds():
            return Annotated[float, AfterValidator(_check_share)]
        case Choice(None) | Text():
            return str
        case Choice(tuple(options)):
            return Literal[tuple(options)]
        case Cards(cards):
            return list[Annotated[int, AfterValidator(partial(_check_card, cards))]]
        case Shares(options):
            return Annotated[dict[str, float], AfterValidator(partial(_normalize_shares, options))]
        case _:
            return int


def _check_share(share: float) -> float:
    if not 0 <= share <= 1:
        raise ValueError(share)
    return share


def _check_card(cards: Sequence[int], card: int) -> int:
    if card not in cards:
        raise ValueError(card)
    return card


def _normalize_shares(options: Sequence[str], shares: dict[str, float]) -> dict[str, float]:
    """Scale probabilities to sum to 1.

    Raises ValueError if their sum is not close to 1, or if a name is missing. The engine refuses names that the game
    does not have.
    """
    total = sum(shares.values())
    if not {*options} <= shares.keys() or not all(0 <= share <= 1 for share in shares.values()):
        raise ValueError(shares)
    if abs(total - 1) > _MAX_ROUNDING:
        raise ValueError(total)
    return {name: share / total for name, share in shares.items()}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_PLAIN: Final = json.JSONDecoder()
_DECODER: Final = json.JSONDecoder(object_pairs_hook=refuse_duplicate_keys, parse_constant=_refuse_constant)


def _describe_error(error: dict[str, Any], form: Form) -> str:
    where = error["loc"][0] if error["loc"] else ""
    if where in form.answers and error["type"] not in ("missing", "string_unicode"):
        kind = form.answers[where].answer
        if kind == Bool():
            return f"`{where}` is neither true nor false (without quotes)"
        quotes = "" if isinstance(kind, Choice | Shares | Text) else " (without quotes)"
        return f"`{where}` is not {describe_kind(kind)}{quotes}"
    match error["type"]:
        case "json_invalid" | "string_unicode":
            return NO_JSON
        case "missing":
            return f"the field `{where}` is missing"
        case "extra_forbidden":
            return "it has fields other than " + " and ".join(f"`{field}`" for field in form.fields)
        case "string_type":
            return f"`{where}` is not a text"
        case _:
            return "it is not a JSON object"
