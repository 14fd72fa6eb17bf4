"""What all protocols share: a request read, a text written, and the face that a protocol shows."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple

from dubito.house.fields import first_tokens, tokens
from dubito.house.refusal import Refusal, RefusalKind
from dubito.house.request import HeardRequest, JsonBody

WireName = Literal["responses", "chat", "messages"]
End = Literal["stop", "length", "refused", "filtered"]  # by itself, at the limit, declined, stopped by a filter

CREATED: Final = 1_767_225_600  # 2026-01-01T00:00:00Z: no clock in answers
CREATED_TEXT: Final = "2026-01-01T00:00:00Z"


class Problem(NamedTuple):
    """How a provider says one kind of error; the message is a template over the refusal's facts."""

    status: int
    type: str
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """A request, read: what the policy sees, and what bounds and shapes the reply."""

    model: str
    text: str
    cached: int  # tokens of the text's beginning that count as read from the provider's cache
    schema: Mapping[str, Any] | None
    max_output: int | None

    @property
    def tokens(self) -> int:
        """All tokens of the prompt, cached ones included."""
        return tokens(self.text)


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What a model wrote, and how it came to its end; `text` is None if there is none, `thoughts` go before it."""

    text: str | None
    end: End = "stop"
    thoughts: str | None = None

    def within(self, limit: int | None) -> "ModelOutput":
        """The same, cut where a limit on output cuts it. Thoughts count first; a refusal stays one."""
        if limit is None or self.tokens <= limit:
            return self
        left = limit - self.thought_tokens
        thoughts = first_tokens(self.thoughts, limit) if self.thoughts is not None else None
        text = first_tokens(self.text, left) if self.text is not None and left > 0 else None
        return ModelOutput(text, "length" if self.end == "stop" else self.end, thoughts)

    @property
    def thought_tokens(self) -> int:
        """What the thoughts cost."""
        return tokens(self.thoughts or "")

    @property
    def tokens(self) -> int:
        """What text and thoughts cost."""
        return tokens(self.text or "") + self.thought_tokens


class Wire(ABC):
    """One provider's protocol: reads its requests, writes its replies and its errors."""

    name: ClassVar[WireName]
    base: ClassVar[str]  # the path in the address that its SDK takes
    problems: ClassVar[Mapping[RefusalKind, Problem]]
    parameters: ClassVar[frozenset[str]]  # of a request's body
    rejected: ClassVar[frozenset[str]]  # parameters refused whatever their value
    unsupported: ClassVar[frozenset[str]]  # parameters refused unless false or null

    def admit(self, headers: Mapping[str, str]) -> None:
        """Any key will do, except none, `wrong...` (not known) and `broke...` (out of money)."""
        key = self.key(headers)
        if not key:
            raise Refusal("no_key")
        if key.startswith("wrong"):
            raise Refusal("wrong_key")
        if key.startswith("broke"):
            raise Refusal("no_money")

    def check_parameters(self, body: JsonBody) -> None:
        """Refuse the first parameter, by name, that the provider would."""
        for name in sorted(body):
            if name in self.rejected or (name in self.unsupported and body[name]):
                raise Refusal("unsupported", name=name)
            if name not in self.parameters:
                raise Refusal("unknown_parameter", name=name)

    def problem(self, refusal: Refusal) -> tuple[Problem, str]:
        """The provider's error for a refusal, and its message."""
        problem = self.problems[refusal.kind]
        return problem, problem.message.format(**refusal.facts)

    @abstractmethod
    def key(self, headers: Mapping[str, str]) -> str:
        """The key in the headers, empty if there is none."""

    @abstractmethod
    def read(self, body: JsonBody) -> ReadPrompt:
        """What is asked. Raises Refusal."""

    @abstractmethod
    def reply(self, asked: HeardRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """The body of a good answer."""

    @abstractmethod
    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
        """The body of a refusal."""

    @abstractmethod
    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
        """The headers of any answer; `limited` if a rate limit was hit."""

    @abstractmethod
    def model(self, name: str) -> JsonBody:
        """A model, as the list of models has it."""

    @abstractmethod
    def models(self, names: Sequence[str]) -> JsonBody:
        """The list of models."""
