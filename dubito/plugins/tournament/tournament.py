"""Play a tournament and write its log, with one referee process per parallel pair.

Each process referees one pairing at a time. The main process writes the log. After an interruption, the same command
continues with the matches that are not in the log.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from dubito import __version__
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.workers import STOP_SIGNALS, available_cores, block_signals
from dubito.plugins.openspiel.engine import engine_version
from dubito.plugins.tournament.log import (
    MANIFEST,
    SECRET,
    Log,
    MatchLine,
    Writer,
    read_log_manifest,
    read_secret,
    write_manifest,
    write_secret,
)
from dubito.plugins.tournament.pair import Pair, V2Pair
from dubito.plugins.tournament.plan import BotConfig, Pairing, Tournament, TournamentConfig, startable
from dubito.plugins.tournament.programs import Confinement, check_copies, cores_of, end_with, guarded, probe
from dubito.store.lock import LOCK, RunLog, lock_folder

_GB: Final = 1 << 30
_SECRET_BYTES: Final = 16
_CONTEXT: Final = multiprocessing.get_context("spawn")
_RULES: Final = (
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

Work = tuple[Pairing, list[int]]  # and its matches that are still to be played
Refereed = tuple[dict[str, bool], MatchLine | None]  # what could be enforced, and a match


def notes(config: TournamentConfig) -> list[str]:
    """Return sentences about settings that differ from the announcement's rules."""
    is_v2 = config.dialect == "v2"
    plain = TournamentConfig(games=config.games, bots=config.bots)
    values = {
        key: (_plainly(getattr(config, key)), _plainly(getattr(plain, key)))
        for key in _RULES
        if key != "ponder_seconds" or is_v2
    }
    found = [f"{key} is {ours}, not {theirs} as announced" for key, (ours, theirs) in values.items() if ours != theirs]
    networked = [name for name, entry in config.bots.items() if isinstance(entry, BotConfig) and entry.network]
    if networked:
        found.append(f"{', '.join(networked)} may use the network")
    return found + (["matches with swapped seats have the same chance draws"] if config.twins else [])


def _plainly(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def hold(
    tournament: Tournament,
    folder: Path,
    say: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
    only: int | None = None,
) -> Log:
    """Play all matches that are not in the folder's log yet.

    Args:
        progress: Called with the number of finished matches.
        only: Play only this bot's pairings.

    Raises UsageError if the folder cannot be used or a bot cannot be started, RunStopped if the tournament must stop.
    """
    folder = folder.absolute()
    _check_folder(tournament, folder)
    written = [folder, *(bot.data for bot in tournament.bots if bot.data is not None)]
    tournament = replace(tournament, programs={bot.name: bot.digests(written) for bot in tournament.bots})
    if not tournament.config.copies:
        check_copies(tournament.bots, tournament.programs)
    for bot in tournament.bots:
        probe(bot, folder)
    with lock_folder(folder):
        manifest: dict[str, Any] = {
            "identity": tournament.identity(),
            "matches": tournament.config.matches,
            "notes": notes(tournament.config),
            "versions": {"dubito": __version__, "open_spiel": engine_version()},
            "programs": tournament.programs,
        }
        if (folder / MANIFEST).exists():
            kept = read_log_manifest(folder)
            manifest["enforced"] = kept["enforced"]
            _check_programs(kept["programs"], tournament.programs, folder)
        tournament = replace(tournament, secret=_secret(tournament.config.secret, folder))
        write_manifest(folder, manifest)
        log = Log(folder, tournament.config.games, [bot.name for bot in tournament.bots], tournament.config.matches)
        with guarded(str(folder)):
            _play_missing(tournament, log, say, progress, only)
        return log


def _check_folder(tournament: Tournament, folder: Path) -> None:
    """Refuse a folder unless it is new or has this tournament with at most as many matches."""
    try:
        if not folder.exists() or not {path.name for path in folder.iterdir()} - {LOCK, SECRET}:
            return
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}", hint="choose another --output") from None
    shown = one_line(str(folder))
    if not (folder / MANIFEST).exists():
        raise UsageError(f"{shown} exists and is not a tournament", hint="choose another --output")
    there, ours = read_log_manifest(folder), tournament.identity()
    for key, value in ours.items():
        kept = there["identity"].get(key)
        if kept != value:
            difference = f"{key} is {one_line(str(kept), 120)} there and {one_line(str(value), 120)} here"
            raise UsageError(f"{shown} has another tournament: {difference}", hint="choose another --output")
    if list(there["identity"]["bots"]) != list(ours["bots"]):
        order = f"its bots are in the order {', '.join(there['identity']['bots'])}"
        raise UsageError(f"{shown} has another tournament: {order}", hint="use this order, or choose another --output")
    if there["matches"] > tournament.config.matches:
        matches = f"{there['matches']:,} matches"
        raise UsageError(f"{shown} already has a tournament of {matches}", hint="set at least as many")


def _check_programs(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]], folder: Path
) -> None:
    """Refuse to continue a tournament if a bot's program has changed."""
    for name, files in before.items():
        changed = sorted({file for file, _ in files.items() ^ now.get(name, files).items()})
        if changed:
            raise UsageError(
                f"the program of {name} has changed since {one_line(str(folder))} was started: "
                f"{one_line(changed[0], 120)}",
                hint="restore it, or choose another --output",
            )


