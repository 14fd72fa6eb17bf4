"""Play a tournament and write its log, with one referee process per parallel pair.

Each process referees one pairing at a time. The main process writes the log. After an interruption, the same command
continues with the remaining matches.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from dubito import __version__
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.processes import WorkerDied, WorkerProcesses
from dubito.experiment.workers import STOP_SIGNALS, available_cores, block_signals
from dubito.plugins.openspiel.engine import engine_version
from dubito.plugins.tournament.log import (
    MANIFEST,
    SECRET,
    Log,
    LogWriter,
    MatchLine,
    read_log_manifest,
    read_secret,
    write_log_manifest,
    write_secret,
)
from dubito.plugins.tournament.pair import Pair, V2Pair
from dubito.plugins.tournament.plan import BotConfig, Pairing, Tournament, TournamentConfig, next_pairing
from dubito.sandbox.programs import (
    Confinement,
    assign_cores,
    check_copies,
    describe_missing,
    guard_processes,
    probe,
    terminate_with,
)
from dubito.store.lock import LOCK, RunLog, lock_folder

_SECRET_BYTES: Final = 16
_ANNOUNCED_SETTINGS: Final = (
    "dialect",
    "matches",
    "move_seconds",
    "prepare_seconds",
    "chance_seconds",
    "ponder_seconds",
    "grace_seconds",
    "strikes",
    "memory_gb",
    "data_gb",
)
_PAIRS: Final[Mapping[str, type[Pair]]] = {"v1": Pair, "v2": V2Pair}

Work = tuple[Pairing, list[int]]  # a pairing and its missing matches
MatchReport = tuple[dict[str, bool], MatchLine | None]  # the enforced limits and a match


def describe_deviations(config: TournamentConfig) -> list[str]:
    """Return sentences about settings that deviate from the announcement's rules."""
    is_v2 = config.dialect == "v2"
    chosen = config.model_dump()
    usual = TournamentConfig(games=config.games, bots=config.bots).model_dump()
    values = {
        key: (_format_value(chosen[key]), _format_value(usual[key]))
        for key in _ANNOUNCED_SETTINGS
        if key != "ponder_seconds" or is_v2
    }
    deviations = [f"{key} is {own}, not {other} as announced" for key, (own, other) in values.items() if own != other]
    networked = [name for name, entry in config.bots.items() if isinstance(entry, BotConfig) and entry.network]
    if networked:
        deviations.append(f"{', '.join(networked)} may use the network")
    return deviations + (["matches with swapped seats have the same chance draws"] if config.twins else [])


def _format_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def play_tournament(
    tournament: Tournament,
    folder: Path,
    say: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
    only: int | None = None,
    *,
    allow_unsandboxed: bool = False,
) -> Log:
    """Play all matches that are not in the folder's log yet.

    Args:
        allow_unsandboxed: Start bots even if this machine cannot confine them.
        progress: Called with the number of finished matches.
        only: Play only this bot's pairings.

    Raises UsageError if the folder cannot be used or a bot cannot be started, and RunStopped if the tournament must
    stop.
    """
    folder = folder.absolute()
    _check_folder(tournament, folder)
    written = [folder, *(bot.data for bot in tournament.bots if bot.data is not None)]
    tournament = replace(tournament, programs={bot.name: bot.digests(written) for bot in tournament.bots})
    if not tournament.config.copies:
        check_copies(tournament.bots, tournament.programs)
    tournament = replace(tournament, allow_unsandboxed=allow_unsandboxed)
    confinement = tournament.confine(None)
    for bot in tournament.bots:
        probe(bot, [folder], confinement)
    with lock_folder(folder):
        manifest: dict[str, Any] = {
            "identity": tournament.identity(),
            "matches": tournament.config.matches,
            "notes": describe_deviations(tournament.config),
            "versions": {"dubito": __version__, "open_spiel": engine_version()},
            "programs": tournament.programs,
        }
        if (folder / MANIFEST).exists():
            before = read_log_manifest(folder)
            manifest["enforced"] = before["enforced"]
            _check_programs(before["programs"], tournament.programs, folder)
        tournament = replace(tournament, secret=_load_secret(tournament.config.secret, folder))
        write_log_manifest(folder, manifest)
        log = Log(folder, tournament.config.games, [bot.name for bot in tournament.bots], tournament.config.matches)
        with guard_processes(str(folder)):
            _play_missing(tournament, log, say, progress, only)
        return log


