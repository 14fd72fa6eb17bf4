"""How a decision model is asked: questions beside a text, each answered with how probable its answers are.

OpenAI's Decisions API, whose types are in the SDK (`openai.types.decision_create_params`): a `choice` has 2 to 255
values, texts or booleans, and a `predicate` is a sentence that may be true. Here a node is a choice of what is legal,
and what a node `states` is a predicate. All questions of a turn stand in one request, one that means something else
after another answer once for each. The text comes from the prompt, the questions' words from the facts of the game:
`question`, and `if_true` and `if_false`, or `legal`.

Nothing is read that does not fit what was asked: answers in the order of their questions, every value once,
probabilities that sum to 1. What is chosen need not be the most probable: not every server says that it is.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.game import STATED, Bool, Choice, Game, Node, Position, Whole
from dubito.game.words import question_in_words
from dubito.llm.answers import HARMLESS, ModelAnswer, ReadAnswers, kind_in_words
from dubito.llm.request import AttemptFailed, Reply, parse_json

ANSWER_FORMAT: Final = "The questions are put beside this text, each with its possible answers."
_LEAST, _MOST = 2, 255  # values of a choice
_ROUNDING: Final = 0.01 + 1e-9  # how far the sum of probabilities may be from 1


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question as it is put."""

    name: str
    node: Node
    position: Position | None  # where it is asked; None: it is the probability that is stated at its node
    asked: Mapping[str, Any]  # as the request has it

    @property
    def values(self) -> list[Any]:
        return [choice["value"] for choice in self.asked.get("choices", ())]

    def answer_of(self, value: Any) -> Any:
        """The node's answer that a value stands for."""
        first, second, *_ = self.asked["choices"]
        value = first["value"] if second == _same_as(first["value"]) else value
        whole = isinstance(self.node.answer, Whole) and str(value).lstrip("-").isdecimal()
        return int(value) if whole else value


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """What a decision model is asked at once."""

    questions: tuple[DecisionQuestion, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(question.name for question in self.questions if question.position is not None)

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"questions": [question.asked for question in self.questions]}

    @property
    def kind(self) -> str:
        return " ".join(sorted({question.node.name for question in self.questions}))

    def covers(self, other: "QuestionForm") -> bool:
        return {*self.kind.split()} > {*other.kind.split()}

    def key_of(self, position: Position) -> str | None:
        return next((question.name for question in self.questions if question.position == position), None)

    def of_keys(self, keys: Collection[str]) -> "QuestionForm":
        """These of its questions, with what is stated beside them."""
        nodes = {question.node.name for question in self.questions if question.name in keys}
        kept = [
            question
            for question in self.questions
            if question.name in keys or (question.position is None and question.node.name in nodes)
        ]
        return QuestionForm(tuple(kept))

    def states(self, key: str) -> bool:
        node = next(question.node.name for question in self.questions if question.name == key)
        return any(question.position is None and question.node.name == node for question in self.questions)

    def read(self, reply: Reply) -> ReadAnswers:
        """The answers in a reply; raises AttemptFailed where they are not those to its questions."""
        answers = parse_json(reply.text or "")
        if not isinstance(answers, list) or len(answers) != len(self.questions):
            raise AttemptFailed("malformed", f"it has not {len(self.questions)} answers", reply.text)
        given, unread = dict[str, ModelAnswer](), dict[str, AttemptFailed]()
        stated: dict[str, tuple[float | None, bool]] = {}  # at its node: the probability, and whether it is none
        for question, answer in zip(self.questions, answers, strict=True):
            _check_order(question, answer, reply)
            if question.position is None:
                stated[question.node.name] = _stated(answer)
                continue
            try:
                given[question.name] = _chosen(question, answer, reply)
            except AttemptFailed as error:
                unread[question.name] = error
        nodes = {question.name: question.node.name for question in self.questions}
        beside = {key: stated.get(nodes[key], (None, False)) for key in given}
        told = {key: replace(answer, stated=beside[key][0], impossible=beside[key][1]) for key, answer in given.items()}
        if not told and unread:
            raise next(iter(unread.values()))
        return ReadAnswers(told, unread)

    def reask_text(self, failure: AttemptFailed) -> str | None:
        return f"{HARMLESS} Please answer." if failure.cause == "refused" else None


def _check_order(question: DecisionQuestion, answer: Any, reply: Reply) -> None:
    """Raise AttemptFailed unless this is an answer, or a refusal, to this very question."""
    named = answer.get("name") if isinstance(answer, dict) else None
    if named != question.name:
        raise AttemptFailed(
            "malformed", f"where {question.name!r} is answered it has {one_line(str(named), 40)!r}", reply.text
        )
    if answer.get("type") not in (question.asked["type"], "refusal"):
        raise AttemptFailed("malformed", f"{question.name!r} is answered as something else", reply.text)


