"""A player whose decisions are made by a program, over JSON Lines on its standard input and output.

docs/programs.md describes the messages. A program is started in the sandbox when its first decision in a game is due.
Its answers are recorded like a model's, so replays do not start it. An agent gets the same messages from
`remote.AgentSeat` instead.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

from pydantic import BaseModel, ValidationError

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.files import CheckedModel
from dubito.game import Ending, Game, Results
from dubito.llm.decide import GameServices
from dubito.llm.protocols import read_reply
from dubito.llm.request import Asks, Attempt, Place, RawReply, Reply, Request, compute_draw
from dubito.llm.settings import describe_invalid_setting
from dubito.sandbox.consent import Permits, require_consent
from dubito.sandbox.process import MAX_LINE_BYTES, Channel, Keeper, wait_for_line
from dubito.sandbox.programs import (
    BotProgram,
    Confinement,
    files_below,
    find_reads,
    load_program,
    machine_memory,
    probe,
)
from dubito.sandbox.view import visible_paths
from dubito.settings import setting
from dubito.store.folder import RUNS

PROTOCOL: Final = 1
_START_SECONDS: Final = 30.0  # seconds for the answer to `hello`, since some languages start slowly
_END_SECONDS: Final = 0.5  # seconds between the end of the output and the end of the process
_MEMORY_SHARE: Final = 4  # a program can use 1/_MEMORY_SHARE of the machine's memory
_MAX_IDLE: Final = 16  # processes of a player that wait for another game
_DATA_BYTES: Final = 64 << 20
_PROCESS_HINT: Final = "write it as `process: [python3, my_bot.py]`"
_DEADLINE: Final = 5.0  # seconds
_REMOTE_DEADLINE: Final = 300.0  # seconds; an agent may think and call its own model
_MAX_DEADLINE: Final = 24 * 3600.0  # seconds
_MAX_QUOTED: Final = 200  # maximum number of characters of standard error in a message
_MAX_LEGAL: Final = 1000  # maximum number of legal answers that are listed
_session_numbers: Final = count()
_WORD: Final = re.compile(r"[\w.-]+")
_SEED_DIGITS: Final = 12  # hexadecimal digits; JavaScript's numbers represent them exactly


class ProgramSettings(CheckedModel):
    """A program player's settings, besides `bot` and `name`."""

    process: list[str] | None = setting("Command that starts the program.", metavar="[WORD, ...]", min_length=1)
    remote: bool = setting("Whether an agent answers through `dubito seat`, over HTTP or MCP.", default=False)
    deadline: float | None = setting(
        "Time limit per decision, in seconds.", usual="5, or 300 for an agent", gt=0, le=_MAX_DEADLINE
    )

    written_by: str = setting("Model that wrote the program, for leaderboards; `dubito forge` sets it.", "")
    reads: list[str] = setting("Other files and folders that the program can read.", [], metavar="[PATH, ...]")

    def complete(self) -> dict[str, object]:
        """Return all settings that apply, including defaults."""
        kind = {"remote": True} if self.remote else {"process": self.process}
        reads = {"reads": self.reads} if self.reads else {}
        author = {"written_by": self.written_by} if self.written_by else {}
        return {
            **kind,
            **reads,
            **author,
            "deadline": self.deadline or (_REMOTE_DEADLINE if self.remote else _DEADLINE),
        }