def _check_folder(tournament: Tournament, folder: Path) -> None:
    """Raise UsageError unless the folder is new or contains this tournament with no more matches than configured."""
    try:
        if not folder.exists() or not {path.name for path in folder.iterdir()} - {LOCK, SECRET}:
            return
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}", hint="choose another --output") from None
    shown = one_line(str(folder))
    if not (folder / MANIFEST).exists():
        raise UsageError(f"{shown} already exists and is not a tournament", hint="choose another --output")
    manifest, identity = read_log_manifest(folder), tournament.identity()
    for key, value in identity.items():
        existing = manifest["identity"].get(key)
        if existing != value:
            difference = f"{key} is {one_line(str(existing), 120)} there and {one_line(str(value), 120)} here"
            raise UsageError(f"{shown} contains another tournament: {difference}", hint="choose another --output")
    if list(manifest["identity"]["bots"]) != list(identity["bots"]):
        order = f"its bots are in the order {', '.join(manifest['identity']['bots'])}"
        raise UsageError(
            f"{shown} contains another tournament: {order}", hint="use this order, or choose another --output"
        )
    if manifest["matches"] > tournament.config.matches:
        matches = f"{manifest['matches']:,} matches"
        raise UsageError(f"{shown} already has a tournament of {matches}", hint="set at least as many")


def _check_programs(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]], folder: Path
) -> None:
    """Raise UsageError if a bot's program has changed since the tournament started."""
    for name, files in before.items():
        changed = sorted({file for file, _ in files.items() ^ now.get(name, files).items()})
        if changed:
            raise UsageError(
                f"the program of {name} has changed since {one_line(str(folder))} was started: "
                f"{one_line(changed[0], 120)}",
                hint="restore it, or choose another --output",
            )


def _load_secret(given: str | None, folder: Path) -> str:
    """Return the tournament's secret, which is created for a new folder."""
    if not (folder / MANIFEST).exists():
        # A tournament that was stopped before it started may have left a secret.
        (folder / SECRET).unlink(missing_ok=True)
        write_secret(folder, given or token_hex(_SECRET_BYTES))
    secret = read_secret(folder)
    if given not in (None, secret):
        raise UsageError(f"{one_line(str(folder))} contains another tournament with a different secret")
    return secret


def _play_missing(
    tournament: Tournament, log: Log, say: Callable[[str], None], progress: Callable[[int], None], only: int | None
) -> None:
    work, finished, scheduled = [], 0, range(2 * tournament.config.matches)
    for pairing, lines in log.read_lines():
        if only is not None and only not in pairing.bots:
            continue
        played = {line.match for line in lines}
        finished += len(played)
        if missing := [match for match in scheduled if match not in played]:
            work.append((pairing, missing))
    for sentence in log.damaged:
        say(sentence)
    progress(finished)
    if work:
        _Referees(tournament, log, say, progress, finished).play(work)