def _secret(given: str | None, folder: Path) -> str:
    """Return the tournament's secret. A new folder gets one."""
    if not (folder / MANIFEST).exists():
        # A tournament that was stopped before its start may have left one.
        (folder / SECRET).unlink(missing_ok=True)
        write_secret(folder, given or token_hex(_SECRET_BYTES))
    secret = read_secret(folder)
    if given not in (None, secret):
        raise UsageError(f"{one_line(str(folder))} has another tournament with a different secret")
    return secret


def _play_missing(
    tournament: Tournament, log: Log, say: Callable[[str], None], progress: Callable[[int], None], only: int | None
) -> None:
    work, there, wanted = [], 0, range(2 * tournament.config.matches)
    for pairing, lines in log.all_lines():
        if only is not None and only not in pairing.bots:
            continue
        played = {line.match for line in lines}
        there += len(played)
        if missing := [match for match in wanted if match not in played]:
            work.append((pairing, missing))
    for sentence in log.damaged:
        say(sentence)
    progress(there)
    if work:
        _Crew(tournament, log, say, progress, there).play(work)


class _Crew:
    """The referee processes, each with a separate executor, and their current pairings."""

    def __init__(
        self,
        tournament: Tournament,
        log: Log,
        say: Callable[[str], None],
        progress: Callable[[int], None],
        there: int,
    ) -> None:
        self._tournament, self._log, self._say, self._progress, self._there = tournament, log, say, progress, there
        self._note = RunLog(log.folder)
        self._busy: dict[Future[Refereed], tuple[ProcessPoolExecutor, Pairing, Writer]] = {}
        self._facts: dict[str, bool] | None = None  # what the last process that differed could enforce

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
                self._note("stopped", matches=self._there)
                raise
        self._note("finished", matches=self._there)

    def _assign(self, work: list[Work], idle: list[ProcessPoolExecutor], stopping: bool = False) -> None:
        """Assign work to idle processes until all of it is done."""
        while work or self._busy:
            pairings = [pairing for pairing, _ in work]
            playing = {bot for _, pairing, _ in self._busy.values() for bot in pairing.bots}
            while idle and (chosen := startable(pairings, playing)) is not None:
                process, item = idle.pop(), work.pop(pairings.index(chosen))
                pairings.remove(chosen)
                playing |= set(chosen.bots)
                self._busy[process.submit(_next_line, item)] = process, chosen, Writer(self._log.path(chosen))
            for done in wait(self._busy, return_when=FIRST_COMPLETED).done:
                # Removed first, so that a match is not saved twice after Ctrl-C.
                process, pairing, write = self._busy.pop(done)
                if self._keep_refereed(done, write) and not stopping:
                    self._busy[process.submit(_next_line, None)] = process, pairing, write
                else:
                    write.close()
                    idle.append(process)

    def _keep_refereed(self, done: "Future[Refereed]", write: Writer) -> bool:
        """Save a finished match. Return whether its process may have more of its pairing."""
        try:
            facts, line = done.result()
            self._keep_facts(facts)
            if line is not None:
                write(line)
        except BrokenProcessPool:
            raise RunStopped(
                "a referee process died", hint="run the same command again to continue; see run.log for details"
            ) from None
        except (RunStopped, OSError) as error:
            why = (
                f"cannot write {self._log.folder}: {error.strerror}; once that is fixed, run the same command again"
                if isinstance(error, OSError)
                else str(error)
            )
            self._note("failed", why=why)
            raise RunStopped(why) from None
        if line is None:
            return False
        self._there += 1
        self._progress(self._there)
        return True

    def _keep_facts(self, facts: dict[str, bool]) -> None:
        """Report limits that a process cannot enforce, if they differ from the previous process's."""
        if facts == self._facts:
            return
        self._facts = facts
        self._note("enforced", **facts)
        manifest = read_log_manifest(self._log.folder)
        kept = {name: holds and manifest["enforced"].get(name, True) for name, holds in facts.items()}
        write_manifest(self._log.folder, manifest | {"enforced": kept})
        for sentence in [f"not enforced here: {name}" for name, holds in facts.items() if not holds]:
            self._say(sentence)

    @contextmanager
    def _processes(self, count: int, cores: list[int]) -> Iterator[list[ProcessPoolExecutor]]:
        pools, others = [], multiprocessing.active_children()
        # Signals are only for the main process.
        with block_signals():
            for number in range(count):
                arguments = (self._tournament, self._log.folder, cores_of(number, count, cores), os.getpid())
                pools.append(ProcessPoolExecutor(1, _CONTEXT, _begin, arguments))
                # The first task starts the process.
                pools[-1].submit(os.getpid)
        try:
            yield [*pools]
        except BaseException:
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
            raise
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)


class _Referee:
    """The state of a referee process."""

    tournament: Tournament
    folder: Path
    confinement: Confinement
    facts: dict[str, bool]
    lines: Iterator[MatchLine]


def _begin(tournament: Tournament, folder: Path, cores: tuple[int, int] | None, parent: int) -> None:
    """Set up a referee process."""
    end_with(parent)
    # Not ignored, so that bots inherit the default handlers and can be ended by these signals.
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    _Referee.tournament, _Referee.folder = tournament, folder
    _Referee.confinement = Confinement(int(tournament.config.memory_gb * _GB), cores)


def _next_line(item: Work | None) -> Refereed:
    """Referee the next match of `item`, or else of the current work. Return the enforced limits and the match, if "
    "any."""
    if item is not None:
        kind = _PAIRS[_Referee.tournament.config.dialect]
        pair = kind(_Referee.tournament, item[0], _Referee.folder, _Referee.confinement)
        _Referee.facts, _Referee.lines = pair.facts(), pair.play(item[1])
    return _Referee.facts, next(_Referee.lines, None)
