"""Preflight: what the game will ask, asked before any game is played and paid for.

Each model player is put a real question of a late turn for each form of its answers, with its own parameters, and the
answer has to be readable: re-asks are allowed as in play. A fault of the account, a server that sends anything
but replies, or a model whose answers cannot be read stops the run here, with one sentence.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from dubito.errors import one_line
from dubito.game import Bool, Node
from dubito.llm.answers import Form, form_of
from dubito.llm.decider import LOOK_AT, put
from dubito.llm.failures import AccountFault, AttemptFailed, Suspended
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.retry import MakeAttempt
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Place, Reply, ReplyOrigin, Request

if TYPE_CHECKING:
    from dubito.llm.prompts import RenderedPrompt, Sample

GAME: Final = -1  # the place of a preflight: before all games
_PROBE: Final = -2  # and that of the probes, which ask whether an account answers at all
PROBE_KEY: Final = (_PROBE, 0, 0, 0)  # all of them are tries of one attempt
_SYSTEM: Final = "This is a check of the connection, before a card game begins."
_USER: Final = "Reply with the JSON object that you are asked for, with `answer` true."
_YES_OR_NO: Final = form_of(("answer",), Node("probe", "", Bool()))
_QUOTED: Final = 120  # characters of what was said instead of an answer


def preflight(
    name: str,
    number: int,
    settings: ModelSettings,
    samples: Iterable["Sample"],
    ask: MakeAttempt,
    warn: Callable[[str], None] | None = None,
) -> None:
    """Put these questions, one for each form of answer, as the player of that number in the run; raises AccountFault.

    Players that are asked in the same way at the same server share the calls: the cache answers the others. With
    `warn`, which is told so, answers that cannot be read stop nothing.
    """
    for decision, (rendered, form) in enumerate(samples):
        place = Place(name, GAME, GAME, number, decision, 0, "preflight")
        try:
            _put(rendered, form, settings, place, ask)
        except (AttemptFailed, Suspended) as error:
            if isinstance(error, Suspended) or error.cause == "unreachable":
                got = f"the preflight of {one_line(name)} got no reply ({error})"
                raise AccountFault(f"{got}; check `base_url` in its entry") from None
            fault = _unreadable(name, error)
            if warn is None:
                raise fault from None
            warn(str(fault))


def _put(rendered: "RenderedPrompt", form: Form, settings: ModelSettings, place: Place, ask: MakeAttempt) -> None:
    """Put the question; raises AttemptFailed if no answer comes of it today.

    A kept answer that cannot be read is no news of the server: then another draw is asked for.
    """
    number = 1
    while not _answered(rendered, form, settings, place, ask, f"preflight {number}" if number > 1 else "preflight"):
        number += 1


def _answered(
    rendered: "RenderedPrompt", form: Form, settings: ModelSettings, place: Place, ask: MakeAttempt, draw: str
) -> bool:
    """Whether an answer came of this draw, or only kept ones that cannot be read; raises AttemptFailed for new ones."""
    origins = set[ReplyOrigin]()

    def asked(each: Ask) -> Reply:
        reply = ask(each)
        origins.add(reply.origin)
        return reply

    try:
        put(rendered, form, settings, place, lambda here: draw, asked)
    except AttemptFailed:
        if origins != {"cache"}:
            raise
        return False
    return True


def _unreadable(name: str, error: AttemptFailed) -> AccountFault:
    """The player's replies are no answers: what came, and what to look at."""
    got = f"the preflight of {one_line(name)} got no answer that can be read ("
    todo = (
        f"); check {LOOK_AT[error.cause]} in its entry, or go on all the same with `on_unusable: fallback` "
        "(--on-unusable fallback)"
    )
    said = f": {one_line(error.text, _QUOTED)}" if error.text else ""
    return AccountFault(f"{got}{error}{said}{todo}", f"{got}{error.cause}{todo}")


def probe_of(name: str, settings: ModelSettings) -> Ask:
    """A short question, asked in this player's name, as a test whether the account answers."""
    return Ask(_request(settings), "probe", Place(name, _PROBE, _PROBE, 0, 0, 0, "probe"))


def _request(settings: ModelSettings) -> Request:
    exchange = Exchange(_SYSTEM, _USER, _YES_OR_NO.schema)
    return build_request(settings, exchange, "dubito-preflight")
