"""Questions to a decision model, which answers each with a probability for every possible answer.

OpenAI's Decisions API (`openai.types.decision_create_params` in the SDK) has two types of questions: a `choice` among 2
to 255 values (texts or booleans) and a `predicate`, a sentence that may be true. Here, a node is a choice among the
legal answers, and an event that a node `states` is a predicate. A request contains all questions of a turn. A question
that depends on an earlier answer appears once for each possible answer.

The request's text is the prompt, and its questions are taken from the facts of the game: `question`, and `if_true` and
`if_false`, or `legal`. A reply must match exactly: answers in the order of the questions, every value once, and
probabilities that sum to 1. The choice need not be the most probable value, since servers differ in this.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.game import STATED, WINS, Bool, Choice, Game, Node, Whole
from dubito.game.log import Position
from dubito.llm.answers import HARMLESS, ModelAnswer, ReadAnswers, describe_kind, find_last_object
from dubito.llm.request import AttemptFailed, Reply, parse_json

ANSWER_FORMAT: Final = "The questions are put beside this text, each with its possible answers."
_MIN_VALUES, _MAX_VALUES = 2, 255  # of a choice
_MAX_ROUNDING: Final = 0.01 + 1e-9  # tolerated distance of a sum of probabilities from 1


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question of a request."""

    name: str
    node: Node
    position: Position | None  # None if the question asks for the probability that its node states
    content: Mapping[str, Any]  # in the request

    @property
    def values(self) -> list[Any]:
        return [choice["value"] for choice in self.content.get("choices", ())]

    def to_answer(self, value: Any) -> Any:
        """Return the node's answer for a chosen value."""
        first, second, *_ = self.content["choices"]
        value = first["value"] if second == _duplicate_value(first["value"]) else value
        is_whole = isinstance(self.node.answer, Whole) and str(value).lstrip("-").isdecimal()
        return int(value) if is_whole else value


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """The questions of a request."""

    questions: tuple[DecisionQuestion, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(question.name for question in self.questions if question.position is not None)

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"questions": [question.content for question in self.questions]}

    @property
    def kind(self) -> str:
        return " ".join(sorted({question.node.name for question in self.questions}))

    def covers(self, other: "QuestionForm") -> bool:
        return {*self.kind.split()} > {*other.kind.split()}

    def key_of(self, position: Position) -> str | None:
        return next((question.name for question in self.questions if question.position == position), None)

    def select(self, keys: Collection[str]) -> "QuestionForm":
        """Return a form with these questions and with their nodes' stated probabilities."""
        nodes = {question.node.name for question in self.questions if question.name in keys}
        questions = [
            question
            for question in self.questions
            if question.name in keys or (question.position is None and question.node.name in nodes)
        ]
        return QuestionForm(tuple(questions))

    def asks_probability(self, key: str) -> bool:
        node = next(question.node.name for question in self.questions if question.name == key)
        return any(question.name == STATED and question.node.name == node for question in self.questions)

    def read(self, reply: Reply) -> ReadAnswers:
        """Read the answers in a reply. Raises AttemptFailed if they do not fit the questions."""
        answers = parse_json(reply.text or "")
        if not isinstance(answers, list) or len(answers) != len(self.questions):
            raise AttemptFailed("malformed", f"it does not have {len(self.questions)} answers", reply.text)
        given, unread = dict[str, ModelAnswer](), dict[str, AttemptFailed]()
        # The probability by node, and whether the answer was invalid.
        stated: dict[str, tuple[float | None, bool]] = {}
        for question, answer in zip(self.questions, answers, strict=True):
            name = answer.get("name") if isinstance(answer, dict) else None
            if name != question.name:
                detail = f"it answers {one_line(str(name), 40)!r} in place of {question.name!r}"
                raise AttemptFailed("malformed", detail, reply.text)
            if answer.get("type") not in (question.content["type"], "refusal"):
                raise AttemptFailed("malformed", f"its answer to {question.name!r} has the wrong type", reply.text)
            if question.name == WINS:
                continue  # it is read from the stored reply
            if question.position is None:
                stated[question.node.name] = _read_probability(answer)
                continue
            try:
                given[question.name] = _read_choice(question, answer, reply)
            except AttemptFailed as error:
                unread[question.name] = error
        nodes = {question.name: question.node.name for question in self.questions}
        for key, answer in given.items():
            probability, is_impossible = stated.get(nodes[key], (None, False))
            given[key] = replace(answer, stated=probability, impossible=is_impossible)
        if not given and unread:
            raise next(iter(unread.values()))
        return ReadAnswers(given, unread)

    def reask_text(self, failure: AttemptFailed, translate: Callable[[str], str]) -> str | None:
        return f"{HARMLESS} Please answer." if failure.cause == "refused" else None