class _Referees:
    """The referee processes, each with its own executor, and their current pairings."""

    def __init__(
        self,
        tournament: Tournament,
        log: Log,
        say: Callable[[str], None],
        progress: Callable[[int], None],
        finished: int,
    ) -> None:
        self._tournament, self._log, self._say, self._progress, self._finished = (
            tournament,
            log,
            say,
            progress,
            finished,
        )
        self._note = RunLog(log.folder)
        self._busy: dict[Future[MatchReport], tuple[WorkerProcesses, Pairing, LogWriter]] = {}
        self._facts: dict[str, bool] | None = None  # as last reported

    def play(self, work: list[Work]) -> None:
        """Play all matches. Ctrl-C finishes and saves the matches in progress."""
        cores = available_cores()
        at_once = min(
            self._tournament.config.pairs or max(1, len(cores) // 2), len(self._tournament.bots) // 2, len(work)
        )
        self._note("started", matches=sum(len(matches) for _, matches in work), pairs=at_once, cores=len(cores))
        with self._processes(at_once, cores) as idle:
            try:
                self._assign(work, idle)
            except KeyboardInterrupt:
                if playing := len(self._busy):
                    matches = f"match{'es' if playing > 1 else ''}"
                    self._say(f"finishing {playing} {matches}; press Ctrl-C again to stop now")
                self._assign([], [], stopping=True)
                self._note("stopped", matches=self._finished)
                raise
        self._note("finished", matches=self._finished)

    def _assign(self, work: list[Work], idle: list[WorkerProcesses], stopping: bool = False) -> None:
        """Assign work to idle processes until all of it is done."""
        while work or self._busy:
            pairings = [pairing for pairing, _ in work]
            playing = {bot for _, pairing, _ in self._busy.values() for bot in pairing.bots}
            while idle and (chosen := next_pairing(pairings, playing)) is not None:
                process, item = idle.pop(), work.pop(pairings.index(chosen))
                pairings.remove(chosen)
                playing |= set(chosen.bots)
                self._busy[process.submit(_next_line, item)] = process, chosen, LogWriter(self._log.path(chosen))
            for done in wait(self._busy, return_when=FIRST_COMPLETED).done:
                # Removed first so that a match is not saved twice after Ctrl-C.
                process, pairing, write = self._busy.pop(done)
                if self._save_match(done, write) and not stopping:
                    self._busy[process.submit(_next_line, None)] = process, pairing, write
                else:
                    write.close()
                    idle.append(process)

    def _save_match(self, done: "Future[MatchReport]", write: LogWriter) -> bool:
        """Save a finished match. Return whether its process may have more matches of the pairing."""
        try:
            facts, line = done.result()
            self._report_limits(facts)
            if line is not None:
                write(line)
        except WorkerDied as error:
            raise RunStopped(f"{error}; run the same command again to continue") from None
        except (RunStopped, OSError) as error:
            problem = (
                f"cannot write {self._log.folder}: {error.strerror}; once that is fixed, run the same command again"
                if isinstance(error, OSError)
                else str(error)
            )
            self._note("failed", why=problem)
            raise RunStopped(problem) from None
        if line is None:
            return False
        self._finished += 1
        self._progress(self._finished)
        return True

    def _report_limits(self, facts: dict[str, bool]) -> None:
        """Report limits that a process cannot enforce, unless the previous process had the same."""
        if facts == self._facts:
            return
        self._facts = facts
        self._note("enforced", **facts)
        manifest = read_log_manifest(self._log.folder)
        enforced = {name: holds and manifest["enforced"].get(name, True) for name, holds in facts.items()}
        write_log_manifest(self._log.folder, manifest | {"enforced": enforced})
        for sentence in describe_missing(facts):
            self._say(f"not enforced here: {sentence}")

    @contextmanager
    def _processes(self, count: int, cores: list[int]) -> Iterator[list[WorkerProcesses]]:
        pools = list[WorkerProcesses]()
        try:
            # Only the main process handles signals.
            with block_signals():
                for number in range(count):
                    pools.append(WorkerProcesses(1))
                    cores_of_pair = assign_cores(number, count, cores)
                    pools[-1].submit(_set_up_process, self._tournament, self._log.folder, cores_of_pair, os.getpid())
            yield [*pools]
        except BaseException:
            for pool in pools:
                pool.kill()
            raise
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)


class _Process:
    """The state of a referee process."""

    tournament: Tournament
    folder: Path
    confinement: Confinement
    facts: dict[str, bool]
    lines: Iterator[MatchLine]


def _set_up_process(tournament: Tournament, folder: Path, cores: tuple[int, int] | None, parent: int) -> None:
    terminate_with(parent)
    # Not ignored, so that bots inherit the default handlers and can be terminated by these signals.
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    _Process.tournament, _Process.folder = tournament, folder
    _Process.confinement = tournament.confine(cores)


def _next_line(item: Work | None) -> MatchReport:
    """Referee the next match of `item` or, without it, of the current work.

    Return the enforced limits, and the match if there was one left.
    """
    if item is not None:
        kind = _PAIRS[_Process.tournament.config.dialect]
        pair = kind(_Process.tournament, item[0], _Process.folder, _Process.confinement)
        _Process.facts, _Process.lines = pair.enforced_limits(), pair.play(item[1])
    return _Process.facts, next(_Process.lines, None)
