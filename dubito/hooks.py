"""The hooks with which plugins extend Dubito (docs/writing-a-plugin.md).

A plugin is a module or object with functions marked `@hookimpl` and named as in `Hooks`. Plugins that ship with Dubito
are in `dubito/plugins/NAME`, and their module is `plugin.py`. An installed package declares its module with an entry
point in the group `dubito`. Games are not added here; they use the entry-point group `dubito.games`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import pluggy

from dubito.errors import UsageError, one_line
from dubito.packages import plugin_folders

if TYPE_CHECKING:
    import ast
    from types import ModuleType

ENTRY_POINTS: Final = "dubito"
GROUPS: Final = ("Play", "Run", "Results", "Write", "Models", "Plugins")  # groups of commands in `dubito --help`
_ITS_PACKAGE: Final = "reinstall or remove its package"
_Implementation = Callable[..., Any]
_spec: Final = pluggy.HookspecMarker("dubito")
_mark: Final = pluggy.HookimplMarker("dubito")


def hookimpl(function: _Implementation) -> _Implementation:
    """Mark a plugin's function as the implementation of the hook with the same name."""
    marked: _Implementation = _mark(function)
    return marked


class Command(NamedTuple):
    """A command of the `dubito` program."""

    group: str  # one of GROUPS
    place: str  # "package.module:function", a click command; imported only when the command runs


class ModelServer(NamedTuple):
    """A kind of model server that a run starts and stops: `base_url: NAME`, or NAME:MODEL in the short form."""

    place: (
        str  # "package.module:object" with `fingerprint` and `start`, as in `dubito.experiment.servers.StartFunction`
    )
    settings: Mapping[str, Any]  # settings of a player in the short form, unless the user sets them


class Flaw(NamedTuple):
    """A description of what is wrong, and the file to fix."""

    file: str
    sentence: str
    sure: bool = True  # False if the behaviour may be intentional


class RecordedRun(Protocol):
    """A finished run, `dubito.experiment.stored.Run`."""

    @property
    def folder(self) -> Path: ...


class ComparedContenders(Protocol):
    """The results of contenders on equal deals, `dubito.experiment.compare.Comparison`."""

    @property
    def contenders(self) -> Sequence[object]: ...


class CheckedGame(Protocol):
    """A game that `dubito games check` checks, `dubito.plugins.gamecheck.subject.Subject`."""

    @property
    def game(self) -> Any: ...  # a dubito.game.Game

    def file(self, name: str) -> str:
        """Return the path of a file in the game's folder, as shown to the user."""


class GameCheck(Protocol):
    """A check for `dubito games check`."""

    def __call__(self, subject: CheckedGame, /) -> Iterator[Flaw]:
        """Yield a flaw for each problem of the game."""


class SourceReader(Protocol):
    """Finds and converts the files of bots that were written for another harness."""

    def convert_source(self, source: bytes) -> "ast.Module | None":
        """Return the code of such a bot with other imports, or None for all other files."""

    def seat_bots(self, module: "ModuleType") -> None:
        """Replace the bot classes of a module by bots of the game."""


class BatchSender(Protocol):
    """Sends calls together when no game can continue without a reply, and fakes the server for that."""

    def supports(self, api: str) -> bool:
        """Return whether the protocol has batches."""

    def open_waves(self, log: Any, budget: Any, timing: Any, *, suspend: bool, in_flight: int) -> Any:
        """Return a run's `dubito.llm.pipeline.Waves`, for the parts of its `Pipeline`."""

    def list_awaited(self, log: Any) -> Mapping[str, Any]:
        """Return the fields `awaited` and `to_be_sent` of a run's `dubito.report.documents.StatusObject`."""

    def house_routes(self, core: Any, log: Any, wires: Mapping[str, Any]) -> Sequence[Any]:
        """Return the routes that the built-in model server adds to its own, as Starlette's."""


class DatasetWriter(Protocol):
    """Writes a run as a dataset."""

    def __call__(self, run: Any, folder: Path, progress: Callable[[int], None], licence: str | None) -> None:
        """Write a `dubito.experiment.stored.Run` into a new folder, calling `progress` for each game.

        Raises UsageError if the run has no games, plays differently now, or the folder cannot be written.
        """


class BeliefReference(Protocol):
    """Follows the games of a run, and states how probable it is that a play is a lie, given all that a seat knows."""

    name: str

    def begin(self, state: Any, seats: Sequence[int]) -> None:
        """Begin a game, a `dubito.game.State`. `seats` contains the player of each seat."""

    def rate(self, state: Any) -> float | None:
        """Return the probability that the last play is a lie, given what the seat to move knows, or None."""

    def see(self, output: object, events: Sequence[Any]) -> None:
        """See a move."""


StartProgress = Callable[[int], Callable[[int], None]]  # from the number of questions, to be called with those done