def _is_probability(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= 1


def _read_probability(answer: Mapping[str, Any]) -> tuple[float | None, bool]:
    """Return the stated probability (None if the model declined), and whether the answer was invalid."""
    value: Any = answer.get("probability")
    if answer["type"] == "refusal":
        return None, False
    return (float(value), False) if _is_probability(value) else (None, True)


def _read_choice(question: DecisionQuestion, answer: Mapping[str, Any], reply: Reply) -> ModelAnswer:
    """Return the answer and the probability of each value. Raises AttemptFailed."""
    if answer["type"] == "refusal":
        raise AttemptFailed("refused", f"the model declined {question.name!r}", reply.text)
    # The types are compared too, since the text "True" is not the boolean.
    offered = [(type(value), value) for value in question.values]
    rows = answer.get("probabilities")
    rows = rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else []
    shares = {(type(row.get("value")), str(row.get("value"))): row.get("probability") for row in rows}
    wanted = [(kind, str(value)) for kind, value in offered]
    choice = answer.get("choice")
    if (type(choice), choice) not in offered:
        fault = f"{one_line(str(choice), 40)!r} was not offered"
    elif len(rows) != len(offered) or shares.keys() != {*wanted}:
        fault = "its probabilities do not cover each offered value exactly once"
    elif not all(map(_is_probability, shares.values())):
        fault = "a probability is not between 0 and 1"
    elif abs((total := fsum(shares.values())) - 1) > _MAX_ROUNDING:
        fault = f"its probabilities sum to {total:g} instead of 1"
    else:
        pairs = [(question.to_answer(value), shares[kind, str(value)] / total) for kind, value in offered]
        return ModelAnswer(question.to_answer(choice), shares=tuple(pairs))
    raise AttemptFailed("malformed", f"at {question.name!r} {fault}", reply.text)


def parse_odds(reply: str) -> dict[str, list[list[Any]]]:
    """Return the probability of each answer, by question, from a decision or a reply with `say: odds`.

    The mapping is empty for any other reply.
    """
    content = parse_json(reply)
    if isinstance(content, dict):
        numbers = {
            name: value for name, value in content.items() if isinstance(value, float) and name not in (STATED, WINS)
        }
        return {name: [[True, value], [False, 1 - value]] for name, value in numbers.items() if 0 <= value <= 1}
    odds = {}
    for answer in content if isinstance(content, list) else []:
        rows = answer.get("probabilities") if isinstance(answer, dict) else None
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            odds[str(answer.get("name"))] = [[row.get("value"), row.get("probability")] for row in rows]
    return odds


def read_chance_to_win(reply: str) -> float | None:
    """Return the stated probability to win in a reply, or None if it is missing or not a probability."""
    content = parse_json(reply) or parse_json(find_last_object(reply) or "")
    if isinstance(content, list):
        content = {one.get("name"): one.get("probability") for one in content if isinstance(one, dict)}
    value = content.get(WINS) if isinstance(content, dict) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= 1 else None


def build_question_form(
    game: Game, positions: Sequence[tuple[Position, Mapping[str, Any]]], fields: Collection[str]
) -> QuestionForm:
    """Build the questions for these positions and facts, including stated probabilities if the prompt wants them.

    Raises RunStopped if a question has too few or too many answers.
    """
    questions = list[DecisionQuestion]()
    count = {position.node: 0 for position, _ in positions}
    if WINS in fields:
        words, first = "You win this game.", game.node(positions[0][0].node)
        questions.append(
            DecisionQuestion(WINS, first, None, {"type": "predicate", "name": WINS, "instructions": words})
        )
    repeated = {node for node in count if sum(position.node == node for position, _ in positions) > 1}
    for position, facts in positions:
        node = game.node(position.node)
        if node.states == STATED and STATED in fields and not count[node.name]:
            words = f"{node.stating[:1].upper()}{node.stating[1:]}."
            questions.append(
                DecisionQuestion(STATED, node, None, {"type": "predicate", "name": STATED, "instructions": words})
            )
        count[node.name] += 1
        name = f"{node.name}-{count[node.name]}" if node.name in repeated else node.name
        choices = _choices(node, facts)
        if choices is None:
            problem = f"a decision model needs a list of {_MIN_VALUES} to {_MAX_VALUES} answers, but this node has none"
            raise RunStopped(f"{game.name}: node {node.name}: {problem}", hint="choose another `api`")
        words = str(facts.get("question") or game.words.short_question(node.name))
        content = {"type": "choice", "name": name, "instructions": words, "choices": choices}
        questions.append(DecisionQuestion(name, node, position, content))
    return QuestionForm(tuple(questions))


def _choices(node: Node, facts: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the possible answers, or None if they are not a list of 2 to 255 values."""
    match node.answer:
        case Bool():
            described = {True: facts.get("if_true") or "Yes.", False: facts.get("if_false") or "No."}
            return [{"value": value, "description": str(described[value])} for value in (True, False)]
        case Choice(options):
            legal = facts.get("legal") or options or ()
        case Whole():
            legal = facts.get("legal") or ()
        case _:
            return None
    values = list(dict.fromkeys(map(str, legal))) if isinstance(legal, list | tuple) else []
    if len(values) == 1:
        return [{"value": values[0]}, _duplicate_value(values[0])]
    return [{"value": value} for value in values] if _MIN_VALUES <= len(values) <= _MAX_VALUES else None


def _duplicate_value(value: object) -> dict[str, Any]:
    """Return a duplicate of the only legal value, since a choice needs at least two."""
    return {"value": f"nothing but {value}", "description": "The same: nothing else is legal."}


def check_askable(name: str, game: Game) -> None:
    """Raise UsageError if a decision model cannot answer all nodes of a game."""
    facts = game.facts
    for node in game.nodes:
        position = facts.example_position(node.name)
        if _choices(node, facts.facts(position)) is None:
            raise UsageError(
                f"{one_line(name)}: api: decisions: a decision model needs a list of {_MIN_VALUES} to {_MAX_VALUES} "
                f"answers, and node {node.name} of {game.name} expects {describe_kind(node.answer)}",
                hint="choose another `api`",
            )
