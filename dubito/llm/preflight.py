"""Preflight: one real call for each model player, before any game is played and paid for.

It has the player's own parameters and the form of its answers, and a short fixed prompt. Any complete 2xx reply
passes, readable or not, and so does a filter's refusal; a fault of the account stops the run here, with one sentence.
"""

from typing import Final

from dubito.llm.answers import Field, form_of
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


def preflight(name: str, number: int, settings: ModelSettings, fields: tuple[Field, ...], ask: MakeAttempt) -> None:
    """Ask once, as the player of that number in the run; raises AccountFault if no reply comes.

    Players that are asked in the same way at the same server share one call: the cache answers the others.
    """
    place = Place(name, GAME, GAME, number, 0, 0, "preflight")
    try:
        ask(Ask(_request(settings, fields), "preflight", place))
    except (AttemptFailed, Suspended) as error:
        if isinstance(error, AttemptFailed) and error.cause == "refused":
            return  # by a filter: key, money, model and parameters are in order
        setting = "max_output" if isinstance(error, AttemptFailed) and error.cause == "too_long" else "base_url"
        raise AccountFault(f"the preflight of {name} got no reply ({error}); check `{setting}` in its entry") from None


def probe_of(name: str, settings: ModelSettings) -> Ask:
    """The same question as a sign of life of an account, asked in this player's name."""
    return Ask(_request(settings, ("answer",)), "probe", Place(name, _PROBE, _PROBE, 0, 0, 0, "probe"))


def _request(settings: ModelSettings, fields: tuple[Field, ...]) -> Request:
    exchange = Exchange(_SYSTEM, _USER, form_of(fields, "C").schema)
    return build_request(settings, exchange, "dubito-preflight")
