"""A tournament from its config to its log: who plays when, in as many processes as pairs play at once.

Each process referees one pairing at a time, match by match; this one writes them, so that none counts after its end.
The same command resumes where a stopped or killed one left off: matches that stand in the log are not played again.
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
_SECRET: Final = 16  # bytes
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
    """In what a config departs from the announcement's rules."""
    is_v2 = config.dialect == "v2"
    plain = TournamentConfig(games=config.games, bots=config.bots)
    said = {
        key: (_plainly(getattr(config, key)), _plainly(getattr(plain, key)))
        for key in _RULES
        if key != "ponder_seconds" or is_v2
    }
    found = [f"{key} is {ours}, not {theirs} as announced" for key, (ours, theirs) in said.items() if ours != theirs]
    networked = [name for name, said in config.bots.items() if isinstance(said, BotConfig) and said.network]
    if networked:
        found.append(f"{', '.join(networked)} may use the network")
    return found + (["chance draws of seat-swapped twins are alike"] if config.twins else [])


def _plainly(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def hold(
    tournament: Tournament,
    folder: Path,
    say: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
    only: int | None = None,
) -> Log:
    """Play all that is not in the folder's log yet; `progress` is told how many matches are there.

    `only` leaves out the pairings without that bot.
    Raises UsageError if the folder is no place for it or a bot cannot be started, RunStopped if it cannot go on.
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
    """Refuse a folder that holds anything but this tournament, as long as or shorter than it is now."""
    try:
        if not folder.exists() or not {path.name for path in folder.iterdir()} - {LOCK, SECRET}:
            return
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}; choose another --output") from None
    shown = one_line(str(folder))
    if not (folder / MANIFEST).exists():
        raise UsageError(f"{shown} exists and is not a tournament: choose another --output")
    there, ours = read_log_manifest(folder), tournament.identity()
    for key, value in ours.items():
        kept = there["identity"].get(key)
        if kept != value:
            said = f"{key} is {one_line(str(kept), 120)} there and {one_line(str(value), 120)} here"
            raise UsageError(f"{shown} belongs to another tournament: {said}; choose another --output")
    if list(there["identity"]["bots"]) != list(ours["bots"]):
        said = f"its bots are entered in the order {', '.join(there['identity']['bots'])}"
        raise UsageError(f"{shown} belongs to another tournament: {said}; keep to it, or choose another --output")
    if there["matches"] > tournament.config.matches:
        raise UsageError(f"{shown} is a tournament of {there['matches']:,} matches already: ask for at least as many")


def _check_programs(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]], folder: Path
) -> None:
    """Refuse to go on with other programs than the tournament in the folder began with."""
    for name, files in before.items():
        changed = sorted({file for file, _ in files.items() ^ now.get(name, files).items()})
        if changed:
            raise UsageError(
                f"{one_line(str(folder))} began with another program of {name}: {one_line(changed[0], 120)} is not "
                "what it was; put it back, or choose another --output"
            )


def _secret(said: str | None, folder: Path) -> str:
    """The secret of the tournament in a folder, which gets one if it has nothing else yet either."""
    if not (folder / MANIFEST).exists():
        (folder / SECRET).unlink(missing_ok=True)  # of one that was stopped before it began
        write_secret(folder, said or token_hex(_SECRET))
    kept = read_secret(folder)
    if said not in (None, kept):
        raise UsageError(f"{one_line(str(folder))} belongs to another tournament: its secret is not the one here")
    return kept


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
    """The processes that referee, each an executor of its own, and what each is at."""

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
        """All of it; Ctrl-C ends the matches under way and keeps them."""
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
                    self._say(f"finishing {playing} match{'es' if playing > 1 else ''}; again to stop now")
                self._assign([], [], stopping=True)
                self._note("stopped", matches=self._there)
                raise
        self._note("finished", matches=self._there)

    def _assign(self, work: list[Work], idle: list[ProcessPoolExecutor], stopping: bool = False) -> None:
        """Give out work until there is none and nobody is at any."""
        while work or self._busy:
            pairings = [pairing for pairing, _ in work]
            playing = {bot for _, pairing, _ in self._busy.values() for bot in pairing.bots}
            while idle and (chosen := startable(pairings, playing)) is not None:
                process, item = idle.pop(), work.pop(pairings.index(chosen))
                pairings.remove(chosen)
                playing |= set(chosen.bots)
                self._busy[process.submit(_next_line, item)] = process, chosen, Writer(self._log.path(chosen))
            for done in wait(self._busy, return_when=FIRST_COMPLETED).done:
                process, pairing, write = self._busy.pop(done)  # first: a match that Ctrl-C hits is not kept twice
                if self._keep_refereed(done, write) and not stopping:
                    self._busy[process.submit(_next_line, None)] = process, pairing, write
                else:
                    write.close()
                    idle.append(process)

    def _keep_refereed(self, done: "Future[Refereed]", write: Writer) -> bool:
        """Keep what a process has refereed; whether there may be more of its work."""
        try:
            facts, line = done.result()
            self._keep_facts(facts)
            if line is not None:
                write(line)
        except BrokenProcessPool:
            raise RunStopped(
                "a referee's process died; run.log says how far it was: run the same command again to continue"
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
        """Say what a process cannot enforce, if it is something else than the one before could."""
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
        with block_signals():  # they are for this process alone
            for number in range(count):
                told = (self._tournament, self._log.folder, cores_of(number, count, cores), os.getpid())
                pools.append(ProcessPoolExecutor(1, _CONTEXT, _begin, told))
                pools[-1].submit(os.getpid)  # which starts it
        try:
            yield [*pools]
        except BaseException:  # what was to be finished is, or is not to be
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
            raise
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)


class _Referee:
    """What a process that referees keeps between two matches."""

    tournament: Tournament
    folder: Path
    confinement: Confinement
    facts: dict[str, bool]
    lines: Iterator[MatchLine]


def _begin(tournament: Tournament, folder: Path, cores: tuple[int, int] | None, parent: int) -> None:
    """Become a process that referees."""
    end_with(parent)
    for number in STOP_SIGNALS:  # of which bots hear again, which are ended by one
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    _Referee.tournament, _Referee.folder = tournament, folder
    _Referee.confinement = Confinement(int(tournament.config.memory_gb * _GB), cores)


def _next_line(item: Work | None) -> Refereed:
    """Referee the next match of this work, or of the one before; what can be enforced, and the match's line if any."""
    if item is not None:
        kind = _PAIRS[_Referee.tournament.config.dialect]
        pair = kind(_Referee.tournament, item[0], _Referee.folder, _Referee.confinement)
        _Referee.facts, _Referee.lines = pair.facts(), pair.play(item[1])
    return _Referee.facts, next(_Referee.lines, None)
