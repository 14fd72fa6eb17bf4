"""The preflight: before the first game, each model player is asked what the game will ask.

It is a real question of a late turn for each form of an answer, with the player's own parameters, and the answer has to
be readable: re-asks are allowed as in play. A fault of the account, a server that sends anything but replies or cuts
prompts, or a model whose answers cannot be read stops the run here, with one message.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dubito.errors import one_line
from dubito.llm.context import CONTEXT_HINT, cut_at, is_count_unusual, is_cut_beside, prompt_size
from dubito.llm.decide import put_question, settings_to_check
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.request import AccountFault, Asks, Attempt, AttemptFailed, Place, Reply, Suspended, TryFailed
from dubito.llm.settings import ModelSettings, setting_fields

if TYPE_CHECKING:
    from dubito.llm.prompts import Sample

_PREFLIGHT: Final = -1  # its game and deal: before all games
_PIECE: Final = 2000  # characters
_USER: Final = "Reply with the JSON object that you are asked for."
_CACHE_KEY: Final = "dubito-preflight"
_MAX_QUOTED: Final = 120  # characters of what came instead of an answer


@dataclass(slots=True)
class Preflight:
    """The preflight of one player, `number` in the run.

    Players that are asked in the same way at the same server share the calls: the cache answers the others. With
    `warn`, which receives the message, answers that cannot be read stop nothing.
    """

    name: str
    number: int
    settings: ModelSettings
    asks: Asks
    warn: Callable[[str], None] | None = None
    _seen: list[tuple[Any, Reply]] = field(default_factory=list)  # bodies of requests with their replies
    _found_cut: bool = False

    def run(self, samples: Sequence["Sample"]) -> None:
        """Ask these questions, one for each form of an answer. Raises AccountFault."""
        for decision, sample in enumerate(samples):
            self._check(decision, sample)
        longest = max(self._seen, key=lambda seen: prompt_size(seen[0]), default=None)
        if longest is not None and not self._found_cut and is_count_unusual(*longest):
            self._compare_with_piece(*longest, samples[0], len(samples))

    def _compare_with_piece(self, body: Any, reply: Reply, sample: "Sample", decision: int) -> None:
        """Ask with a piece of the rules too, and compare the tokens that the server counts for the two prompts."""
        rendered, form = sample
        request = build_request(self.settings, Exchange(rendered.system[:_PIECE], _USER, form.schema), _CACHE_KEY)
        try:
            short = self.asks.ask(Attempt(request, "preflight", self._place(decision)))
        except (AttemptFailed, Suspended):  # it was to tell something about the server, and is no question of a game
            return
        if is_cut_beside(body, reply, request.body, short):
            self._stop_or_warn(cut_at(reply))

    def _check(self, decision: int, sample: "Sample") -> None:
        """Ask a question, and stop or warn if no answer comes of it."""
        try:
            self._ask_until_answered(decision, sample)
        except (AttemptFailed, Suspended) as error:
            if isinstance(failed := error.__cause__, TryFailed) and failed.hint:
                raise AccountFault(
                    str(failed), hint=failed.hint, setting=failed.setting, player=failed.player, where=failed.where
                ) from None
            if isinstance(error, Suspended) or error.cause == "unreachable":
                problem = f"the preflight of {one_line(self.name)} got no reply ({error})"
                fields = setting_fields("base_url", self.name)
                raise AccountFault(problem, hint="check {setting}", **fields) from None
            self._stop_or_warn(error)

    def _stop_or_warn(self, error: AttemptFailed) -> None:
        self._found_cut |= error.cause == "cut"
        fault = self._fault(error)
        if self.warn is None:
            raise fault from None
        self.warn(str(fault))

    def _ask_until_answered(self, decision: int, sample: "Sample") -> None:
        """Put the question; raises AttemptFailed if no answer comes of it today.

        A cached answer that cannot be read says nothing about the server: then another draw is asked for.
        """
        draw, number = "preflight", 1
        while not self._is_answered(decision, sample, draw):
            number += 1
            draw = f"preflight {number}"

    def _is_answered(self, decision: int, sample: "Sample", draw: str) -> bool:
        """Return whether an answer came of this draw; raises AttemptFailed if new replies cannot be read."""
        before = len(self._seen)
        try:
            put_question(*sample, self.settings, self._place(decision), lambda here: draw, self)
        except AttemptFailed:
            if {reply.origin for _, reply in self._seen[before:]} != {"cache"}:
                raise
            return False
        return True

    def _place(self, decision: int) -> Place:
        return Place(self.name, _PREFLIGHT, _PREFLIGHT, self.number, decision, 0, "preflight")

    def ask(self, attempt: Attempt) -> Reply:
        reply = self.asks.ask(attempt)
        self._seen.append((attempt.request.body, reply))
        return reply

    def _fault(self, error: AttemptFailed) -> AccountFault:
        """Return the fault of a player whose replies are no answers: what came, and what to check."""
        if error.cause == "cut":
            return AccountFault(f"the preflight of {one_line(self.name)}: {error.detail}; {CONTEXT_HINT}")
        check = settings_to_check(error.cause, self.settings.api)
        return AccountFault(
            f"the preflight of {one_line(self.name)} got no readable answer ({error.cause})",
            quote=": ".join(filter(None, (error.detail, one_line(error.text or "", _MAX_QUOTED)))),
            hint=f"check {check}, or play on anyway with `on_unusable: fallback` (--on-unusable fallback)",
        )
