"""A tournament from its config to its log: who plays when, in as many processes as pairs play at once.

Each process referees one pairing at a time and writes its file. The same command resumes where a stopped or killed
one left off: matches that stand in the log are not played again.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from dubito import __version__
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.workers import TOLD, cores_here, deaf_to_signals
from dubito.games.openspiel.engine import engine_version
from dubito.referee.log import (
    MANIFEST,
    SECRET,
    Log,
    Writer,
    read_log_manifest,
    read_secret,
    write_manifest,
    write_secret,
)
from dubito.referee.pair import Pair, V2Pair
from dubito.referee.plan import BotConfig, Pairing, Tournament, TournamentConfig, startable
from dubito.referee.programs import Confinement, check_copies, cores_of, end_with, guarded, probe
from dubito.store.lock import LOCK, RunLog, claimed

_GB: Final = 1 << 30
_POLL_SECONDS: Final = 0.5  # seconds after which a process that waits for the main one looks whether to stop
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
    with claimed(folder):
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
    """The processes that referee, and what each is at."""

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
        self._stops, self._stop = _CONTEXT.Pipe(duplex=False)  # once there is something to read, matches end the work
        self._busy: dict[Connection, set[int]] = {}
        self._facts: dict[str, bool] | None = None  # what the last process that differed could enforce

    def play(self, work: list[Work]) -> None:
        """All of it; Ctrl-C ends the matches under way and keeps them."""
        cores = cores_here()
        at_once = min(
            self._tournament.config.pairs or max(1, len(cores) // 2), len(self._tournament.bots) // 2, len(work)
        )
        self._note("started", matches=sum(len(matches) for _, matches in work), pairs=at_once, cores=len(cores))
        with self._processes(at_once, cores) as idle:
            try:
                self._assign(work, idle)
            except KeyboardInterrupt:
                self._stop.send(None)
                if playing := len(self._busy):
                    self._say(f"finishing {playing} match{'es' if playing > 1 else ''}; again to stop now")
                self._assign([], [])
                self._note("stopped", matches=self._there)
                raise
        self._note("finished", matches=self._there)

    def _assign(self, work: list[Work], idle: list[Connection]) -> None:
        """Give out work until there is none and nobody is at any."""
        while work or self._busy:
            pairings = [pairing for pairing, _ in work]
            playing = set().union(*self._busy.values())
            while idle and (chosen := startable(pairings, playing)) is not None:
                process, item = idle.pop(), work.pop(pairings.index(chosen))
                pairings.remove(chosen)
                playing |= set(chosen.bots)
                self._busy[process] = set(chosen.bots)
                process.send(item)
            for ready in wait(list(self._busy)):
                assert isinstance(ready, Connection)
                if self._heard(ready):
                    del self._busy[ready]
                    idle.append(ready)

    def _heard(self, process: Connection) -> bool:
        """Take what a process says; whether its work is done."""
        try:
            kind, said = process.recv()
        except (EOFError, OSError):
            raise RunStopped(
                "a referee's process died; run.log says how far it was: run the same command again to continue"
            ) from None
        if kind == "ended":
            process.send(None)
        elif kind == "match":
            self._there += 1
            self._progress(self._there)
        elif kind == "facts" and said != self._facts:
            self._facts = said
            self._note("enforced", **said)
            manifest = read_log_manifest(self._log.folder)
            kept = {name: holds and manifest["enforced"].get(name, True) for name, holds in said.items()}
            write_manifest(self._log.folder, manifest | {"enforced": kept})
            for sentence in [f"not enforced here: {name}" for name, holds in said.items() if not holds]:
                self._say(sentence)
        elif kind == "failed":
            self._note("failed", why=said)
            raise RunStopped(str(said))
        return bool(kind == "done")

    @contextmanager
    def _processes(self, count: int, cores: list[int]) -> Iterator[list[Connection]]:
        ours, processes = [], []
        with deaf_to_signals():  # they are for this process alone
            for number in range(count):
                pair = cores_of(number, count, cores)
                here, there = _CONTEXT.Pipe()
                arguments = (there, self._tournament, self._log.folder, pair, os.getpid(), self._stops)
                process = _CONTEXT.Process(target=_work, args=arguments)
                process.start()
                there.close()
                ours.append(here)
                processes.append(process)
        try:
            yield list(ours)
            for connection in ours:
                connection.send(None)
        except KeyboardInterrupt:  # what was to be finished is, or is not to be
            for process in processes:
                process.kill()
            raise
        finally:
            for connection in ours:
                connection.close()
            for process in processes:
                process.join(5)
                process.kill()


def _work(
    main: Connection,
    tournament: Tournament,
    folder: Path,
    cores: tuple[int, int] | None,
    parent: int,
    stop: Connection,
) -> None:
    """The life of a process that referees: a pairing after the other, until it is told that there is none left."""
    end_with(parent)
    for number in TOLD:  # of which bots hear again, which are ended by one
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TOLD)
    confinement = Confinement(int(tournament.config.memory_gb * _GB), cores)
    log = Log(folder, tournament.config.games, [bot.name for bot in tournament.bots], tournament.config.matches)
    told = False
    try:
        while (item := main.recv()) is not None:
            pair = _PAIRS[tournament.config.dialect](tournament, item[0], folder, confinement)
            if not told:
                main.send(("facts", pair.facts()))
                told = True
            _play(item, pair, log, main, stop)
            main.send(("done", None))
    except (EOFError, BrokenPipeError):
        pass
    except RunStopped as stopped:
        main.send(("failed", str(stopped)))
    except OSError as error:
        main.send(
            ("failed", f"cannot write {folder}: {error.strerror}; once that is fixed, run the same command again")
        )


def _agree(main: Connection, stop: Connection) -> None:
    """Return if the main process lives after a match; else raises EOFError, and the match does not count.

    Once that process is gone its warden kills the bots, so a match may have ended by no fault of theirs.
    """
    main.send(("ended", None))
    while not main.poll(_POLL_SECONDS):
        if stop.poll():  # the main process told it, which Ctrl-C may have kept from an answer
            return
    main.recv()


def _play(item: Work, pair: Pair, log: Log, main: Connection, stop: Connection) -> None:
    pairing, matches = item
    write = Writer(log.path(pairing))
    try:
        for line in pair.play(matches):
            _agree(main, stop)
            write(line)
            main.send(("match", None))
            if stop.poll():
                return
    finally:
        write.close()
