"""The config that a run was started with. It is stored in the run's folder, so that the run can be continued."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dubito.commands import build_command
from dubito.errors import UsageError, one_line
from dubito.experiment.config import Config, parse_config, read_config
from dubito.experiment.experiment import Experiment
from dubito.experiment.stored import open_recorded_run
from dubito.files import MissingFile
from dubito.game.find import Registry
from dubito.packages import games_path_words
from dubito.store.folder import CONFIG, DATABASE, describe_difference, load_manifest, read_manifest, without_key_names

# Settings that cannot change a result, so they can be set again when a run is continued.
FREE_SETTINGS: Final = (
    *("in_flight", "patience", "on_unusable", "preflight", "cache", "offline", "budget", "prices", "api_key_env"),
    *("workers", "executor", "scheduler"),
)
_COMMAND: Final = "command"  # key of a command other than `dubito run` that continues the run


def config_to_store(config: Config, experiment: Experiment) -> dict[str, Any]:
    """Return a config's content with the flags that were given, and with the bots that play by default."""
    content = config.model_dump(mode="json", exclude_unset=True, exclude={"output"})
    if config.bots is None:
        content["bots"] = [player.name for player in experiment.bots]
    if config.rules:
        # An experiment leaves out some rules with their usual values.
        content["rules"] = {key: experiment.rules[key] for key in config.rules if key in experiment.rules}
    return content


def command_to_store(*words: object) -> dict[str, Any]:
    """Return the content to store for a run that is only a part of what another command does."""
    return {_COMMAND: [str(word) for word in words]}


def load_stored_config(folder: Path, flags: Mapping[str, Any]) -> Config:
    """Return the config of the run in this folder, with flags added. Raises UsageError if it cannot be continued."""
    manifest, content = read_manifest(folder), _read_stored(folder)
    if content is None:
        raise UsageError(
            f"{one_line(str(folder))} has no {CONFIG}, so it cannot be continued",
            hint="only the folder in which a run was played has this file",
        )
    if words := content.get(_COMMAND):
        raise UsageError(
            f"{one_line(str(folder))} is continued by another command", hint=build_command(*map(str, words))
        )
    if not {"shard", "stop"} & manifest["identity"].keys():
        content["games"] = manifest.get("games")
    return parse_config(content, str(folder / CONFIG), flags)


def _read_stored(folder: Path) -> dict[str, Any] | None:
    try:
        return read_config(folder / CONFIG)
    except MissingFile:
        return None


def stored_shard(folder: Path) -> str | None:
    """Return which shard the folder contains, as `K/N`, or None if it contains a whole run."""
    shard = load_manifest(folder)["identity"].get("shard")
    return f"{shard['number']}/{shard['of']}" if isinstance(shard, Mapping) else None


def check_files_unchanged(folder: Path, registry: Registry) -> None:
    """Raise UsageError if a file that the run depends on has changed since it was started. Names all of them."""
    if not (folder / DATABASE).exists():
        return
    with open_recorded_run(folder, registry.working_directory) as run:
        changes = [*run.changed, *run.changed_prompts()]
    if changes:
        _refuse(folder, "; ".join(changes))


def check_same_experiment(folder: Path, experiment: Experiment) -> None:
    """Raise UsageError if this experiment does not continue the run in this folder."""
    stored, ours = without_key_names(load_manifest(folder)["identity"]), without_key_names(experiment.identity())
    if stored != ours:
        _refuse(folder, describe_difference("the run", stored, ours).removeprefix("the run."))
    if not (folder / DATABASE).exists():
        return
    with open_recorded_run(folder) as run:
        if run.game_count > experiment.games:
            raise UsageError(
                f"{one_line(str(folder))} already has {run.game_count:,} games", hint="set --games to at least as many"
            )


def _refuse(folder: Path, change: str) -> None:
    raise UsageError(
        f"{one_line(str(folder))} cannot be continued: {change}",
        hint="undo the change, or start a new run; nothing was played",
    )


def continue_command(folder: Path, experiment: Experiment, *more: object) -> str | None:
    """Return the command that continues a run, with more words, or None if its folder has no config."""
    content = _read_stored(folder)
    if content is None:
        return None
    if words := content.get(_COMMAND):
        return build_command(*map(str, words), *more)
    name = "seat" if "agent" in experiment.kinds.values() else "run"
    return build_command(name, folder, *games_path_words(), *more)
