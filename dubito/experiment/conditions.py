"""The conditions of a config, crossed with its contenders: each model plays every deal once under each condition."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from dubito.errors import UsageError, join_names, one_line
from dubito.experiment.config import Config
from dubito.experiment.resolved import ResolvedPlayer
from dubito.game.find import Registry
from dubito.llm.conditions import SILENT, load_condition, name_incentive, split_condition
from dubito.llm.prompts import prompt_names, prompt_roots

_FORMS: Final = "write it as must-not-lie, {incentive: {win: 3, lose: -1}} or {language: it}"
_MAX_POINTS: Final = 10**5


def cross_conditions(contenders: Sequence[ResolvedPlayer], config: Config, registry: Registry) -> list[ResolvedPlayer]:
    """Return each model once per condition, in the order of the config; other players stay as they are.

    Raises UsageError if a condition is wrong, or if no contender is a model.
    """
    endings = list[str]()
    for place, entry in enumerate(config.conditions):
        try:
            # What the condition adds to a prompt's name, which is nothing for `silent`.
            if isinstance(entry, dict):
                ending = _read_mapping(entry)
            else:
                name = "" if entry == SILENT else entry
                load_condition(name, prompt_roots(registry.working_directory, registry.game))
                ending = f"+{name}" if name else ""
            if ending in endings:
                raise UsageError(f"{one_line(ending.lstrip('+-')) or SILENT} is listed twice")
            endings.append(ending)
            if ending.startswith("-"):
                _check_language(contenders, ending, registry)
        except UsageError as error:
            raise UsageError(f"{config.sources.locate('conditions', place)}: {error}") from None
    if all(player.model is None for player in contenders):
        where = config.sources.locate("conditions")
        raise UsageError("no contender is a model, so nothing would differ", where=where, hint="remove it or add one")
    return [under for player in contenders for under in _play_under(player, endings, registry)]


def _read_mapping(entry: dict[str, Any]) -> str:
    match entry:
        case {"language": str(language)} if len(entry) == 1 and language.isalpha():
            return f"-{language}"
        case {"incentive": {"win": win, "lose": lose, **others}} if len(entry) == 1 and not others:
            for key, value in (("win", win), ("lose", lose)):
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                if not is_number or not -_MAX_POINTS <= value <= _MAX_POINTS:
                    limits = f"from -{_MAX_POINTS} to {_MAX_POINTS}"
                    raise UsageError(f"incentive: {key} must be a number {limits}, not {value!r}")
            return f"+{name_incentive(win, lose)}"
    raise UsageError(f"{one_line(str(entry), 60)} is not a condition", hint=_FORMS)


def _check_language(contenders: Sequence[ResolvedPlayer], ending: str, registry: Registry) -> None:
    """Raise UsageError if a model's prompt is not translated."""
    known = prompt_names(registry.working_directory, registry.game)
    for player in contenders:
        name = player.model and split_condition(player.model.settings.prompt)[0]
        if name and f"{name}{ending}" not in known:
            translated = [other.removesuffix(ending) for other in known if other.endswith(ending)]
            hint = f"translated into it: {join_names(translated)}" if translated else "no prompt is in this language"
            raise UsageError(f"language: there is no prompt {one_line(name + ending)}", hint=hint)


def _play_under(player: ResolvedPlayer, endings: Sequence[str], registry: Registry) -> Iterator[ResolvedPlayer]:
    """Yield a model under each condition, or another player once."""
    if player.model is None:
        yield player
        return
    prompt, spec = player.model.settings.prompt, player.spec
    condition = split_condition(prompt)[1]
    is_short = ":" in spec.name and not spec.name.endswith(f"@{prompt}")
    stem = f"{spec.name}@{prompt}" if is_short else spec.name
    for ending in endings:
        if not ending:
            yield player
            continue
        name, changed = f"{stem}{ending}", f"{prompt}{ending}"
        if condition and ending.startswith("-"):
            name, changed = (f"{each.removesuffix(f'+{condition}')}{ending}+{condition}" for each in (stem, prompt))
        under = replace(spec, name=name, settings={**spec.settings, "prompt": changed})
        yield ResolvedPlayer.build(under, player.bot, registry)
