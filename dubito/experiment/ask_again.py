"""`dubito replay --programs`: start the programs of a run again, and compare their answers with the recorded ones.

A manifest states which commands and files played. Without this, a replay cannot tell who gave the answers.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dubito.errors import UsageError, join_names, one_line
from dubito.experiment.experiment import kind_of_player
from dubito.experiment.models import open_programs
from dubito.experiment.stored import Run
from dubito.llm.recording import Differs, ReplayRecording
from dubito.llm.request import Asks, Attempt, Reply
from dubito.sandbox.consent import Permits, require_consent
from dubito.seats.program import ProgramPlayer, check_program, find_program

_MAX_ANSWER: Final = 200  # characters of an answer in a message


@contextmanager
def start_programs(run: Run, permits: Permits, warn: Callable[[str], None]) -> Iterator[dict[str, ProgramPlayer]]:
    """Start a run's programs, to be asked again. `warn` receives what cannot be asked or enforced.

    Raises UsageError if the run has no programs, or one cannot be started or may not be.
    """
    specs = run.resolved.programs
    programs = [spec.name for spec in specs if kind_of_player(spec) == "program"]
    if agents := [one_line(spec.name) for spec in specs if spec.name not in programs]:
        warn(f"agents cannot be asked again; that {join_names(agents)} played as an agent is only claimed")
    if not programs:
        raise UsageError(f"{run} has no programs that could be asked again", hint="leave out --programs")
    home = run.registry.working_directory
    require_consent([find_program(spec.name, spec.settings, home) for spec in specs if spec.name in programs], permits)
    with TemporaryDirectory(prefix="dubito-replay-") as mark:
        hidden, seats = [Path(mark), run.folder], dict[str, Any]()
        opened = open_programs(
            run.resolved, hidden, permits, warn, lambda server, program: program, seats, lambda: False
        )
        with opened as players:
            yield {name: players[name] for name in programs}


def compare_with(
    recording: ReplayRecording, started: Mapping[str, ProgramPlayer], run: Run
) -> dict[str, ProgramPlayer]:
    """Return started programs whose answers are compared with the recording.

    Raises Differs if the files of one are not those in the manifest.
    """
    for spec in run.experiment.players:
        if spec.name not in started:
            continue
        home, settings = run.registry.working_directory, spec.settings
        given = {key: value for key, value in settings.items() if key not in ("files", "folder")}
        folder = home / settings["folder"] if "folder" in settings else None
        now = check_program(spec.name, given, {}, folder, home)["files"]
        if now != settings.get("files"):
            details = [f"recorded: {one_line(str(settings.get('files')))}", f"now: {now}"]
            raise Differs(one_line(spec.name), "the program's files are not those in the manifest (SHA-256)", details)
    return {
        name: replace(player, record=lambda program: _AnswerCheck(recording, program), records_faults=True)
        for name, player in started.items()
    }


@dataclass(slots=True)
class _AnswerCheck:
    """Returns the recorded answers, after the program has given the same ones."""

    recording: ReplayRecording
    program: Asks

    def ask(self, attempt: Attempt) -> Reply:
        """Return the recorded reply. Raises Differs if the program answers differently now."""
        recorded = self.recording.ask(attempt)
        now = self.program.ask(attempt)
        if _read_answer(now) != _read_answer(recorded):
            details = [f"recorded: {_describe_reply(recorded)}", f"now: {_describe_reply(now)}"]
            raise Differs(str(attempt.place), "the program answers differently now", details)
        return recorded


def _read_answer(reply: Reply) -> Any:
    """Return an answer to compare. All errors are equal, since their messages can contain times and process ids."""
    if reply.finish != "stop":
        return None
    try:
        return json.loads(reply.text or "")
    except ValueError:
        return reply.text


def _describe_reply(reply: Reply) -> str:
    prefix = "" if reply.finish == "stop" else "an error: "
    return f"{prefix}{one_line(reply.text or '', _MAX_ANSWER)}"
