"""The conditions of a config, crossed with its contenders: each model plays every deal once under each condition."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.experiment.config import Config
from dubito.experiment.resolved import ResolvedPlayer
from dubito.game.find import Registry
from dubito.llm.conditions import SILENT, load_condition, name_incentive
from dubito.llm.prompts import prompt_roots

_FORMS: Final = "write it as must-not-lie, or {incentive: {win: 3, lose: -1}}"


def cross_conditions(contenders: Sequence[ResolvedPlayer], config: Config, registry: Registry) -> list[ResolvedPlayer]:
    """Return each model once per condition, in the order of the config; other players stay as they are.

    Raises UsageError if a condition is wrong, or if no contender is a model.
    """
    roots = prompt_roots(registry.working_directory, registry.game)
    names = list[str]()
    for place, entry in enumerate(config.conditions):
        try:
            name = _read_condition(entry)
            load_condition(name, roots)
            if name in names:
                raise UsageError(f"{one_line(name) or SILENT} is listed twice")
        except UsageError as error:
            raise UsageError(f"{config.sources.locate('conditions', place)}: {error}") from None
        names.append(name)
    if all(player.model is None for player in contenders):
        where = config.sources.locate("conditions")
        raise UsageError("no contender is a model, so nothing would differ", where=where, hint="remove it or add one")
    return [under for player in contenders for under in _play_under(player, names, registry)]


def _read_condition(entry: Any) -> str:
    """Return the condition's name after the `+` of a prompt, which is empty for `silent`. Raises UsageError."""
    if isinstance(entry, str):
        return "" if entry == SILENT else entry
    pays = entry.get("incentive")
    if entry.keys() != {"incentive"} or not isinstance(pays, dict) or pays.keys() != {"win", "lose"}:
        raise UsageError(f"{one_line(str(entry), 60)} is not a condition", hint=_FORMS)
    for key, value in pays.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not -(10**5) <= value <= 10**5:
            raise UsageError(f"incentive: {key} must be a number from -100000 to 100000, not {value!r}")
    return name_incentive(pays["win"], pays["lose"])


def _play_under(player: ResolvedPlayer, names: Sequence[str], registry: Registry) -> Iterator[ResolvedPlayer]:
    if player.model is None:
        yield player
        return
    prompt, spec = player.model.settings.prompt, player.spec
    is_short = ":" in spec.name and not spec.name.endswith(f"@{prompt}")
    stem = f"{spec.name}@{prompt}" if is_short else spec.name
    for name in names:
        if not name:
            yield player
            continue
        settings = {**spec.settings, "prompt": f"{prompt}+{name}"}
        under = replace(spec, name=f"{stem}+{name}", settings=settings)
        yield ResolvedPlayer.build(under, player.bot, registry)
