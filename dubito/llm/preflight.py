"""The preflight: before the first game, each model player answers real questions.

For each form of answer, the model is asked a question from a late turn, with the player's parameters and re-asks. The
run stops here, with a single message, if the account has a fault, the server truncates prompts or does not return
replies, or the model's answers cannot be read.

A server on this machine can take minutes to read a late turn. It is asked no more if its first answer was slow. If the
run started the server, that question is the player's first one in a game, which is short.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dubito.errors import one_line
from dubito.game import Bool
from dubito.llm.answers import Form
from dubito.llm.context import cut_failure, is_count_unusual, is_cut_compared_with, prompt_size
from dubito.llm.decide import join_advice, put_question
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import AccountFault, Asks, Attempt, AttemptFailed, Place, Reply, Request, Suspended, TryFailed
from dubito.llm.settings import setting_fields
from dubito.model_settings import ModelSettings, is_house, is_on_this_machine, is_started_by_run

if TYPE_CHECKING:
    from dubito.llm.prompts import Sample

_PREFLIGHT: Final = -1  # its game and deal
_SHORT_PROMPT: Final = 2000  # characters
_USER: Final = "Reply with the JSON object that you are asked for."
_CACHE_KEY: Final = "dubito-preflight"
_SLOW_SECONDS: Final = 10.0  # seconds for an answer from which a server on this machine is slow
_MAX_QUOTED: Final = 120  # maximum number of characters quoted from an unreadable answer


def build_short_request(settings: ModelSettings, sample: "Sample") -> Request:
    """Build a request with only the beginning of the rules, to compare the server's token counts."""
    rendered, form = sample
    return build_request(settings, Exchange(rendered.system[:_SHORT_PROMPT], _USER, form.schema), _CACHE_KEY)


@dataclass(slots=True)
class Preflight:
    """The preflight of one player. `number` is its number in the run.

    Players with the same requests to the same server share the calls: the cache answers all but the first. If `warn` is
    set, it receives the message, and unreadable answers do not stop the run.
    """

    name: str
    number: int
    settings: ModelSettings
    asks: Asks
    warn: Callable[[str], None] | None = None
    slow_seconds: float | None = None  # how long a slow server took for its first answer
    _replies: list[tuple[Request, Reply]] = field(default_factory=list)  # replies with their requests
    _has_found_cut: bool = False

    def run(self, samples: Sequence["Sample"], first: "Sample | None" = None) -> None:
        """Ask these questions, one per form of answer, the shortest first. Raises AccountFault.

        `first` is the player's first question in a game, if it is known.
        """
        server = self.settings.base_url or ""
        questions = sorted(samples, key=lambda sample: len(str(sample[0])))
        if first is not None and is_started_by_run(server):
            questions.insert(0, first)
        for decision, sample in enumerate(questions):
            self._check(decision, sample)
            if decision == 0 and self._is_enough(is_short=sample is first):
                return
        longest = max(self._replies, key=lambda pair: prompt_size(pair[0]), default=None)
        if longest is not None and not self._has_found_cut and is_count_unusual(*longest):
            # Ask again with only the beginning of the rules, and compare the server's token counts.
            short_request = build_short_request(self.settings, samples[0])
            try:
                short = self.asks.ask(Attempt(short_request, "preflight", self._place(len(questions))))
            # Only the token count matters here, not the answer.
            except (AttemptFailed, Suspended):
                return
            if is_cut_compared_with(*longest, short_request, short):
                self._stop_or_warn(cut_failure(longest[1]))

    def _is_enough(self, *, is_short: bool) -> bool:
        """Return whether the first question is enough, since the server is slow."""
        server = self.settings.base_url or ""
        if not is_on_this_machine(server) or is_house(server):
            return False
        seconds = [reply.seconds for _, reply in self._replies if reply.seconds is not None]
        if not seconds:
            # All were cached: an earlier run asked this and, unless the server was slow, the other questions.
            return is_short
        if max(seconds) >= _SLOW_SECONDS:
            self.slow_seconds = max(seconds)
        return self.slow_seconds is not None

    def _check(self, decision: int, sample: "Sample") -> None:
        """Ask a question. Stop the run or warn if the model does not answer it."""
        # An unreadable reply from the cache does not prove that the server is faulty, so request another sample.
        draw, number = "preflight", 1
        try:
            while not self._try_asking(decision, sample, draw):
                number += 1
                draw = f"preflight {number}"
        except (AttemptFailed, Suspended) as error:
            failed = error.__cause__
            if isinstance(failed, TryFailed) and failed.hint and failed.kind == "connection":
                raise AccountFault(
                    str(failed), hint=failed.hint, setting=failed.setting, player=failed.player, where=failed.where
                ) from None
            if isinstance(error, Suspended) or error.cause == "unreachable":
                problem = f"the preflight of {one_line(self.name)} got no reply ({error})"
                if isinstance(failed, TryFailed) and failed.kind == "server":
                    # The server answered, so its address is right.
                    raise AccountFault(problem) from None
                fields = setting_fields("base_url", self.name)
                raise AccountFault(problem, hint="check {setting}", **fields) from None
            self._stop_or_warn(error)

    def _stop_or_warn(self, error: AttemptFailed) -> None:
        self._has_found_cut |= error.cause == "cut"
        whose = f"the preflight of {one_line(self.name)}"
        if error.cause == "cut":
            fault = AccountFault(f"{whose}: {error.detail}", hint=error.advice)
        else:
            quote = ": ".join(filter(None, (error.detail, one_line(error.text or "", _MAX_QUOTED))))
            # With `warn`, the run plays anyway.
            hint = join_advice(filter(None, (error.advice,))) if self.warn is None else error.advice
            fault = AccountFault(f"{whose} got no readable answer ({error.cause})", quote=quote, hint=hint)
        if self.warn is None:
            raise fault from None
        self.warn(str(fault))

    def _try_asking(self, decision: int, sample: "Sample", draw: str) -> bool:
        """Return whether this sample contains an answer. Raises AttemptFailed if new replies cannot be read."""
        before = len(self._replies)
        try:
            answer = put_question(*sample, self.settings, self._place(decision), lambda place: draw, self)
        except AttemptFailed:
            if {reply.origin for _, reply in self._replies[before:]} != {"cache"}:
                raise
            return False
        node = next(iter(sample[1].answers.values())) if isinstance(sample[1], Form) else None
        if self.settings.belief and node is not None and node.answer == Bool() and not answer.shares:
            problem = (
                f"the preflight of {one_line(self.name)} got no log-probabilities: the server does not return them"
            )
            raise AccountFault(problem, hint="remove {setting}", **setting_fields("belief", self.name))
        return True

    def _place(self, decision: int) -> Place:
        return Place(self.name, _PREFLIGHT, _PREFLIGHT, self.number, decision, 0, "preflight")

    def ask(self, attempt: Attempt) -> Reply:
        reply = self.asks.ask(attempt)
        self._replies.append((attempt.request, reply))
        return reply
