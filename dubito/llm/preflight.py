"""Preflight: one real call for each model player, before any game is played and paid for.

It has the player's own parameters and the form of its answers, and a short fixed prompt. Any complete 2xx reply
passes, readable or not, and so does a filter's refusal; a fault of the account stops the run here, with one sentence.
"""

from typing import Final

from dubito.game import Bool, Node
from dubito.llm.answers import Form, form_of
from dubito.llm.failures import AccountFault, AttemptFailed, Suspended
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.retry import MakeAttempt
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Place, Request

GAME: Final = -1  # the place of a preflight: before all games
_PROBE: Final = -2  # and that of the probes, which ask whether an account answers at all
PROBE_KEY: Final = (_PROBE, 0, 0, 0)  # all of them are tries of one attempt
_SYSTEM: Final = "This is a check of the connection, before a card game begins."
_USER: Final = "Reply with the JSON object that you are asked for, with `answer` true."
_USER_ELSE: Final = "Reply with the JSON object that you are asked for."
_YES_OR_NO: Final = form_of(("answer",), Node("probe", "", Bool()))


def preflight(name: str, number: int, settings: ModelSettings, form: Form, ask: MakeAttempt) -> None:
    """Ask once for this form, as the player of that number in the run; raises AccountFault if no reply comes.

    Players that are asked in the same way at the same server share one call: the cache answers the others.
    """
    place = Place(name, GAME, GAME, number, 0, 0, "preflight")
    try:
        ask(Ask(_request(settings, form), "preflight", place))
    except (AttemptFailed, Suspended) as error:
        if isinstance(error, AttemptFailed) and error.cause == "refused":
            return  # by a filter: key, money, model and parameters are in order
        setting = "max_output" if isinstance(error, AttemptFailed) and error.cause == "too_long" else "base_url"
        raise AccountFault(f"the preflight of {name} got no reply ({error}); check `{setting}` in its entry") from None


def probe_of(name: str, settings: ModelSettings) -> Ask:
    """The same question, asked in this player's name, as a test whether the account answers."""
    return Ask(_request(settings, _YES_OR_NO), "probe", Place(name, _PROBE, _PROBE, 0, 0, 0, "probe"))


def _request(settings: ModelSettings, form: Form) -> Request:
    exchange = Exchange(_SYSTEM, _USER if form.kind == Bool() else _USER_ELSE, form.schema)
    return build_request(settings, exchange, "dubito-preflight")