def _is_probability(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= 1


def _stated(answer: Mapping[str, Any]) -> tuple[float | None, bool]:
    """What is stated, None where the model declined; and whether something was that is no probability."""
    value: Any = answer.get("probability")
    if answer["type"] == "refusal":
        return None, False
    return (float(value), False) if _is_probability(value) else (None, True)


def _chosen(question: DecisionQuestion, answer: Mapping[str, Any], reply: Reply) -> ModelAnswer:
    """The answer, with how probable each is that was offered; raises AttemptFailed."""
    if answer["type"] == "refusal":
        raise AttemptFailed("refused", f"the model declined {question.name!r}", reply.text)
    offered = [(type(value), value) for value in question.values]  # a text and a boolean are never alike
    rows = answer.get("probabilities")
    rows = rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else []
    shares = {(type(row.get("value")), str(row.get("value"))): row.get("probability") for row in rows}
    wanted = [(kind, str(value)) for kind, value in offered]
    choice = answer.get("choice")
    if (type(choice), choice) not in offered:
        fault = f"{one_line(str(choice), 40)!r} was not offered"
    elif len(rows) != len(offered) or shares.keys() != {*wanted}:
        fault = "its probabilities are not of what was offered, each once"
    elif not all(map(_is_probability, shares.values())):
        fault = "a probability is not between 0 and 1"
    elif abs((total := fsum(shares.values())) - 1) > _ROUNDING:
        fault = f"its probabilities sum to {total:g}, not to 1"
    else:
        pairs = [(question.answer_of(value), shares[kind, str(value)] / total) for kind, value in offered]
        return ModelAnswer(question.answer_of(choice), shares=tuple(pairs))
    raise AttemptFailed("malformed", f"at {question.name!r} {fault}", reply.text)


def odds_in(reply: str) -> dict[str, list[list[Any]]]:
    """By question, how probable a reply makes each answer: a decision, or the object of a prompt with `say: odds`.

    Empty where it says no probabilities; the reply may be anything.
    """
    said = parse_json(reply)
    if isinstance(said, dict):
        numbers = {name: value for name, value in said.items() if isinstance(value, float) and name != STATED}
        return {name: [[True, value], [False, 1 - value]] for name, value in numbers.items() if 0 <= value <= 1}
    found = {}
    for answer in said if isinstance(said, list) else []:
        rows = answer.get("probabilities") if isinstance(answer, dict) else None
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            found[str(answer.get("name"))] = [[row.get("value"), row.get("probability")] for row in rows]
    return found


def form_of_questions(
    game: Game, asked: Sequence[tuple[Position, Mapping[str, Any]]], fields: Iterable[str]
) -> QuestionForm:
    """The questions of these positions, each with its facts, and what is stated beside them if the prompt asks it.

    Raises RunStopped where there is nothing to choose from, or too much.
    """
    found = list[DecisionQuestion]()
    count = {position.node: 0 for position, _ in asked}
    several = {node for node in count if sum(position.node == node for position, _ in asked) > 1}
    for position, facts in asked:
        node = game.node(position.node)
        if node.states == STATED and STATED in fields and not count[node.name]:
            words = f"{node.stating[:1].upper()}{node.stating[1:]}."
            found.append(
                DecisionQuestion(STATED, node, None, {"type": "predicate", "name": STATED, "instructions": words})
            )
        count[node.name] += 1
        name = f"{node.name}-{count[node.name]}" if node.name in several else node.name
        choices = _choices(node, facts)
        if choices is None:
            what = f"{game.name}: node {node.name}: a decision model chooses one of {_LEAST} to {_MOST} answers"
            raise RunStopped(f"{what}, and the game does not list so many here: choose another `api`")
        words = str(facts.get("question") or question_in_words(game, node.name))
        whole = {"type": "choice", "name": name, "instructions": words, "choices": choices}
        found.append(DecisionQuestion(name, node, position, whole))
    return QuestionForm(tuple(found))


def _choices(node: Node, facts: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """What can be answered here; None where that is no list of 2 to 255."""
    match node.answer:
        case Bool():
            said = {True: facts.get("if_true"), False: facts.get("if_false")}
            plain = {True: "Yes.", False: "No."}
            return [{"value": value, "description": str(said[value] or plain[value])} for value in (True, False)]
        case Choice(options):
            legal = facts.get("legal") or options or ()
        case Whole():
            legal = facts.get("legal") or ()
        case _:
            return None
    values = list(dict.fromkeys(map(str, legal))) if isinstance(legal, list | tuple) else []
    if len(values) == 1:
        return [{"value": values[0]}, _same_as(values[0])]
    return [{"value": value} for value in values] if _LEAST <= len(values) <= _MOST else None


def _same_as(value: object) -> dict[str, Any]:
    return {"value": f"nothing but {value}", "description": "The same: nothing else is legal."}


def check_askable(name: str, game: Game) -> None:
    """Raise UsageError if a decision model cannot be asked all nodes of a game."""
    facts = game.facts
    for node in game.nodes:
        position = facts.example_position(node.name)
        if _choices(node, facts.facts(position)) is None:
            raise UsageError(
                f"{one_line(name)}: api: decisions: a decision model chooses one of {_LEAST} to {_MOST} answers, and "
                f"node {node.name} of {game.name} is answered by {kind_in_words(node.answer)}: choose another `api`"
            )
