"""The options for the calls of a run. They cannot change the results of a finished run."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dubito.errors import UsageError, one_line
from dubito.experiment.config import Config
from dubito.experiment.experiment import OnUnusable
from dubito.experiment.resolved import ResolvedRun
from dubito.sandbox.consent import Permits
from dubito.settings import parse_duration
from dubito.store.spend import PICO, Caps

if TYPE_CHECKING:
    from dubito.llm.prices import Price

PATIENCE: Final = 30 * 60.0  # seconds, by default
_MAX_PATIENCE: Final = 7 * 24 * 3600.0  # seconds
NO_CAPS: Final = Caps()
_NO_PERMITS: Final = Permits()


@dataclass(frozen=True, slots=True)
class CallOptions:
    """A user's options for a run's calls. They cannot change the results of a finished run."""

    in_flight: int
    cache: Path
    offline: bool
    caps: Caps = NO_CAPS  # the budget
    prices: Mapping[str, "Price"] = field(default_factory=dict)  # set in the config, by model
    preflight: bool = True
    patience: float = PATIENCE
    on_unusable: OnUnusable = "stop"  # what to do when the first answers of a player are all unusable
    permits: Permits = _NO_PERMITS  # what programs may do


def call_options(config: Config, working_directory: Path, permits: Permits = _NO_PERMITS) -> CallOptions:
    """Return the call options that a config sets. Raises UsageError if its prices or its patience are invalid."""
    prices: Mapping[str, Price] = {}
    if config.prices:
        from dubito.llm.price_list import read_prices  # imported late, since most runs set no prices

        prices = read_prices(config.prices, "prices", working_directory)
    patience = parse_duration(config.patience.replace(" ", "")) if isinstance(config.patience, str) else None
    if patience is None or not 1 <= patience <= _MAX_PATIENCE:
        given = one_line(repr(config.patience), 60)
        raise UsageError(f"patience: must be a time from 1s to 7d, such as 90s, 30m or 2h, not {given}")
    usd = config.budget.usd
    return CallOptions(
        in_flight=config.in_flight,
        cache=Path(config.cache),
        offline=config.offline,
        caps=Caps(config.budget.calls, config.budget.tokens, None if usd is None else int(Decimal(repr(usd)) * PICO)),
        prices=prices,
        preflight=config.preflight,
        patience=patience,
        on_unusable=config.on_unusable,
        permits=permits,
    )


def check_cache(run: ResolvedRun, options: CallOptions) -> str | None:
    """Return a warning about the cache, if any. Raises UsageError if the required cache cannot be used."""
    if not run.models:
        return None
    from dubito.llm.cache import ReplyCache  # imported late, since runs of bots need no cache

    with closing(ReplyCache(options.cache, writes=not options.offline)) as cache:
        return cache.unshared
