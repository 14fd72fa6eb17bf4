"""Options of calls to models, as a config sets them."""

from decimal import Decimal
from pathlib import Path
from typing import Final

from dubito.cli.output import note
from dubito.errors import UsageError, one_line
from dubito.experiment.config import Config
from dubito.experiment.experiment import Experiment
from dubito.experiment.resolve import CallOptions, model_specs, settings_of
from dubito.game.find import Registry
from dubito.llm.budget import Caps
from dubito.llm.pacer import parse_duration
from dubito.llm.price_list import read_prices
from dubito.llm.prices import PICO
from dubito.llm.settings import ignored_address_variable

_WEEK: Final = 7 * 24 * 3600.0  # seconds


def call_options(config: Config, here: Path) -> CallOptions:
    """What the config says of calls; raises UsageError if its prices cannot be used."""
    usd = config.budget.usd
    return CallOptions(
        in_flight=config.in_flight,
        cache=Path(config.cache),
        offline=config.offline,
        caps=Caps(config.budget.calls, config.budget.tokens, None if usd is None else int(Decimal(repr(usd)) * PICO)),
        prices=read_prices(config.prices, "prices", here),
        preflight=config.preflight,
        patience=patience_of(config.patience),
        on_unusable=config.on_unusable,
    )


def patience_of(given: str | float) -> float:
    """`30m` in seconds; raises UsageError."""
    seconds = parse_duration(given.replace(" ", "")) if isinstance(given, str) else None
    if seconds is None or not 1 <= seconds <= _WEEK:
        raise UsageError(f"patience: a time from 1s to 7d, as 90s, 30m or 2h, not {one_line(repr(given), 60)}")
    return seconds


def note_unused_addresses(experiment: Experiment, registry: Registry) -> None:
    settings = [settings_of(spec, registry) for spec in model_specs(experiment, registry)]
    for variable in sorted({name for each in settings if (name := ignored_address_variable(each))}):
        note(f"note: {variable} is set and not used: `base_url: env` or --base-url env asks that server")