class Hooks:
    """The hooks. A plugin implements the ones it needs."""

    @_spec
    def commands(self) -> Mapping[str, Command]:  # type: ignore[empty-body]
        """Return commands by name. `GROUP NAME` adds a command to a group such as `games` or `models`.

        If Dubito or an earlier plugin already has a command with the same name, that command is used.
        """

    @_spec
    def executors(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Return executors by their name in a config, each as "package.module:function".

        The function takes an address (the config's `scheduler`, or None) and a number of workers, and returns a context
        manager that yields a `dubito.experiment.workers.WorkerPool`.
        """

    @_spec
    def model_servers(self) -> Mapping[str, ModelServer]:  # type: ignore[empty-body]
        """Return model servers by their name in `base_url`."""

    @_spec
    def agent_apps(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Return ASGI apps by their path on the server of `dubito seat`, each made by a "package.module:function".

        The function takes no arguments, and raises UsageError if a dependency is missing. The app gets POST requests
        with a valid token; their scope contains the token's `dubito.seats.remote.AgentSeat` as `seat`.
        """

    @_spec
    def comparison_parts(  # type: ignore[empty-body]
        self, runs: Sequence[RecordedRun], comparison: ComparedContenders
    ) -> Sequence[object]:
        """Return what to add to the comparison of these runs, as `dubito.report.tables.ComparisonPart`.

        The keys must always be the same. The rows can be empty.
        """

    @_spec
    def report_pages(self, run: RecordedRun, lies: object) -> Sequence[object]:  # type: ignore[empty-body]
        """Return pages to add to the report of a run, as `dubito.report.tables.Page`, each with its `about` line.

        `lies` is the run's `dubito.experiment.lies.LieCounts`, or None if lies cannot be counted.
        """

    @_spec
    def belief_references(  # type: ignore[empty-body]
        self, run: RecordedRun, start_progress: StartProgress
    ) -> Sequence[BeliefReference]:
        """Return exact probabilities of lies in a run's games, if they can be computed."""

    @_spec
    def exploitabilities(  # type: ignore[empty-body]
        self, players: Sequence[Any], registry: Any, permits: Any
    ) -> Sequence[float | None]:
        """Return how much best responses win from each of these players in a small variant of their game, as nash_conv.

        The players are `dubito.experiment.experiment.PlayerSpec`, the registry a `dubito.game.find.Registry`, and the
        permits a `dubito.sandbox.consent.Permits`. The value is None for a player that fails. Return nothing for
        other games.
        """

    @_spec
    def source_readers(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Return readers of bots that were written for another harness, by the name of the game that they play.

        Each is a "package.module:object" with the functions of `SourceReader`.
        """

    @_spec
    def batch_senders(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Return what sends the calls of model players with `wait`, by the value of `wait`.

        Each is a "package.module:object" with the functions of `BatchSender`.
        """

    @_spec
    def dataset_writers(self) -> Mapping[str, str]:  # type: ignore[empty-body]
        """Return what `dubito export --dataset` writes a run with, by the format of its tables, such as `parquet`.

        Each is a "package.module:function" with the arguments of `DatasetWriter`.
        """

    @_spec
    def game_checks(self) -> Sequence[GameCheck]:  # type: ignore[empty-body]
        """Return checks for `dubito games check`."""


# The hooks that return a mapping, and the type of its values.
_MAPPINGS: Final = {
    "agent_apps": str,
    "batch_senders": str,
    "commands": Command,
    "dataset_writers": str,
    "executors": str,
    "model_servers": ModelServer,
    "source_readers": str,
}


@cache
def plugins() -> pluggy.PluginManager:
    """Return the plugin manager with the plugins that ship with Dubito. No package metadata is read."""
    manager = pluggy.PluginManager("dubito")
    manager.add_hookspecs(Hooks)
    for folder in plugin_folders():
        manager.register(import_module(f"dubito.plugins.{folder.name}.plugin"), folder.name)
    return manager


@cache
def load_installed() -> Sequence[str]:
    """Register the plugins of installed packages. Return a message for each unusable plugin."""
    # Imported late, since reading the metadata of all packages takes a while.
    from importlib.metadata import entry_points

    manager, faults = plugins(), []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            plugin = point.load()
            manager.register(plugin, point.name)
            _check_mappings(plugin)
        except KeyboardInterrupt:
            raise
        # A plugin is foreign code, so its import and its hooks can raise anything.
        except BaseException as error:
            if manager.has_plugin(point.name):
                manager.unregister(name=point.name)
            package = f" of {point.dist.name}=={point.dist.version}" if point.dist else ""
            shown = one_line(f"{point.name} = {point.value!r}{package}", 160)
            problem = f"plugin {shown}: loading it raised {_describe_error(error)}"
            faults.append(f"{problem}. Reinstall or remove the package.")
    return faults


def _check_mappings(plugin: object) -> None:
    """Call the hooks that every command needs.

    Raises any error that they raise, or TypeError for an invalid result.
    """
    for hook in plugins().get_hookcallers(plugin) or ():
        if hook.name in _MAPPINGS:
            added, kind = getattr(plugin, hook.name)(), _MAPPINGS[hook.name]
            if not (isinstance(added, Mapping) and all(isinstance(value, kind) for value in added.values())):
                raise TypeError(f"the hook {hook.name} must return a mapping from names to {kind.__name__}")


def _describe_error(error: BaseException) -> str:
    try:
        return one_line(f"{type(error).__name__}: {error}".removesuffix(": "), 200)
    except Exception:  # in the error's own method
        return one_line(type(error).__name__, 200)


def commands() -> Mapping[str, Command]:
    """Return the commands of all plugins registered so far, by name."""
    return _merge(plugins().hook.commands)


def model_servers() -> Mapping[str, ModelServer]:
    """Return the model servers of all plugins registered so far, by name."""
    return _merge(plugins().hook.model_servers)


def agent_apps() -> Mapping[str, str]:
    """Return the apps of all plugins registered so far, by path."""
    return _merge(plugins().hook.agent_apps)


def find_source_reader(game: str) -> SourceReader | None:
    """Return the reader of bots that were written for another harness, if a plugin has one for this game."""
    place = _merge(plugins().hook.source_readers).get(game)
    return cast(SourceReader, import_place(place)) if place else None


def find_batch_sender(wait: str) -> BatchSender | None:
    """Return what sends the calls of players with this value of `wait`, if a plugin does."""
    place = _merge(plugins().hook.batch_senders).get(wait)
    return cast(BatchSender, import_place(place)) if place else None


def find_dataset_writer(table_format: str) -> DatasetWriter | None:
    """Return what writes datasets in this format, if a plugin does."""
    place = _merge(plugins().hook.dataset_writers).get(table_format)
    return cast(DatasetWriter, import_place(place)) if place else None


def find_executor(name: str, where: str) -> Callable[..., Any]:
    """Return the executor with this name.

    Raises UsageError for an unknown name. `where` is the place where it was set.
    """
    known = _merge(plugins().hook.executors)
    if name not in known:
        faults = load_installed()
        known = _merge(plugins().hook.executors)
        if name not in known:
            hint = " ".join(["choose", " or ".join(["processes", *known]), *faults])
            raise UsageError(f"{where}: unknown executor {one_line(repr(name), 60)}: {hint}")
    executor: Callable[..., Any] = import_place(known[name])
    if not callable(executor):
        raise UsageError(f"{where}: the executor {name} is not a function: {_ITS_PACKAGE}")
    return executor


def _merge(hook: pluggy.HookCaller) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    # Pluggy calls the last registered plugin first, so an earlier one overrides it.
    for added in hook():
        merged |= added
    return merged


def import_place(place: str) -> Any:
    """Return the object at "package.module:name". Raises UsageError if the code of an installed package fails."""
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if module.partition(".")[0] == "dubito":
            raise
        problem = f"importing {one_line(place, 160)} of a plugin raised {_describe_error(error)}"
        raise UsageError(problem, hint=_ITS_PACKAGE) from error


def comparison_parts(runs: Sequence[RecordedRun], comparison: ComparedContenders) -> Iterator[Any]:
    """Yield the plugins' additions to a comparison."""
    yield from _call_each(plugins().hook.comparison_parts, runs=runs, comparison=comparison)


def report_pages(run: RecordedRun, lies: object) -> Iterator[Any]:
    """Yield the pages that plugins add to a run's report."""
    yield from _call_each(plugins().hook.report_pages, run=run, lies=lies)


def find_exact_beliefs(run: RecordedRun, start_progress: StartProgress) -> BeliefReference | None:
    """Return the exact probabilities of lies in a run's games, if a plugin can compute them."""
    return next(_call_each(plugins().hook.belief_references, run=run, start_progress=start_progress), None)


def exploitabilities(players: Sequence[Any], registry: Any, permits: Any) -> list[float | None]:
    """Return how exploitable each player is in a small variant of its game, or nothing if no plugin can tell."""
    return [*_call_each(plugins().hook.exploitabilities, players=players, registry=registry, permits=permits)]


def game_checks() -> Iterator[GameCheck]:
    """Yield the checks that plugins add for a game."""
    yield from _call_each(plugins().hook.game_checks)


def _call_each(hook: pluggy.HookCaller, **arguments: Any) -> Iterator[Any]:
    """Yield each plugin's result. Raises UsageError with the plugin's name if its hook fails."""
    for each in reversed(hook.get_hookimpls()):
        try:
            added: Any = each.function(*(arguments[name] for name in each.argnames))
            yield from added or ()
        except Exception as error:
            message = f"plugin {one_line(each.plugin_name)}: its hook {hook.name} raised {_describe_error(error)}"
            raise UsageError(message, hint=_ITS_PACKAGE) from error