def check_program(
    name: str, settings: Mapping[str, object], defaults: Mapping[str, object], folder: Path | None, home: Path
) -> dict[str, object]:
    """Return a player's complete settings, with the digest of its files. Raises UsageError.

    Args:
        name: The player's name.
        settings: Its settings in the config.
        defaults: The settings in the `bot.yaml` of its bot.
        folder: The folder of its bot, or None if the config contains the command.
        home: The working directory.
    """
    if twice := settings.keys() & defaults.keys() & {"process"}:
        raise UsageError(f"{one_line(name)}: the bot already sets {twice.pop()}", hint="remove it")
    try:
        checked = ProgramSettings.model_validate({**defaults, **settings})
    except ValidationError as invalid:
        error = invalid.errors()[0]
        if error["loc"][0] == "process":
            raise UsageError(
                "must be a list of words", where=f"{one_line(name)}: process", hint=_PROCESS_HINT
            ) from None
        raise describe_invalid_setting(name, error, ProgramSettings) from None
    if (checked.process is None) != checked.remote:
        problem = "is needed" if checked.process is None else "is not possible with `remote: true`"
        raise UsageError(problem, where=f"{one_line(name)}: process", hint=_PROCESS_HINT)
    if checked.remote:
        return checked.complete()
    complete = checked.complete()
    if folder is not None:
        complete["folder"] = str(folder.relative_to(home) if folder.is_relative_to(home) else folder)
    program = find_program(name, complete, home)
    files = {*program.files(), *(path for path in files_below(folder) if path.is_file())} if folder else program.files()
    digest = sha256()
    for path in sorted(files):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {one_line(str(path))}, a program's file: {error.strerror}") from None
        relative = os.path.relpath(path, program.home)
        digest.update(f"{relative}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return {**complete, "files": digest.hexdigest()}


def find_program(name: str, settings: Mapping[str, Any], home: Path) -> BotProgram:
    """Return the program of a player with complete settings. Raises UsageError if it cannot be started."""
    folder = home / settings.get("folder", "")
    program = load_program(name, settings["process"], folder, one_line(name))
    reads = find_reads(settings.get("reads", ()), folder, one_line(name))
    return replace(program, reads=reads, owns_home="folder" in settings)


def try_programs(programs: Sequence[BotProgram], home: Path, permits: Permits) -> None:
    """Start and stop programs, with the user's consent. Raises UsageError if one cannot play."""
    require_consent(programs, permits)
    confinement = make_confinement(permits)
    for program in programs:
        probe(program, [home / RUNS], confinement)


class ProgramError(Exception):
    """A program or agent did something wrong, which the message describes."""


class Answers(Protocol):
    """A program or agent that plays one game."""

    def answer(self, messages: Sequence[Mapping[str, object]], check: Callable[[str], None]) -> str:
        """Send messages and return the line that answers the last one. Raises ProgramError.

        `check` raises IllegalOutput for an unusable line.
        """

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message that requires no answer."""

    def stop(self) -> None:
        """End the game early."""


class Players(Protocol):
    """The source of processes or agents for a player's games."""

    def take(self, game: int, deal: int, session: int, /) -> Answers:
        """Return the process or agent that will play this game of this deal in a session."""

    def give_back(self, player: Any) -> None:
        """Take back a process or agent that has played its game."""


class RunningProgram:
    """A program in its sandbox, which can be started several times."""

    def __init__(
        self, program: BotProgram, deadline: float, confinement: Confinement, mark: str, hidden: Sequence[Path]
    ) -> None:
        self.resets = False  # whether the program can play another game
        self.sessions = dict[int, int]()  # by deal: the session that used this process and this data folder
        self._deadline, self._number = deadline, next(confinement.numbers)
        self._program, self._confinement, self._mark, self._hidden = program, confinement, mark, hidden
        self._data = tempfile.TemporaryDirectory(prefix="dubito-program-", ignore_cleanup_errors=True)
        self.folder = Path(self._data.name)
        environment = program.environment(mark, self.folder, 0)
        self._keeper: Keeper | None = confinement.keeper(program, environment, self.folder, hidden, _DATA_BYTES)
        self._channel: Channel | None = None

    @property
    def is_usable(self) -> bool:
        return self._keeper is None or not self._keeper.gone

    def answer(self, messages: Sequence[Mapping[str, object]], check: Callable[[str], None]) -> str:
        """Send messages and return the line that answers the last one. Earlier questions are asked again."""
        line, rest = "", messages
        while rest:
            count = 1 + next(k for k, message in enumerate(rest) if message["type"] != "event")
            is_hello = rest[count - 1]["type"] == "hello"
            line = self.exchange(rest[:count], _START_SECONDS if is_hello else self._deadline)
            rest = rest[count:]
            if is_hello:
                self.resets = _read_ready(line)
        return line

    def exchange(self, messages: Sequence[Mapping[str, object]], seconds: float) -> str:
        """Send messages and return the line that answers the last one. Raises ProgramError on a fault."""
        if self._channel is None:
            self._channel = self._start(int(str(messages[0].get("seed", 0))))
        channel = self._channel
        if channel.lines:
            raise ProgramError("it printed a line without being asked")
        channel.send(b"".join(map(_encode, messages)))
        line = wait_for_line(channel, seconds)
        if line is None and not channel.closed:
            raise ProgramError(f"it did not answer within {seconds:g} s")
        if line is None:
            has_ended = channel.wait_for_end(_END_SECONDS)
            channel.shut()
            status = f"exit code {channel.status}" if isinstance(channel.status, int) else channel.status
            problem = f"it ended ({status})" if has_ended else "it closed its standard output"
            errors = " ".join(channel.errors.split())[-_MAX_QUOTED:]
            quoted = f": {one_line(errors)}" if errors else ""
            raise ProgramError(f"{problem}{quoted}{self._describe_unseen(channel.errors)}")
        if len(line) >= MAX_LINE_BYTES:
            raise ProgramError(f"it printed a line of more than {MAX_LINE_BYTES - 1:,} bytes")
        return line.decode("utf-8", "backslashreplace")

    def _describe_unseen(self, errors: str) -> str:
        """Return a hint if the program's errors name a file beside it that it cannot read."""
        program, words = self._program, {*_WORD.findall(errors)}
        if program.owns_home:
            return ""
        visible = {*visible_paths(program.command, program.home, False, program.reads, self._hidden)}
        for path in sorted(program.home.iterdir()):
            if not words.isdisjoint({path.name, path.stem}) and str(path) not in visible:
                shown = one_line(path.name, 80)
                return f"; it cannot read {shown}: add `reads: [{shown}]`"
        return ""

    def send(self, message: Mapping[str, object]) -> None:
        if self._channel is not None:
            self._channel.send(_encode(message))

    def _start(self, seed: int) -> Channel:
        keeper = self._keeper
        if keeper is not None:
            return Channel(lambda pipes: keeper.start(pipes, seed, self._confinement.core(self._number)))
        environment = self._program.environment(self._mark, self.folder, seed)
        start = self._confinement.start_directly(
            self._program, environment, self.folder, self._hidden, self._number, _DATA_BYTES
        )
        return Channel(start)

    def stop(self) -> None:
        """Kill the program and everything it started."""
        self.resets = False
        if self._channel is not None:
            self._channel.shut()
            self._channel = None
            self._confinement.end_orphans(self._mark)

    def close(self) -> None:
        self.stop()
        if self._keeper is not None:
            self._keeper.close()
        self._data.cleanup()


def _encode(message: Mapping[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class ProgramPool:
    """A player's processes. Those that can be reset are kept for later games.

    No process, data folder or keeper plays two games of a deal: in the first game, a program could note the cards that
    it will meet in the second.
    """

    def __init__(
        self, program: BotProgram, deadline: float, confinement: Confinement, mark: str, hidden: Sequence[Path]
    ) -> None:
        """Create an empty pool.

        `mark` identifies the processes of a run. `hidden` lists files that the program must not see.
        """
        self._set_up = partial(RunningProgram, program, deadline, confinement, mark, hidden)
        self._idle = [self._set_up()]
        self._lock = Lock()

    def take(self, _game: int, deal: int, session: int, /) -> RunningProgram:
        with self._lock:
            fresh = [player for player in self._idle if player.sessions.get(deal, session) == session]
            player = fresh[-1] if fresh else None
            if player is not None:
                self._idle.remove(player)
        player = player or self._set_up()
        player.sessions[deal] = session
        return player

    def give_back(self, player: RunningProgram) -> None:
        if not player.resets:
            player.stop()
        surplus = None if player.is_usable else player
        with self._lock:
            if surplus is None:
                self._idle.append(player)
            if len(self._idle) > _MAX_IDLE:
                surplus = self._idle.pop(0)
        if surplus is not None:
            surplus.close()

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()


@dataclass(eq=False, slots=True)
class ProgramSession:
    """The messages sent to a program in one seat of one game, and its answers.

    With `records_faults`, a fault is recorded like an answer. Otherwise, a fault ends the run and is not recorded.
    """

    pool: Players
    records_faults: bool
    is_greeted: bool = False  # whether the program has been asked in this game
    _number: int = field(default_factory=_session_numbers.__next__)
    _read: Callable[[Reply], object] = lambda reply: None
    _messages: list[Mapping[str, object]] = field(default_factory=list)
    _sent: int = 0  # number of messages
    _running: Answers | None = None
    _fault: str = ""  # the reason why the program is not asked again in this game

    def add(self, message: Mapping[str, object]) -> None:
        """Add a message that the program gets before its next question."""
        self._messages.append(message)

    def put_question(
        self, hello: Mapping[str, object], message: Mapping[str, object], read: Callable[[Reply], object]
    ) -> None:
        """Add a question. `hello` precedes the first message.

        `read` raises IllegalOutput for an unusable answer.
        """
        if not self.is_greeted:
            self._messages.insert(0, hello)
            self.is_greeted = True
        self._messages.append(message)
        self._read = read

    def ask(self, attempt: Attempt) -> Reply:
        """Return the answer to the last message. Raises IllegalOutput for faults that are not recorded.

        If earlier answers came from the recording, the program gets all messages so far. It answers the earlier
        questions again, but the recorded answers are used.
        """
        try:
            recorded = {"line": self._request_line(attempt.place)}
        except ProgramError as error:
            if not self.records_faults:
                raise IllegalOutput(str(error)) from None
            recorded = {"error": str(error)}
        reply = _build_reply(recorded)
        if not self.records_faults:
            self._read(reply)
        return reply

    def _check(self, line: str) -> None:
        self._read(_build_reply({"line": line}))

    def _request_line(self, place: Place) -> str:
        if self._fault:
            raise ProgramError(self._fault)
        if self._running is None:
            self._running = self.pool.take(place.game, place.deal, self._number)
        new, self._sent = self._messages[self._sent :], len(self._messages)
        try:
            return self._running.answer(new, self._check)
        except ProgramError as error:
            self._fault = f"it was stopped after an error in this game: {error}"
            self.close()
            raise

    def end(self, results: Results, ending: Ending) -> None:
        """Tell the program how the game ended. Keep it if it can play another game."""
        if self._running is not None:
            marks = [results.describe_ending(mark, ending.capped) for mark in ending.marks]
            rest = self._messages[self._sent :]
            for message in (*rest, {"type": "end", "results": marks}):
                self._running.send(message)
            self.pool.give_back(self._running)
            self._running = None

    def close(self) -> None:
        """Stop the program. If it is asked again, it will get all messages from the start."""
        self._sent = 0
        if self._running is not None:
            self._running.stop()
            self.pool.give_back(self._running)
            self._running = None


def _build_reply(recorded: Mapping[str, str]) -> Reply:
    return read_reply("program", RawReply(200, json.dumps(recorded)))


def _read_ready(line: str) -> bool:
    """Return whether the program can be reset. Raises ProgramError unless the line answers `hello`."""
    content: object = None
    with suppress(ValueError, RecursionError):
        content = json.loads(line)
    if not isinstance(content, dict) or content.get("ready") is not True:
        raise ProgramError(f'it answered hello with {one_line(repr(line), 80)} instead of {{"ready": true}}')
    return content.get("resets") is True


@dataclass(frozen=True, slots=True)
class ProgramPlayer:
    """A program that plays in all games of a run."""

    name: str
    game: Game
    rules: BaseModel  # in the form that the game's notebook expects
    seed: int | str
    deadline: float
    steady_facts: Set[str]  # names of the facts that are part of `hello`
    record: Callable[[Asks], Asks]  # adds the recording of a run, or replaces the program with it
    pool: Players | None  # None in a replay
    records_faults: bool = False
    attempt: int = 0  # the number under which its answers are recorded

    def open_game(self, seats: int) -> "ProgramGame":
        session = None if self.pool is None else ProgramSession(self.pool, self.records_faults)
        return ProgramGame(self, seats, session, self.record(session or _NoProgram()))


class _NoProgram:
    """A placeholder for the program during a replay."""

    def ask(self, attempt: Attempt) -> Reply:
        raise AssertionError("replays do not start programs")


@dataclass(frozen=True, slots=True)
class ProgramGame:
    """The service that ProgramBot uses in one game."""

    player: ProgramPlayer
    seats: int
    session: ProgramSession | None
    asks: Asks

    def observe(self, event: object) -> None:
        if self.session is not None:
            content = asdict(event) if is_dataclass(event) and not isinstance(event, type) else {}
            content.pop("only", None)
            kind = type(event).__name__.removesuffix("Event")
            self.session.add({"type": "event", "event": kind, "data": content})

    def ask(
        self,
        place: Place,
        facts: Mapping[str, object],
        legal: Sequence[object] | None,
        schema: Mapping[str, object],
        read: Callable[[Reply], object],
    ) -> object:
        """Ask a question and return the reply as parsed by `read`. Raises IllegalOutput if the program fails."""
        player = self.player
        message = {
            "type": "decide",
            "node": place.node,
            "facts": {key: fact for key, fact in facts.items() if key not in player.steady_facts},
            "legal": None if legal is None or len(legal) > _MAX_LEGAL else [*legal],
            "schema": schema,
            "seconds": player.deadline,
        }
        if self.session is not None:
            seed = compute_draw(player.seed, replace(place, decision=-1), 0)
            hello = {
                "type": "hello",
                "protocol": PROTOCOL,
                "game": player.game.name,
                "rules": player.rules.model_dump(),
                "seat": place.seat,
                "seats": self.seats,
                "seed": int(seed[:_SEED_DIGITS], 16),
                "facts": {key: fact for key, fact in facts.items() if key in player.steady_facts},
            }
            self.session.put_question(hello, message, read)
        request = Request("program", "", message)
        reply = self.asks.ask(Attempt(request, compute_draw(player.seed, place, 0), place))
        if reply.finish != "stop":
            raise IllegalOutput(reply.text or "")
        return read(reply)


def make_confinement(permits: Permits) -> Confinement:
    """Return the confinement for a run's programs, each of which runs on one core."""
    cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else None
    return Confinement(machine_memory() // _MEMORY_SHARE, cores, allow_unsandboxed=permits.unsandboxed)


def end_programs(services: Sequence[object], results: Results, ending: Ending) -> None:
    """Tell a game's programs how the game ended."""
    for session in _sessions(services):
        session.end(results, ending)


def close_programs(services: Sequence[object]) -> None:
    """Stop the programs of an unfinished game."""
    for session in _sessions(services):
        session.close()


def _sessions(services: Sequence[object]) -> list[ProgramSession]:
    programs = [each.adviser if isinstance(each, GameServices) else each for each in services]
    return [each.session for each in programs if isinstance(each, ProgramGame) and each.session is not None]
